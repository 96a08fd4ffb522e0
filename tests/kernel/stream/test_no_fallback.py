"""Built-in learners on a ball, a box or the whole space run compiled passes and never fall back to the definition."""

from __future__ import annotations

from dataclasses import replace
from types import FunctionType

import pytest

from kernel.stream.streams import BUDGET, PAIRS, PLAIN, ROWS, private, problem, stream
from taciturn import (
    EWOO,
    FTL,
    Box,
    L2Ball,
    Logistic,
    MultiHinge,
    OneHot,
    Softmax,
    Squared,
    Unprovable,
    WholeSpace,
    class_sums,
    output_perturbation,
    pftrl,
    pgiga,
    pigd,
    pocp,
    pol,
    pqftl,
)
from taciturn.kernel.stream.loop import Definition
from taciturn.methods import recipes

VERBS = ("absorb", "statistic", "decide", "encode", "decode")


@pytest.mark.parametrize(("learner", "mechanism"), PAIRS, ids=map(" by ".join, PAIRS))
def test_no_python_for_an_example_or_a_release(learner, mechanism, monkeypatch):
    """A pass over a pair of the package with a ball, a box or no set at all calls no verb of the definition."""
    one = private(learner, mechanism, "every 7")
    calibrated, inner = one.calibrated, getattr(one.learner, "learner", one.learner)
    one.settings, inner.certificate, one._pass  # noqa: B018, asked for once
    things = [one.learner, inner, calibrated, calibrated.coder or calibrated]
    start, rows = one.start(), stream(one.problem)
    for thing in things:
        for verb in VERBS:
            if hasattr(type(thing), verb):
                monkeypatch.setattr(type(thing), verb, reject)
    if (learner, mechanism) in PLAIN or isinstance(inner, FTL | EWOO):
        with pytest.raises(AssertionError, match="by the definition"):
            one.run(start, *rows)
    else:
        assert len(one.run(start, *rows)[1]) == 6


RECIPES = {
    "pocp": lambda p: pocp(FTL(p), BUDGET, ROWS),
    "pigd": lambda p: pigd(p, BUDGET, ROWS),
    "pgiga": lambda p: pgiga(p, BUDGET, ROWS),
    "pol": lambda p: pol(p, BUDGET, ROWS),
    "pftrl": lambda p: pftrl(p, BUDGET),
    "pqftl": lambda p: pqftl(replace(p, loss=OneHot(3) if p.outputs > 1 else Squared(), label_bound=1.0), BUDGET, ROWS),
    "class_sums": lambda p: class_sums(p, BUDGET, ROWS),
    "output_perturbation": lambda p: output_perturbation(replace(p, domain=WholeSpace()), BUDGET, ROWS),
}


@pytest.mark.parametrize("loss", [Logistic(), Softmax(3)], ids=str)
@pytest.mark.parametrize("domain", [L2Ball(0.4), Box(-0.2, 0.3)], ids=str)
@pytest.mark.parametrize("recipe", RECIPES)
def test_recipes_go_by_compiled_passes(recipe, domain, loss):
    """All that learn from examples with labels, but iterates of several classes; `private_sum` is above."""
    one = RECIPES[recipe](problem(loss, domain, ridge=0.1))
    several = isinstance(loss, Softmax) and recipe in ("pigd", "pgiga", "pol")
    assert (type(one._pass) is Definition) == several


@pytest.mark.parametrize("domain", [L2Ball(0.4), Box(-0.2, 0.3)], ids=str)
@pytest.mark.parametrize("recipe", RECIPES)
def test_kinked_scores_go_by_compiled_passes_or_not_at_all(recipe, domain):
    """Learners on slopes or values have a loop for them; those with a solver reject them and name an alternative."""
    made = problem(MultiHinge(3), domain, ridge=0.1)
    if recipe in ("pftrl", "pqftl", "class_sums"):
        assert type(RECIPES[recipe](made)._pass) is not Definition
    else:
        with pytest.raises(Unprovable, match=r"MultiHinge, .*Use FTRL|MultiHinge has a kink.*Use FTRL"):
            RECIPES[recipe](made)


def test_no_recipe_is_left_out():
    """Those above are all there are, but for two whose problem is their own, and experts, which the definition runs."""
    functions = {name: made for name, made in vars(recipes).items() if isinstance(made, FunctionType)}
    own = {name for name, made in functions.items() if made.__module__ == recipes.__name__ and name[0] != "_"}
    assert own == set(RECIPES) | {"private_sum", "linear_bandit", "ewoo"}
    assert type(recipes.linear_bandit(2, BUDGET, ROWS, arms=3)._pass) is not Definition


def reject(*args, **kwargs):
    raise AssertionError("this went by the definition")
