"""A connection is cut around COMMIT: the outcome is found out, and nothing is released or charged twice."""

import uuid

import pytest

from cut_connections import Proxy
from drivers import Plain, patiently
from taciturn import Ledger, Privacy
from taciturn.errors import StateConflict, StoreUnavailable
from taciturn.kernel.accounting.cost import gaussian, total

SLICE = gaussian(1e-4)


def run_until_cut(folder, server, cuts, ledger):
    """A stream whose COMMITs are cut now and then, until there were so many cuts."""
    address = server.new_database()
    with Proxy(address, share=0.1, seed=cuts) as proxy:  # opening store and ledger is a score of transactions
        driver = Plain(folder, proxy.address, ledger, block=4, release=1).write(100 * cuts)
        proxy.armed = True
        calls = 0
        while sum(proxy.cuts.values()) < cuts:
            calls += 1
            patiently(driver, 5)
        proxy.armed = False
        assert driver.check() > calls
        assert min(proxy.cuts.values()) > 0


@pytest.mark.parametrize("same", [True, False], ids=["ledger in the store", "ledger elsewhere"])
def test_twenty_cuts(tmp_path, server, same):
    run_until_cut(tmp_path, server, 20, None if same else str(tmp_path / "budget.db"))


@pytest.mark.slow
@pytest.mark.parametrize("same", [True, False], ids=["ledger in the store", "ledger elsewhere"])
def test_two_hundred_cuts(tmp_path, server, same):
    run_until_cut(tmp_path, server, 200, None if same else str(tmp_path / "budget.db"))


def use_ledger(address, cuts):
    """Open, commit and charge over a proxy; the ledger has what was accepted, once, and perhaps what is in doubt."""
    with Proxy(address, share=0.3, seed=cuts) as proxy:
        ledger = Ledger.create(proxy.address, Privacy(50.0, 1e-6))
        direct = Ledger(address)
        proxy.armed = True
        accepted, in_doubt = 0, 0
        while sum(proxy.cuts.values()) < cuts:
            try:
                ledger.charge(SLICE)
                accepted += 1
            except StoreUnavailable as error:
                in_doubt += "unknown" in str(error)
            lineage = uuid.uuid4().hex
            try:
                ledger.open(lineage, SLICE, at=(0, 0, 0, "first"))
            except StoreUnavailable:
                direct.open(lineage, SLICE, at=(0, 0, 0, "first"))  # again: it changes nothing if it took effect
            accepted += 1
            try:
                ledger.commit(lineage, (0, 0, 0, "first"), (1, 1, 1, "second"), SLICE)
            except StoreUnavailable:
                try:
                    direct.commit(lineage, (0, 0, 0, "first"), (1, 1, 1, "third"), SLICE)
                except StateConflict:
                    assert direct.lines[lineage].live == (1, 1, 1, "second")
            assert direct.lines[lineage].live[0] == 1
        proxy.armed = False
        assert accepted <= len(direct.lines) <= accepted + in_doubt
        assert direct.spent == direct.reserved == total([SLICE] * len(direct.lines))
        assert direct.verify().faults == []
        assert min(proxy.cuts.values()) > 0


def test_a_ledger_with_twenty_cuts(server):
    use_ledger(server.new_database(), 20)


@pytest.mark.slow
def test_a_ledger_with_two_hundred_cuts(server):
    use_ledger(server.new_database(), 200)
