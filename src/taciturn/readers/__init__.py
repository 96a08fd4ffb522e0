"""Readers of CSV, JSON lines and Parquet files, which read rows as a contract declares them."""
