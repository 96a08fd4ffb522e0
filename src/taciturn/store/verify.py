"""Verify a ledger: its chain of events, that its terms and lines agree with them, and every cost, computed again.

The history records the settings of each stream as JSON (`taciturn.kernel.stream.fingerprint.described`, and the form of
version 1). They are turned into objects again and calibrated here, and the cost must be what was recorded, up to the
difference between two machines. Settings with classes of your own, or with arrays, cannot be built again; those costs
are listed as not checked. Of an array only a hash is recorded: zeros, ones and the identity, with which streams begin
whose ranges are found, are known by it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import pkgutil
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from taciturn.accounting.history import FIRST, Event, Verified, first_fault
from taciturn.accounting.ledger import Ledger
from taciturn.core.private import Private
from taciturn.errors import InvalidInput, TaciturnError
from taciturn.kernel.accounting.cost import Cost, total
from taciturn.kernel.accounting.ledger_rules import Line, at_most, read_cost, sums_from
from taciturn.kernel.accounting.unit import covers
from taciturn.kernel.arrays import Array
from taciturn.kernel.stream.fingerprint import VERSION, defaults_of, first_name, name_of
from taciturn.methods.staged import Staged

_SAME_COST = 1e-6  # relative difference up to which two machines compute the same cost
_LARGEST_ARRAY = 10**7  # entries
_NUMBER = re.compile(r"-?0x[01](\.[0-9a-f]*)?p[+-]\d+|-?inf|nan")
_OURS = "taciturn "  # before names of classes, in version 1
_ENTERS = ("opened", "charged", "adopted")  # events that reserve a cost
_ROOMS = (
    "kernel.accounting",
    "kernel.problem",
    "kernel.learners",
    "kernel.stream",
    "tables",
    "calibration",
    "methods",
    "core",
)


def verify(ledger: Ledger) -> Verified:
    """Check a ledger's history, and compute its costs again."""
    events, lines, last = _consistent(ledger)
    faults = [] if (fault := first_fault(events)) is None else [f"the history is not what was written: {fault}."]
    if last != (len(events), events[-1].chain if events else FIRST):
        faults.append(f"the history has {len(events)} events, and not the {last[0]} that the ledger counted.")
    faults += [f"event {event.number} cannot be read." for event in events if _content(event) is None]
    events = [event for event in events if _content(event) is not None]
    faults += [*_other_terms(ledger, events), *_other_lines(ledger, events, lines)]
    checked = 0
    unchecked = []
    for event in events:
        if not _enters(event):
            continue
        recorded = read_cost(event.data["reserved"])
        try:
            cost, unit = _cost_of(event.data["settings"])
        except Unbuilt as why:
            unchecked.append(f"{event.lineage}: {why}")
            continue
        checked += 1
        if unit != event.data.get("unit", "example"):
            faults.append(
                f"{event.lineage} was reserved for one {event.data.get('unit')}, and its settings are for one {unit}."
            )
        if not _covers(recorded, cost):
            faults.append(f"{event.lineage} reserved {recorded}, and its settings cost {cost}.")
    return Verified(faults, checked, unchecked)


def _consistent(ledger: Ledger) -> tuple[list[Event], Mapping[str, Line], tuple[int, str]]:
    """The history, the lines and the end of the history at one time, while others use the ledger."""
    last = ledger.end_of_history
    while True:
        events, lines = list(ledger.history), ledger.lines
        before, last = last, ledger.end_of_history
        if before == last:
            return events, lines, last


def _enters(event: Event) -> bool:
    return event.kind in _ENTERS or (event.kind == "restored" and event.lineage != "")


def _content(event: Event) -> dict[str, Any] | None:
    """The content of an event, None if it is not what its kind has."""
    try:
        data = event.data
        if _enters(event):
            read_cost(data["reserved"])
            data["settings"], data["neighbours"]
            first, last = data.get("periods", (0, 0))
            int(first), int(last)
        return dict(data)
    except (ValueError, TypeError, KeyError):
        return None


def _other_terms(ledger: Ledger, events: Sequence[Event]) -> Iterator[str]:
    """Differences between what the ledger is about, and what it was created for."""
    for event in events:
        privacy = ledger.privacy
        if event.kind == "created" and privacy is not None:
            created = (event.data.get("epsilon"), event.data.get("delta"), event.data.get("unit"))
            if created != (privacy.epsilon, privacy.delta, ledger.unit):
                yield f"the ledger was created for epsilon, delta and unit {created}, and has {privacy}, {ledger.unit}."
            if event.data.get("renews", False) != ledger.renews:
                yield f"the ledger was{'' if event.data.get('renews') else ' not'} created to renew, and this changed."
        if event.kind in _ENTERS and not covers(ledger.unit, event.data.get("unit", "example")):
            yield f"{event.lineage} protects one {event.data.get('unit')}, and the ledger is for one {ledger.unit}."
        if event.kind in _ENTERS and event.data["neighbours"] != ledger.neighbours:
            relation = event.data["neighbours"]
            yield f"{event.lineage} was reserved for {relation!r} neighbours, and not for {ledger.neighbours!r}."


def _other_lines(ledger: Ledger, events: Sequence[Event], lines: Mapping[str, Line]) -> Iterator[str]:
    """Lines without an event, events without a line, and other sums."""
    entered = {event.lineage: event for event in events if _enters(event)}
    ended = {event.lineage for event in events if event.kind == "closed"}
    for lineage in lines.keys() - entered.keys():
        yield f"{lineage} is in the ledger, and its opening is not in the history."
    for lineage, event in entered.items():
        if lineage not in lines:
            yield f"{lineage} was opened, and is not in the ledger any more."
            continue
        line, recorded = lines[lineage], read_cost(event.data["reserved"])
        if line.reserved != recorded:
            yield f"{lineage} reserved {recorded}, and the ledger has {line.reserved}."
        if not at_most(line.spent, line.reserved):
            yield f"{lineage} reserved {line.reserved}, and has spent {line.spent}."
        if line.closed != (lineage in ended or event.kind not in ("opened", "adopted")):
            yield f"{lineage} is {'closed' if line.closed else 'open'} in the ledger, and not in the history."
        yield from _other_periods(ledger, lineage, line, [each for each in events if each.lineage == lineage])
    privacy = ledger.privacy
    starts = [line.first for line in lines.values() if line.first is not None]
    for period, reserved in sums_from(min(starts) if starts else None, lines.values()):
        if privacy is not None and not reserved.within(privacy):
            which = "" if period is None else f" in period {period}"
            yield f"all streams together reserved {reserved}{which}, more than {privacy} allows."


def _other_periods(ledger: Ledger, lineage: str, line: Line, events: Sequence[Event]) -> Iterator[str]:
    """Differences between the periods in which a line counts, and those that follow from the history."""
    entered = next(event for event in events if _enters(event))
    periods = entered.data.get("periods")
    if (periods is not None) != ledger.renews or (line.first is None) == ledger.renews:
        yield f"{lineage} should have periods if and only if the ledger renews."
        return
    if periods is None or line.last is None:
        return
    first, last = periods
    ends = [event for event in events if event.kind in ("closed", "finished")]
    finished = bool(entered.data.get("finished")) or any(event.kind == "finished" for event in ends)
    if line.finished != finished:
        yield f"{lineage} has {'' if line.finished else 'not '}finished in the ledger, and the history differs."
    over = ends[-1].data.get("last") if ends else last
    fixed = line.closed or line.finished
    if line.first != first or (line.last != over if fixed else line.last < last):
        yield f"{lineage} counts in periods {line.first} to {line.last}, and the history has {first} to {over}."


def _covers(recorded: Cost, cost: Cost) -> bool:
    return all(b <= a * (1.0 + _SAME_COST) for a, b in zip(recorded.parts, cost.parts, strict=True))


class Unbuilt(Exception):
    """Settings that cannot be built again."""


def _cost_of(settings: Any) -> tuple[Cost, str]:
    """The cost and the unit of privacy of recorded settings."""
    if settings is None:
        raise Unbuilt("no settings were recorded")
    try:
        made = built(settings)
        if isinstance(made, Private):
            return made.total_cost, made.unit.name
        cost: Cost = made.total_cost
    except (TaciturnError, TypeError, ValueError, AttributeError) as error:
        raise Unbuilt(f"its settings are not accepted any more ({error})") from None
    return cost, "example"


def user_over(ledger: Ledger, periods: int) -> tuple[Cost, list[str]]:
    """The cost for a user with rows in so many periods of a ledger that renews; see `Ledger.user_over`.

    *Proof.* The rows of a user in several periods are, for a stream with periods, those that `Private.user_over` is
    about. A stream of users without a period protects all rows of a user, and so these, by what it reserved. One that
    has ended has no rows in later periods. Costs add. ∎
    """
    here = ledger.period
    if here is None:
        raise InvalidInput(
            "only a ledger that renews has users of several periods. Create it with renews=True (--renews)."
        )
    entered = {event.lineage: event for event in ledger.history if "reserved" in event.data}
    costs, unknown = [], []
    for lineage, line in ledger.lines.items():
        if not line.holds(here):
            continue
        about = entered[lineage].data if lineage in entered else {}
        goes_on = line.holds(here + 1) and about.get("unit") != "user"
        try:
            costs.append(built(about.get("settings")).user_over(periods) if goes_on else line.reserved)
        except (Unbuilt, TaciturnError, TypeError, ValueError, AttributeError):
            unknown.append(lineage)
    return total(costs), unknown


def built(settings: Any) -> Any:
    """The private algorithm of recorded settings."""
    if not isinstance(settings, Mapping):
        made = _built_of_1(settings)
        return _object("Private", made) if isinstance(made, dict) else made
    if settings.get("version") != VERSION:
        raise Unbuilt("its settings were not recorded by this version of taciturn")
    return _built(settings.get("settings"))


def _built(data: Any) -> Any:
    """A value from its description."""
    if isinstance(data, list):
        return tuple(_built(item) for item in data)
    if not isinstance(data, Mapping):
        return data
    ((name, content),) = data.items()
    if isinstance(content, Mapping):
        return _object(name, {field: _built(value) for field, value in content.items()})
    if name == "array":
        return _array(*content)
    return float(content) if name == "float" else {_built(key): _built(value) for key, value in content}


def _object(name: str, given: Mapping[str, Any]) -> Any:
    """An object of a class by its name in descriptions, with these fields; those that are not given are at defaults."""
    kind = Staged if name == "Private" and "stages" in given else _classes().get(name)
    if kind is None:
        raise Unbuilt(f"{name} is not a class of taciturn")
    values = {**defaults_of(kind), **given}
    names = {field.name: first_name(kind, field.name) for field in dataclasses.fields(kind) if field.init}
    return kind(**{name: values[first] for name, first in names.items() if first in values})


def _built_of_1(data: Any) -> Any:
    """A value from its description of version 1."""
    if isinstance(data, str):
        return _number(data) if _NUMBER.fullmatch(data) else data
    if not isinstance(data, list):
        return data
    pairs = data and all(isinstance(item, list) and len(item) == 2 and isinstance(item[0], str) for item in data)
    if pairs and not any(item[0].startswith(_OURS) for item in data):  # else it is a tuple of objects
        return {name: _built_of_1(value) for name, value in data}
    if len(data) == 2 and isinstance(data[0], str) and isinstance(data[1], list):
        if not data[0].startswith(_OURS):
            raise Unbuilt(f"{data[0]} is not a class of taciturn")
        return _object(data[0].removeprefix(_OURS), {name: _built_of_1(value) for name, value in data[1]})
    if len(data) == 3 and isinstance(data[1], list) and isinstance(data[2], str) and len(data[2]) == 64:
        return _array(*data)
    return tuple(_built_of_1(item) for item in data)


def _array(kind: str, shape: list[int], digest: str) -> Array:
    """The array of this hash, if it is one that streams begin with."""
    if kind == "float64" and math.prod(shape) <= _LARGEST_ARRAY:
        known = [np.zeros(shape), np.ones(shape)] + ([np.eye(shape[0], shape[1])] if len(shape) == 2 else [])
        for array in known:
            if hashlib.sha256(array.tobytes()).hexdigest() == digest:
                return array
    raise Unbuilt("its settings have an array, of which only a hash was recorded")


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
    return found | {"Private": Private}
