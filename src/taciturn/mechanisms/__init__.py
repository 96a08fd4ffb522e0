"""Ways of hiding rows: each knows certificates, noise and lattices, and nothing of learners."""
