"""Spent privacy as data: events, the exact reading of them, the paper's reading, and the ledger."""
