"""Streams to learn from: simulated ones, each from a seeded generator of its own, and public data sets."""

from taciturn.datasets.bikes import bike
from taciturn.datasets.census import adult
from taciturn.datasets.departures import flights
from taciturn.datasets.forest import covertype
from taciturn.datasets.housing import california_housing
from taciturn.datasets.simulated import Stream, ad_impressions, linear_regression
from taciturn.datasets.songs import year_prediction

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
