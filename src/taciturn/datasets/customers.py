"""A simulated table of customers as a company would export it: dates, categories, text, gaps and repeated customers."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from taciturn.errors import InvalidInput, integer, needs_extra

if TYPE_CHECKING:
    import pandas as pd

COUNTRIES = ("DE", "FR", "NL", "PL", "other")
PLANS = ("free", "basic", "plus")
FIRST_DAY, LAST_DAY = "2018-01-01", "2025-12-31"
"""Subscriptions begin between these days."""

MOST_SPENT = 1e5
"""The largest `spend_next_year`."""

_MISSPELT = ("de", "Germany", "Frankreich", "XX")
_REQUESTS = (
    "asked how to cancel",
    'wants to cancel, said: "too expensive"',
    'called twice, line "too slow"',
    "price too high?",
    "invoice sent again, to the new address",
    "happy with the service",
    'asked for the "family" plan, and a quote',
    "recommended us to a friend",
)
_EFFECTS = (2.3, 2.6, 1.4, 1.1, 0.0, -1.3, -1.6, -1.5)
"""Notes, and what they add to the log-odds of leaving."""


@overload
def customers(n: int = ..., seed: int = ..., *, as_frame: Literal[False] = ...) -> dict[str, NDArray[Any]]: ...


@overload
def customers(n: int = ..., seed: int = ..., *, as_frame: Literal[True]) -> pd.DataFrame: ...


def customers(n: int = 200_000, seed: int = 0, *, as_frame: bool = False) -> dict[str, NDArray[Any]] | pd.DataFrame:
    r"""A simulated table of subscriptions, one a row, as a company would export it.

    The 200,000 rows belong to 56,655 customers. The median customer has three subscriptions, and one, a reseller, has
    7,701. Rows are in no particular order.

    | column | content | missing |
    |---|---|---|
    | `customer_id` | an integer | 0 |
    | `signed_up` | first day of the subscription, 2018 to 2025, as ISO text | 4 % |
    | `country` | DE, FR, NL, PL or other; 1 % are spelt in another way | 2 % |
    | `plan` | free, basic or plus; 0.5 % are "legacy", a plan that is no longer sold | 0 |
    | `age` | of the customer, 18 to 99 | 6 % |
    | `income` | of the customer, 0 to 1e6, log-normal; 2 % are 0 | 12 % |
    | `visits` | to the web site in the last month, 0 to 60 | 3 % |
    | `tickets` | questions to the support in the last year, 0 to 20 | 0 |
    | `note` | text with commas, quotes and, in 0.5 % of the rows, newlines | 60 % |
    | `churned` | "yes" or "no": whether the subscription ends within a year | 0 |
    | `spend_next_year` | 0 to 1e5 | 0 |

    Both targets depend on the other columns, on a taste of the customer that no column has, and on chance. Gaps are at
    random. Linear models without privacy predict `churned` with an accuracy of about 77 % without the notes and 81 %
    with them (69 % are "no"), and `spend_next_year` with an R² of about .55.

    Parameters
    ----------
    n : int
        The number of rows, at least 10.
    seed : int
        Seed of the simulation; equal seeds give equal tables.
    as_frame : bool
        Return a pandas DataFrame, which needs the extra `data`.

    Returns
    -------
    dict of str to ndarray, or DataFrame
        The columns; missing numbers are NaN, and missing texts are empty.

    Examples
    --------
    >>> table = customers(1000, seed=1)
    >>> len(set(table["customer_id"].tolist())), sorted(set(table["churned"].tolist()))
    (283, ['no', 'yes'])
    """
    n = integer("n", n, least=10)
    rng = np.random.default_rng(seed)
    who = _owners(n, rng)
    people = int(who.max()) + 1
    number = (rng.permutation(10 * people)[:people] + 100_000)[who]
    age = np.clip(np.round(rng.gamma(9.0, 5.0, people)), 18.0, 99.0)[who]
    income = np.minimum(np.round(rng.lognormal(10.3, 0.8, people), -2), 1e6)
    income = np.where(rng.random(people) < 0.02, 0.0, income)[who]
    country = rng.choice(np.array(COUNTRIES, dtype=object), people, p=[0.4, 0.25, 0.15, 0.12, 0.08])[who]
    taste = rng.normal(0.0, 0.5, people)[who]

    days = int((np.datetime64(LAST_DAY) - np.datetime64(FIRST_DAY)).astype(int)) + 1
    day = np.floor(days * np.sqrt(rng.random(n)))  # more of them every year
    years = (days - day) / 365.25
    plan = rng.choice(np.array(PLANS, dtype=object), n, p=[0.45, 0.35, 0.2])
    visits = np.minimum(rng.negative_binomial(2.0, 0.15, n), 60).astype(float)
    tickets = np.minimum(rng.poisson(rng.gamma(1.0, 1.5, n)), 20)
    noted = rng.random(n) < 0.4
    request = rng.integers(len(_REQUESTS), size=n)

    basic, plus, wealth = plan == "basic", plan == "plus", np.log1p(income / 3e4)
    leaving = (
        0.5
        - 0.4 * years
        - 0.13 * (visits - 11.0)
        + 0.45 * (tickets - 1.5)
        - 0.04 * (age - 45.0)
        - 1.1 * basic
        - 2.2 * plus
        - 0.6 * (wealth - 0.7)
        + 0.5 * (country == "PL")
        - 0.4 * (country == "FR")
        + np.where(noted, np.array(_EFFECTS)[request], 0.0)
        + taste
    )
    churned = rng.random(n) < 1.0 / (1.0 + np.exp(-leaving))
    spend = 11_000.0 * basic + 30_000.0 * plus + 14_000.0 * wealth + 420.0 * visits + 900.0 * years + 3_000.0 * taste
    spend = np.clip(spend * rng.gamma(7.5, 1.0 / 7.5, n), 0.0, MOST_SPENT)

    def gaps(values: NDArray[Any], share: float, empty: Any) -> NDArray[Any]:
        return np.where(rng.random(n) < share, empty, values)

    dates = np.datetime_as_string(np.datetime64(FIRST_DAY) + day.astype(int)).astype(object)
    country = gaps(country, 0.01, rng.choice(np.array(_MISSPELT, dtype=object), n))
    note = np.where(noted, np.array(_REQUESTS, dtype=object)[request], "")
    second = rng.random(n) < 0.005
    note[second] = "first call: " + note[second] + "\nsecond call: no answer"
    table: dict[str, NDArray[Any]] = {
        "customer_id": number,
        "signed_up": gaps(dates, 0.04, ""),
        "country": gaps(country, 0.02, ""),
        "plan": gaps(plan, 0.005, "legacy"),
        "age": gaps(age, 0.06, np.nan),
        "income": gaps(income, 0.12, np.nan),
        "visits": gaps(visits, 0.03, np.nan),
        "tickets": tickets,
        "note": note,
        "churned": np.where(churned, "yes", "no").astype(object),
        "spend_next_year": np.round(spend, 2),
    }
    if not as_frame:
        return table
    try:
        import pandas as pd
    except ImportError:
        raise InvalidInput(needs_extra("as_frame", "data", "pandas")) from None
    return pd.DataFrame(table)


def write_customers(path: str | os.PathLike[str], n: int = 200_000, seed: int = 0) -> Path:
    r"""Write the table of `customers` as a CSV file; missing values are empty cells.

    Parameters
    ----------
    path : str or path
        The file, which is replaced if it exists.
    n, seed : int
        As in `customers`.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_customers(f"{folder}/customers.csv", 100).read_text(encoding="utf-8").split("\n")[0]
    'customer_id,signed_up,country,plan,age,income,visits,tickets,note,churned,spend_next_year'
    """
    table: Mapping[str, NDArray[Any]] = customers(n, seed)
    columns = [[_cell(value) for value in column.tolist()] for column in table.values()]
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table)
        writer.writerows(zip(*columns, strict=True))
    return Path(path)


def _owners(n: int, rng: np.random.Generator) -> NDArray[Any]:
    """The customer of each row, from 0 on: a reseller with a share of the rows, and the others with one or more."""
    people, reseller = round(0.283275 * n), max(1, round(0.038505 * n))
    spread = rng.lognormal(0.0, 0.5, people - 1)
    rest = n - reseller - (people - 1)
    counts = np.append(reseller, 1 + rng.multinomial(rest, spread / spread.sum()))
    return rng.permutation(np.repeat(np.arange(people), counts))


def _cell(value: Any) -> Any:
    """A value as text: whole numbers without decimals, gaps empty."""
    if not isinstance(value, float):
        return value
    return "" if value != value else f"{value:.2f}".removesuffix(".00")
