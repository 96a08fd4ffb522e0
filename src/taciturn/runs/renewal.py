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

from dataclasses import dataclass
from typing import Any

from taciturn.accounting.ledger import Ledger
from taciturn.errors import BudgetExhausted, InvalidInput, StateConflict
from taciturn.plan import Plan
from taciturn.renewal import Promise, about_successor, follows, renewal_of, stored_renewal
from taciturn.runs.files import Folder
from taciturn.runs.run import NAME, SERVED, Run, begin, resume
from taciturn.store import Saved, Store


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
    means = closing.about.get("model"), about.get("model")
    renewal = renewal_of(old, closing, delta, seeded=plan.private.seed is not None, means=means)
    plan = plan.following(renewal)
    again = {"name": name, "ledger": ledger, **settings}
    if name in store.names() and follows(found := store.load(name), closing):
        run = resume(folder, store, plan.following(stored_renewal(found)), contract, **again)
    else:
        about = {**about, **about_successor(renewal, closing)}
        run = _opened(old, closing, folder, store, plan, contract, again, about)
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
