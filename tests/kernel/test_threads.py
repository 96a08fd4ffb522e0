"""Threads of BLAS are stated before NumPy is loaded, and what the environment says stays."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from taciturn._util import threads


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in threads.THREADS:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(("loaded", "expected"), [({}, "1"), ({"numpy": None}, None)])
def test_one_thread_is_the_default_of_a_process_that_has_not_loaded_numpy(loaded, expected, monkeypatch):
    monkeypatch.setattr(threads, "sys", SimpleNamespace(modules=loaded))
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    threads.use_one_thread()
    assert os.environ.get("OPENBLAS_NUM_THREADS") == expected
    assert os.environ["OMP_NUM_THREADS"] == "4"


def test_children_have_one_thread_and_this_process_keeps_its_own(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    with threads.one_thread():
        assert {os.environ[name] for name in threads.THREADS} == {"1"}
    assert os.environ["OMP_NUM_THREADS"] == "4"
    assert "OPENBLAS_NUM_THREADS" not in os.environ
