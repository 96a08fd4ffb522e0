"""Numbers of settings: whatever type they come in, what is stored, certified and released is that of Python's own.

Every public class and function that takes a number has an entry in `CASES`, for each number that it takes; the tests
go through the public names, so that a new name, or a new number of an old one, fails until it has an entry.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.utils import get_tags

import taciturn
from cases import each
from taciturn import (
    BLT,
    EWOO,
    FTL,
    FTRL,
    GIGA,
    IGD,
    QFTL,
    Absolute,
    BinaryTree,
    BlockSums,
    Box,
    Certificate,
    ConvexSet,
    Cost,
    DecayedBLT,
    FadingIGD,
    Gaussian,
    HalfSpace,
    Hinge,
    Huber,
    Index,
    InvalidInput,
    L1Ball,
    L2Ball,
    Linear,
    LinearBandit,
    Logistic,
    MultiHinge,
    NonNegative,
    ObjectivePerturbation,
    OneHot,
    Privacy,
    Private,
    Problem,
    Quantile,
    RandomFeatures,
    Release,
    Releases,
    ScalarLoss,
    Simplex,
    Softmax,
    Square,
    Squared,
    TaciturnError,
    User,
    Vector,
    VectorLoss,
    WholeSpace,
    at,
    averaged,
    block_statistics,
    class_sums,
    every,
    ewoo,
    experts,
    geometric,
    grid,
    linear_bandit,
    output_perturbation,
    pftrl,
    pgiga,
    pigd,
    pocp,
    pol,
    pqftl,
    private_sum,
    regret,
)
from taciturn.audit import (
    Pair,
    audit,
    audit_script,
    distinguish,
    distinguish_adaptive_selections,
    distinguish_samples,
    distinguish_selections,
    tight_private,
)
from taciturn.averages import average, late_average, late_averages, running_average
from taciturn.bandits import (
    UCB,
    EpsilonGreedy,
    PrivateBandit,
    PrivateLinUCB,
    PrivateLogisticBandit,
    PrivateThompson,
    Thompson,
)
from taciturn.calibration import errata, paper
from taciturn.checks.learners import MECHANISMS
from taciturn.columns.kinds import Bins, Categories, Hashed, Range, Text
from taciturn.columns.scales import Scale
from taciturn.columns.target import Classes, Number, Positive
from taciturn.contract.contract import Contract
from taciturn.drift import DriftWatch, drift
from taciturn.estimators.scaling import PublicRandomFeatures
from taciturn.estimators.settings import Settings
from taciturn.kernel.accounting import cost
from taciturn.kernel.accounting import gdp as exact
from taciturn.kernel.accounting import zcdp as concentrated
from taciturn.kernel.learners.linear_bandit import bandit_problem
from taciturn.kernel.learners.qftl import quadratic_pair
from taciturn.kernel.problem.losses import Advice
from taciturn.kernel.problem.scalar_loss import Smoothed
from taciturn.kernel.secret import opened
from taciturn.kernel.stream.fingerprint import fingerprint
from taciturn.memories import Memories, decayed_sums, tuned
from taciturn.methods import objective as perturbed
from taciturn.methods.objective import epsilon_of_moments, log_moment
from taciturn.methods.objective_perturbation import ridge_for
from taciturn.methods.selection import Selection, shares
from taciturn.methods.weighted import Weighted, WeightedScores
from taciturn.plan import curvature, feature_map, feature_scales, recommend, rows_per_user, standard_scale
from taciturn.regret import tails

pytestmark = pytest.mark.filterwarnings("ignore::taciturn.estimators.stream.PrivacyWarning")

BUDGET, DISC = Privacy(1.0, 1e-6), L2Ball(1.0)
RIDGED = Problem(Logistic(), DISC, 2, ridge=0.25)
REAL = Problem(Squared(), DISC, 2, label_bound=1.0, ridge=1.0)
X = np.array([[0.6, 0.8], [1.0, 0.0], [0.0, 1.0], [-0.5, 0.5], [0.3, -0.9], [0.2, 0.1]])
SIGNS, NUMBERS = np.array([1.0, -1.0, 1.0, 1.0, -1.0, -1.0]), np.array([0.5, -0.3, 1.0, 0.1, -1.0, 0.2])
ROUNDS = np.array([1.0, 2.0, 3.0, 10.0, 1000.0])


class Case(NamedTuple):
    """How a thing is made of its numbers, and what they are."""

    make: Callable[..., Any]
    numbers: dict[str, Any]


def _from_samples(**numbers):
    def sample(world, trials, seed):
        return np.full((trials, 1), 1.0 - world)

    return distinguish_samples(sample, lambda X: X[:, 0], BUDGET, **numbers)


def _bandit(front, **numbers):
    made = front(**numbers)
    return made.private, made.choice, made.arms, made.wait, made.default_reward


def _bandit_of(**numbers):
    return _bandit(PrivateBandit, private=linear_bandit(2, BUDGET, 60), choice=UCB(), **numbers)


_PLAYED = {"arms": 3, "dimension": 2, "epsilon": 1.3, "delta": 1e-3}
_REWARDS = {
    "low": -0.7,
    "high": 1.3,
    "feature_bound": 1.3,
    "intercept": 0.5,
    "wait": 4,
    "default_reward": 0.3,
    "seed": 7,
}
_USERS = {"rows_per_user": 4, "rows_per_release": 1, "apart": 2, "period": 30}


def _fronts(front, **own):
    """Cases of a bandit by its settings."""
    some = {"horizon": 60} | _PLAYED
    return [
        Case(lambda **n: _bandit(front, **n), some | _REWARDS | own),
        Case(lambda **n: _bandit(front, **_PLAYED, **n), {"forget": 100}),
        Case(lambda **n: _bandit(front, **some, **n), _USERS),
    ]


def _certificate(magnitude, **numbers):
    return Certificate("l2", "tail", "1/t", lambda t: 1.0 / t, magnitude, "", "", **numbers)


def _form(form, **numbers):
    made = form(**numbers)
    return made.size, made.bound, made.unit, made.most_units, made.moved("replace"), made.moved("zero-out")


def _cost(**parts):
    spent = Cost(**parts)
    return spent, spent.epsilon(1e-2), spent.delta(4.0), spent.within(Privacy(20.0, 0.5))


def _gaussian(**numbers):
    return _cost(**dataclasses.asdict(cost.gaussian(**numbers)))


def _releases():
    points = np.arange(1.0, 7.0).reshape(3, 2)
    return Releases(np.array([2, 5, 9]), 1, points, points, np.ones(3), simulated=True)


def _forgetful():
    private = pqftl(REAL, BUDGET, forget=40, schedule=every(2), seed=1)
    return private, private.run(private.start(), np.tile(X, (20, 1)), np.tile(NUMBERS, 20))[1]


def _pair(at=0):
    return Pair([[1.0]] * 3, [1.0, 1.0, 1.0], at=at, other=([1.0], -1.0))


def _distinguished(**numbers):
    private = pigd(Problem(Linear(), WholeSpace(), 1, label_bound=1.0, ridge=0.1), BUDGET, horizon=3)
    return _finding(distinguish(private, _pair(), **({"secret_trials": 0} | numbers)))


def _selections(**numbers):
    pair = Pair([[0.0, 1.0]] + [[0.5, 0.5]] * 5, None, at=0, other=([1.0, 0.0], 0.0))
    private = ewoo(experts(2), BUDGET, horizon=6)
    return _finding(distinguish_selections(private, pair, **({"secret_trials": 0} | numbers)))


def _adaptive_selections(**numbers):
    pair = Pair([[0.0, 1.0]] * 4, None, at=0, other=([1.0, 0.0], 0.0))
    private = ewoo(experts(2), BUDGET, horizon=4)
    return _finding(distinguish_adaptive_selections(private, pair, lambda point, t: (point, 0.0), **numbers))


def _selection(**numbers):
    each, last = shares(BUDGET, 2)
    pilots, finals = (tuple(pftrl(RIDGED, share, 6) for share in made) for made in (each, [last] * 2))
    selection = Selection(pilots, finals, privacy=BUDGET, **({"rows": 20} | numbers))
    return selection, selection.choice


def _sums(**numbers):
    made = BlockSums(sums=np.zeros(2, dtype=np.int64), settings="", **numbers)
    return made.count, opened(made.excluded)


def _finding(result):
    return result.claimed, result.mu, result.interval, result.shift, result.trials, result.verdict


def _audited(**numbers):
    result = audit("pigd", BUDGET, **numbers)
    return result.rounds, result.error, [_finding(game.finding) for game in result.games if not game.adaptive]


def _fitted(estimator):
    users = None if estimator.rows_per_user is None else list("abcaba")
    rows = np.abs(X) if get_tags(estimator).input_tags.positive_only else X
    model = estimator.fit(rows, NUMBERS if hasattr(estimator, "label_bound") else SIGNS, users=users)
    return model.coef_, np.asarray(model.intercept_), model.plan_.private, model.n_releases_


def _sklearn(name, **more):
    def make(**numbers):
        sklearn = importlib.import_module("taciturn.estimators.sklearn")
        with np.errstate(all="ignore"):
            return _fitted(getattr(sklearn, name)(**more, **numbers))

    return make


def _river(name, **more):
    def make(**numbers):
        user = {"user": "id"} if "rows_per_user" in numbers | more else {}
        model = getattr(importlib.import_module("taciturn.estimators.river"), name)(**user, **more, **numbers)
        for x, y, owner in zip(X, NUMBERS if "loss" in more else SIGNS > 0, "abcaba", strict=True):
            model.learn_one({"a": x[0], "b": x[1], "id": owner}, y)
        return model.predict_one({"a": 0.5, "b": -0.5}), model.weights, model.plan.private

    return make


def _weighted(make):
    return lambda class_weight: make(class_weight={1: class_weight})


def _clipped(module):
    def make(bound):
        clip = importlib.import_module(f"taciturn.estimators.{module}").NormClip(bound)
        if module == "river":
            return clip.transform_one({"a": 30.0, "b": 44.0})
        return clip.fit_transform([[30.0, 44.0]])

    return make


def _scaled(low, high):
    scaler = importlib.import_module("taciturn.estimators.river").PublicScaler({"a": (low, high)})
    return scaler.transform_one({"a": 1.1})


def _contract(**numbers):
    columns = Range("age", 0.0, 100.0), Categories("town", ("Oslo", "Rome"))
    contract = Contract(target=Positive("bought", ("yes",)), columns=columns, **numbers)
    return contract, contract.digest, contract.plan(seed=1).private


def _number_contract(**numbers):
    columns = (Range("age", 0.0, 100.0),)
    contract = Contract(1.0, Number("price", 0.0, 9.0), columns, **numbers)
    return contract, contract.digest, contract.plan(seed=1).private


def _contract_target(low, high):
    contract = Contract(1.0, Number("price", low, high), (Range("age", 0.0, 100.0),), loss="huber", horizon=6)
    return contract, contract.digest, contract.plan(seed=1).private


def _target_weight(kind):
    def make(class_weight):
        values = ("no", "yes") if kind == "Classes" else ("yes",)
        target = {"Classes": Classes, "Positive": Positive}[kind]("bought", values, (class_weight, 1.0))
        contract = Contract(1.0, target, (Range("age", 0.0, 100.0),), horizon=6)
        return contract, contract.digest, contract.plan(seed=1).private

    return make


def _contract_column(column):
    contract = Contract(1.0, Positive("bought", ("yes",)), (column,), horizon=6)
    return contract, contract.digest


def _request(loss="logistic", **numbers):
    request = Settings(loss, **numbers)
    return request, request.plan(2, 6).private


def _stated(**numbers):
    return {"epsilon": 1.7, "delta": 1e-3, "feature_bound": 1.3} | numbers


BOUNDS = {"rows_per_user": 3, "rows_per_release": 2, "apart": 2, "period": 4}
MODEL = _stated(release=2, horizon=6, radius=2.3, ridge=1.3, seed=5, **BOUNDS)
QUANTILE = MODEL | {"label_bound": 1.9, "quantile": 0.3}
HUBER = MODEL | {"label_bound": 1.9, "huber_width": 1.7}
COUNTS = {name: value for name, value in MODEL.items() if name not in ("radius", "ridge")}
NAMED = {"features": ["a", "b"]}
STREAM = _stated(release=2, seed=5)
FORGET = {"forget": 12}

CASES: dict[str, list[Case]] = {
    "taciturn.Index": [Case(lambda **n: _form(Index, **n), {"size": 3, "bound": 1.0})],
    "taciturn.NonNegative": [Case(lambda **n: _form(NonNegative, **n), {"size": 3, "bound": 1.3})],
    "taciturn.Square": [Case(lambda **n: _form(Square, **n), {"size": 3, "bound": 1.3})],
    "taciturn.Vector": [Case(lambda **n: _form(Vector, **n), {"size": 3, "bound": 1.3})],
    "taciturn.BLT": [Case(BLT, {"buffers": 3})],
    "taciturn.DecayedBLT": [Case(DecayedBLT, {"forget": 100, "buffers": 3})],
    "taciturn.Box": [Case(Box, {"low": -0.7, "high": 1.3})],
    "taciturn.Certificate": [Case(_certificate, {"magnitude": 1.3, "most": 100, "norm": 1.7, "enforced_factor": 1.3})],
    "taciturn.Cost": [
        Case(_cost, {"mu_squared": 0.3, "extra_epsilon": 0.1, "extra_delta": 1e-3}),
        Case(_cost, {"rho": 0.3, "plain_epsilon": 1.7, "plain_delta": 1e-3}),
    ],
    "taciturn.EWOO": [Case(lambda points: EWOO(RIDGED, [points, [0.0, 0.4]]), {"points": (0.3, 0.6)})],
    "taciturn.FTL": [Case(lambda extra_ridge: FTL(RIDGED, extra_ridge), {"extra_ridge": 1.7})],
    "taciturn.FTRL": [Case(lambda **n: FTRL(RIDGED, **n), {"curvature": 0.3, "scale": 1.7, "center": (0.3, 0.2)})],
    "taciturn.FadingIGD": [Case(lambda strength: FadingIGD(Problem(Hinge(), DISC, 2), strength), {"strength": 1.7})],
    "taciturn.HalfSpace": [Case(HalfSpace, {"normal": (1.3, 1.7), "offset": 1.1})],
    "taciturn.Huber": [Case(Huber, {"width": 0.4}), Case(Huber, {"width": 1.1})],
    "taciturn.L1Ball": [Case(L1Ball, {"radius": 1.3})],
    "taciturn.L2Ball": [Case(L2Ball, {"radius": 0.688147}), Case(L2Ball, {"radius": 1.3})],
    "taciturn.MultiHinge": [Case(MultiHinge, {"classes": 3})],
    "taciturn.ObjectivePerturbation": [
        Case(
            lambda **n: ObjectivePerturbation(Problem(Logistic(), WholeSpace(), 2, ridge=1.0), BUDGET, **n),
            {"horizon": 6, "seed": 7},
        )
    ],
    "taciturn.OneHot": [Case(OneHot, {"classes": 3})],
    "taciturn.Privacy": [Case(Privacy, {"epsilon": 1.3, "delta": 1e-3})],
    "taciturn.Private": [
        Case(lambda **n: Private(IGD(RIDGED), Gaussian(), every(1), BUDGET, **n), {"horizon": 6, "seed": 7})
    ],
    "taciturn.Problem": [
        Case(
            lambda **n: Problem(Huber(0.7), DISC, **n),
            {"dimension": 2, "feature_bound": 1.3, "label_bound": 1.7, "intercept": 1.1, "ridge": 1.9}
            | {"label_center": 0.3, "label_scale": 1.7},
        )
    ],
    "taciturn.QFTL": [Case(lambda **n: QFTL(REAL, **n), {"extra_ridge": 1.7, "weight": 1.3, "center": (0.3, 0.2)})],
    "taciturn.Quantile": [Case(Quantile, {"level": 0.3})],
    "taciturn.Simplex": [Case(Simplex, {"total": 1.3})],
    "taciturn.Softmax": [Case(Softmax, {"classes": 3})],
    "taciturn.User": [
        Case(User, {"rows": 3, "per_release": 2, "apart": 2, "period": 4}),
        Case(lambda **n: pigd(RIDGED, BUDGET, 6, seed=7, unit=User(**n)), {"rows": 3, "apart": 2}),
    ],
    "taciturn.at": [Case(at, {"rounds": (2, 5)})],
    "taciturn.averaged": [Case(lambda horizon: averaged(IGD(RIDGED), "suffix", horizon=horizon), {"horizon": 100})],
    "taciturn.every": [Case(every, {"rounds": 2})],
    "taciturn.ewoo": [Case(lambda **n: ewoo(experts(2), BUDGET, **n), {"horizon": 6, "seed": 7})],
    "taciturn.experts": [Case(experts, {"count": 2, "loss_bound": 1.3})],
    "taciturn.geometric": [Case(geometric, {"ratio": 1.7, "start": 2})],
    "taciturn.grid": [Case(lambda **n: grid(DISC, **n), {"size": 2, "per_axis": 3})],
    "taciturn.output_perturbation": [
        Case(lambda **n: output_perturbation(RIDGED, BUDGET, **n), {"horizon": 6, "seed": 7})
    ],
    "taciturn.class_sums": [
        Case(lambda **n: class_sums(RIDGED, BUDGET, **n), {"forget": 12}),
        Case(lambda **n: class_sums(RIDGED, BUDGET, **n), {"horizon": 6, "seed": 7}),
    ],
    "taciturn.pftrl": [
        Case(lambda **n: pftrl(RIDGED, BUDGET, **n), {"forget": 12}),
        Case(lambda **n: pftrl(RIDGED, BUDGET, **n), {"horizon": 6, "curvature": 0.3, "scale": 1.3, "seed": 7}),
    ],
    "taciturn.pgiga": [Case(lambda **n: pgiga(RIDGED, BUDGET, seed=7, **n), {"horizon": 6})],
    "taciturn.pigd": [
        Case(lambda **n: pigd(RIDGED, BUDGET, seed=7, **n), {"horizon": 6}),
    ],
    "taciturn.pocp": [Case(lambda **n: pocp(IGD(RIDGED), BUDGET, **n), {"horizon": 6, "seed": 7})],
    "taciturn.pol": [Case(lambda **n: pol(RIDGED, BUDGET, **n), {"horizon": 6, "seed": 7})],
    "taciturn.pqftl": [
        Case(lambda **n: pqftl(REAL, BUDGET, **n), {"forget": 12}),
        Case(lambda **n: pqftl(REAL, BUDGET, **n), {"horizon": 6, "extra_ridge": 1.3, "weight": 1.7, "seed": 7}),
    ],
    "taciturn.LinearBandit": [
        Case(
            lambda **n: LinearBandit(bandit_problem(2), **n),
            {"low": -0.7, "high": 1.3, "weight": 1.3, "ridge": 1.7, "shift": 1.3},
        ),
        Case(lambda arms: LinearBandit(bandit_problem(2, 3), arms), {"arms": 3}),
    ],
    "taciturn.linear_bandit": [
        Case(lambda **n: linear_bandit(2, BUDGET, **n), {"forget": 12}),
        Case(
            lambda **n: linear_bandit(privacy=BUDGET, **n),
            {"dimension": 2, "horizon": 60, "arms": 2, "low": -0.7, "high": 1.3, "feature_bound": 1.3, "seed": 7},
        ),
        Case(lambda **n: linear_bandit(2, BUDGET, 60, **n), {"intercept": 0.5, "weight": 1.3, "ridge": 1.7}),
    ],
    "taciturn.private_sum": [
        Case(lambda **n: private_sum(2, 1.0, BUDGET, **n), {"forget": 12}),
        Case(lambda **n: private_sum(privacy=BUDGET, **n), {"dimension": 2, "bound": 1.3, "horizon": 6, "seed": 7}),
    ],
    "taciturn.kernel.accounting.zcdp.delta_of_rho": [Case(concentrated.delta_of_rho, {"epsilon": 1.3, "rho": 0.1})],
    "taciturn.kernel.accounting.zcdp.epsilon_of_rho": [
        Case(concentrated.epsilon_of_rho, {"delta": 1e-3, "rho": 1.3}),
    ],
    "taciturn.kernel.accounting.zcdp.rho_of": [Case(concentrated.rho_of, {"epsilon": 1.3, "delta": 1e-3})],
    "taciturn.kernel.accounting.cost.gaussian": [Case(_gaussian, {"mu_squared": 0.01, "count": 100})],
    "taciturn.kernel.learners.qftl.quadratic_pair": [
        Case(quadratic_pair, {"weight_v": 1.3, "weight_u": 1.1, "R": 1.7, "R_y": 1.9})
    ],
    "taciturn.calibration.errata.table": [
        Case(
            errata.table,
            {"horizons": (100, 120), "epsilons": (1.3, 2.1), "deltas": (1e-3, 1e-2), "alphas": (1.1, 0.3)},
        )
    ],
    "taciturn.kernel.accounting.gdp.delta_of": [Case(exact.delta_of, {"epsilon": 1.3, "mu": 1.7})],
    "taciturn.kernel.accounting.gdp.epsilon_of": [Case(exact.epsilon_of, {"delta": 1e-3, "mu": 1.7})],
    "taciturn.kernel.accounting.gdp.mu_of": [Case(exact.mu_of, {"epsilon": 1.3, "delta": 1e-3})],
    "taciturn.kernel.accounting.gdp.noise_multiplier": [
        Case(lambda releases: exact.noise_multiplier(BUDGET, releases), {"releases": 100})
    ],
    "taciturn.calibration.paper.delivered": [
        Case(lambda horizon: paper.delivered(BUDGET, horizon, "proven"), {"horizon": 100})
    ],
    "taciturn.calibration.paper.noise_multiplier": [
        Case(lambda horizon: paper.noise_multiplier(BUDGET, horizon, "proven"), {"horizon": 100})
    ],
    "taciturn.calibration.paper.pocp_noise": [
        Case(
            lambda **n: paper.pocp_noise(privacy=BUDGET, rounds=ROUNDS, reading="proven", **n),
            {"lam": 1.3, "horizon": 100},
        )
    ],
    "taciturn.calibration.paper.pol_noise": [
        Case(lambda **n: paper.pol_noise(privacy=BUDGET, **n), {"lipschitz": 1.3, "horizon": 100})
    ],
    "taciturn.calibration.paper.pqftl_noise": [
        Case(lambda **n: paper.pqftl_noise(privacy=BUDGET, **n), {"bound": 1.3, "horizon": 100})
    ],
    "taciturn.calibration.paper.tree_noise": [
        Case(lambda **n: paper.tree_noise(privacy=BUDGET, **n), {"bound": 1.3, "horizon": 100})
    ],
    "taciturn.methods.objective.delta_perturbed": [
        Case(perturbed.delta_perturbed, {"epsilon": 2.3, "m": 0.3, "hessian": 1.1, "dimensions": 2})
    ],
    "taciturn.methods.objective.epsilon_perturbed": [
        Case(perturbed.epsilon_perturbed, {"delta": 1e-3, "m": 0.3, "hessian": 1.1, "dimensions": 2})
    ],
    "taciturn.methods.objective.shift_of": [
        Case(perturbed.shift_of, {"epsilon": 2.3, "delta": 1e-3, "hessian": 1.1, "dimensions": 2})
    ],
    "taciturn.audit.Pair": [Case(lambda at: (_pair(at).at, _pair(at).world(1)), {"at": 1})],
    "taciturn.audit.audit": [
        Case(_audited, {"rounds": 2, "trials": 100, "ridge": 0.3, "error": 0.01}),
    ],
    "taciturn.bandits.EpsilonGreedy": [Case(EpsilonGreedy, {"explore": 0.3})],
    "taciturn.bandits.PrivateBandit": [Case(_bandit_of, {"arms": 3, "wait": 4, "default_reward": 0.3})],
    "taciturn.bandits.PrivateLinUCB": _fronts(PrivateLinUCB, width=1.3),
    "taciturn.bandits.PrivateLogisticBandit": _fronts(PrivateLogisticBandit, radius=1.3, curvature=0.3, explore=0.3),
    "taciturn.bandits.PrivateThompson": _fronts(PrivateThompson, width=1.3),
    "taciturn.bandits.Thompson": [Case(Thompson, {"width": 1.3, "samples": 7})],
    "taciturn.bandits.UCB": [Case(UCB, {"width": 1.3, "failure": 0.03})],
    "taciturn.audit.audit_script": [
        Case(
            lambda **n: audit_script("reused_noise", BUDGET, **n),
            {"rounds": 4, "dimension": 2, "trials": 100, "error": 0.01},
        )
    ],
    "taciturn.audit.distinguish_samples": [Case(_from_samples, {"trials": 100, "error": 0.01})],
    "taciturn.audit.distinguish_adaptive_selections": [Case(_adaptive_selections, {"trials": 100, "error": 0.01})],
    "taciturn.audit.distinguish_selections": [Case(_selections, {"trials": 100, "secret_trials": 2, "error": 0.01})],
    "taciturn.audit.distinguish": [Case(_distinguished, {"trials": 100, "secret_trials": 2, "error": 0.01})],
    "taciturn.audit.tight_private": [
        Case(lambda **n: tight_private("pigd", BUDGET, **n), {"rounds": 6, "ridge": 1.3}),
    ],
    "taciturn.averages.average": [
        Case(lambda **n: average(_releases(), first=np.zeros(2), **n), {"share": 0.3, "until": 100})
    ],
    "taciturn.averages.late_average": [
        Case(lambda **n: late_average(_releases(), **n), {"since": 1, "power": 2.3, "window": 2})
    ],
    "taciturn.averages.late_averages": [
        Case(lambda **n: late_averages(_releases(), **n), {"since": 1, "power": 2.3, "window": 2})
    ],
    "taciturn.averages.running_average": [Case(lambda **n: running_average(_releases(), **n), {"share": 0.3})],
    "taciturn.columns.kinds.Hashed": [Case(lambda buckets: Hashed("ip", buckets), {"buckets": 100})],
    "taciturn.columns.kinds.Text": [Case(lambda buckets: Text("note", buckets), {"buckets": 100})],
    "taciturn.columns.kinds.Bins": [
        Case(lambda edges: _contract_column(Bins("age", edges)), {"edges": (1.3, 2.7, 5.1)})
    ],
    "taciturn.columns.kinds.Range": [
        Case(
            lambda **n: _contract_column(Range("age", **n)),
            {"low": -1.3, "high": 1.7, "missing": 0.3},
        )
    ],
    "taciturn.columns.scales.Scale": [
        Case(
            lambda threshold: _contract_column(Range("age", -1.3, 1.7, scale=Scale("symlog", threshold))),
            {"threshold": 0.3},
        )
    ],
    "taciturn.contract.contract.Contract": [
        Case(lambda forget: _contract(epsilon=1.0, release=2, forget=forget), FORGET),
        Case(
            _contract,
            {"epsilon": 1.7, "delta": 1e-3, "release": 2, "horizon": 6, "stated_bound": 1.3}
            | {"radius": 2.3, "ridge": 1.1},
        ),
        Case(lambda **n: _contract(epsilon=1.0, horizon=60, user="id", **n), BOUNDS),
        Case(lambda **n: _number_contract(loss="quantile", **n), {"quantile": 0.3}),
        Case(lambda **n: _number_contract(loss="huber", **n), {"huber_width": 1.3}),
    ],
    "taciturn.columns.target.Classes": [Case(_target_weight("Classes"), {"class_weight": 1.3})],
    "taciturn.columns.target.Positive": [Case(_target_weight("Positive"), {"class_weight": 1.3})],
    "taciturn.columns.target.Number": [Case(_contract_target, {"low": -1.3, "high": 1.7})],
    "taciturn.estimators.settings.Settings": [
        Case(lambda forget: _request(classes=2, forget=forget, **STREAM), FORGET),
        Case(
            lambda class_weight: _request(classes=2, class_weight=(class_weight, 1.0), **_stated()),
            {"class_weight": 1.3},
        ),
        Case(_request, MODEL_REQUEST := {k: v for k, v in MODEL.items() if k != "horizon"} | {"classes": 3}),
        Case(
            lambda **n: _request("quantile", **n),
            {"quantile": 0.3, "label_bound": 1.9} | {k: v for k, v in MODEL_REQUEST.items() if k != "classes"},
        ),
        Case(
            lambda **n: _request("huber", **n),
            {"huber_width": 1.7, "label_bound": 1.9} | _stated(),
        ),
        Case(lambda **n: _request("huber", **n), {"label_bound": 1.9} | _stated()),
        Case(lambda scales: _request(features=4, scales=(scales, 0.5), classes=2, **_stated()), {"scales": 1.3}),
    ],
    "taciturn.estimators.river.NormClip": [Case(_clipped("river"), {"bound": 1.3})],
    "taciturn.estimators.river.PrivateLinearRegression": [
        Case(_river("PrivateLinearRegression", loss="squared", label_bound=1.9, **STREAM, **NAMED), FORGET),
        Case(_river("PrivateLinearRegression", loss="quantile", **NAMED), QUANTILE),
        Case(_river("PrivateLinearRegression", loss="huber", **NAMED), HUBER),
        Case(_river("PrivateLinearRegression", loss="quantile", **QUANTILE), {"buckets": 4}),
        Case(_river("PrivateLinearRegression", loss="squared", **NAMED), MODEL | {"label_range": (-1.3, 1.7)}),
    ],
    "taciturn.estimators.river.PrivateLinearSVC": [
        Case(_river("PrivateLinearSVC", **STREAM, **NAMED), FORGET),
        Case(_river("PrivateLinearSVC"), MODEL | {"buckets": 4}),
        Case(_weighted(_river("PrivateLinearSVC", **MODEL, **NAMED)), {"class_weight": 1.3}),
    ],
    "taciturn.estimators.river.PrivateLogisticRegression": [
        Case(_river("PrivateLogisticRegression", **STREAM, **NAMED), FORGET),
        Case(_river("PrivateLogisticRegression"), MODEL | {"buckets": 4}),
        Case(_weighted(_river("PrivateLogisticRegression", **MODEL, **NAMED)), {"class_weight": 1.3}),
    ],
    "taciturn.estimators.river.PrivateNaiveBayes": [
        Case(_river("PrivateNaiveBayes", buckets=4, **STREAM), FORGET),
        Case(_river("PrivateNaiveBayes"), COUNTS | {"buckets": 4}),
    ],
    "taciturn.estimators.river.PublicScaler": [Case(_scaled, {"low": -1.3, "high": 1.7})],
    "taciturn.estimators.scaling.NormClip": [Case(_clipped("scaling"), {"bound": 1.3})],
    "taciturn.estimators.scaling.PublicRandomFeatures": [
        Case(lambda **n: PublicRandomFeatures(scale=1.3, **n).fit_transform(X), {"count": 4, "length": 1.3, "seed": 3}),
    ],
    "taciturn.RandomFeatures": [
        Case(RandomFeatures, {"count": 4, "scale": 1.3, "length": 0.7, "seed": 3}),
        Case(lambda scale: RandomFeatures(4, (scale, scale)), {"scale": 1.3}),
    ],
    "taciturn.estimators.sklearn.PrivateLinearRegression": [
        Case(_sklearn("PrivateLinearRegression", loss="squared", label_bound=1.9, **STREAM), FORGET),
        Case(_sklearn("PrivateLinearRegression", loss="quantile"), QUANTILE),
        Case(_sklearn("PrivateLinearRegression", loss="huber"), HUBER),
        Case(_sklearn("PrivateLinearRegression", loss="squared"), MODEL | {"label_range": (-1.3, 1.7)}),
        Case(
            _sklearn("PrivateLinearRegression", loss="huber"),
            {name: value for name, value in HUBER.items() if name != "huber_width"},
        ),
    ],
    "taciturn.estimators.sklearn.PrivateLinearSVC": [
        Case(_sklearn("PrivateLinearSVC", classes=[-1, 1], **STREAM), FORGET),
        Case(_sklearn("PrivateLinearSVC", classes=[-1, 1]), MODEL),
        Case(_weighted(_sklearn("PrivateLinearSVC", classes=[-1, 1], **MODEL)), {"class_weight": 1.3}),
    ],
    "taciturn.estimators.sklearn.PrivateLogisticRegression": [
        Case(_sklearn("PrivateLogisticRegression", classes=[-1, 1], **STREAM), FORGET),
        Case(_sklearn("PrivateLogisticRegression", classes=[-1, 1]), MODEL),
        Case(_weighted(_sklearn("PrivateLogisticRegression", classes=[-1, 1], **MODEL)), {"class_weight": 1.3}),
    ],
    "taciturn.estimators.sklearn.PrivateNaiveBayes": [Case(_sklearn("PrivateNaiveBayes", classes=[-1, 1]), COUNTS)],
    "taciturn.methods.objective_perturbation.ridge_for": [
        Case(lambda **n: ridge_for(BUDGET, **n), {"horizon": 100, "feature_bound": 1.3, "size": 7}),
    ],
    "taciturn.plan.standard_scale": [Case(standard_scale, {"columns": 3})],
    "taciturn.plan.curvature": [Case(lambda share: curvature(RIDGED, share), {"share": 0.03})],
    "taciturn.plan.feature_map": [
        Case(
            lambda scales, **n: feature_map(4, privacy=BUDGET, scales=(scales, 0.5), **n),
            {"feature_bound": 1.3, "horizon": 100, "scales": 1.7},
        ),
        Case(lambda feature_bound: feature_map(4, feature_bound, BUDGET), {"feature_bound": 1.3}),
    ],
    "taciturn.plan.feature_scales": [Case(feature_scales, {"numbers": 30, "groups": 3})],
    "taciturn.plan.recommend": [
        Case(lambda forget: recommend(REAL, BUDGET, 100, forget=forget, seed=7).private, FORGET),
        Case(lambda horizon: recommend(RIDGED, BUDGET, horizon, seed=7).private, {"horizon": 100}),
        Case(lambda horizon: recommend(REAL, BUDGET, horizon, seed=7).private, {"horizon": 100}),
        Case(lambda workers: recommend(REAL, BUDGET, 100, workers=workers, seed=7).private, {"workers": 2}),
    ],
    "taciturn.plan.rows_per_user": [
        Case(lambda **n: rows_per_user(RIDGED, BUDGET, **n), {"horizon": 100, "users": 30, "apart": 2})
    ],
    "taciturn.kernel.problem.scalar_loss.Smoothed": [Case(lambda width: Smoothed(Absolute(), width), {"width": 1.3})],
    "taciturn.kernel.problem.losses.Advice": [Case(Advice, {"loss_bound": 1.3})],
    "taciturn.methods.weighted.Weighted": [
        Case(lambda negative: Weighted(Hinge(), negative), {"negative": 0.3}),
        Case(lambda positive: Weighted(Hinge(), positive=positive), {"positive": 0.3}),
    ],
    "taciturn.methods.weighted.WeightedScores": [
        Case(lambda weights: WeightedScores(MultiHinge(3), (1.0, weights, 0.5)), {"weights": 0.3})
    ],
    "taciturn.BlockSums": [Case(_sums, {"count": 6, "excluded": 2})],
    "taciturn.block_statistics": [
        Case(
            lambda first: list(
                block_statistics(private_sum(2, 1.0, BUDGET, 6).learner, None, X, key=bytes(32), first=first).digest
            ),
            {"first": 3},
        )
    ],
    "taciturn.methods.objective.epsilon_of_moments": [
        Case(lambda delta: epsilon_of_moments(delta, lambda a: log_moment(a, 0.3, 0.01, 2)), {"delta": 1e-3})
    ],
    "taciturn.methods.objective.log_moment": [Case(log_moment, {"a": 1.7, "m": 0.3, "hessian": 0.1, "dimensions": 2})],
    "taciturn.methods.selection.shares": [
        Case(lambda **n: shares(BUDGET, **n), {"candidates": 3, "pilot": 0.3, "scale": 0.7})
    ],
    "taciturn.methods.selection.Selection": [Case(_selection, {"rows": 20, "seed": 7})],
    "taciturn.regret.best_in_hindsight": [
        Case(
            lambda tolerance: dataclasses.astuple(regret.best_in_hindsight(RIDGED, X, SIGNS, tolerance)),
            {"tolerance": 1e-3},
        )
    ],
    "taciturn.regret.dimension_free_regret_bound": [
        Case(
            lambda length: regret.dimension_free_regret_bound(
                pftrl(Problem(Hinge(), WholeSpace(), 2), BUDGET, 6, scale=1.3), length
            ),
            {"length": 1.7},
        )
    ],
    "taciturn.regret.fading_regret_bound": [
        Case(lambda **n: regret.fading_regret_bound(Problem(Hinge(), DISC, 2), **n), {"strength": 1.3, "horizon": 100})
    ],
    "taciturn.drift.DriftWatch": [Case(lambda rate: DriftWatch(_forgetful()[0], rate).rate, {"rate": 0.3})],
    "taciturn.drift.drift": [Case(lambda rate: drift(*_forgetful(), rate).alarm_at, {"rate": 0.3})],
    "taciturn.memories.Memories": [
        Case(lambda windows, k: Memories(_forgetful()[0], windows, k).windows, {"windows": (20, 90), "k": 0})
    ],
    "taciturn.memories.decayed_sums": [
        Case(lambda window: decayed_sums(*_forgetful(), window).noise_sd, {"window": 20})
    ],
    "taciturn.memories.tuned": [Case(tuned, {"windows": (20, 90)})],
    "taciturn.regret.tracking_regret": [
        Case(lambda **n: regret.tracking_regret(REAL, [], X, NUMBERS, **n), {"changes": (2, 4), "tolerance": 1e-3})
    ],
    "taciturn.regret.tracking_regret_bound": [
        Case(
            lambda changes: regret.tracking_regret_bound(
                pftrl(REAL, BUDGET, 60, forget=20, schedule=every(2)), changes
            ),
            {"changes": 2},
        )
    ],
    "taciturn.regret.ftrl_regret_bound": [
        Case(lambda failure: regret.ftrl_regret_bound(pftrl(REAL, BUDGET, 6), failure), {"failure": 0.3})
    ],
    "taciturn.regret.giga_regret_bound": [
        Case(lambda horizon: regret.giga_regret_bound(RIDGED, horizon), {"horizon": 100}),
    ],
    "taciturn.regret.igd_regret_bound": [
        Case(lambda horizon: regret.igd_regret_bound(RIDGED, horizon), {"horizon": 100}),
    ],
    "taciturn.regret.leader_regret_bound": [
        Case(lambda **n: regret.leader_regret_bound(RIDGED, **n), {"horizon": 100, "extra_ridge": 1.3})
    ],
    "taciturn.regret.noise_regret_bound": [
        Case(lambda failure: regret.noise_regret_bound(pigd(RIDGED, BUDGET, 6), failure), {"failure": 0.3})
    ],
    "taciturn.regret.pgiga_regret_bound": [
        Case(lambda horizon: regret.pgiga_regret_bound(RIDGED, BUDGET, horizon), {"horizon": 100})
    ],
    "taciturn.regret.pocp_regret_bound": [
        Case(
            lambda **n: regret.pocp_regret_bound(RIDGED, privacy=BUDGET, **n),
            {"sensitivity": 1.3, "horizon": 100, "failure": 0.3},
        )
    ],
    "taciturn.regret.pol_utility_bound": [
        Case(lambda **n: regret.pol_utility_bound(pol(RIDGED, BUDGET, 6), **n), {"failure": 0.3, "comparator": 0.7})
    ],
    "taciturn.regret.pqftl_regret_bound": [
        Case(
            lambda **n: regret.pqftl_regret_bound(privacy=BUDGET, **n),
            {"bound": 1.3, "ridge": 1.7, "dimension": 10, "horizon": 100},
        )
    ],
    "taciturn.regret.qftl_regret_bound": [
        Case(regret.qftl_regret_bound, {"bound": 1.3, "ridge": 1.7, "horizon": 100}),
    ],
    "taciturn.regret.quadratic_regret_bound": [
        Case(
            lambda **n: regret.quadratic_regret_bound(REAL, **n),
            {"horizon": 100, "sd_matrix": 1.3, "sd_vector": 1.7, "failure": 0.3, "shift": 1.1},
        )
    ],
    "taciturn.regret.risk_bound": [
        Case(
            lambda **n: regret.risk_bound(RIDGED, **n),
            {"regret": 1.7, "horizon": 100, "failure": 0.3, "comparator": 0.7},
        )
    ],
    "taciturn.regret.tails.length_moments": [Case(tails.length_moments, {"dimension": 10})],
    "taciturn.regret.tails.longest": [Case(tails.longest, {"dimension": 10, "failure": 0.3})],
    "taciturn.regret.tails.probability": [Case(tails.probability, {"failure": 0.3})],
    "taciturn.regret.tails.strongest": [Case(tails.strongest, {"dimension": 10, "failure": 0.3})],
}
"""By public name: how it is made of numbers, once or several times, and which."""

RESULTS = {
    "taciturn.Release",
    "taciturn.Releases",
    "taciturn.State",
    "taciturn.kernel.accounting.cost.Spent",
    "taciturn.calibration.errata.Erratum",
    "taciturn.kernel.accounting.guarantee.Charge",
    "taciturn.kernel.accounting.ledger_rules.Learnt",
    "taciturn.kernel.accounting.ledger_rules.Line",
    "taciturn.kernel.accounting.ledger_rules.sums_from",
    "taciturn.bandits.Decision",
    "taciturn.datasets.BanditLog",
    "taciturn.bandits.LinearModel",
    "taciturn.bandits.compare",
    "taciturn.bandits.simulate",
    "taciturn.bandits.simulate_every_round",
    "taciturn.audit.Audit",
    "taciturn.audit.EventFinding",
    "taciturn.audit.Finding",
    "taciturn.datasets.Stream",
    "taciturn.drift.Drift",
    "taciturn.plan.Plan",
    "taciturn.regret.Optimum",
}
"""Results of the package, which users do not set."""

UNCERTIFIED = {
    "taciturn.kernel.accounting.gdp.doubled",
    "taciturn.kernel.accounting.gdp.largest_true",
    "taciturn.kernel.accounting.gdp.last_true",
    "taciturn.kernel.accounting.zcdp.least_value",
    "taciturn.checks.check_learner",
    "taciturn.checks.check_loss",
    "taciturn.checks.check_map",
    "taciturn.checks.check_set",
    "taciturn.checks.check_strategy",
    "taciturn.columns.kinds.check_range",
    "taciturn.datasets.ad_impressions",
    "taciturn.datasets.covertype",
    "taciturn.datasets.customers",
    "taciturn.datasets.write_customers",
    "taciturn.datasets.linear_regression",
}
"""Tools whose numbers enter no certificate: bisection by a function of the user, sizes of checks and of data."""

INTERNAL = {
    "taciturn.kernel.accounting.cost.sampled_gaussian",
    "taciturn.averages.late_averages_of",
    "taciturn.calibration.paper.PaperCertificate",
    "taciturn.mechanisms.OnLattice",
    "taciturn.mechanisms.calibrate_step",
    "taciturn.mechanisms.checked",
    "taciturn.mechanisms.on_lattice",
    "taciturn.mechanisms.sampling_cost",
}
"""Called for every release, or by a mechanism that is calibrated, with numbers that are validated or computed."""

MODULES = (
    "taciturn",
    *(f"taciturn.{name}" for name in taciturn._MODULES),
    "taciturn.kernel.accounting.zcdp",
    "taciturn.kernel.accounting.cost",
    "taciturn.calibration.errata",
    "taciturn.kernel.accounting.gdp",
    "taciturn.kernel.accounting.guarantee",
    "taciturn.accounting.ledger",
    "taciturn.kernel.accounting.ledger_rules",
    "taciturn.calibration.paper",
    "taciturn.methods.objective",
    "taciturn.columns.kinds",
    "taciturn.contract.contract",
    "taciturn.columns.scales",
    "taciturn.columns.target",
    "taciturn.estimators.settings",
    "taciturn.estimators.river",
    "taciturn.estimators.scaling",
    "taciturn.estimators.sklearn",
    "taciturn.methods.objective_perturbation",
    "taciturn.methods.selection",
    "taciturn.kernel.learners.qftl",
    "taciturn.kernel.problem.losses",
    "taciturn.methods.weighted",
    "taciturn.regret.tails",
)


def public() -> Iterator[tuple[str, Any]]:
    """Public names, as people write them, and what they are."""
    for module in MODULES:
        home = importlib.import_module(module)
        for name in getattr(home, "__all__", None) or [n for n in vars(home) if not n.startswith("_")]:
            thing = getattr(home, name)
            if hasattr(home, "__all__") or getattr(thing, "__module__", None) == module:
                path = (
                    f"taciturn.{name}"
                    if name in taciturn.__all__ and getattr(taciturn, name) is thing
                    else f"{module}.{name}"
                )
                yield path, thing


def numbers_of(thing: Any) -> set[str]:
    """The parameters that are numbers, by their annotations; of a class, those of its constructor."""
    if not callable(thing) or getattr(thing, "_is_protocol", False):
        return set()
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return set()
    return {
        p.name
        for p in parameters
        if re.search(r"(?<![\w\[])(float|int)\b|\[(float|int)\b", str(p.annotation))
        and "Callable" not in str(p.annotation)
    }


def home_of(named: tuple[str, Any]) -> str:
    """The module of a name, of which all cases are one test."""
    return named[0].rpartition(".")[0]


PUBLIC = sorted(dict(public()).items())


@each("name, thing", PUBLIC)
def test_every_number_has_an_entry(name, thing):
    """A public name that takes a number is in the list of cases with all of its numbers."""
    if name in RESULTS | UNCERTIFIED | INTERNAL:
        return
    stated = {number for case in CASES.get(name, []) for number in case.numbers}
    assert not (missing := numbers_of(thing) - stated - {"ranges"}), f"{name} takes {missing}: give it a case"


def test_cases_are_public():
    """No case is left of a name that has gone."""
    names = set(dict(public())) | {"taciturn.kernel.problem.scalar_loss.Smoothed"}
    assert set(CASES) | RESULTS | UNCERTIFIED | INTERNAL <= names


def nudged(value):
    """A long double that is no float, next to one."""
    return np.longdouble(value) * (1 + np.finfo(np.longdouble).eps)


FLOATS: dict[str, Callable[[float], Any]] = {
    "half": np.float16,
    "single": np.float32,
    "double": np.float64,
    "long": nudged,
    "0-d array": lambda value: np.array(value, dtype=np.float32),
    "fraction": Fraction,
    "decimal": lambda value: Decimal(repr(value)),
}
INTEGERS: dict[str, Callable[[float], Any]] = {
    "int8": lambda value: np.int8(round(value)),
    "uint8": lambda value: np.uint8(round(value)),
    "int64": lambda value: np.int64(round(value)),
    "uint64": lambda value: np.uint64(round(value)),
    "0-d integer": lambda value: np.array(round(value), dtype=np.int16),
}
FEW = ("half", "long", "0-d array", "int8")
"""Types that the fast tests are made of, all numbers of a case at once."""


def kinds_for(value: Any) -> dict[str, Callable[[float], Any]]:
    """The types that a number may come in: those of integers if it is large enough for one, signed if negative."""
    value = min(map(abs, value)) if isinstance(value, tuple) else value
    if isinstance(value, int):
        return INTEGERS | {"half": np.float16, "single": np.float32, "long": np.longdouble}
    fitting = {kind: make for kind, make in INTEGERS.items() if value >= 0 or not kind.startswith("uint")}
    return FLOATS | (fitting if abs(value) >= 1.0 else {})


def retyped(value: Any, kind: str) -> tuple[Any, Any]:
    """A number of that type, and the Python number of the same value; the number as it is where it has no such type."""
    make = kinds_for(value).get(kind, lambda same: same)
    if isinstance(value, tuple):
        given, integral = tuple(map(make, value)), isinstance(value[0], int)
        return given, tuple(int(each) if integral else float(each) for each in given)
    given = make(value)
    return given, int(given) if isinstance(value, int) else float(given)


def both(case: Case, names: Iterable[str], kind: str) -> tuple[Any, Any]:
    """The thing made of numbers of that type, and of the Python numbers that equal them."""
    pairs = {name: retyped(case.numbers[name], kind) for name in names}
    given, same = ({name: pair[i] for name, pair in pairs.items()} for i in (0, 1))
    return case.make(**case.numbers | given), case.make(**case.numbers | same)


EVERY_CASE = [(name, case) for name, cases in CASES.items() for case in cases]
RUNNING = [
    (name, case)
    for name, case in EVERY_CASE
    if not re.match(r"taciturn\.(accounting|audit|averages|estimators|regret)", name)
]
"""Cases of which streams can be run; estimators have run theirs once they are made."""


def seen(thing: Any) -> Any:
    """What can be seen of a thing, as plain data; a number that is no Python number is rejected."""
    if thing is None or isinstance(thing, bool | str):
        return thing
    if isinstance(thing, int | float | np.generic):
        assert type(thing) in (int, float), f"{thing!r} is a {type(thing).__name__}"
        return thing
    if isinstance(thing, np.ndarray):
        return str(thing.dtype), thing.tolist()
    if isinstance(thing, tuple | list):
        return [seen(part) for part in thing]
    if isinstance(thing, dict):
        return {key: seen(part) for key, part in thing.items()}
    fields = {f.name: getattr(thing, f.name) for f in dataclasses.fields(thing)}
    stored = {name: seen(value) for name, value in fields.items() if not callable(value)}
    return type(thing).__name__, stored, [seen(number) for number in certified(thing)]


def certified(thing: Any) -> list[Any]:
    """The bounds that follow from a setting: the certificate, the noise, the guarantee."""
    if isinstance(thing, ScalarLoss):
        return [thing.slope_bound(2.0, 1.0), thing.gradient_diameter(1.0, 2.0, 1.0), thing.variation(2.0, 1.0)]
    if isinstance(thing, VectorLoss):
        return [thing.lipschitz(1.0, 2.0, 1.0), thing.gradient_diameter(1.0, 2.0, 1.0)]
    if isinstance(thing, ConvexSet):
        return [thing.diameter(2), thing.radius_in(2), thing.project(np.array([3.0, -4.0]))]
    if isinstance(thing, Problem):
        names = "norm_bound", "radius", "lipschitz", "lipschitz_with_ridge", "smoothness", "gradient_diameter"
        return [getattr(thing, name) for name in names]
    if isinstance(thing, Private):
        noise = [thing.calibrated.noise_sd(k) for k in range(1, len(thing.timetable.following(0, 6)) + 1)]
        return [noise, thing.guarantee.claimed, thing.guarantee.delivered, thing.guarantee.epsilon, thing.settings]
    if isinstance(thing, ObjectivePerturbation):
        return [thing.tilt_sd, thing.total_cost, thing.guarantee.epsilon, thing.fit(X, SIGNS).point]
    if hasattr(thing, "certificate"):
        return [thing.certificate.at(ROUNDS), thing.certificate.magnitude, thing.certificate.formula]
    if hasattr(thing, "errors"):
        return [thing.errors(6)]
    if hasattr(thing, "round_of"):
        return [[thing.round_of(k) for k in range(1, 3)]]
    return [thing.mu] if isinstance(thing, Privacy) else []


@each("name, case", EVERY_CASE, by=home_of)
def test_any_type_is_as_good_as_pythons(name, case):
    """Stored numbers are Python's, and certificates, noise and guarantees those of the Python numbers: to the bit."""
    for kind in FEW[:1] if name.startswith("taciturn.audit") else FEW:  # an audit takes its time
        given, same = both(case, case.numbers, kind)
        assert seen(given) == seen(same), kind


@pytest.mark.slow
@each("name, case", EVERY_CASE, by=home_of)
def test_any_type_of_each_number_is_as_good_as_pythons(name, case):
    """The same for each number alone, in every type."""
    for number, value in case.numbers.items():
        for kind in kinds_for(value):
            given, same = both(case, [number], kind)
            assert seen(given) == seen(same), (number, kind)


def runs(thing: Any) -> list[Private]:
    """Seeded streams that a setting has a part in."""
    seeded: dict[str, Any] = {"horizon": 6, "seed": 3}
    if isinstance(thing, ScalarLoss | VectorLoss):
        problems = [Problem(thing, DISC, 2, label_bound=1.0, ridge=ridge) for ridge in (0.0, 0.5)]
        return [pftrl(problems[0], BUDGET, **seeded), *maybe(lambda: pigd(problems[1], BUDGET, **seeded))]
    if isinstance(thing, ConvexSet):
        problem = Problem(Hinge(), thing, 2, ridge=0.5)
        return [pigd(problem, BUDGET, **seeded), *maybe(lambda: pftrl(problem, BUDGET, **seeded))]
    if isinstance(thing, Problem):
        return [pigd(thing, BUDGET, **seeded), pftrl(thing, BUDGET, **seeded)]
    if isinstance(thing, Privacy):
        return [pigd(RIDGED, thing, **seeded)]
    if hasattr(thing, "round_of"):
        return [pigd(RIDGED, BUDGET, schedule=thing, **seeded), pftrl(RIDGED, BUDGET, schedule=thing, **seeded)]
    if hasattr(thing, "calibrate"):
        return [pftrl(RIDGED, BUDGET, strategy=thing, **seeded)]
    if hasattr(thing, "certificate") and not isinstance(thing, Private):
        mechanism: Any = MECHANISMS[thing.certificate.kind]
        return [Private(thing, mechanism, every(2), BUDGET, **seeded)]
    if isinstance(thing, tuple):
        return [private for part in thing if isinstance(part, Private) for private in runs(part)]
    return [thing] if isinstance(thing, Private) and thing.seed is not None else []


def maybe(make: Callable[[], Private]) -> list[Private]:
    """One that nothing proves is left out."""
    try:
        return [make()]
    except TaciturnError:
        return []


def released(private: Private, compiled: bool) -> list[Any]:
    """What a short run releases."""
    private, problem = dataclasses.replace(private, compiled=compiled), private.problem
    y = {"real": NUMBERS, "sign": SIGNS, "class": np.array([0, 1, 1, 0, 1, 0]), "none": None}[problem.loss.labels]
    rows = X[:, : problem.dimension] if problem.dimension <= 2 else np.hstack([X, X, X])[:, : problem.dimension]
    users = list("abcaba") if isinstance(private.unit, User) else None
    _, releases = private.run(private.start(), rows, y, users)
    return [releases.rounds.tolist(), releases.noisy.tolist(), releases.points.tolist(), releases.noise_sd.tolist()]


@each("name, case", RUNNING, by=home_of)
def test_a_run_is_that_of_the_python_number(name, case):
    """Short seeded streams release the same, compiled and by the definition."""
    for kind in ("half", "int8"):
        given, same = both(case, case.numbers, kind)
        for one, other in zip(runs(given), runs(same), strict=True):
            assert released(one, compiled=True) == released(other, compiled=True)
            assert released(one, compiled=False) == released(other, compiled=False)


TEXT, LIST, IMAGINARY = "1.5", [1.5, 2.5], 1.5 + 1j
UNUSABLE = [TEXT, LIST, IMAGINARY, np.complex64(IMAGINARY), np.array([1.5, 2.5]), math.nan, np.float16("nan")]


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@each("name, case", EVERY_CASE, by=home_of)
def test_what_is_no_number_is_rejected(name, case):
    """Text, lists, complex numbers and NaN are rejected as invalid input, by every name alike."""
    singles = [number for number, stated in case.numbers.items() if not isinstance(stated, tuple)]
    for number, value in product(singles if case.make is not _certificate else [], UNUSABLE):
        with pytest.raises(InvalidInput):
            case.make(**case.numbers | {number: value})


@pytest.mark.parametrize("value", [math.nan, math.inf, "1.5", None])
def test_no_bound_at_all_is_not_certified(value):
    """A certificate whose magnitude is no number, or infinite, is rejected by every mechanism."""
    from taciturn.kernel.stream.schedule import Timetable

    with pytest.raises(taciturn.Unprovable, match="not a finite bound"):
        Gaussian().calibrate(_certificate(value), Timetable(every(1), 6), 2, BUDGET, "exact")


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble, np.int8, np.uint64])
def test_fingerprints_know_no_types(kind):
    """The hash of a number is that of the Python number of its value, also in a list or as someone's own setting."""
    value = kind(1.5 if issubclass(kind, np.floating) else 3)
    assert fingerprint(value) == fingerprint(float(value))
    assert fingerprint([value, {"a": value}]) == fingerprint([float(value), {"a": float(value)}])


class Narrow(ScalarLoss):
    """Someone's own loss, whose constants come in half precision."""

    curvature = np.float16(1.0)

    def value(self, u, y):
        return 0.5 * (u - y) ** 2

    def slope(self, u, y):
        return u - y

    def slope_bound(self, reach, label_bound):
        return np.float16(3.0)


@dataclasses.dataclass(frozen=True)
class Disc:
    """Someone's own set, whose size is stored in half precision."""

    length: np.float16

    def project(self, x):
        return L2Ball(self.length).project(x)

    def contains(self, x):
        return L2Ball(self.length).contains(x)

    def diameter(self, dimension):
        return 2 * self.length

    def radius_in(self, dimension):
        return self.length

    def check_dimension(self, dimension):
        """Any."""


class Wide(Narrow):
    """The same loss with Python's numbers."""

    curvature = 1.0

    def slope_bound(self, reach, label_bound):
        return 3.0


@pytest.mark.parametrize("learner", [IGD, GIGA, FTL, FTRL])
def test_losses_and_sets_of_others_are_read_in_double_precision(learner):
    """What a user's loss or set states in half precision is taken as a Python float before anything is computed."""
    half, whole = np.float16(0.7), float(np.float16(0.7))
    one = Problem(Narrow(), Disc(half), 2, feature_bound=1.1, label_bound=1.3, ridge=0.3)
    other = Problem(Wide(), L2Ball(whole), 2, feature_bound=1.1, label_bound=1.3, ridge=0.3)
    assert certified(one) == certified(other)
    assert {type(bound) for bound in certified(one)} == {float}
    mine, plainly = learner(one).certificate, learner(other).certificate
    assert (mine.at(ROUNDS) == plainly.at(ROUNDS)).all()
    assert (mine.magnitude, type(mine.magnitude)) == (plainly.magnitude, float)


def test_a_net_of_others_is_wide_in_double_precision():
    """The same for losses on a net of candidates."""
    half, points = np.float16(0.7), [[-0.3, 0.0], [0.3, 0.1]]
    one = EWOO(Problem(Narrow(), Disc(half), 2, label_bound=1.3), points)
    other = EWOO(Problem(Wide(), L2Ball(float(half)), 2, label_bound=1.3), points)
    assert one.certificate.at(ROUNDS).tolist() == other.certificate.at(ROUNDS).tolist()


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.float16])
def test_sums_of_many_releases(kind):
    """The number of releases does not overflow, whatever type it comes in."""
    for strategy in (BLT(), BinaryTree(), taciturn.SquareRoot()):
        assert strategy.errors(kind(127)).tolist() == strategy.errors(127).tolist()
    assert every(10).round_of(kind(30)) == 300
    assert type(every(10).round_of(kind(30))) is int


@pytest.mark.parametrize("horizon", [200, None])
@pytest.mark.parametrize(
    "recipe", [lambda horizon: pigd(RIDGED, BUDGET, horizon), lambda horizon: ewoo(experts(2), BUDGET, horizon)]
)
def test_noise_and_cost_of_a_release_of_any_number(recipe, horizon):
    """The number of a release may come in a short integer, whose logarithm NumPy takes in half precision."""
    calibrated = recipe(horizon).calibrated
    for k in (np.int8(3), np.int8(127), np.uint8(200)):
        assert calibrated.cost(k) == calibrated.cost(int(k))
        assert calibrated.noise_sd(k) == calibrated.noise_sd(int(k))


@pytest.mark.parametrize("module", ["sklearn", "river"])
def test_estimators_keep_their_parameters_as_they_came(module):
    """scikit-learn and river clone by what the constructor stored: the very objects, of whatever type."""
    home = pytest.importorskip(f"taciturn.estimators.{module}")
    given = {"epsilon": np.float16(1.5), "feature_bound": np.float32(1.1), "horizon": np.int8(6), "seed": np.uint8(3)}
    model = home.PrivateLogisticRegression(**given)
    assert all(getattr(model, name) is value for name, value in given.items())


def test_released_once_more():
    """A release may be made by hand, to average; its round may be of any type."""
    made = [Release(np.int8(t), k, np.zeros(1), np.array([float(t)]), 1.0, True) for k, t in ((1, 100), (2, 127))]
    same = [Release(t, k, np.zeros(1), np.array([float(t)]), 1.0, True) for k, t in ((1, 100), (2, 127))]
    assert average(made).tolist() == average(same).tolist()


ADDRESSES = ("path", "ledger", "where", "address", "book")
MARK = 987654.25
"""Of data that someone gives in the place of a setting: no error has it."""
MARKED: dict[str, Callable[[], Any]] = {
    "array": lambda: np.full(3, MARK),
    "rows": lambda: np.full((3, 2), MARK),
    "text array": lambda: np.full(3, "MARKED"),
    "frame": lambda: pd.DataFrame({"a": [MARK] * 3, "b": ["MARKED"] * 3}),
    "series": lambda: pd.Series([MARK] * 3, name="a"),
    "list": lambda: [MARK, MARK, MARK],
    "texts": lambda: ["MARKED", "MARKED", "MARKED"],
    "tuple": lambda: (MARK, MARK, MARK),
    "dict": lambda: {"a": MARK, "b": "MARKED"},
    "rows of dicts": lambda: [{"a": MARK, "b": "MARKED"}],
    "set": lambda: {MARK},
    "sparse": lambda: csr_matrix(np.full((3, 2), MARK)),
    "generator": lambda: (MARK for _ in range(3)),
    "long text": lambda: "MARKED" * 9,
}


def quoted(call: Callable[[], Any]) -> str | None:
    """What an error of this package says, if it quotes the mark."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except TaciturnError as error:
        return str(error) if "987654" in str(error) or "MARKED" in str(error) else None
    except Exception:
        return None  # of a name that validates later, or not at all; nothing of ours is said
    return None


@pytest.mark.privacy
@each("name, case", [(name, case) for name, case in EVERY_CASE if "errata" not in name], by=home_of)
def test_no_setting_quotes_data_that_took_its_place(name, case):
    """A column, a frame or a list in the place of a number is named by its type, and none of its values is shown."""
    said = [
        quoted(lambda number=number, make=make: case.make(**case.numbers | {number: make()}))
        for number, make in product(case.numbers, MARKED.values())
    ]
    assert not [words for words in said if words]


@pytest.mark.privacy
@each("name, thing", PUBLIC, by=home_of)
def test_no_argument_quotes_data_that_took_its_place(name, thing):
    """The same for every argument of every public name, the others left out or None."""
    if (
        not callable(thing)
        or getattr(thing, "_is_protocol", False)
        or name.startswith(("taciturn.datasets", "taciturn.calibration.errata"))
    ):
        return  # which read and write files, or simulate, and a table of public budgets
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return
    fixed = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    names = [p for p in parameters if p.kind not in fixed]
    required = {p.name: None for p in names if p.default is p.empty}
    for argument, (kind, make) in product(names, MARKED.items()):
        if kind == "long text" and argument.name in ADDRESSES:
            continue  # an address, which an error names
        if argument.name in ("name", "key"):
            continue  # as errors call a column
        arguments = required | {argument.name: make()}
        first = [arguments.pop(p.name) for p in names if p.kind is p.POSITIONAL_ONLY and p.name in arguments]
        assert not quoted(lambda first=first, arguments=arguments: thing(*first, **arguments)), argument.name


@pytest.mark.privacy
def test_no_stream_quotes_data_that_took_the_place_of_an_argument():
    """Nor do the calls of a stream, of an estimator and of a transformer."""
    private = pqftl(REAL, BUDGET, horizon=6, seed=1)
    sklearn = importlib.import_module("taciturn.estimators.sklearn")
    scaling = importlib.import_module("taciturn.estimators.scaling")
    river = importlib.import_module("taciturn.estimators.river")
    stated = {"epsilon": 1.0, "feature_bound": 1.0}
    rewards = {"label_bound": 1.0}, NUMBERS
    fronts = {
        sklearn.PrivateLogisticRegression: ({"classes": [-1, 1]}, SIGNS),
        sklearn.PrivateLinearRegression: rewards,
    }
    calls: list[Callable[[Any], Any]] = [
        river.NormClip,
        lambda data: private.start(None if isinstance(data, str) else data),  # which is an address
        lambda data: private.run(data, X, NUMBERS),
        lambda data: private.run(private.start(), data, NUMBERS),
        lambda data: private.run(private.start(), X, data),
        lambda data: private.run(private.start(), X, NUMBERS, users=data),
        lambda data: private.run_sums(private.start(), data),
        lambda data: private.run_sums(private.start(), [data]),
        lambda data: private.fit(data, NUMBERS),
        lambda data: scaling.NormClip(data).fit(X),
        lambda data: scaling.PublicScaler(data).fit(X),
        lambda data: scaling.PublicScaler([(0, 1), (0, 1)], missing=data).fit(X),
        lambda data: scaling.PublicColumns(data).fit(X),
        lambda data: river.PublicScaler(ranges=data),
        lambda data: river.PublicScaler(ranges={"a": data}),
    ]
    for estimator, (own, y) in fronts.items():
        for name in set(inspect.signature(estimator).parameters) - {"ledger"}:
            calls.append(
                lambda data, estimator=estimator, own=own, y=y, name=name: estimator(**stated | own | {name: data}).fit(
                    X, y
                )
            )
    for name in set(inspect.signature(river.PrivateLogisticRegression).parameters) - {"ledger"}:
        calls.append(
            lambda data, name=name: river.PrivateLogisticRegression(
                **{"features": ["a"], **stated, name: data}
            ).learn_one({"a": 1.0}, True)
        )
    for kind, key in product(("range", "categories", "bins", "date", "hash", "text"), ("kind", "missing", "scale")):
        calls.append(
            lambda data, kind=kind, key=key: scaling.PublicColumns(
                {0: {kind: data} if key == "kind" else {kind: [0, 1], key: data}, 1: {"ignore": True}}
            ).fit(X)
        )
    said = [quoted(lambda call=call, make=make: call(make())) for call, make in product(calls, MARKED.values())]
    assert not [words for words in said if words]


def test_what_came_is_named():
    """Scalars are shown, and everything else by its type and size."""
    private = pqftl(REAL, BUDGET, horizon=6, seed=1)
    state = private.start()
    with pytest.raises(InvalidInput, match=r"^a block cannot be of type ndarray\. "):
        private.run_sums(state, [X])
    with pytest.raises(InvalidInput, match=r"^epsilon must be positive and finite, got ndarray of shape \(6, 2\)\. "):
        Privacy(X, 1e-6)
    with pytest.raises(InvalidInput, match=r"radius must be positive and finite, got -1\.0"):
        L2Ball(np.float32(-1.0))
