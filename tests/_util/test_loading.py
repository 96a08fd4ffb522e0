"""The collector rests while modules load, and is left as it was found."""

import gc
import subprocess
import sys
import weakref

import pytest

from taciturn._util.loading import uncollected

COLLECTIONS = """
import gc, sys
import numpy
seen = []
gc.callbacks.append(lambda phase, info: seen.append(phase))
from taciturn import L2Ball, Logistic, Privacy, Problem, pftrl
import taciturn._util.jit
assert "numba.np.arraymath" in sys.modules  # of what the first loop needs
loaded = len(gc.get_objects())
pftrl(Problem(Logistic(), L2Ball(1.0), dimension=2), Privacy(1.0, 1e-6), 4)
print(loaded, seen.count("start"))
"""


class Node:
    """Something that can be pointed to weakly, and point to itself."""

    def __init__(self):
        self.itself = self


@pytest.fixture(autouse=True)
def collecting():
    """Whatever a test leaves behind, the collector works again afterwards."""
    assert gc.isenabled()
    yield
    gc.enable()


def test_the_collector_rests_and_works_again():
    with uncollected():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_works_again_after_an_error():
    with pytest.raises(ImportError), uncollected():
        raise ImportError
    assert gc.isenabled()


def test_blocks_may_be_nested():
    with uncollected():
        with uncollected():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    gc.disable()
    with uncollected():
        pass
    assert not gc.isenabled()


@pytest.mark.parametrize("within", [False, True])
def test_garbage_is_found_later(within):
    """Made before the block or in it."""
    node = Node()
    with uncollected():
        node = Node() if within else node
        gone = weakref.ref(node)
        del node
        assert gone() is not None
    gc.collect()
    assert gone() is None


def test_a_recipe_loads_without_a_search_at_every_step():
    """A hundred thousand objects would be more than a hundred collections, some of them of all there is."""
    done = subprocess.run([sys.executable, "-c", COLLECTIONS], capture_output=True, text=True, check=True)
    loaded, collections = map(int, done.stdout.split())
    assert loaded > 50_000
    assert collections < 10
