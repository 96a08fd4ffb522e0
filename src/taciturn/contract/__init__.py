"""The contract file: what is declared about a stream before its first row is read."""
