"""Engines: one stream, learnt by several processes or machines that add up integers."""
