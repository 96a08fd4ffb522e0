"""Streams in a store: what is committed together, what follows from releases, and their text."""
