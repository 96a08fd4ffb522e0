"""Rows of CSV, JSON lines and Parquet files, read as a contract declares them."""
