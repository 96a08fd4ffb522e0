"""Mechanisms as users state them: fits of strategies, the paper's readings, and the choice of noise."""
