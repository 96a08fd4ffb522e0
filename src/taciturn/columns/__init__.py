"""The columns and the target of a table: what is declared of them, and how their values become features."""
