"""What several tests of the service use."""

import contextlib

import pytest

from event_sites import site


@pytest.fixture
def event_site(tmp_path, monkeypatch):
    """A function that makes a service with one stream of events, whose clocks are set by tests."""
    with contextlib.ExitStack() as stack:
        yield lambda contract=None, folder=tmp_path, **settings: stack.enter_context(
            site(folder, monkeypatch, contract, **settings)
        )
