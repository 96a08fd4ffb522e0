"""Mechanisms: they add noise to statistics of certified sensitivity, and know nothing of learners."""
