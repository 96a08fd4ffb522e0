"""A service that learns and predicts over HTTP."""
