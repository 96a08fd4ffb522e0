"""Which rows of a user count: the contribution bound, enforced row by row.

A stream whose unit is a `User` stores for each user, under a keyed hash of the id, how many rows have counted (in this
period), the last block with rows that count, and how many there are in it. A row counts if

    count < rows,   and   block - last ≥ apart, or block = last and rows in it < per_release;

any other row keeps its round and becomes a row without influence: zero, after the intercept was appended. (A loss of
your own whose gradient at a row of zeros is not 0 gets that constant instead: it depends on nobody's data.)

**Claim.** Whatever the rows contain, those of one user that count form a pattern that `Participation` allows, and
which ones they are depends on the positions and ids of that user's rows alone. *Proof.* Each rule is checked before a
row counts, and the record is updated when it does; rows are taken in the order of their rounds, and a record is stored
with the state that these rows lead to, so that no row is learnt from without it. Contents are never read: a bad row
counts like any other. ∎ So between neighbours, which differ in the contents of one user's rows, the same rows count.

**Several owners of a row.** Each owner decides by their own record whether the row counts for them, and is charged if
so; the row has influence if it counts for all of them. So the record of an owner depends on rows of their own alone.
Which rows someone shares with others is not protected.

**Hashes** are BLAKE2b of 128 bits under a random key, which is stored with the state: two of n users share a record
with probability below n²·2⁻¹²⁹. The records are secret like the state: they tell who took part, and how often.

Records are stored as layers, each sorted by hash; a newer layer overrules older ones. A call adds one layer, and layers
of about one size are merged, so that a call costs time in its own rows, times the logarithm of the number of users.
"""

from __future__ import annotations

import datetime
import hashlib
import math
import secrets
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from taciturn.kernel.accounting.unit import User, period_of, utc_now
from taciturn.kernel.arrays import Arrays, Integers
from taciturn.kernel.errors import InvalidInput, StateConflict
from taciturn.kernel.secret import Secret, opened

Hashes = NDArray[np.uint64]
Mask = NDArray[np.bool_]

PERIOD, COUNT, BLOCK, HERE = range(4)  # columns of a record: of this period, last block, and rows in it
_LARGEST_LAYER = 2**23  # users of a layer that is not merged with another
_MISSING = ("<NA>", "NaT", "nan")  # texts of objects that stand for a missing value; as text they are ids


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Layer:
    """Hashes and records of users, sorted by hash; never changed. Its name is unique."""

    name: str
    held: Secret[tuple[Hashes, Integers]]

    def __repr__(self) -> str:
        return "Layer(secret)"

    def to_bytes(self) -> bytes:
        """Hashes, then records, each in little-endian 64-bit integers; `layer_from_bytes` reads them."""
        hashes, records = opened(self.held)
        return hashes.astype("<u8").tobytes() + records.astype("<i8").tobytes()


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class UserRecords:
    """The records of a stream's users: secret. Layers come oldest first.

    `first` and `period` are the periods of the first and of the last row, which are public; 0 before the first row.
    """

    key: Secret[bytes]
    layers: tuple[Layer, ...] = ()
    period: int = 0
    first: int = 0

    def __repr__(self) -> str:
        return "UserRecords(secret)"

    def key_to_bytes(self) -> bytes:
        """The key, for workers that hash ids."""
        return opened(self.key)

    def merged(self) -> UserRecords:
        """The same records in one layer."""
        layers = self.layers
        while len(layers) > 1:
            layers = (*layers[:-2], merge(layers[-2], layers[-1]))
        return UserRecords(self.key, layers, self.period, self.first)

    def with_layer(self, layer: Layer, compiled: bool = True) -> UserRecords:
        """The records after a call: one more layer, merged with those before it of up to twice its size."""
        layers = (*self.layers, layer)
        while len(layers) > 1 and _users_of(layers[-2]) <= min(2 * _users_of(layers[-1]), _LARGEST_LAYER):
            layers = (*layers[:-2], merge(layers[-2], layers[-1], compiled))
        return UserRecords(self.key, layers, self.period, self.first)

    @classmethod
    def of_arrays(cls, arrays: Arrays, layers: Layers | None = None) -> UserRecords:
        """From what `arrays_of` gave, validated; layers that are stored apart are read by their names."""
        key = arrays.get("key", np.empty(0))
        if key.dtype != np.uint8 or key.shape != (32,):
            raise _damaged()
        if "layers" in arrays:
            names = [str(name) for name in arrays["layers"].ravel()]
            if layers is None or not set(names) <= layers.keys():
                raise StateConflict(
                    "the users' records of this state are stored beside it, and are not given. Load it from its store."
                )
            read = [layer_from_bytes(name, layers[name]) for name in names]
        else:
            read = [layer_of(arrays.get("hashes"), arrays.get("records"))]
        period = _period(arrays["period"])
        # an older file does not say which was the first: perhaps the first of all
        first = _period(arrays["first"]) if "first" in arrays else min(period, 1)
        return cls(Secret(key.tobytes()), tuple(layer for layer in read if _users_of(layer)), period, first)


def arrays_of(users: UserRecords, apart: bool = False) -> Arrays:
    """Records as plain arrays, which a state stores; `apart`, with the names of layers that are stored beside it."""
    own = {"key": np.frombuffer(opened(users.key), dtype=np.uint8)}
    own |= {"period": np.array(users.period), "first": np.array(users.first)}
    if apart:
        return own | {"layers": np.array([layer.name for layer in users.layers], dtype="U32")}
    nobody = np.empty((0, 2), dtype=np.uint64), np.empty((0, 4), dtype=np.int64)
    hashes, records = opened(users.merged().layers[0].held) if users.layers else nobody
    return own | {"hashes": hashes, "records": records}


def record_of(users: UserRecords, user: Any) -> dict[str, int] | None:
    """The record of a user by id, or None: for `taciturn.kernel.replay`."""
    found = lookup(users.layers, hash_ids([user], opened(users.key)).users)
    if not found[0, BLOCK]:
        return None
    return dict(zip(("period", "count", "block", "here"), map(int, found[0]), strict=True))


def _users_of(layer: Layer) -> int:
    return len(opened(layer.held)[0])


Layers = Mapping[str, bytes]
"""Contents of layers, by name."""


def _period(stored: Any) -> int:
    """The number of a period, validated."""
    if stored.shape != () or stored.dtype != np.int64 or stored < 0:
        raise _damaged()
    return int(stored)


def _damaged() -> StateConflict:
    return StateConflict("the users' records of this state are damaged. Use an intact copy of its file.")


def new_records(seed: int | None) -> UserRecords:
    """No records yet, under a new key; a simulation's key follows from its seed."""
    key = secrets.token_bytes(32) if seed is None else hashlib.blake2b(f"{seed}".encode(), digest_size=32).digest()
    return UserRecords(Secret(key))


def new_layer(hashes: Hashes, records: Integers, name: str = "") -> Layer:
    """A layer of its own name."""
    return Layer(name or secrets.token_hex(16), Secret((hashes, records)))


def layer_from_bytes(name: str, content: bytes) -> Layer:
    """The layer that `Layer.to_bytes` wrote, validated."""
    users, rest = divmod(len(content), 48)
    if rest:
        raise _damaged()
    hashes = np.frombuffer(content, "<u8", 2 * users).astype(np.uint64).reshape(-1, 2)
    records = np.frombuffer(content, "<i8", offset=16 * users).astype(np.int64).reshape(-1, 4)
    return layer_of(hashes, records, name)


def layer_of(hashes: Any, records: Any, name: str = "") -> Layer:
    """A layer of stored arrays, validated."""
    hashes, records = np.asarray(hashes), np.asarray(records)
    fits = hashes.dtype == np.uint64 and records.dtype == np.int64 and hashes.shape[1:] == (2,)
    if not fits or records.shape != (len(hashes), 4) or not _rises(hashes) or (records < 0).any():
        raise _damaged()
    return new_layer(hashes, records, name)


def _rises(hashes: Hashes) -> bool:
    high, low = hashes[:, 0], hashes[:, 1]
    return bool(((high[1:] > high[:-1]) | ((high[1:] == high[:-1]) & (low[1:] > low[:-1]))).all())


# ---- ids ----------------------------------------------------------------------------------------------------------


def canonical(user: Any) -> bytes | None:
    """An id as bytes, the same for the number 7, 7.0 and the text "7"; None for a missing one.

    A user with two ids would have the rows of two, so ids that may be one user's are made one. Text is otherwise taken
    as it is written, but for blanks around it and for the ways to compose a letter: "007" is not 7.

    >>> canonical(7) == canonical(7.0) == canonical(" 7 ") == canonical("7.0"), canonical(float("nan"))
    (True, None)
    """
    if isinstance(user, str):
        text = user.strip()
        if not text.isascii():
            text = unicodedata.normalize("NFC", text)
        whole, dot, rest = text.partition(".")
        if dot and not rest.strip("0") and whole.lstrip("+-").isdigit():
            text = whole
        return text.encode("utf-8", "surrogatepass") if text else None
    if isinstance(user, bytes):
        return canonical(user.decode("utf-8", "surrogateescape"))
    if isinstance(user, float | np.floating):
        if math.isnan(user):
            return None
        number = float(user)
        if not number.is_integer():
            raise InvalidInput(
                "an id is a number that is not an integer, as after scaling. Pass ids as they are, as text or integers."
            )
        exact = np.finfo(user.dtype).nmant + 1 if isinstance(user, np.floating) else 53
        if abs(number) >= 2.0**exact:
            raise InvalidInput(
                f"an id is a float of 2^{exact} or more, to which several integers are rounded. Pass text or integers: "
                "pandas reads a column of integers with a gap as floats, unless its type is Int64."
            )
        user = int(number)
    elif isinstance(user, bool | np.bool_):
        user = int(user)
    if isinstance(user, int) and abs(user) >= 10**4_000:  # Python writes no much longer ones
        raise InvalidInput("an id is an integer of thousands of digits. Pass ids as they are, as text or integers.")
    if user is None or (text := str(user)) in _MISSING:
        return None
    if isinstance(user, dict | list | tuple | set | frozenset | complex | np.ndarray):
        raise InvalidInput(
            f"an id is text or an integer, got {type(user).__name__}. For rows of several owners pass a table, with "
            "a column for each owner."
        )
    return canonical(text)


class HashedIds(NamedTuple):
    """Keyed hashes, each user once and sorted, and for every row the places of its owners among them; -1 if missing."""

    users: Hashes
    owners: Integers


def hash_ids(users: Any, key: bytes) -> HashedIds:
    """Keyed hashes of one id a row, or of a table with one column for each owner."""
    distinct, where = _distinct(users)
    names = [b"%d" % each for each in distinct] if _integers(distinct) else [canonical(each) for each in distinct]
    keyed = hashlib.blake2b(digest_size=16, key=key)
    hashed = np.frombuffer(b"".join([_digest(keyed, name) for name in names]), dtype=np.uint64).reshape(-1, 2)
    order = np.lexsort((hashed[:, 1], hashed[:, 0]))
    in_order = hashed[order]
    differs = np.append(True, (in_order[1:] != in_order[:-1]).any(axis=1))[: len(in_order)]  # 7 and "7" are one user
    place = np.empty(len(hashed), dtype=np.int64)
    place[order] = np.cumsum(differs) - 1
    place[[row for row, name in enumerate(names) if name is None]] = -1
    return HashedIds(np.ascontiguousarray(in_order[differs]), place[where])


def _digest(keyed: Any, name: bytes | None) -> bytes:
    one = keyed.copy()  # of the state that has read the key: half the work
    one.update(name or b"")
    return bytes(one.digest())


def _integers(distinct: list[Any]) -> bool:
    return all(type(each) is int for each in distinct)


def _distinct(users: Any) -> tuple[list[Any], Integers]:
    """The distinct ids, and for each row and owner the place of its id among them.

    What is equal here has one canonical form, so that it does not matter with which ids an id comes in a call.
    """
    if hasattr(users, "to_pylist"):
        given = users.to_pylist()
    elif hasattr(users, "to_numpy"):
        given = users.to_numpy()
    else:
        given = users if hasattr(users, "__len__") else list(users)
    ids = given if isinstance(given, np.ndarray) else np.asarray(given, dtype=object)  # no rounding of large integers
    if isinstance(users, str):
        raise InvalidInput("users= takes the ids themselves, one a row, not the name of a column.")
    if ids.ndim not in (1, 2) or ids.dtype.kind in "Mmc":
        raise InvalidInput(
            "users= takes numbers or text as ids, one a row, or a table with a column for each owner; got "
            f"{ids.dtype} of {ids.ndim} axes. Convert other ids to text."
        )
    flat = ids.reshape(-1)
    if flat.dtype.kind in "fiu":
        values, where = np.unique(flat, return_inverse=True)
        distinct = list(values) if flat.dtype.kind == "f" else values.tolist()  # with their precision
    else:
        places: dict[Any, int] = {}
        keys = (each if type(each) is str else canonical(each) for each in flat.tolist())
        where = np.array([places.setdefault(key, len(places)) for key in keys], dtype=np.int64)
        distinct = list(places)
    return distinct, np.asarray(where, dtype=np.int64).reshape(ids.shape if ids.ndim == 2 else (len(ids), 1))


# ---- admission ----------------------------------------------------------------------------------------------------


def admit(
    unit: User,
    records: UserRecords,
    users: Any,
    blocks: Integers,
    periods: Integers,
    compiled: bool = True,
    on_bad: str = "zero",
) -> tuple[Mask, UserRecords]:
    """Which rows count, and the records after them; `blocks` and `periods` are those of the rows, in order.

    A row without an id that is a bad row does not count, or is rejected, by `on_bad`.

    >>> records = new_records(seed=1)
    >>> blocks, periods = np.array([1, 1, 2, 2]), np.zeros(4, dtype=np.int64)
    >>> counts, records = admit(User(rows=2, per_release=1), records, ["anna", "anna", "anna", "bob"], blocks, periods)
    >>> counts.tolist(), record_of(records, "anna")["count"]
    ([True, False, True, True], 2)
    """
    hashed = hash_ids(users, opened(records.key))
    owners = hashed.owners
    if len(owners) != len(blocks):
        raise InvalidInput(f"users= has {len(owners)} ids for {len(blocks)} rows. Give one id a row.")
    taken = np.maximum(periods, records.period)  # a clock that was set back does not begin an old period again
    if len(taken):
        records = replace(records, period=int(taken[-1]), first=records.first or int(taken[0]))
    known, rows = _by_user(owners)
    present, firsts = np.unique(known, return_index=True)
    users_here = np.ascontiguousarray(hashed.users[present])
    found = lookup(records.layers, users_here, compiled)
    counted = decision(unit, found, firsts, blocks[rows], taken[rows], compiled)
    counts = without_an_id(unit, len(owners), np.flatnonzero((owners < 0).all(axis=1)), on_bad)
    counts[rows[~counted]] = False
    if not len(present):
        return counts, records
    return counts, records.with_layer(new_layer(users_here, found), compiled)


def without_an_id(unit: User, rows: int, missing: Integers, on_bad: str) -> Mask:
    """Which rows count if every user's do: all but those without an id, if these are bad rows."""
    counts = np.ones(rows, dtype=np.bool_)
    if unit.without_id == "bad":
        if on_bad == "raise" and len(missing):
            raise InvalidInput(
                f"row {missing[0]} has no id. Nothing was learnt from this call. Give every row an id; or "
                "set without_id='own' to take each such row for a user of its own."
            )
        counts[missing] = False
    return counts


def decision(
    unit: User, found: Integers, firsts: Integers, blocks: Integers, periods: Integers, compiled: bool = True
) -> Mask:
    """Which rows count; those of a user are neighbours, in order, from `firsts` on. Updates the records `found`."""
    ends = np.append(firsts, len(blocks)).astype(np.int64)[1:]
    limits = unit.participation
    decide = _fast("decide", compiled) or _decide
    counted: Mask = decide(found, firsts, ends, blocks, periods, limits.rows, limits.per_release, limits.apart)
    return counted


def _by_user(owners: Integers) -> tuple[Integers, Integers]:
    """Users and rows of all (row, owner) pairs, by user and then by row; an owner named twice in a row is one."""
    order = np.argsort(owners, axis=None, kind="stable")
    known, rows = owners.ravel()[order], order // owners.shape[1]
    if owners.shape[1] > 1:
        once = np.append(True, (known[1:] != known[:-1]) | (rows[1:] != rows[:-1]))[: len(known)]
        known, rows = known[once], rows[once]
    first = int(np.searchsorted(known, 0))  # missing ids come first
    return known[first:], rows[first:]


def _decide(
    found: Integers,
    firsts: Integers,
    ends: Integers,
    blocks: Integers,
    periods: Integers,
    most: int,
    per_release: int,
    apart: int,
) -> Mask:
    """Which rows count, user by user, and their records updated in place; `compiled.participation.decide` is fast."""
    counted = np.zeros(len(blocks), dtype=np.bool_)
    for record, first, end in zip(found, firsts, ends, strict=True):
        for row in range(first, end):
            block, period = blocks[row], periods[row]
            if period > record[PERIOD]:
                record[PERIOD], record[COUNT] = period, 0
            again = block == record[BLOCK]
            fits = record[HERE] < per_release if again else record[BLOCK] == 0 or block - record[BLOCK] >= apart
            if record[COUNT] < most and fits:
                record[COUNT] += 1
                record[HERE] = record[HERE] + 1 if again else 1
                record[BLOCK] = block
                counted[row] = True
    return counted


def lookup(layers: tuple[Layer, ...], hashes: Hashes, compiled: bool = True) -> Integers:
    """The records of these users, zeros for new ones."""
    found = np.zeros((len(hashes), 4), dtype=np.int64)
    fast = _fast("lookup", compiled)
    for layer in layers:  # oldest first: newer ones overrule
        of_layer, records = opened(layer.held)
        if fast is not None:
            fast(of_layer, records, hashes, found)
            continue
        known = {bytes(each): row for row, each in enumerate(of_layer)}
        for row, each in enumerate(hashes):
            if (place := known.get(bytes(each))) is not None:
                found[row] = records[place]
    return found


def merge(old: Layer, new: Layer, compiled: bool = True) -> Layer:
    """Both layers in one; where both have a user, the newer record."""
    (old_hashes, old_records), (new_hashes, new_records) = opened(old.held), opened(new.held)
    if (fast := _fast("merge", compiled)) is not None:
        return new_layer(*fast(old_hashes, old_records, new_hashes, new_records))
    hashes = np.concatenate([old_hashes, new_hashes])
    order = np.lexsort((hashes[:, 1], hashes[:, 0]))  # stable: the newer record of a user comes last
    hashes = hashes[order]
    newest = np.append((hashes[1:] != hashes[:-1]).any(axis=1), True)
    records = np.concatenate([old_records, new_records])[order]
    return new_layer(np.ascontiguousarray(hashes[newest]), np.ascontiguousarray(records[newest]))


def _fast(name: str, compiled: bool) -> Any:
    """A compiled twin, or None."""
    if not compiled:
        return None
    from taciturn.kernel.stream import participation_loops as participation

    return getattr(participation, name)


# ---- periods ------------------------------------------------------------------------------------------------------


def periods_of(unit: User, rounds: Integers, now: datetime.datetime | None) -> Integers:
    """The period of each round: by the rounds, or that of the clock, for all of them.

    >>> periods_of(User(rows=1, period=100), np.array([1, 100, 101]), None)
    array([1, 1, 2])
    >>> import datetime
    >>> periods_of(User(rows=1, period="month"), np.array([1, 2]), datetime.datetime(2026, 11, 16))
    array([24323, 24323])
    """
    if unit.period is None:
        return np.zeros(len(rounds), dtype=np.int64)
    if isinstance(unit.period, int):
        return np.asarray((rounds - 1) // unit.period + 1, dtype=np.int64)
    number = period_of(unit.period, utc_now() if now is None else now)
    return np.full(len(rounds), number, dtype=np.int64)
