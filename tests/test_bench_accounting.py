"""The accounting benchmark compares what it says: noise for the same budget, PLD's faster form, and a true epsilon."""

import math

import pytest

pytest.importorskip("dp_accounting", reason="the extra peers is not installed")

from benching import loaded, quick
from taciturn import Privacy
from taciturn.accounting.gdp import epsilon_of, noise_multiplier


@pytest.fixture(scope="module")
def accounting():
    yield from loaded("accounting")


@pytest.mark.parametrize("releases", [1, 1000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_true_epsilon_is_the_one_asked_for(accounting, epsilon, releases):
    """By 50 digits and by neither package; noise that is less by a thousandth costs more."""
    noise = noise_multiplier(Privacy(epsilon, 1e-6), releases)
    assert accounting.true_epsilon(noise, releases) == pytest.approx(epsilon, rel=1e-9)
    assert accounting.true_epsilon(0.999 * noise, releases) > 1.0005 * epsilon


def test_nothing_is_asked_twice(accounting):
    """Nobody can answer from memory; the first question is the one that is scored."""
    asked = []
    taciturn = accounting.contender("taciturn", lambda e: asked.append(e) or e, 1.0)
    assert taciturn.score(taciturn.work()) == 1.0
    taciturn.work()
    assert len(set(asked)) == len(asked) == 2 * taciturn.count
    assert accounting.contender("PLD", lambda e: e, 1.0).count == 1


def test_all_find_noise_for_the_same_budget(accounting):
    """RDP and closed form, through the contenders themselves: 7 % more, and as much."""
    made = accounting.calibrations(1.0, 1000)
    found = {name: made[f"epsilon 1, 1,000 releases: {name}"] for name in ("taciturn", "RDP", "closed form")}
    noise = {name: one.score(one.work()) for name, one in found.items()}
    assert noise["closed form"] == pytest.approx(noise["taciturn"], rel=1e-9)
    assert 1.05 < noise["RDP"] / noise["taciturn"] < 1.1
    assert not any("own start" in name for name in made)


def test_all_read_the_same_composition(accounting):
    """One release, equal ones and different ones, which are not all of one size."""
    for title, epsilon in (("1 release", 1.0), ("1,000 releases", 1.0), ("20 different releases", None)):
        readers = {n: accounting.readings()[f"reading {title}: {n}"] for n in ("taciturn", "closed form", "RDP")}
        found = {name: one.score(one.work()) for name, one in readers.items()}
        assert found["closed form"] == pytest.approx(found["taciturn"], rel=1e-9)
        assert found["RDP"] > found["taciturn"]
        assert epsilon is None or found["taciturn"] == pytest.approx(epsilon, rel=1e-9)


def test_a_ratio_is_to_the_faster_pld_and_needs_its_answer(accounting):
    """Seconds of the peer over ours; another answer than PLD's meets nothing."""
    title, scores = "epsilon 1, 1 release", {}
    for name in accounting.wanted():
        for who in ("taciturn", "PLD, own start", "PLD, bracketed", "PLD", "RDP", "closed form"):
            scores[f"{name.partition(' / taciturn, ')[2]}: {who}"] = 4.0
    seconds = {name: [1e-3 if name.endswith("taciturn") else 2.0] for name in scores}
    seconds[f"{title}: PLD, bracketed"] = [1.5]
    turns = accounting.Turns(seconds, scores)
    ratios = accounting.judged(turns, accounting.answers(scores))
    assert ratios[f"PLD / taciturn, {title}"]["each"] == [1500.0]
    assert ratios[f"PLD / taciturn, {title}"]["met"]
    other = scores | {f"{title}: PLD, bracketed": 4.001}
    assert not accounting.judged(turns, accounting.answers(other))[f"PLD / taciturn, {title}"]["met"]
    assert ratios[f"RDP / taciturn, {title}"]["wanted"] == ""


@pytest.mark.slow
def test_it_runs_beside_dp_accounting(tmp_path):
    """The same answer as PLD, which takes hundreds of times as long on any machine; RDP asks for more noise."""
    report = quick("accounting", tmp_path)
    for row in report["answers"]:
        epsilon = float(row["contender"].split()[1].rstrip(","))
        assert row["same"] == ("RDP" not in row["contender"])
        assert row["true epsilon"] <= epsilon * (1.0 + 1e-9)
    calibrated = [found for found in report["ratios"].values() if found["wanted"]]
    assert len(calibrated) == 6
    assert all(found["median"] > 100.0 for found in calibrated)


def test_taciturn_agrees_with_the_reference(accounting):
    """`epsilon_of` of the noise that RDP asks for is the true epsilon of the table."""
    mu, true = math.sqrt(1000.0) / 143.28, accounting.true_epsilon(143.28, 1000)
    assert epsilon_of(1e-6, mu) == pytest.approx(true, rel=1e-9)
