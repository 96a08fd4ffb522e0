"""Streams to learn from: simulated ones, each from a seeded generator of its own, and public data sets."""

from tacit.datasets.census import adult
from tacit.datasets.simulated import Stream, ad_impressions, linear_regression

__all__ = ["Stream", "ad_impressions", "adult", "linear_regression"]
