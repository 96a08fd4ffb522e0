"""Spent privacy as data: costs, their exact reading, the paper's reading, the guarantee and the ledger."""
