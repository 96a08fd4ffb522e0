"""What holds for every loader: offline it says what to download, and no row depends on another."""

import re
import urllib.error
import urllib.request
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from taciturn import datasets
from taciturn.errors import InvalidInput

# The package's attributes of these names are the loaders, not their modules.
census = import_module("taciturn.datasets.adult")
bikes = import_module("taciturn.datasets.bike")
housing = import_module("taciturn.datasets.california_housing")
forest = import_module("taciturn.datasets.covertype")
shop = import_module("taciturn.datasets.open_bandit")
departures = import_module("taciturn.datasets.flights")
songs = import_module("taciturn.datasets.year_prediction")

LOADERS = {
    datasets.adult: census,
    datasets.bike: bikes,
    datasets.california_housing: housing,
    datasets.covertype: forest,
    datasets.flights: departures,
    datasets.open_bandit: shop,
    datasets.year_prediction: songs,
}
DOWNLOADED = {load: module for load, module in LOADERS.items() if module is not departures}
PAGE = Path(__file__).parents[2] / "docs" / "datasets.md"


def test_every_loader_is_here_and_on_the_page():
    """Its name, its address and its checksum stand in the documentation."""
    simulated = {"Stream", "ad_impressions", "customers", "linear_regression", "write_customers"}
    beside = {"BanditLog", "open_bandit_items"}
    assert {load.__name__ for load in LOADERS} == set(datasets.__all__) - simulated - beside
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in datasets.__all__ if f"`{name}" not in page] == []
    assert [module.URL for module in DOWNLOADED.values() if module.URL not in page] == []
    assert f"pip install {departures.PACKAGE}=={departures.VERSION}" in page
    sums = [forest.TEXT[1], forest.COMPACT[1], songs.TEXT[1], bikes.CHECKSUM, housing.CHECKSUM, departures.CHECKSUM]
    sums += [checksum for _, checksum in (*shop.LOGS.values(), shop.ITEM_CONTEXT)]
    assert [checksum for checksum in sums if checksum not in page] == []


@pytest.mark.parametrize(("load", "module"), DOWNLOADED.items(), ids=lambda one: getattr(one, "__name__", ""))
def test_offline_says_what_to_download_and_where_to_put_it(load, module, tmp_path, monkeypatch):
    def reject(url, timeout):
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(urllib.request, "urlopen", reject)
    monkeypatch.setenv("TACITURN_DATA", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(InvalidInput, match=rf"Download {re.escape(module.URL)} and put it into {tmp_path}/own or"):
        load()


@pytest.mark.parametrize(("load", "module"), DOWNLOADED.items(), ids=lambda one: getattr(one, "__name__", ""))
def test_what_was_downloaded_is_checked(load, module, tmp_path, monkeypatch):
    """A page in the place of the data is rejected, though it came from the right address."""
    (tmp_path / "page").write_text("<html>Moved</html>")
    monkeypatch.setattr(module, "URL", (tmp_path / "page").as_uri())
    monkeypatch.setenv("TACITURN_DATA", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(InvalidInput, match=r"cache/taciturn/\S+ is not .* Put a fresh copy of file:"):
        load()


def rows(width):
    """Twenty rows that are none of any set, in an order that sorting keeps."""
    table = np.random.default_rng(3).integers(1, 13, size=(20, width))
    return table[np.lexsort(table.T[::-1])]


def cells(table):
    """The same as cells of forest."""
    return forest.Cells(300 * table[:, :10], table[:, 10] % 4, table[:, 11], 1 + table[:, 12] % 7)


def lines(table):
    """The same as text."""
    return "\n".join(",".join(map(str, row)) for row in table).encode()


@pytest.mark.parametrize(
    ("make", "width"),
    [
        (bikes.stream_of, len(bikes.COLUMNS)),
        (housing.stream_of, len(housing.UNITS)),
        (lambda table: departures.stream_of(table, "keep"), len(departures.COLUMNS)),
        (lambda table: forest.stream_of(cells(table), 2, unit=True), 13),
        (lambda table: songs.parse(lines(table)), 91),
    ],
    ids=["bike", "california_housing", "flights", "covertype", "year_prediction"],
)
def test_a_row_does_not_depend_on_the_others(make, width):
    """The first ten rows of twenty are what they are alone: nothing is learnt from the data."""
    few, many = make(rows(width)[:10]), make(rows(width))
    np.testing.assert_array_equal(few.X, many.X[:10])
    np.testing.assert_array_equal(few.y, many.y[:10])
    assert (few.feature_bound, few.label_bound) == (many.feature_bound, many.label_bound)
