"""The front door: a short, sorted list of names, each imported when it is first used."""

import importlib
import os
import subprocess
import sys

import pytest

import taciturn

NAMES = [
    "Absolute",
    "Anytime",
    "BLT",
    "BinaryTree",
    "Box",
    "BudgetExhausted",
    "Certificate",
    "ConvexSet",
    "Cost",
    "EWOO",
    "Exponential",
    "FTL",
    "FTRL",
    "FadingIGD",
    "GIGA",
    "Gaussian",
    "Guarantee",
    "HalfSpace",
    "Hinge",
    "Huber",
    "IGD",
    "InvalidInput",
    "L1Ball",
    "L2Ball",
    "Learner",
    "Ledger",
    "Linear",
    "Logistic",
    "Mechanism",
    "MultiHinge",
    "ObjectivePerturbation",
    "OneHot",
    "Privacy",
    "Private",
    "Problem",
    "QFTL",
    "Quantile",
    "Release",
    "Releases",
    "ScalarLoss",
    "Schedule",
    "Simplex",
    "Softmax",
    "SquareRoot",
    "Squared",
    "State",
    "StateConflict",
    "TaciturnError",
    "Unprovable",
    "VectorLoss",
    "WholeSpace",
    "at",
    "averaged",
    "every",
    "ewoo",
    "experts",
    "geometric",
    "grid",
    "output_perturbation",
    "pftrl",
    "pgiga",
    "pigd",
    "pocp",
    "pol",
    "pqftl",
    "private_sum",
]


def run(code):
    """What a fresh interpreter prints."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    return done.stdout.split()


def test_the_list_of_names():
    """The public names are these, in this order: adding one is a decision, made here."""
    assert taciturn.__all__ == NAMES


def test_the_list_is_sorted_and_short():
    """Sorted, without repetition, and few enough to read."""
    assert sorted(set(taciturn.__all__)) == taciturn.__all__
    assert len(taciturn.__all__) <= 66


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_what_it_says(name):
    """Every name imports, carries its own name, and comes from this package."""
    thing = getattr(taciturn, name)
    assert thing.__name__ == name
    assert thing.__module__.startswith("taciturn.")
    assert getattr(importlib.import_module(thing.__module__), name) is thing


def test_dir_lists_them():
    """Completion sees every name before any is used."""
    assert set(NAMES) <= set(dir(taciturn))
    assert "__version__" in dir(taciturn)
    assert set(NAMES) <= set(run("import taciturn; print(*dir(taciturn))"))


def test_a_star_brings_them_all():
    """`from taciturn import *` binds exactly the list."""
    names = run("before = set(globals())\nfrom taciturn import *\nprint(*sorted(set(globals()) - before - {'before'}))")
    assert names == NAMES


@pytest.mark.parametrize("name", ["Optimizer", "igd", "numpy", "__wrapped__"])
def test_unknown_names_are_refused(name):
    """Any other attribute raises AttributeError, and so hasattr and inspection work."""
    with pytest.raises(AttributeError, match=f"module 'taciturn' has no attribute '{name}'"):
        getattr(taciturn, name)
    assert not hasattr(taciturn, name)


def test_importing_is_light():
    """`import taciturn` loads neither NumPy nor SciPy nor Numba nor cryptography; nor do the errors."""
    heavy = "{'numpy', 'scipy', 'numba', 'cryptography'}"
    assert run(f"import sys, taciturn, taciturn.errors; print(*{heavy} & set(sys.modules))") == []


def test_the_light_import_would_be_noticed():
    """The same check sees NumPy once a name that needs it is used."""
    assert "numpy" in run(
        "import sys, taciturn; taciturn.L2Ball; print(*{'numpy', 'scipy', 'numba'} & set(sys.modules))"
    )


def test_the_version_is_the_package_s():
    """The version stands in one form, major.minor.patch."""
    assert [part.isdigit() for part in taciturn.__version__.split(".")] == [True, True, True]
