"""Descriptions of settings: they outlive moves of the code, and streams with a hash of version 1 go on."""

import hashlib
import json
from dataclasses import dataclass, field, make_dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import taciturn as t
from taciturn.calibration.mechanisms import DecayedBLT
from taciturn.kernel.learners.bin_counts import BinCounts
from taciturn.kernel.learners.class_sums import ClassSums
from taciturn.kernel.learners.igd import FadingIGD
from taciturn.kernel.learners.linear_bandit import bandit_problem
from taciturn.kernel.learners.second_moment import SecondMoment
from taciturn.kernel.problem.features import Bins, Chain
from taciturn.kernel.problem.losses import Advice, Nearness
from taciturn.kernel.problem.scalar_loss import Smoothed
from taciturn.kernel.stream import fingerprint as tables
from taciturn.kernel.stream.earlier import earlier_fingerprint
from taciturn.kernel.stream.fingerprint import described, fingerprint
from taciturn.kernel.stream.schedule import Geometric
from taciturn.methods.ftl import FTL
from taciturn.methods.giga import GIGA
from taciturn.methods.staged import Staged
from taciturn.methods.stages import Moments, Ranges, Scales
from taciturn.methods.weighted import Weighted, WeightedScores
from taciturn.tables.column_maps import LinearMap, Standardise
from taciturn.tables.random_features import RandomFeatures

BUDGET = t.Privacy(1.0, 1e-6)
DISC = t.L2Ball(1.0)
PROBLEM = t.Problem(t.Logistic(), DISC, dimension=2, ridge=0.1)
SQUARES = t.Problem(t.Squared(), DISC, dimension=2, label_bound=2.0, intercept=0.5, neighbours="zero-out")
BINNED = t.Problem(
    t.Squared(), DISC, 1, feature_bound=130.0, label_bound=2.0, intercept=1.0, features=Bins(np.arange(63.0)[None, :])
)
STAGES = (Ranges(300, True), Scales(300, waves=2.5), Moments(50))
MAPS = Chain((Standardise(np.zeros(2), np.ones(2)), LinearMap(np.eye(2)), RandomFeatures(8, 1.0, seed=3)))


@dataclass(frozen=True)
class Mine(Geometric):
    """Someone's schedule."""

    unit: ClassVar[str] = "rows"
    shift: int = 0
    doubled: int = field(init=False)

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "doubled", 2 * self.shift)


class Plain:
    """Someone's object that is no dataclass."""

    def __init__(self):
        self.width, self.names = -0.0, {"b": 1, "a": (2**60, np.inf, None, True, "1")}


Mine.__module__ = Plain.__module__ = "someone"


def sums(learner, mechanism=None, schedule=None, **more):
    return t.Private(learner, mechanism or t.BLT(), schedule or t.every(5), BUDGET, 100, **more)


GOLDEN = {
    "igd": t.Private(t.IGD(PROBLEM), t.Gaussian(), t.every(2), BUDGET, horizon=100),
    "igd, label": t.IGD(t.Problem(t.Quantile(0.9), DISC, 2, label_bound=1.0, ridge=0.1, neighbours="label")),
    "giga of users": t.Private(
        GIGA(PROBLEM, "printed"), t.Gaussian("S"), t.geometric(1.5, 2), BUDGET, 100, unit=t.User(4, 1, 3, "week", "own")
    ),
    "fading igd": FadingIGD(t.Problem(t.Hinge(), DISC, 2), strength=0.5),
    "averaged": t.averaged(t.IGD(PROBLEM), "suffix", horizon=6),
    "ftl": FTL(t.Problem(t.Huber(0.5), t.Box(-1.0, 2.0), 2, label_bound=1.0), extra_ridge=3.0),
    "experts": t.experts(3),
    "ewoo": t.EWOO(t.Problem(Smoothed(t.Hinge(), 0.1), DISC, 2), np.eye(2)),
    "exponential": t.Exponential(),
    "qftl": sums(t.QFTL(SQUARES)),
    "qftl, weight": sums(t.QFTL(SQUARES, weight=0.5, center=(0.1, 0.2, 0.3)), t.SquareRoot(), seed=7, compiled=False),
    "ftrl, forgetting": t.FTRL(t.Problem(Weighted(t.Hinge(), positive=0.2), DISC, 2), curvature=0.5),
    "strategies": [DecayedBLT(100.0), t.BinaryTree(False), t.BLT(8, "mean"), t.at([3, 9])],
    "ftrl, whole space": t.FTRL(t.Problem(t.Hinge(), t.WholeSpace(), 2, on_bad="zero"), scale=2.0),
    "classes": [
        ClassSums(t.Problem(t.MultiHinge(3), DISC, 3)),
        GIGA(t.Problem(t.OneHot(3), DISC, 2, ridge=0.1)),
        t.FTRL(t.Problem(WeightedScores(t.Softmax(3), (1.0, 0.5, 0.1)), DISC, 2)),
    ],
    "bandit": t.LinearBandit(bandit_problem(2, arms=3), arms=3),
    "bins": BinCounts(BINNED, label_edges=np.arange(63.0), outward=True),
    "second moment": SecondMoment(replace(PROBLEM, ridge=0.0)),
    "vectors": sums(t.private_sum(3, 1.5, BUDGET, 12).learner, unit=t.User(2)),
    "sets": [t.HalfSpace((1.0, 0.0), 2.0), t.L1Ball(2.0), t.Simplex(), t.Simplex(2.0)],
    "losses": [Advice(), Advice(2.0), t.Absolute(), t.Linear(), Nearness()],
    "maps": MAPS,
    "stages": Staged(t.QFTL(SQUARES), t.BLT(), t.every(5), BUDGET, 900, stages=STAGES),
    "objective perturbation": t.ObjectivePerturbation(
        t.Problem(t.Logistic(), t.WholeSpace(), dimension=2, ridge=1.0), BUDGET, 50, seed=2
    ),
    "someone's": [Mine(1.5, shift=2), Plain()],
    "data": {"a": np.float32(0.1), "b": [np.int8(3), 2**53, 1e300, float("nan")]},
}

HASHES = {
    "igd": ("0c5c45961058a305fe3ba9c7", "21eace94860a5190e5ebc25b"),
    "igd, label": ("3cc64d2219bbaa2c2566c631", "4bd142ef2f34b16f0c888a0f"),
    "giga of users": ("8d72b9cd16f5f3f4ebe5c3c2", "d1fac451481ae4fce6b43e2f"),
    "fading igd": ("78648206d0d6da812437ee74", "6c48ab9a9115a241f8b50be8"),
    "averaged": ("1523d6aa3e5fa2ba397b9446", "d80574c8f21f151aced9adde"),
    "ftl": ("d5febe2610ac1e779ddb19a8", "415ae3b2deaa8f9e58766731"),
    "experts": ("a6979a0ead2793d353ccea8b", "33688760820fe3a56bd03cae"),
    "ewoo": ("d8bfe62780f7a7f079749e37", "994d6878ebe6c0cb18ce81c8"),
    "exponential": ("d689b34ec537b041b30f093b", "12ba474f7449e688c2d16b77"),
    "qftl": ("ba7bff30cb9f15318a2b247f", "4aaa8b4d8ce307f349515c10"),
    "qftl, weight": ("7654f9782f5c140c90d286c8", "b8a2aedadb5c9c01ab43e3ee"),
    "ftrl, forgetting": ("b79b504531d3462bfe415792", "d2dffa02d1e79abdc840b530"),
    "strategies": ("534e7d039cb5da7ed15ee5fa", "47c34a19587dc0019ca9eaba"),
    "ftrl, whole space": ("beb3ab0c9d4354cef85097b6", "d3e668c1c9cad767e41a3ed6"),
    "classes": ("a64efe525d4dfdea7ff75031", "2878eb5ffdaaa93d78f44205"),
    "bandit": ("c0af2a6f9a45ad76a8d5bad0", "622da1d1592385064e61d369"),
    "bins": ("19e62093016ef2589fd5b8e0", "86ef377f407bd1dcf3613bfa"),
    "second moment": ("83456e4dd1c071f1dbd3b3c1", "fbf6c1d4f32359552b10f557"),
    "vectors": ("748c262444aff2d8e4f609e4", "bcf13f72112e9bb46e591420"),
    "sets": ("3e5741c46942ac72f53e108e", "abea16b5bfb51f53db4625ec"),
    "losses": ("3a01b16ee16c9c5085ca53ff", "9116893f2e7611e4f34bf331"),
    "maps": ("0d743ee3a95d100b1823a71e", "a85cbf486577cf8161a0c913"),
    "stages": ("a1961be9f96acfc5ed2cb996", "40dca9c3bc62b3475896b0f4"),
    "objective perturbation": ("c17b37720ae000a5878bf4fc", "04d28a98e9d6156e1450c2b3"),
    "someone's": ("e68c5e997ce2874b0826768d", "a9903cacc0b4bf4a62d85d4e"),
    "data": ("62586a0dde2d5759e0e852c4", "18bd219320798ac21f5965dc"),
}
"""The first 24 digits of hashes of version 1, by the commit before version 2, and of version 2."""


@pytest.mark.parametrize("name", GOLDEN)
def test_hashes_are_what_they_were(name):
    """Whatever was moved or renamed, and whatever fields came or went: else stored streams are rejected."""
    assert (earlier_fingerprint(GOLDEN[name])[:24], fingerprint(GOLDEN[name])[:24]) == HASHES[name]


def test_the_fields_of_version_1_are_what_they_were():
    """Rows stay, also of classes and fields that are gone; what came later is in `SINCE`."""
    assert hashlib.sha256(repr(tables.FIELDS).encode()).hexdigest() == (
        "6b8caf24dbc9aa2b827be4bdee34d5b37b82cf14b5452df7674cbd25d47b234a"
    )


def test_a_description_is_plain_json():
    """Which an operator can read."""
    assert described(GOLDEN["qftl, weight"]) == {
        "version": 2,
        "settings": {
            "Private": {
                "learner": {
                    "QFTL": {"problem": described(SQUARES)["settings"], "weight": 0.5, "center": [0.1, 0.2, 0.3]}
                },
                "mechanism": {"SquareRoot": {}},
                "schedule": {"Every": {"rounds": 5}},
                "privacy": {"Privacy": {"epsilon": 1, "delta": 1e-6}},
                "horizon": 100,
                "seed": 7,
            }
        },
    }
    text = json.dumps(described(list(GOLDEN.values())), allow_nan=False)
    assert "taciturn" not in text


# The code moves on.


def planted(name, fields, **more):
    """A class of the package, as a later version may have it: in another module, with other fields."""
    return make_dataclass(name, fields, namespace={"__module__": "taciturn.kernel.elsewhere", **more}, frozen=True)


RATIO, START = ("ratio", float, 1.1), ("start", int, 1)
ADDED = ("added", tuple, ())
LATER = {
    "moved": [RATIO, START],
    "in another order": [START, RATIO],
    "a field more": [ADDED, RATIO, START],
    "a field less": [RATIO],
    "another default": [("ratio", float, 1.5), START],
    "a field that is computed": [RATIO, START, ("sums", tuple, field(default=(1, 2), init=False))],
}


@pytest.mark.parametrize("change", LATER)
@pytest.mark.parametrize("ratio", [1.1, 1.5, 2.0])
def test_a_later_class_has_the_hashes_of_the_first(change, ratio):
    later = planted("Geometric", LATER[change])(ratio=ratio)
    assert fingerprint(later) == fingerprint(t.geometric(ratio))
    assert earlier_fingerprint(later) == earlier_fingerprint(t.geometric(ratio))


@pytest.mark.privacy
def test_what_a_new_field_says_is_a_setting():
    """No stream of before has that."""
    later = planted("Geometric", LATER["a field more"])(added=(1,))
    assert fingerprint(later) != fingerprint(t.geometric())
    assert earlier_fingerprint(later) is None
    assert earlier_fingerprint([later]) is None
    assert earlier_fingerprint(planted("Arithmetic", [START])()) is None
    assert earlier_fingerprint(planted("Geometric", [START])(2)) == earlier_fingerprint(t.geometric(1.1, 2))


def test_the_default_of_a_new_field_may_change_once_it_is_in_the_table(monkeypatch):
    """What was left out means what it meant."""
    monkeypatch.setitem(tables.SINCE, "Geometric", {"added": ()})
    later = planted("Geometric", [RATIO, START, ("added", tuple, (5,))])
    assert fingerprint(later(added=())) == fingerprint(t.geometric())
    assert earlier_fingerprint(later(added=())) == earlier_fingerprint(t.geometric())
    assert fingerprint(later()) != fingerprint(t.geometric())
    assert earlier_fingerprint(later()) is None


def test_classes_and_fields_may_be_renamed(monkeypatch):
    monkeypatch.setitem(tables.CLASS_NAMES, "Growing", "Geometric")
    monkeypatch.setitem(tables.FIELD_NAMES, ("Geometric", "factor"), "ratio")
    later = planted("Growing", [START, ("factor", float, 1.1)])
    for ratio in (1.1, 2.0):
        assert fingerprint(later(factor=ratio)) == fingerprint(t.geometric(ratio))
        assert earlier_fingerprint(later(factor=ratio)) == earlier_fingerprint(t.geometric(ratio))


@pytest.mark.parametrize("change", LATER)
def test_someones_class_outlives_changes_of_the_class_that_it_extends(change):
    """Its own fields are all in the description, at their defaults too."""

    def extended(base):
        own = [("shift", int, 3), ("slow", bool, False)]
        return make_dataclass("Mine", own, bases=(base,), namespace={"__module__": "someone"}, frozen=True)

    before, after = extended(Geometric)(1.1), extended(planted("Geometric", LATER[change]))(ratio=1.1)
    assert fingerprint(before) == fingerprint(after) != fingerprint(extended(Geometric)(1.1, shift=4))
    assert earlier_fingerprint(before) == earlier_fingerprint(after)
    assert described(before)["settings"] == {"someone.Mine": {"shift": 3, "slow": False}}


# Streams of before.


X = np.clip(np.random.default_rng(3).normal(size=(60, 2)) / 3.0, -0.7, 0.7)
Y = np.clip(X @ [1.0, -1.0], -1.0, 1.0)
STREAMS = {
    "a private stream": t.pqftl(replace(SQUARES, label_bound=1.0), BUDGET, 60, schedule=t.every(5), seed=4),
    "stages": Staged(
        t.QFTL(t.Problem(t.Squared(), DISC, 2, label_bound=1.0)), t.BLT(), t.every(5), BUDGET, 60, seed=4,
        stages=(Moments(20),),
    ),
    "objective perturbation": t.ObjectivePerturbation(
        t.Problem(t.Logistic(), t.WholeSpace(), dimension=2, ridge=1.0), BUDGET, 60, seed=4
    ),
}  # fmt: skip


def before(private, state):
    """A stored state as version 1 wrote it."""
    return replace(state, settings=earlier_fingerprint(private)).to_bytes()


@pytest.mark.parametrize("name", STREAMS)
def test_a_state_of_version_1_goes_on_as_it_would_have(name):
    private = STREAMS[name]
    labels, half = (np.where(Y > 0.0, 1.0, -1.0), 0) if name == "objective perturbation" else (Y, 32)
    prepared = private.prepare(private.start(), X[:half], labels[:half]) if half else None
    state = prepared.state if prepared else private.start()
    loaded = private.load(before(private, state))
    assert loaded.settings == private.settings != earlier_fingerprint(private)
    after, expected = (private.prepare(each, X[half:], labels[half:]) for each in (loaded, state))
    assert after.state.settings == private.settings
    assert np.array_equal(after.releases.points, expected.releases.points)
    private.commit(after)
    assert private.load(after.state.to_bytes()).settings == private.settings


@pytest.mark.privacy
@pytest.mark.parametrize("name", STREAMS)
def test_a_state_of_version_1_of_other_settings_is_rejected(name):
    private = STREAMS[name]
    other = replace(private, privacy=t.Privacy(2.0, 1e-6))
    with pytest.raises(t.StateConflict, match="other settings"):
        private.load(before(other, private.start()))


@pytest.mark.privacy
def test_a_state_of_version_1_is_used_once():
    """Its copies are rejected once it has gone on."""
    private = replace(STREAMS["a private stream"], seed=None)
    state = private.start()
    stored = before(private, state)
    loaded = private.load(stored)
    assert private.is_live(loaded)
    private.run(loaded, X[:5], Y[:5])
    with pytest.raises(t.StateConflict):
        private.load(stored)
