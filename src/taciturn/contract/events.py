"""Labels that come after the rows: how long a row waits for its label, and what it is learnt with if none comes.

```toml
[events]
wait = "10 minutes"   # after this time a row is learnt, with its label or without, and never earlier
missing = 0.0         # the label of a row that has none by then; without it such a row has no influence
```

Both are public. `taciturn.core.events` says why nothing else of the times at which labels come is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from taciturn.columns.declaration import Section
from taciturn.columns.target import Number, Target
from taciturn.columns.values import is_number, number_of, short_repr
from taciturn.errors import InvalidInput

NO_ROW = "no row"
"""What `missing` says of a row without influence."""

_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_WAIT = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?) (second|minute|hour|day)s?")
_LONGEST = 366 * 86400


@dataclass(frozen=True)
class Events:
    """How labels come later.

    Parameters
    ----------
    wait : str
        For how long a row waits for its label: a number and a unit, from 0.01 seconds to 366 days.
    missing : str, int, float or bool, optional
        The label of a row that has none by then, a value of the target; by default such a row takes its round and has
        no influence.

    Examples
    --------
    >>> Events("10 minutes", missing=0.0).milliseconds
    600000
    >>> Events("soon")
    Traceback (most recent call last):
    ...
    taciturn.errors.InvalidInput: events.wait must be a number and a unit, such as "10 minutes", ...
    """

    wait: str
    missing: str | int | float | bool | None = None

    def __post_init__(self) -> None:
        found = _WAIT.fullmatch(self.wait) if isinstance(self.wait, str) else None
        if found is None or not 0.01 <= self._seconds(found) <= _LONGEST:
            raise InvalidInput(
                'events.wait must be a number and a unit, such as "10 minutes", between 0.01 seconds and 366 days, got '
                f"{short_repr(self.wait)}. Units are seconds, minutes, hours and days."
            )
        if self.missing == NO_ROW:
            object.__setattr__(self, "missing", None)

    @staticmethod
    def _seconds(found: re.Match[str]) -> float:
        return float(found[1]) * _UNITS[found[2]]

    @property
    def milliseconds(self) -> int:
        """The wait in milliseconds."""
        found = _WAIT.fullmatch(self.wait)
        assert found is not None
        return round(1000.0 * self._seconds(found))

    def check(self, target: Target) -> None:
        """Reject a label for missing ones that the target cannot read, or would clip."""
        if NO_ROW in map(str, target.names):
            raise InvalidInput(f'a class is called "{NO_ROW}", which events.missing uses. Rename the class.')
        if self.missing is not None and target.error(self.missing) is not None:
            raise InvalidInput(
                "events.missing is the label of a row that has none by the end of its wait, and the target "
                f'{target.column} cannot read it. State one of its values, or missing = "{NO_ROW}".'
            )
        if self.missing is not None and isinstance(target, Number):
            value = number_of(self.missing)
            if not target.low <= value <= target.high:
                raise InvalidInput(
                    f"events.missing is {value:g}, and {target.column} has the range [{target.low:g}, "
                    f'{target.high:g}]: it would be clipped. State a value in the range, or missing = "{NO_ROW}".'
                )

    def in_words(self, what: str = "label") -> str:
        """What happens to a row without its label or reward, in two sentences."""
        otherwise = "has no influence" if self.missing is None else f"is learnt with {self.missing}"
        return (
            f"A row waits {self.wait} for its {what}, takes its round in any case, and is never learnt earlier; one "
            f"that has no {what} by then {otherwise}. A {what} that comes later is rejected."
        )

    def declared(self) -> dict[str, Any]:
        """The same as plain data."""
        return {"wait": self.wait} | ({} if self.missing is None else {"missing": self.missing})


def events_of(root: Section) -> Events | None:
    """What the table `[events]` declares; None if there is none.

    >>> events_of(Section("", {"events": {"wait": "1 day", "missing": "no row"}}))
    Events(wait='1 day', missing=None)
    """
    table = root.section("events")
    if "events" not in root.data:
        return None
    wait = table.text("wait", 'State how long a row waits for its label, as in wait = "10 minutes".')
    missing = table.take("missing")
    if missing is not None and not (isinstance(missing, str | bool) or is_number(missing)):
        raise InvalidInput(f'events.missing must be a value of the target, or "{NO_ROW}".')
    table.close()
    return Events(wait, missing)
