"""Renewal of a run: it is closed, and followed by a run in another folder that starts from its last released model.

**Order.** In one database, one transaction closes the first stream and opens its successor, whose cost it reserves, if
the ledger is there, too. Otherwise the successor is opened, and then the first stream is closed; if a ledger that
renews has no room for both, the other way round.

**Claim.** Whenever the process stops, `renew` can be called again, and completes what it began. No order spends more
than what is reserved: a stream that is open can release what its own reservation covers, and no more, whether it has a
successor or not; the successor reserves its own before its first commit, under a new lineage. A call that finds the
successor, by the lineage of the first stream, opens no other. What is lost at worst is a reservation in a ledger in
another database, made by a process that stopped before it had stored the stream (`Store.create`): it stays charged.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from taciturn.accounting.cost import FREE
from taciturn.accounting.guarantee import Charge
from taciturn.accounting.ledger import Ledger
from taciturn.core.state import SIMULATION
from taciturn.errors import BudgetExhausted, InvalidInput, StateConflict
from taciturn.plan import Plan
from taciturn.renewal import Promise, Renewal
from taciturn.runs.files import Folder
from taciturn.runs.run import NAME, SERVED, Run, begin, resume
from taciturn.store import Saved, Store
from taciturn.streams.stored import CHARGE

RENEWAL = "renewal"
"""Key of what a run starts from, in what is public about its stream."""


@dataclass(frozen=True, eq=False)
class Renewed:
    """A run that follows another: the run, the stream that it follows, and what is promised to someone in both."""

    run: Run
    closed: Saved
    promise: Promise


def renew(
    old: Store,
    closing: Saved,
    folder: Folder,
    store: Store,
    plan: Plan,
    contract: str,
    *,
    delta: float,
    name: str = NAME,
    ledger: Ledger | None = None,
    about: dict[str, Any] | None = None,
    **settings: Any,
) -> Renewed:
    """Close a stream, and open its successor in `folder` and `store`; called again, complete what was begun.

    Parameters
    ----------
    old, closing
        The store of the stream that ends, and the stream.
    folder, store, plan, contract, name, ledger
        Of its successor, as in `taciturn.runs.run.begin`.
    delta : float
        Of the stream that ends, if it does not say so itself.
    about : dict, optional
        More public data of the successor; with the key "model", which must be that of the stream that ends.
    **settings
        Other parameters of `Run`.
    """
    about = about or {}
    if SERVED in closing.about:
        raise InvalidInput(
            f"{closing.name} learns by taciturn serve, and its successor does, too: renew it by POST "
            f"/v1/streams/{closing.name}/renew, or by taciturn.client.Client.renew."
        )
    check_successor(closing, plan, about)
    renewal = renewal_of(old, closing, delta)
    plan = plan.following(renewal)
    again = {"name": name, "ledger": ledger, **settings}
    if name in store.names() and follows(found := store.load(name), closing):
        run = resume(folder, store, plan_of_stored(plan, found), contract, **again)
    else:
        run = _opened(
            old, closing, folder, store, plan, contract, again, {**about, RENEWAL: public_renewal(renewal, closing)}
        )
    old.close(closing)  # again, if it is: a process that stopped may not have told a ledger elsewhere
    return Renewed(run, closing, renewal.promise(plan.private.guarantee))


def _opened(
    old: Store,
    closing: Saved,
    folder: Folder,
    store: Store,
    plan: Plan,
    contract: str,
    settings: dict[str, Any],
    about: dict[str, Any],
) -> Run:
    if settings["name"] in store.names():
        raise StateConflict(f"{folder.path} holds a run that does not follow {closing.name}. Pass another --out.")
    ledger: Ledger | None = settings["ledger"]
    if closing.closed and (ledger is None or not ledger.renews):  # with one that renews, it may have been closed first
        raise StateConflict(
            f"{closing.name} in {old.address} was closed before: a run follows it already, and a second one would cost "
            "its budget again, beside what was promised. Pass the folder of the first by --out, or renew that one."
        )
    together = closing if old.address == store.address and not closing.closed else None
    try:
        return begin(folder, store, plan, contract, closes=together, about=about, **settings)
    except BudgetExhausted:
        if together is not None or closing.closed or ledger is None or not ledger.renews:
            raise
        old.close(closing)  # which may make room: it counts in no later period
        return begin(folder, store, plan, contract, about=about, **settings)


def check_successor(closing: Saved, plan: Plan, about: dict[str, Any]) -> None:
    """Reject a successor of a run that learnt other features, or that is a simulation where this one is not."""
    known = closing.about.get("model")
    if known is not None and known != about.get("model", known):
        raise InvalidInput(
            "the contract declares other features, another target or other bounds than that of the run which is to be "
            "followed, so its model means nothing here. Declare them as they were; budget, horizon, method and forget "
            "may change."
        )
    simulated = SIMULATION in closing.lineage.split()
    if simulated != (plan.private.seed is not None):
        raise StateConflict("a simulation is followed by a simulation, with --seed, and a private run by one without.")


def renewal_of(store: Store, saved: Saved, delta: float, k: int | None = None) -> Renewal:
    """What a successor of a stored run starts from: a release, and what the streams so far cost.

    That is release k, by default the last one that is committed.
    """
    k = saved.position[2] if k is None else k
    found = store.chunk(saved.lineage, k) if k else None
    if found is None:
        raise InvalidInput(f"{saved.name} has released nothing, so there is no model to start from. Learn more rows.")
    chunk, _ = found
    model = json.loads(chunk.content.split(b"\n")[k - chunk.first])["model"]
    unit = str(saved.about.get("unit", "example"))
    charge = Charge(unit, delta, ((saved.neighbours, saved.reserved),))
    if CHARGE in saved.about:
        charge = Charge.from_data(saved.about[CHARGE])
    before = Renewal.from_data(saved.about[RENEWAL]).charges if RENEWAL in saved.about else ()
    if saved.earlier != FREE:  # the streams that a restored backup had lost
        before = (*before, Charge(unit, charge.delta, ((saved.neighbours, saved.earlier),)))
    return Renewal(tuple(model), (*before, charge))


def plan_of_stored(plan: Plan, saved: Saved | None) -> Plan:
    """The plan of a stored run: one that follows another starts from its model."""
    if saved is None or RENEWAL not in saved.about:
        return plan
    return plan.following(Renewal.from_data(saved.about[RENEWAL]))


def public_renewal(renewal: Renewal, closing: Saved) -> dict[str, Any]:
    """What is public about a successor, under the key `RENEWAL`."""
    return {**renewal.as_data(), "lineage": closing.lineage}


def follows(saved: Saved, closing: Saved) -> bool:
    """Whether one stream is the successor of another."""
    return bool(saved.about.get(RENEWAL, {}).get("lineage") == closing.lineage)
