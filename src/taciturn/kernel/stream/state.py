"""The state of a stream: plain data, without randomness.

Noise is added to encoded statistics and a released value is public, so past noise is never needed again: a state holds
no key, no counter and no unused noise. It does hold secrets (exact iterates, buffers): protect its file like the data.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import zipfile
import zlib
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple, NoReturn, SupportsIndex

import numpy as np

from taciturn.kernel.accounting.cost import FREE, Cost
from taciturn.kernel.accounting.ledger_rules import Learnt, learnt_by
from taciturn.kernel.arrays import Array, Arrays
from taciturn.kernel.atomic import OWNER_ONLY, Entry, replaced
from taciturn.kernel.errors import InvalidInput, StateConflict
from taciturn.kernel.frozen import unfrozen
from taciturn.kernel.npz import read_npz, write_npz
from taciturn.kernel.secret import Secret, opened
from taciturn.kernel.stream.participation import Layers, UserRecords, arrays_of

VERSION = 3
SIMULATION = "simulation"


Memories = tuple[Arrays, Arrays]
"""Exact memories of the learner, and encode buffers of the mechanism."""


class Standing(NamedTuple):
    """Memories of learner and mechanism after t examples and k releases, and the last point, inside a call. Secret."""

    t: int
    k: int
    exact: Arrays
    secret: Arrays
    public: Arrays
    point: Array

    def __repr__(self) -> str:
        return f"Standing(t={self.t}, releases={self.k}, secrets not shown)"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("exact values are not copied or pickled. Store the state, by to_bytes() or dump().")


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class State:
    """The state of a stream after `t` examples and `k` releases.

    `memories` are exact and `Secret`; `public` and `point` were published. `settings` is a hash of the settings, and
    `numbers` are what was calibrated from them: their last bits depend on the processor, so a stream stores those it
    began with, and uses them wherever it is resumed. `lineage` names the stream, `generation` counts its states, and
    `token` is unique: each state is used once (`taciturn.accounting.ledger`). Simulations, which have a seed and
    protect no data, may use a state repeatedly. If the unit of privacy is a user, `users` has the secret records of how
    often each took part.

    Examples
    --------
    >>> from taciturn import Logistic, L2Ball, Privacy, Problem, pigd
    >>> problem = Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=0.1)
    >>> pigd(problem, Privacy(1.0, 1e-6), horizon=100).start()
    State(t=0, releases=0, generation=0, spent mu = 0, secrets not shown)
    """

    settings: str
    lineage: str
    generation: int
    token: str
    t: int
    k: int
    memories: Secret[Memories]
    public: Arrays
    point: Array
    spent: Cost
    numbers: Arrays
    users: UserRecords | None = None

    def __repr__(self) -> str:
        mark = ", simulation: not private" if self.simulated else ""
        return (
            f"State(t={self.t}, releases={self.k}, generation={self.generation}, "
            f"spent {self.spent}, secrets not shown{mark})"
        )

    @property
    def simulated(self) -> bool:
        """Whether this state belongs to a seeded run, which protects no data."""
        return self.lineage == SIMULATION

    @property
    def position(self) -> tuple[int, int, int, str]:
        """Generation, examples seen, releases made, and the unique token."""
        return self.generation, self.t, self.k, self.token

    def dump(self, path: str | os.PathLike[str], extra: Arrays | None = None) -> None:
        """Write to `path` atomically, readable by the owner alone; with other arrays, if `extra` is given.

        `read_extra` reads those: what must be committed together with the state.
        """
        _must_be_path(path)
        try:
            with replaced(path, OWNER_ONLY) as file:
                self._write(file, extra)
        except (FileNotFoundError, NotADirectoryError):
            raise InvalidInput(f"the folder of {path} does not exist. Create it, or give another path.") from None
        except IsADirectoryError:
            raise InvalidInput(f"{path} is a folder, and a file is written. Give the path of a file.") from None

    def to_bytes(self, extra: Arrays | None = None, *, layers_apart: bool = False, released: str = "") -> bytes:
        """The content of the file that `dump` writes; `Private.load` reads it.

        With `layers_apart`, what a store has beside the state is left out but for the names: the layers of `users`,
        and, under the name `released`, the arrays of `as_released`.
        """
        content = io.BytesIO()
        self._write(content, extra, layers_apart, released)
        return content.getvalue()

    def as_released(self, extra: Arrays) -> Arrays:
        """The arrays that change at a release only, with those of `extra`, by their names in a file."""
        parts = {"secret": opened(self.memories)[1], "public": self.public, "numbers": self.numbers}
        made = {f"{part}/{name}": array for part, arrays in parts.items() for name, array in arrays.items()}
        return {"point": self.point, **made, **{f"extra/{name}": array for name, array in extra.items()}}

    def _write(self, file: BinaryIO, extra: Arrays | None, layers_apart: bool = False, released: str = "") -> None:
        header = {name: getattr(self, name) for name in _HEADER}
        header |= {"version": VERSION, "spent": dataclasses.astuple(self.spent)}
        header |= {"released": released} if released else {}
        users = {} if self.users is None else arrays_of(self.users, layers_apart)
        arrays = {f"exact/{name}": array for name, array in opened(self.memories)[0].items()}
        arrays |= {f"users/{name}": array for name, array in users.items()}
        arrays |= {f"extra/{name}": array for name, array in (extra or {}).items()}
        arrays |= {} if released else self.as_released({})
        write_npz(file, {"header": np.array(json.dumps(header)), **arrays})


_UnfrozenState = unfrozen(State)
_HEADER = ("settings", "lineage", "generation", "token", "t", "k")
_COUNTS = ("generation", "t", "k")
_PARTS = ("exact", "secret", "public", "numbers")


def learnt_before(state: State) -> Learnt:
    """When the rows of a state were learnt, as it enters a ledger; not known, if they have no periods."""
    users = state.users
    return Learnt(users.first, users.period) if users is not None and users.period else learnt_by(state.position)


def new_name() -> str:
    """A unique name for a stream or a state."""
    return os.urandom(16).hex()


def standing_of(state: State) -> Standing:
    """The part of a state that passes read and update, opened: for the call that learns the next rows."""
    exact, secret = opened(state.memories)
    return Standing(state.t, state.k, exact, secret, state.public, state.point)


def standing_at(state: State, at: Standing) -> State:
    """A state that stands at `at`, of the same stream and generation."""
    memories = Secret((at.exact, at.secret))
    return dataclasses.replace(state, t=at.t, k=at.k, memories=memories, public=at.public, point=at.point)


def size_of(state: State) -> int:
    """Bytes of the arrays of a state but those of users' records; public, as shapes are."""
    return sum(array.nbytes for part in (*opened(state.memories), state.public) for array in part.values())


def following(state: State, **changes: Any) -> State:
    """The next generation of `state`."""
    return dataclasses.replace(state, generation=state.generation + 1, token=_new_token(state), **changes)


def after(state: State, at: Standing, spent: Cost, numbers: Arrays, users: UserRecords | None) -> State:
    """The next generation, where the stream stands at `at`: as `following`, which takes longer."""
    token = _new_token(state)
    t, k, exact, secret, public, point = at
    memories = Secret((exact, secret))
    new = _UnfrozenState(
        state.settings, state.lineage, state.generation + 1, token, t, k, memories, public, point, spent, numbers, users
    )
    new.__class__ = State
    return new  # type: ignore[no-any-return]


def _new_token(state: State) -> str:
    return "" if state.lineage == SIMULATION else new_name()


def first_state(
    settings: str,
    lineage: str,
    exact: Arrays,
    coders: tuple[Arrays, Arrays],
    point: Array,
    numbers: Arrays,
    users: UserRecords | None = None,
) -> State:
    """The state before any example."""
    secret, public = coders
    token = "" if lineage == SIMULATION else new_name()
    return State(settings, lineage, 0, token, 0, 0, Secret((exact, secret)), public, point, FREE, numbers, users)


def read_state(source: Source, layers: Layers | None = None) -> State:
    """Read what `State.dump` or `to_bytes` wrote. Use `Private.load`, which also checks that it may be used."""
    return _state_of(_named(source), *_opened(source, layers), layers)


def read_extra(source: Source, layers: Layers | None = None) -> Arrays:
    """The `extra` arrays that were written with a state."""
    return _extra_of(_opened(source, layers)[1])


def part_to_bytes(arrays: Arrays) -> bytes:
    """A part of a state that a store has beside it, as a layer: that of `State.as_released`."""
    content = io.BytesIO()
    write_npz(content, arrays)
    return content.getvalue()


Source = str | os.PathLike[str] | bytes
"""A file of a state, or its content."""


def _named(source: Source) -> object:
    return "this content" if isinstance(source, bytes) else source


def _must_be_path(path: object) -> None:
    if not isinstance(path, str | os.PathLike):
        raise InvalidInput(f"expected the path of a file, got a {type(path).__name__}. Give a text or a Path.")


def _state_of(name: object, header: dict[str, Any], arrays: Arrays, layers: Layers | None) -> State:
    parts: dict[str, Any] = {part: {} for part in (*_PARTS, "users")}
    for key, array in arrays.items():
        part, _, rest = key.partition("/")
        if part in parts:
            parts[part][rest] = array
    try:
        known = {field: header[field] for field in _HEADER}
        counts = [known.pop(field) for field in _COUNTS]
        if not all(type(count) is int and count >= 0 for count in counts) or set(map(type, known.values())) != {str}:
            raise TypeError
        known |= dict(zip(_COUNTS, counts, strict=True))
        spent = Cost(*header["spent"])
        parts["memories"] = Secret((parts.pop("exact"), parts.pop("secret")))
        parts["users"] = UserRecords.of_arrays(parts["users"], layers) if parts["users"] else None
        return State(**known, **parts, point=arrays["point"], spent=spent)
    except (KeyError, TypeError, InvalidInput):
        raise StateConflict(f"{name} is not a complete state of taciturn. Give the file of a dumped stream.") from None


def _extra_of(arrays: Arrays) -> Arrays:
    return {name.removeprefix("extra/"): array for name, array in arrays.items() if name.startswith("extra/")}


def _opened(source: Source, layers: Layers | None = None) -> tuple[dict[str, Any], Arrays]:
    if isinstance(source, bytes):
        header, arrays = _read(_named(source), io.BytesIO(source))
        return header, arrays | _released(header, layers)
    path = source
    _must_be_path(path)
    try:
        with Entry.of(path).reader() as handle:
            return _read(path, handle)
    except FileNotFoundError:
        raise InvalidInput(f"{path} does not exist. Give the file of a dumped stream.") from None
    except OSError:
        raise StateConflict(f"{path} is not a state of taciturn. Give the file of a dumped stream.") from None


def _released(header: dict[str, Any], layers: Layers | None) -> Arrays:
    """The part of a state that a store has beside it, if it is not in the state itself."""
    if (name := header.get("released")) is None:
        return {}
    if layers is None or name not in layers:
        raise StateConflict(
            "what this state has of its last release is stored beside it, and is not given. Load it from its store."
        )
    try:
        return read_npz(io.BytesIO(layers[name]))
    except (OSError, ValueError, KeyError, EOFError, TypeError, RuntimeError, zipfile.BadZipFile, zlib.error):
        raise StateConflict("the last release of this state is damaged. Restore the database.") from None


def _read(name: object, file: BinaryIO) -> tuple[dict[str, Any], Arrays]:
    """The header and the arrays of a dumped state, or an error."""
    try:
        arrays = read_npz(file)
        header = json.loads(str(arrays["header"]))
        if type(header) is not dict:
            raise TypeError
    except (OSError, ValueError, KeyError, EOFError, TypeError, RuntimeError, zipfile.BadZipFile, zlib.error):
        raise StateConflict(f"{name} is not a state of taciturn. Give the file of a dumped stream.") from None
    if header.pop("version", None) != VERSION:
        raise StateConflict(f"{name} was written by another version of taciturn. Load it with that one.")
    return header, arrays
