"""Example streams: simulated ones, each from its own seeded generator, and public data sets."""

from taciturn.datasets.adult import adult
from taciturn.datasets.bike import bike
from taciturn.datasets.california_housing import california_housing
from taciturn.datasets.covertype import covertype
from taciturn.datasets.customers import customers, write_customers
from taciturn.datasets.flights import flights
from taciturn.datasets.open_bandit import BanditLog, open_bandit, open_bandit_items
from taciturn.datasets.simulated import Stream, ad_impressions, linear_regression
from taciturn.datasets.year_prediction import year_prediction

__all__ = [
    "BanditLog",
    "Stream",
    "ad_impressions",
    "adult",
    "bike",
    "california_housing",
    "covertype",
    "customers",
    "flights",
    "linear_regression",
    "open_bandit",
    "open_bandit_items",
    "write_customers",
    "year_prediction",
]
