"""Checks of what encodes rows (`RowWise`): each is read by itself, and so is every field, whatever is in the others.

A reader turns raw rows (lines, records, arrays, whatever it takes) into features, labels and ids of users; a map turns
features into others. What is claimed of a stream that learns from them rests on three properties:

1. the encoding of a row depends on that row and on public settings, and every row takes its round: neighbours then
   differ in the encodings of the rows that the relation lets change, and in no other;
2. where rows are cut into blocks depends on their number: rounding may depend on the shape of a block;
3. what makes one field unreadable does not reach another that the relation leaves as it is: under "label" features and
   id of a row do not depend on its label, and for users the id does not depend on anything else, as it decides which
   rows count.

Each is tested on a row and on spoiled variants of it, in any order, company and memory layout: all that the relation
does not let change must be the same, to the bit. The last check is about what follows: the distance of the exact
statistics of two such streams, over their whole life and in units of the noise, is at most what is charged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from taciturn.checks.streams import generator
from taciturn.checks.suite import demand, skip
from taciturn.core.private import Private
from taciturn.kernel.accounting.unit import User
from taciturn.kernel.arrays import Array
from taciturn.kernel.mechanisms.strategy import matrices
from taciturn.kernel.problem.features import FeatureMap, mapped_rows
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.replay import counted, replay
from taciturn.kernel.stream.loop import fast_clip

Block = tuple[Array, Array, Sequence[Any] | None]
"""Features, labels and, if users are protected, the id of each row; None for a row without one."""


class Spoiled(NamedTuple):
    """A variant of a raw row, and which part of it is another one: everything else must be read as before.

    A row of which nothing can be read is another "record".
    """

    name: str
    row: Any
    part: Literal["features", "label", "id", "record"]


LAYOUTS: dict[str, Callable[[Array], Any]] = {
    "row after row": np.ascontiguousarray,
    "column after column": np.asfortranarray,
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "every second column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "every second row of columns": lambda X: np.asfortranarray(np.repeat(X, 2, axis=0))[::2],
    "columns of a wider array": lambda X: np.hstack([X, X])[:, X.shape[1] :],
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
}
"""Ways in which an array may lie in memory."""


def spoiled_numbers(row: Array) -> Iterator[Spoiled]:
    """Variants of a row of numbers: what is no number, what is huge, and what is on the other side of 0."""
    for number in (np.nan, np.inf, -np.inf, 1e12, 1e15, 1e300, 5e-324, -0.0):
        yield Spoiled(f"of {number}", np.full_like(row, number), "record")
        yield Spoiled(f"with {number}", np.append(row[:-1], number), "features")
    yield Spoiled("opposite", -row, "features")


@dataclass(frozen=True, eq=False)
class ReaderCase:
    """A reader, raw rows to test it with, and the private stream that learns what it reads.

    Parameters
    ----------
    read : callable
        Reads raw rows into blocks, as they are learnt: of each the features, the labels, and the ids of users or None.
    rows : sequence or array
        Raw rows, which can all be read; as many as the stream's horizon. If users are protected, the first should have
        more rows than count. Rows of an array are read from an array, laid in memory in many ways.
    spoiled : callable
        Variants of a raw row (`Spoiled`); by default those of a row of numbers.
    private : Private, optional
        The stream. Its relation and unit say what of a row may change. Its problem takes bad rows (`on_bad="zero"`).
        Without one, the checks that need one are skipped.
    layouts : mapping, optional
        Ways to lay an array in memory, each a function of an array in rows.
    """

    read: Callable[[Any], Iterable[Block]]
    rows: Sequence[Any] | Array
    spoiled: Callable[[Any], Iterable[Spoiled]] = spoiled_numbers
    private: Private | None = None
    layouts: Mapping[str, Callable[[Array], Any]] = field(default_factory=lambda: LAYOUTS)

    @cached_property
    def original(self) -> Encoded:
        """The rows as they are."""
        return self.encoded(self.rows)

    @property
    def stream(self) -> Private:
        """The stream; the check is skipped if there is none."""
        if self.private is None:
            skip("no stream learns what is read")
        return self.private

    def encoded(self, rows: Any) -> Encoded:
        """Raw rows, read; a list of rows of an array as an array."""
        as_array = isinstance(self.rows, np.ndarray) and isinstance(rows, list)
        blocks = list(self.read(np.array(rows) if as_array else rows))
        X, y = (np.concatenate([np.asarray(block[part], dtype=np.float64) for block in blocks]) for part in (0, 1))
        ids = [user for *_, users in blocks if users is not None for user in users]
        users = None if blocks[0][2] is None else np.fromiter(ids, dtype=object, count=len(ids))
        return Encoded(X, y, users, tuple(len(block[1]) for block in blocks))

    @property
    def variants(self) -> Iterator[tuple[int, Spoiled]]:
        """Every variant of the first row, of one in the middle and of the last one, with its place."""
        count = len(self.rows)
        for place in dict.fromkeys((0, count // 2, count - 1)):
            yield from ((place, spoiled) for spoiled in self.spoiled(self.rows[place]))

    @cached_property
    def _read(self) -> dict[tuple[tuple[int, str], ...], Encoded]:
        return {}

    def changed(self, *changes: tuple[int, Spoiled]) -> Encoded:
        """The rows, read, of which some are variants; each list is read once."""
        key = tuple((place, spoiled.name) for place, spoiled in changes)
        if key not in self._read:
            rows = list(self.rows)
            for place, spoiled in changes:
                rows[place] = spoiled.row
            self._read[key] = self.encoded(rows)
        return self._read[key]

    @property
    def has_users(self) -> bool:
        """Whether users are protected."""
        return self.private is not None and isinstance(self.private.unit, User)

    def may_change(self, spoiled: Spoiled) -> bool:
        """Whether neighbours may differ in such a variant: ids stay, and under "label" all but the label."""
        if self.stream.neighbours == "label":
            return spoiled.part == "label"
        return spoiled.part != "id" and not (self.has_users and spoiled.part == "record")


class Encoded(NamedTuple):
    """Rows as they are read: features, labels, ids, and the lengths of the blocks."""

    X: Array
    y: Array
    users: NDArray[Any] | None
    blocks: tuple[int, ...] = ()

    def at(self, rows: Any) -> Encoded:
        """Some of the rows."""
        return Encoded(self.X[rows], self.y[rows], None if self.users is None else self.users[rows])

    def same(self, other: Encoded) -> bool:
        """Whether all rows are the same in both, to the bit."""
        ids = [None if each.users is None else each.users.tolist() for each in (self, other)]
        return _bits(self.X) == _bits(other.X) and _bits(self.y) == _bits(other.y) and ids[0] == ids[1]


def _bits(numbers: Array) -> bytes:
    """The bits of numbers; all NaNs are one."""
    return np.where(np.isnan(numbers), np.nan, numbers).tobytes()


_BY_ITSELF = "Let what is read of a row depend on that row and on public settings alone."


def every_row_takes_its_round(case: ReaderCase) -> None:
    """A row that cannot be read takes its place, and no error stops the others."""
    for place, spoiled in case.variants:
        rows = len(case.changed((place, spoiled)).y)
        fault = f"of {len(case.rows)} rows, of which one is {spoiled.name}, {rows} were read"
        demand(rows == len(case.rows), fault, "Read a row that is none as a bad row.")


def other_rows_stay_the_same(case: ReaderCase) -> None:
    """Whatever a row is replaced by, all others are read as before, to the bit: features, labels and ids."""
    for place, spoiled in case.variants:
        others = np.delete(np.arange(len(case.rows)), place)
        alike = case.changed((place, spoiled)).at(others).same(case.original.at(others))
        demand(alike, f"another row is read otherwise where one is {spoiled.name}", _BY_ITSELF)


def a_row_is_read_alike_wherever_it_stands(case: ReaderCase) -> None:
    """In another order, without those after it, and alone; and in any company, of which half the rows are spoiled."""
    count = len(case.rows)
    good = [(f"row {place}", case.rows[place]) for place in range(count)]
    bad = [(f"row {place} {spoiled.name}", spoiled.row) for place, spoiled in case.variants]
    alone: dict[str, Encoded] = {}
    for company in _companies(good, bad, count):
        together = case.encoded([row for _, row in company])
        demand(
            len(together.y) == len(company), "a row is lost in some company", "Read a row that is none as a bad row."
        )
        for i, (name, row) in enumerate(company):
            if name not in alone:
                alone[name] = case.encoded([row])
            alike = together.at(slice(i, i + 1)).same(alone[name])
            others = ", ".join(other for other, _ in company[:3]) + (" …" if len(company) > 3 else "")
            fault = f"{name} is read otherwise alone than among {others}"
            demand(alike, fault, _BY_ITSELF)


_COMPANIES = 6


def _companies(good: list[tuple[str, Any]], bad: list[tuple[str, Any]], most: int) -> Iterator[list[tuple[str, Any]]]:
    """Rows with their names: all good ones from back to front, and random ones, some of them several times."""
    yield good[::-1]
    draws = generator(0)
    for length in draws.integers(1, most + 1, _COMPANIES).tolist():
        chosen = [bad if bad and is_bad else good for is_bad in draws.integers(2, size=length)]
        yield [some[int(draws.integers(len(some)))] for some in chosen]


def blocks_are_cut_by_the_number_of_rows(case: ReaderCase) -> None:
    """Not by what is in a row, or how long it is: what is computed from a block may be rounded by its length."""
    for place, spoiled in case.variants:
        cut = case.changed((place, spoiled)).blocks
        fault = f"blocks of {_listed(case.original.blocks)} rows become {_listed(cut)} where one is {spoiled.name}"
        demand(cut == case.original.blocks, fault, "Cut at public numbers of rows, not of bytes.")


def _listed(blocks: tuple[int, ...]) -> str:
    return ", ".join(map(str, blocks[:8])) + (" …" if len(blocks) > 8 else "")


def an_id_stays_whatever_else_is_spoiled(case: ReaderCase) -> None:
    """The id of a row depends on its own field alone: it decides which other rows of that user count."""
    if not case.has_users:
        skip("rows are protected, not users")
    kept = {"features", "label"}
    for place, spoiled in case.variants:
        if spoiled.part in kept:
            users = case.changed((place, spoiled)).users, case.original.users
            alike = users[0] is not None and users[1] is not None and users[0][place] == users[1][place]
            demand(alike, f"the id of a row is another where it is {spoiled.name}", "Read each field by itself.")


def features_stay_whatever_the_label_is(case: ReaderCase) -> None:
    """Under "label" the features of a row do not depend on its label, be it bad: they are hardly hidden by noise."""
    if case.stream.neighbours != "label":
        skip("features are protected, too")
    for place, spoiled in case.variants:
        if spoiled.part == "label":
            alike = _bits(case.changed((place, spoiled)).X[place]) == _bits(case.original.X[place])
            fault = f"the features of a row are others where it is {spoiled.name}"
            demand(alike, fault, "Read each field by itself, and keep the features of a row with a bad label.")


def rows_of_an_array_are_read_alike_however_they_lie(case: ReaderCase) -> None:
    """Laid in memory in any way, in blocks of any length, in single or double precision, beside rows of any size."""
    if not isinstance(case.rows, np.ndarray):
        skip("rows are no array")

    def read(rows: Array) -> Array:
        X, y, *_ = case.encoded(rows)
        return np.column_stack([X, y])

    _alike_in_memory(read, case.rows, case.layouts, "read")


def clipped_rows_stay_the_same(case: ReaderCase) -> None:
    """A row is mapped and clipped to the same bits, whatever is in the others, how they lie in memory and are cut.

    Rounding is small, and a map may make much of it: of a cosine of 10¹⁵ the last bit decides what it is.
    """
    X = np.where(np.isfinite(case.original.X), case.original.X, 0.0)
    for clip in _clippings(case.stream.problem):
        _alike_in_memory(partial(_clipped_by, clip), X, LAYOUTS, "clipped")


def _clipped_by(clip: Callable[[Array, Array], Any], X: Array) -> Array:
    """A copy of clipped rows: a clipping may use its memory again."""
    return np.array(clip(X, np.ones(len(X)))[0])


def _clippings(problem: Problem) -> list[Callable[[Array, Array], Any]]:
    """The clipping of a problem, and its compiled form, if there is one."""
    fast = fast_clip(problem, True)
    return [problem.clip_block] if fast is None else [problem.clip_block, fast.dense]


def _alike_in_memory(
    encode: Callable[[Array], Array], X: Array, layouts: Mapping[str, Callable[[Array], Any]], verb: str
) -> None:
    """Demand that a row is encoded to the same bits in any layout, length of blocks, size and type of numbers."""
    single: Any = X.astype(np.float32)
    for rows in (X, 1e15 * X, single):
        expected = encode(np.array(rows, dtype=np.float64))
        for name, laid in layouts.items():
            for length in (1, 3, max(4, len(X) // 2), len(X)):
                for wrong in _WRONG:
                    changed, places = rows.copy(), np.arange(len(wrong)) * len(X) // 4
                    with np.errstate(over="ignore"):
                        changed[places] = np.array(wrong).reshape(-1, 1)
                    whole = laid(changed)
                    cuts = pairwise([*range(0, len(X), length), len(X)])
                    encoded = np.concatenate([encode(whole[start:end]) for start, end in cuts])
                    beside = f", beside rows of {', '.join(map(str, wrong))}" if wrong else ""
                    fault = f"a row is {verb} to other bits in blocks of {length}, in memory {name}{beside}"
                    alike = _bits(np.delete(encoded, places, axis=0)) == _bits(np.delete(expected, places, axis=0))
                    demand(alike, fault, _SIDE_BY_SIDE)


_WRONG: tuple[tuple[float, ...], ...] = ((), (1e12, 1e300, 1e15), (np.nan, np.inf))
"""What some of the rows are full of: none, huge numbers, or no numbers."""

_SIDE_BY_SIDE = "Map rows that are copied side by side, and multiply them by taciturn.kernel.problem.features.products."


def neighbours_are_no_farther_apart_than_charged(case: ReaderCase) -> str:
    """Exact statistics of a stream and of one with spoiled rows, over the whole life, are as close as it is paid for.

    The distance is that of the encoded statistics in standard deviations of their noise, at the first released point.
    """
    private = case.stream
    charged = private.calibrated.cost(None).mu
    if private.learner.certificate.metric != "l2" or not charged:
        skip("the noise is not Gaussian")
    before = _statistics(case, case.original)
    worst, tried, what = 0.0, 0, ""
    for changes in _neighbours(case):
        changed = case.changed(*changes)
        if private.neighbours == "zero-out" and _clipped(case, changed)[0][[place for place, _ in changes]].any():
            continue  # neighbours have no influence where they differ
        apart = _distance(private, before - _statistics(case, changed)) / charged
        tried += 1
        if apart > worst:
            worst, what = apart, changes[0][1].name
    fault = f"a stream with a row that is {what} is at {worst:.4g} of the distance that is charged"
    demand(worst <= 1.0, fault, "Read each row and each field by itself.")
    if not tried:
        skip("no variant is a neighbour")
    return f"{tried} pairs, the worst at {worst:.4g} of the distance that is charged"


def _neighbours(case: ReaderCase) -> Iterator[list[tuple[int, Spoiled]]]:
    """Changes to neighbours: a variant of a row, or of the first, or of every row of a user."""
    for place, spoiled in case.variants:
        if not case.may_change(spoiled):
            continue
        yield [(place, spoiled)]
        if case.has_users:
            assert case.original.users is not None
            own = np.flatnonzero(case.original.users == case.original.users[place]).tolist()
            alike = [(i, each) for i in own for each in case.spoiled(case.rows[i]) if each.name == spoiled.name]
            yield [alike[0]]
            yield alike


def _clipped(case: ReaderCase, encoded: Encoded) -> tuple[Array, Array]:
    """Clipped rows and labels, as a stream clips them."""
    problem = case.stream.problem
    V, y = _clippings(problem)[-1](encoded.X, encoded.y)
    return V, y


def _statistics(case: ReaderCase, encoded: Encoded) -> Array:
    """The exact statistics of all rounds with a release."""
    private = case.stream
    V, y = _clipped(case, encoded)
    if isinstance(private.unit, User):
        V, y = counted(private, V, y, encoded.users)
    return replay(private.learner, V, y, private.timetable.rounds).statistics


def _distance(private: Private, apart: Array) -> float:
    """The distance of two sequences of statistics in standard deviations of the noise."""
    calibrated: Any = private.calibrated
    if private.learner.certificate.reach == "entry":
        if calibrated.coder is None:
            skip("the mechanism has no encoder to read")
        _, C = matrices(calibrated.coder, len(apart))
        return float(np.linalg.norm(C @ apart)) / float(calibrated.sd)
    sd = np.array([calibrated.noise_sd(k) for k in range(1, len(apart) + 1)])
    noisy = sd > 0.0
    return float(np.linalg.norm(apart[noisy] / sd[noisy, None]))


CHECKS = (
    every_row_takes_its_round,
    other_rows_stay_the_same,
    a_row_is_read_alike_wherever_it_stands,
    blocks_are_cut_by_the_number_of_rows,
    an_id_stays_whatever_else_is_spoiled,
    features_stay_whatever_the_label_is,
    rows_of_an_array_are_read_alike_however_they_lie,
    clipped_rows_stay_the_same,
    neighbours_are_no_farther_apart_than_charged,
)


def case_of_map(features: FeatureMap, dimension: int) -> ReaderCase:
    """A map, and rows of numbers between -1 and 1."""

    def read(X: Array) -> Iterator[Block]:
        yield mapped_rows(features, X), np.zeros(len(X)), None

    return ReaderCase(read, generator(0).uniform(-1.0, 1.0, (40, dimension)))
