"""Exact algorithms, each with a certificate of the sensitivity of its statistics."""
