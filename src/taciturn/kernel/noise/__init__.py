"""The only source of secret random bits, and the samplers that turn them into noise."""
