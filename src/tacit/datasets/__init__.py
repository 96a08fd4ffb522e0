"""Streams to learn from: simulated ones here, each from a seeded generator of its own."""

from tacit.datasets.simulated import Stream, ad_impressions, linear_regression

__all__ = ["Stream", "ad_impressions", "linear_regression"]
