"""Exact algorithms, each with the certificate of how far one example can move its rows."""
