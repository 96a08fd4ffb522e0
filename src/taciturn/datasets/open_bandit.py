"""The small sample of the Open Bandit Dataset: clicks on recommended clothes, logged with propensities."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from taciturn.datasets.files import copy_of, find, load, same_bytes
from taciturn.datasets.scaling import indicators, shortened
from taciturn.errors import InvalidInput, one_of
from taciturn.kernel.arrays import Array, Integers

URL = "https://raw.githubusercontent.com/st-tech/zr-obp/8cbd5fa4558b7ad2ba4781546d6604e4cc3e07c4/obd/random/all/all.csv"
ITEMS_URL = URL.replace("all.csv", "item_context.csv")
LOGS = {
    "random": (5_039_451, "7168295b6e0a9eabcf3392320a5dd434e542b68e705d5cd9491499af589812f1"),
    "bts": (5_084_456, "0ad874e4dbf6902f0845dd478ad8dde5ef6903583d3ffaace78411bdad064106"),
}
"""Bytes of each log, and their SHA-256, unpacked."""

ITEM_CONTEXT = (10_041, "eba04cc23d5f130a93ff174c5392986882b94c3839433cb8143870eaa6221358")
"""Bytes of the table of items, and their SHA-256, unpacked."""

ITEMS, POSITIONS = 80, (1, 2, 3)
USER_FEATURES = {
    "user_feature_0": "4ae3 81ce cef3",
    "user_feature_1": "03a5 2d03 6ff5 8b50 f1c2",
    "user_feature_2": "2723 302d 719d 7ae3 7bc9 9b2d 9f4e c2e4 c7cc",
    "user_feature_3": "05b7 0612 1f54 270b 3aef 9bde c39b ec6c f975",
}
"""The first four digits of the hashes that stand for a visitor's categories."""

ITEM_FEATURES = {
    "item_feature_1": "20c6 31af 62dc 782a 957b aed7 bf3c c07e d2ef deb3 e2d1 e9d1",
    "item_feature_2": "1aea 1c26 2856 2a6d 2e37 3d18 3f1d 442b 538c 634e 6750 7c5d 84da a521 b337 baf3 cf7f db89 e081 "
    "e1d8 feef",
    "item_feature_3": "1ced 1ead 2db6 57d4 5c1e c5f3 f56f",
}
"""The first four digits of the hashes that stand for an item's categories."""

LOGGED = ("item_id", "position", "click", "propensity_score")
AFFINITIES = tuple(f"user-item_affinity_{item}" for item in range(ITEMS))
NAMES = (
    *(f"{name}={value}" for name, values in USER_FEATURES.items() for value in values.split()),
    *(f"position={position}" for position in POSITIONS),
    *AFFINITIES,
)
ITEM_NAMES = (
    "item_feature_0",
    *(f"{name}={value}" for name, values in ITEM_FEATURES.items() for value in values.split()),
)
Policy = Literal["random", "bts"]


@dataclass(frozen=True, eq=False)
class BanditLog:
    """Decisions of a policy in their order: context, action, reward, and the probability of the action.

    Attributes
    ----------
    contexts : ndarray
        One decision a row.
    actions : ndarray of int
        What was shown, from 0 to `arms - 1`.
    rewards, propensities : ndarray
        What it earned, and the probability with which the logging policy chose it.
    positions : ndarray of int
        The place on the page, 1 to 3, which is part of the context too.
    arms : int
        Number of actions that there are.
    names : tuple of str
        What the entries of a context are.
    feature_bound : float
        Public bound on the norm of a context.
    """

    contexts: Array
    actions: Integers
    rewards: Array
    propensities: Array
    positions: Integers
    arms: int
    names: tuple[str, ...]
    feature_bound: float

    def __len__(self) -> int:
        return len(self.rewards)


def open_bandit(policy: Policy = "random", path: str | os.PathLike[str] | None = None) -> BanditLog:
    """Which of 80 items is recommended to a visitor, and does the visitor click (1) or not (0)? 10,000 decisions.

    The small sample of the campaign "all": one week of November 2019 in the shop ZOZOTOWN, where visitors were assigned
    at random to one of two policies. `random` chose each item with probability 1/80, and has 38 clicks; `bts`,
    Thompson sampling for Bernoulli rewards, learnt as it went, and has 42. With so few clicks all estimates of a
    policy's value have wide intervals.

    A context has 109 entries, each row mapped by itself:

    - Four anonymous categories of the visitor (26 one-hot columns) and the position on the page (3). The categories
      are hashes without a published list, so that the list is a choice: the values that occur in the sample. Others
      leave their group at zero.
    - The visitor's affinities to the 80 items, which are numbers of earlier clicks: a vector that is scaled down to
      norm 1 if it is longer.
    - Everything is divided by sqrt(6), so that no row is longer than 1.

    Parameters
    ----------
    policy : {"random", "bts"}
        Whose log.
    path : path, optional
        The file `all.csv` of that policy, gzipped or not. If left out, `open_bandit_small_random_all.csv.gz` or
        `open_bandit_small_bts_all.csv.gz`, or the same without `.gz`, is looked for in the folder that the environment
        variable `TACITURN_DATA` names and in the cache (`~/.cache/taciturn`), and downloaded into the cache the first
        time. The SHA-256 checksum of the text is compared.

    Notes
    -----
    Source: Yuta Saito, Shunsuke Aihara, Megumi Matsutani, Yusuke Narita, *Open Bandit Dataset and Pipeline: Towards
    Realistic and Reproducible Off-Policy Evaluation*, 2020, arXiv 2008.07146; the sample is part of the package obp.
    Licence: Creative Commons Attribution 4.0 (CC BY 4.0).

    Examples
    --------
    `open_bandit()` reads the log of the random policy. A row of it becomes

    >>> from taciturn.datasets.open_bandit import AFFINITIES, LOGGED, USER_FEATURES, log_of
    >>> header = ",".join([*LOGGED, *USER_FEATURES, *AFFINITIES])
    >>> log = log_of([header, "14,3,1,0.0125,81ce12,03a564,c2e4f7,none,2" + 79 * ",0"])
    >>> {name: round(float(x * 6**0.5), 2) for name, x in zip(log.names, log.contexts[0], strict=True) if x}
    {'user_feature_0=81ce': 1.0, 'user_feature_1=03a5': 1.0, 'user_feature_2=c2e4': 1.0, 'position=3': 1.0,
     'user-item_affinity_0': 1.0}
    >>> log.actions, log.rewards, log.propensities
    (array([14]), array([1.]), array([0.0125]))
    """
    one_of("policy", policy, get_args(Policy))
    name, url = f"open_bandit_small_{policy}_all.csv", URL.replace("/random/", f"/{policy}/")
    file = find(name, url, f"{name}.gz") if path is None else Path(path)
    with copy_of(f"the Open Bandit sample of the policy {policy}", file, url):
        return log_of(same_bytes(load(file, "all.csv"), *LOGS[policy]).decode().splitlines())


def open_bandit_items(path: str | os.PathLike[str] | None = None) -> Array:
    """The features of the 80 items of `open_bandit`, one item a row, for models that share clicks between items.

    Column 0 is a number, as it is in the file; then come three anonymous categories as one-hot groups. The 41 columns
    are listed in `taciturn.datasets.open_bandit.ITEM_NAMES`. They describe goods, not visitors.

    Parameters
    ----------
    path : path, optional
        The file `item_context.csv`, gzipped or not; by default `open_bandit_small_item_context.csv.gz`, found as
        `open_bandit` finds its files.

    Examples
    --------
    `open_bandit_items()` reads all of them. A row of the table becomes

    >>> from taciturn.datasets.open_bandit import ITEM_NAMES, items_of
    >>> row = items_of(
    ...     ["item_id,item_feature_0,item_feature_1,item_feature_2,item_feature_3", "0,-0.5,aed7,6750,5c1e"]
    ... )[0]
    >>> {name: float(x) for name, x in zip(ITEM_NAMES, row, strict=True) if x}
    {'item_feature_0': -0.5, 'item_feature_1=aed7': 1.0, 'item_feature_2=6750': 1.0, 'item_feature_3=5c1e': 1.0}
    """
    name = "open_bandit_small_item_context.csv"
    file = find(name, ITEMS_URL, f"{name}.gz") if path is None else Path(path)
    with copy_of("the items of the Open Bandit sample", file, ITEMS_URL):
        return items_of(same_bytes(load(file, "item_context.csv"), *ITEM_CONTEXT).decode().splitlines())


def log_of(lines: Iterable[str]) -> BanditLog:
    """The lines of `all.csv`, with their header, as a log."""
    columns = _columns(lines, (*LOGGED, *USER_FEATURES, *AFFINITIES))
    try:
        item, position = (np.array(columns[name], dtype=np.int64) for name in ("item_id", "position"))
        click, propensity = (np.array(columns[name], dtype=np.float64) for name in ("click", "propensity_score"))
        affinity = np.stack([np.array(columns[name], dtype=np.float64) for name in AFFINITIES], axis=1)
    except ValueError:  # whose text repeats a value
        raise InvalidInput("it is not a table of decisions: a number is missing.") from None
    affinity /= np.maximum(1.0, np.linalg.norm(affinity, axis=1, keepdims=True))
    groups = [_groups(columns[name], values) for name, values in USER_FEATURES.items()]
    X = np.hstack([*groups, indicators(position, POSITIONS), affinity])
    longest = math.sqrt(len(USER_FEATURES) + 2)
    return BanditLog(shortened(X, longest), item, click, propensity, position, ITEMS, NAMES, feature_bound=1.0)


def items_of(lines: Iterable[str]) -> Array:
    """The lines of `item_context.csv`, with their header, as features."""
    columns = _columns(lines, ("item_feature_0", *ITEM_FEATURES))
    groups = [_groups(columns[name], values) for name, values in ITEM_FEATURES.items()]
    return np.hstack([np.array(columns["item_feature_0"], dtype=np.float64)[:, None], *groups])


def _groups(hashes: Sequence[str], listed: str) -> Array:
    return indicators([value[:4] for value in hashes], listed.split())


def _columns(lines: Iterable[str], names: Sequence[str]) -> dict[str, list[str]]:
    """These columns of a CSV file, as text."""
    reader = csv.reader(lines)
    header = next(reader, [])
    if absent := [name for name in names if name not in header]:
        raise InvalidInput(f"it has no column {absent[0]}.")
    rows = [row for row in reader if row]
    if any(len(row) != len(header) for row in rows):
        raise InvalidInput(f"it has a row of another number of fields than {len(header)}.")
    places = {name: header.index(name) for name in names}
    return {name: [row[place] for row in rows] for name, place in places.items()}
