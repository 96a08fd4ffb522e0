"""Verify a ledger: its chain of events, that lines and events agree, and every cost, computed again from its settings.

The history records the settings of each stream as JSON (`taciturn.core.state.described`). They are turned into objects
again and calibrated here, and the cost must be what was recorded, up to the difference between two machines. Settings
with classes of your own, or with arrays, cannot be built again; those costs are listed as not checked.
"""

from __future__ import annotations

import dataclasses
import math
import pkgutil
import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from taciturn.accounting.cost import Cost, total
from taciturn.accounting.history import Event, Verified, first_fault
from taciturn.accounting.ledger import Ledger, read_cost
from taciturn.core.private import Private
from taciturn.core.state import name_of
from taciturn.errors import TaciturnError

_SAME_COST = 1e-6  # relative difference up to which two machines compute the same cost
_NUMBER = re.compile(r"-?0x[01](\.[0-9a-f]*)?p[+-]\d+|-?inf|nan")
_ENTERING = ("opened", "charged", "restored")  # kinds of events that add a line
_ROOMS = ("accounting", "problem", "core", "learners", "mechanisms", "algorithms")


def verify(ledger: Ledger) -> Verified:
    """Check a ledger's history, and compute its costs again."""
    events = ledger.history
    faults = [] if (fault := first_fault(events)) is None else [f"the history is not what was written: {fault}."]
    readable = []
    for event in events:
        try:
            if event.kind in _ENTERING:
                read_cost(event.data["reserved"])
            readable.append((event, event.data))
        except (ValueError, KeyError, TypeError, AttributeError, TaciturnError):
            faults.append(f"event {event.number} cannot be read.")
    faults += [*_wrong_end(ledger, events), *_disagreements(ledger, readable)]
    checked = 0
    unchecked = []
    for event, content in readable:
        if event.kind not in _ENTERING:
            continue
        if event.kind == "restored":
            unchecked.append(f"{event.lineage}: it is what the witness knew and a restored database did not")
            continue
        recorded = read_cost(content["reserved"])
        try:
            cost = _cost_of(content.get("settings"))
        except _Unknown as why:
            unchecked.append(f"{event.lineage}: {why}")
            continue
        checked += 1
        if not _covers(recorded, cost):
            faults.append(f"{event.lineage} reserved {recorded}, and its settings cost {cost}.")
    return Verified(faults, checked, unchecked)


def _wrong_end(ledger: Ledger, events: Sequence[Event]) -> Iterator[str]:
    """A history that lacks its last events, or has others."""
    count, chain = ledger.history_end
    if len(events) != count:
        yield f"the history has {len(events)} events, and the ledger has made {count}."
    elif events and events[-1].chain != chain:
        yield "the last event of the history is not the one that the ledger made."


def _disagreements(ledger: Ledger, events: Sequence[tuple[Event, dict[str, Any]]]) -> Iterator[str]:
    """Lines without an event, events without a line, other costs, another budget, and other sums."""
    entered = {event.lineage: read_cost(data["reserved"]) for event, data in events if event.kind in _ENTERING}
    lines = ledger.lines
    for lineage in lines.keys() - entered.keys():
        yield f"{lineage} is in the ledger, and its opening is not in the history."
    for lineage, recorded in entered.items():
        if lineage not in lines:
            yield f"{lineage} was opened, and is not in the ledger any more."
        elif lines[lineage].reserved != recorded:
            yield f"{lineage} reserved {recorded}, and the ledger has {lines[lineage].reserved}."
    for event, _ in events:
        if event.kind == "closed" and event.lineage in lines and not lines[event.lineage].closed:
            yield f"{event.lineage} was closed, and is open in the ledger."
    privacy = ledger.privacy
    for event, data in events:
        created = (data.get("epsilon"), data.get("delta"))
        if event.kind == "created" and privacy is not None and created != (privacy.epsilon, privacy.delta):
            yield f"the ledger was created for epsilon = {created[0]}, delta = {created[1]}, and has {privacy}."
    reserved = total(line.reserved for line in lines.values())
    if privacy is not None and not reserved.within(privacy):
        yield f"all streams together reserved {reserved}, more than {privacy} allows."


def _covers(recorded: Cost, cost: Cost) -> bool:
    return all(b <= a * (1.0 + _SAME_COST) for a, b in zip(recorded.parts, cost.parts, strict=True))


class _Unknown(Exception):
    """Settings that cannot be built again."""


def _cost_of(settings: Any) -> Cost:
    if settings is None:
        raise _Unknown("no settings were recorded")
    made = _built(settings)
    try:
        if isinstance(made, dict):
            cost: Cost = Private(**made).calibrated.cost(None)
        else:
            cost = made.cost
    except (TaciturnError, TypeError, AttributeError) as error:
        raise _Unknown(f"its settings are not accepted any more ({error})") from None
    return cost


def _built(data: Any) -> Any:
    """Settings from what `described` made of them."""
    if isinstance(data, str):
        return _number(data) if _NUMBER.fullmatch(data) else data
    if not isinstance(data, list):
        return data
    if data and all(isinstance(item, list) and len(item) == 2 and isinstance(item[0], str) for item in data):
        return {name: _built(value) for name, value in data}
    if len(data) == 2 and isinstance(data[0], str) and isinstance(data[1], list):
        kind = _classes().get(data[0])
        if kind is None:
            raise _Unknown(f"{data[0]} is not a class of taciturn")
        given = {field.name for field in dataclasses.fields(kind) if field.init}
        return kind(**{name: _built(value) for name, value in data[1] if name in given})
    if len(data) == 3 and isinstance(data[1], list) and isinstance(data[2], str) and len(data[2]) == 64:
        raise _Unknown("its settings have an array, of which only a hash was recorded")
    return tuple(_built(item) for item in data)


def _number(text: str) -> float | int:
    value = float.fromhex(text)
    return int(value) if math.isfinite(value) and value == int(value) and abs(value) < 2**53 else value


@cache
def _classes() -> dict[str, Any]:
    """The settings classes of this package, by the names they have in a history."""
    found: dict[str, Any] = {}
    for room in _ROOMS:
        package = import_module(f"taciturn.{room}")
        for module in pkgutil.iter_modules(package.__path__):
            for value in vars(import_module(f"taciturn.{room}.{module.name}")).values():
                if isinstance(value, type) and dataclasses.is_dataclass(value):
                    found[name_of(value)] = value
    return found
