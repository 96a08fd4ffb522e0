"""What releases cost, for whom, and the rules of a ledger, as numbers and pure functions."""
