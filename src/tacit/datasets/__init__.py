"""Streams to learn from: simulated ones, each from a seeded generator of its own, and public data sets."""

from tacit.datasets.bikes import bike
from tacit.datasets.census import adult
from tacit.datasets.departures import flights
from tacit.datasets.forest import covertype
from tacit.datasets.housing import california_housing
from tacit.datasets.simulated import Stream, ad_impressions, linear_regression
from tacit.datasets.songs import year_prediction

__all__ = [
    "Stream",
    "ad_impressions",
    "adult",
    "bike",
    "california_housing",
    "covertype",
    "flights",
    "linear_regression",
    "year_prediction",
]
