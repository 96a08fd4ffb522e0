"""The contract file: what is declared about a stream before anyone looks at it, and rows read by it."""
