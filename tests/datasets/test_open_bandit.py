"""The Open Bandit sample: rows within public bounds, and no file taken for it that is not it."""

import gzip
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.datasets import open_bandit, open_bandit_items
from taciturn.datasets.open_bandit import AFFINITIES, ITEM_NAMES, ITEMS, LOGGED, NAMES, USER_FEATURES, items_of, log_of
from taciturn.errors import InvalidInput

HEADER = ",".join(["", "timestamp", *LOGGED, *USER_FEATURES, *AFFINITIES])
HASHES = ("81ce123c", "03a5648a", "c2e4f76c", "f97571b9")


def line(item=14, position=3, click=0, propensity=0.0125, hashes=HASHES, affinities=(0.0,) * ITEMS) -> str:
    return ",".join(map(str, ["0", "2019-11-24", item, position, click, propensity, *hashes, *affinities]))


@pytest.fixture(scope="module", params=["random", "bts"])
def policy(request, data_file):
    name = f"open_bandit_small_{request.param}_all.csv"
    data_file(name, f"{name}.gz")
    return request.param


@pytest.fixture(scope="module")
def log(policy):
    return open_bandit(policy)


def test_a_line_becomes_a_decision():
    """What was shown, what it earned and how likely it was; the context is one-hot groups and scaled clicks."""
    affinities = [0.0] * ITEMS
    affinities[2], affinities[7] = 3.0, 4.0
    log = log_of([HEADER, line(click=1, affinities=affinities)])
    assert (len(log), log.arms) == (1, 80)
    assert (log.actions[0], log.rewards[0], log.propensities[0], log.positions[0]) == (14, 1.0, 0.0125, 3)
    context = log.contexts[0] * np.sqrt(6)
    row = {name: x for name, x in zip(log.names, context, strict=True) if x}
    assert row.pop("user-item_affinity_2") == pytest.approx(0.6)
    assert row.pop("user-item_affinity_7") == pytest.approx(0.8)
    groups = {f"{name}={value[:4]}" for name, value in zip(USER_FEATURES, HASHES, strict=True)}
    assert set(row) == groups | {"position=3"}
    assert list(row.values()) == pytest.approx([1.0] * 5)


@given(
    affinities=st.lists(st.floats(0.0, 1e150), min_size=ITEMS, max_size=ITEMS),
    position=st.integers(-5, 5),
    hashes=st.tuples(*[st.sampled_from(["none", *values.split()]) for values in USER_FEATURES.values()]),
)
def test_no_context_is_longer_than_the_bound(affinities, position, hashes):
    """By construction, whatever the line says."""
    log = log_of([HEADER, line(position=position, hashes=hashes, affinities=affinities)])
    assert np.linalg.norm(log.contexts) <= log.feature_bound


def test_the_bound_is_attained():
    """All groups and a click: a smaller bound would be wrong."""
    log = log_of([HEADER, line(affinities=[1.0] * ITEMS)])
    assert np.linalg.norm(log.contexts) == pytest.approx(log.feature_bound)


def test_a_row_does_not_depend_on_the_others():
    """Nothing is learnt from the rows."""
    others = [line(hashes=("x",) * 4), line(affinities=[9.0] * ITEMS, click=1)]
    np.testing.assert_array_equal(log_of([HEADER, line(), *others]).contexts[0], log_of([HEADER, line()]).contexts[0])


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([], "it has no column item_id."),
        ([HEADER.replace("click", "clack"), line()], "it has no column click."),
        ([HEADER, line() + ",1"], "it has a row of another number of fields than 90."),
        ([HEADER, line(click="secret")], "it is not a table of decisions: a number is missing."),
    ],
)
def test_what_is_no_log_is_rejected_and_not_repeated(lines, why):
    with pytest.raises(InvalidInput, match=f"^{re.escape(why)}$"):
        log_of(lines)


@pytest.mark.parametrize("load", [open_bandit, open_bandit_items])
def test_another_file_is_rejected_with_a_remedy(load, tmp_path):
    (tmp_path / "all.csv").write_text(f"{HEADER}\n{line()}\n")
    with pytest.raises(InvalidInput, match=r"all\.csv is not .*: it has .* bytes, not .* Put a fresh copy of https"):
        load(path=tmp_path / "all.csv")


def test_an_unknown_policy_is_rejected():
    with pytest.raises(InvalidInput, match=r"^policy must be"):
        open_bandit("greedy")


def test_the_real_logs_are_the_published_ones(policy, log):
    """Rows, clicks and propensities; contexts within the bound, every listed category in one of the logs."""
    assert log.contexts.shape == (10_000, 109) == (len(log), len(NAMES))
    assert log.rewards.sum() == {"random": 38, "bts": 42}[policy]
    assert set(np.unique(log.rewards)) == {0.0, 1.0}
    assert set(log.actions) == set(range(log.arms))
    assert set(log.positions) == {1, 2, 3}
    assert np.linalg.norm(log.contexts, axis=1).max() <= log.feature_bound
    if policy == "random":
        assert (log.propensities == 1 / log.arms).all()
    else:
        assert log.propensities.min() == pytest.approx(4.5e-5)


def test_the_real_log_with_one_click_more_is_rejected(policy, data_file, tmp_path):
    """The planted fault, of the same size; and the log of one policy is not that of the other."""
    name = f"open_bandit_small_{policy}_all.csv"
    file = data_file(name, f"{name}.gz")
    text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    (tmp_path / "all.csv").write_bytes(text.replace(b",0,0.0", b",1,0.0", 1))
    with pytest.raises(InvalidInput, match="its SHA-256 checksum is"):
        open_bandit(policy, tmp_path / "all.csv")
    with pytest.raises(InvalidInput, match="is not the Open Bandit sample of the policy"):
        open_bandit({"random": "bts", "bts": "random"}[policy], file)


def test_an_item_becomes_a_number_and_three_groups():
    header = "item_id,item_feature_0,item_feature_1,item_feature_2,item_feature_3"
    (row,) = items_of([header, "0,-0.5,aed79091,unknown,5c1e29f9"])
    shown = {name: x for name, x in zip(ITEM_NAMES, row, strict=True) if x}
    assert shown == {"item_feature_0": -0.5, "item_feature_1=aed7": 1.0, "item_feature_3=5c1e": 1.0}


def test_the_real_items_are_all_there(data_file):
    """80 items, each in one category of each kind, and every listed category occurs."""
    data_file("open_bandit_small_item_context.csv", "open_bandit_small_item_context.csv.gz")
    items = open_bandit_items()
    assert items.shape == (80, 41) == (ITEMS, len(ITEM_NAMES))
    assert (items[:, 1:].sum(axis=1) == 3.0).all()
    assert items[:, 1:].any(axis=0).all()
