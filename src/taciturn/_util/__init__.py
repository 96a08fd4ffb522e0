"""Utilities that every other package may use: array types, atomic writes, the cache folder and compilation."""
