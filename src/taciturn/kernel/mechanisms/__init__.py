"""Strategies and noise: encoders, their sensitivities, lattices, and what noise of a standard deviation costs."""
