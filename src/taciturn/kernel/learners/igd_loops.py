"""Steps of iterate learners (IGD, FadingIGD, GIGA), example by example.

Slow twins: `absorb` of `taciturn.kernel.learners.igd.IGD`, `taciturn.kernel.learners.igd.FadingIGD` and
`taciturn.methods.giga.GIGA`, and `prox_in_set` of `taciturn.kernel.learners.implicit_step`, whose docstring has the
formulas.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from taciturn.kernel.dot import after_step, after_step_in_box, along, dots, padded, shrink_and_move
from taciturn.kernel.jit import compiled, inlined
from taciturn.kernel.mechanisms.lattice_loops import add_noise
from taciturn.kernel.problem.clipping_loops import clip_one
from taciturn.kernel.problem.codes import BALL, FADING, GRADIENT, IMPLICIT, PRINTED, WHOLE_SPACE, Code
from taciturn.kernel.problem.losses_loops import prox, slope
from taciturn.kernel.problem.sets_loops import project, project_row

_TINY = 2.0**-52
_NEGLIGIBLE = 1e-280  # square of a row's length: it moves nothing by as much as rounding does, and 1/0 would be next

Step = tuple[float, float, float]
"""`x ← shrink·x + move·v`: shrink, move, and the pull of an implicit step, if its row has any length, else 0."""


@compiled
def iterates(
    how: Code,
    loss: Code,
    domain: Code,
    steepest: float,
    centre: Any,
    x: Any,
    t: int,
    V: Any,
    y: Any,
    rounds: Any,
    total: Any,
    first: int,
) -> Any:
    """The iterates after these rounds; changes `x`, the iterate after t examples, to that after all of them.

    From round `first` on, iterates are added up in `total`, if it is not empty, and rows are the totals instead.
    """
    rows, done, z = np.empty((len(rounds), len(x))), 0, padded(x)
    for i in range(len(y)):
        step(how, loss, domain, steepest, z, t + i + 1, V, i, y[i], centre)
        if len(total) > 0 and t + i + 1 >= first:
            for j in range(len(x)):
                total[j] += z[j]
        if done < len(rounds) and rounds[done] == t + i + 1:
            for j in range(len(x)):
                rows[done, j] = total[j] if len(total) > 0 else z[j]
            done += 1
    for j in range(len(x)):
        x[j] = z[j]
    return rows


@compiled
def releases(
    how: Code,
    loss: Code,
    domain: Code,
    steepest: float,
    centre: Any,
    x: Any,
    t: int,
    V: Any,
    y: Any,
    rounds: Any,
    steps: Any,
    magnitude: float,
    noise: Any,
    noisy: Any,
    points: Any,
) -> int:
    """Writes noisy iterates on their lattice and their projections onto the set; returns how many."""
    outputs, z = (steps, magnitude, noise, noisy, points), padded(x)
    off_centre = how[0] == FADING and _is_off_zero(centre)
    none = len(y) - len(y)  # not a literal 0, for which Numba would compile all loops once more
    i, done, due = none, none, none > 0
    while i < len(y):
        if off_centre:
            done, due = _release_if_due(domain, z, outputs, done, due), False
            _pull_to_centre(how, z, t + i + 1, centre)
        until = i + 1 if off_centre else len(y)
        i, done, due, taken = _inside_the_set(how, loss, domain, z, t, V, y, i, until, rounds, outputs, done, due)
        if i < until:
            _return_to_set(taken, loss, domain, steepest, z[: len(x)], V, i, y[i])
            i += 1
            due = done < len(rounds) and rounds[done] == t + i
    for j in range(len(x)):
        x[j] = z[j]
    return _release_if_due(domain, z, outputs, done, due)


@inlined
def _problem(numbers: Any) -> tuple[Code, Code, Code, float, Any]:
    """Kind of step, loss, set, largest slope, centre: after the six numbers of `clip_one`, and a largest magnitude."""
    how = int(numbers[7]), numbers[8], numbers[9]
    loss = int(numbers[10]), numbers[11], numbers[12]
    domain = int(numbers[13]), numbers[14], numbers[15]
    return how, loss, domain, numbers[16], numbers[17:]


@compiled
def clip_and_step(numbers: Any, x: Any, t: int, X: Any, y: Any) -> bool:
    """`clip` and `iterates` for one example, without a release; changes `x`. False for a row that is rejected."""
    V = np.empty((1, len(x)))
    labels, rejected = clip_one(numbers, X, y, V)
    if rejected:
        return False
    iterates(*_problem(numbers), x, t, V, labels, np.empty(0, dtype=np.int64), np.empty(0), 0)
    return True


@compiled
def clip_and_release(
    numbers: Any, x: Any, X: Any, y: Any, rounds: Any, steps: Any, noise: Any, noisy: Any, points: Any
) -> bool:
    """`clip` and `releases` for one example and the release after it; changes `x`. False for a row that is rejected."""
    V = np.empty((1, len(x)))
    labels, rejected = clip_one(numbers, X, y, V)
    if rejected:
        return False
    outputs = steps, numbers[6], noise, noisy, points
    return releases(*_problem(numbers), x, rounds[0] - 1, V, labels, rounds, *outputs) == len(rounds)


@compiled
def _inside_the_set(
    how: Code,
    loss: Code,
    domain: Code,
    x: Any,
    t: int,
    V: Any,
    y: Any,
    first: int,
    until: int,
    rounds: Any,
    outputs: Any,
    done: int,
    due: bool,
) -> tuple[int, int, bool, Step]:
    """Steps on these rows, and releases: up to which row, how many releases, whether one more is due, the last step.

    The row is `until`, or one whose step has left the set. An iterate is released when the step after it is known and
    not yet taken, so that a processor does both at once; and what happens rarely has no place in this loop, as a
    compiler would make room for it there.
    """
    taken = 1.0, 0.0, 0.0
    for i in range(first, until):
        taken = _free_step(how, loss, x, t + i + 1, V, i, y[i])
        if due:
            _release(domain, x, outputs, done)
            done += 1
        if not _inside(domain, shrink_and_move(x, taken[0], taken[1], V, i), x, V.shape[1]):
            return i, done, False, taken
        due = done < len(rounds) and rounds[done] == t + i + 1
    return until, done, due, taken


@compiled
def _release_if_due(domain: Code, x: Any, outputs: Any, done: int, due: bool) -> int:
    """Writes the release that is due, if there is one; returns the number of releases so far."""
    if due:
        _release(domain, x, outputs, done)
    return done + 1 if due else done


@inlined
def _release(domain: Code, x: Any, outputs: Any, k: int) -> None:
    """Writes x on its lattice, with noise, and its projection onto the set, into row k."""
    steps, magnitude, noise, noisy, points = outputs
    squared = add_noise(x, steps[k], magnitude, noise, noisy, k)
    project_row(domain[0], domain[1], domain[2], noisy, k, steps[k], squared, points)


@inlined
def step(
    how: Code,
    loss: Any,
    domain: Any,
    steepest: float,
    x: Any,
    t: int,
    V: Any,
    i: int,
    y: float,
    centre: Any,
) -> None:
    """The step on row i, the t-th example, counted from 1; changes `x`, which is padded."""
    if how[0] == FADING:
        _pull_to_centre(how, x, t, centre)
    taken = _free_step(how, loss, x, t, V, i, y)
    if not _inside(domain, shrink_and_move(x, taken[0], taken[1], V, i), x, V.shape[1]):
        _return_to_set(taken, loss, domain, steepest, x[: V.shape[1]], V, i, y)


@inlined
def _free_step(how: Code, loss: Code, x: Any, t: int, V: Any, i: int, y: float) -> Step:
    """The step as if there were no set; an implicit one is `argmin_z ½‖z - shrink·x‖² + pull·loss(z)`."""
    kind, strength, delay = how
    if kind == GRADIENT or (kind == PRINTED and t >= delay):
        eta = 1.0 / (strength * (t / 2.0 if kind == PRINTED else t + delay))
        return 1.0 - eta * strength, -eta * slope(loss[0], loss[1], loss[2], along(V, i, x, 0), y), 0.0
    if kind == PRINTED:
        return 1.0, 0.0, 0.0
    if kind == IMPLICIT:
        eta = 1.0 / (strength * t)
        shrink = 1.0 / (1.0 + eta * strength)
        pull = eta * shrink
    else:
        total, weight = _fading(strength, t)
        shrink, pull = total / (total + weight), 1.0 / (total + weight)
    norm, before = dots(V, i, x)
    if not norm > _NEGLIGIBLE:
        return shrink, 0.0, 0.0
    start, per_norm = shrink * before, 1.0 / norm
    return shrink, (prox(loss[0], loss[1], loss[2], start, y, pull * norm) - start) * per_norm, pull


@compiled
def _fading(strength: float, t: int) -> tuple[float, float]:
    """`4/3·strength·t^¾`, in place of the ridges before the t-th example, and its own."""
    return 4.0 / 3.0 * strength * t**0.75, strength * t**-0.25


@compiled
def _pull_to_centre(how: Code, x: Any, t: int, centre: Any) -> None:
    """Moves x so that shrinking it has the effect of a ridge around the centre: `x + (weight/total)·centre`."""
    total, weight = _fading(how[1], t)
    for j in range(len(centre)):
        x[j] += weight / total * centre[j]


@compiled
def _is_off_zero(centre: Any) -> bool:
    """Whether any entry is not 0."""
    for j in range(len(centre)):
        if centre[j] != 0.0:
            return True
    return False


@compiled
def _return_to_set(taken: Step, loss: Code, domain: Code, steepest: float, x: Any, V: Any, i: int, y: float) -> None:
    """Ends a step that has left the set. An implicit one is taken back, up to rounding, and solved in the set."""
    _, move, pull = taken
    if pull > 0.0:
        for j in range(len(x)):
            x[j] -= move * V[i, j]
        s = root_of_excess(loss, domain, x, V, i, y, pull, -steepest, steepest)
        for j in range(len(x)):
            x[j] -= pull * s * V[i, j]
    project(domain[0], domain[1], domain[2], x)


@inlined
def _inside(domain: Code, squared: float, x: Any, d: int) -> bool:
    """Whether a point of d entries, with this square of its length, lies in the set."""
    if domain[0] == WHOLE_SPACE:
        return True
    if domain[0] == BALL:
        return squared <= domain[2] * domain[2]
    for j in range(d):
        if not domain[1] <= x[j] <= domain[2]:
            return False
    return True


@compiled
def _excess(loss: Code, domain: Code, anchor: Any, V: Any, i: int, y: float, pull: float, s: float) -> float:
    """`s - slope(v·Proj(anchor - pull·s·v))`, which rises with s."""
    if domain[0] == BALL:
        u, squared = after_step(anchor, pull * s, V, i)
        if squared > domain[2] * domain[2]:
            u *= domain[2] / math.sqrt(squared)
    else:
        u = after_step_in_box(anchor, pull * s, V[i], domain[1], domain[2])
    return s - slope(loss[0], loss[1], loss[2], u, y)


@compiled
def root_of_excess(
    loss: Code, domain: Code, anchor: Any, V: Any, i: int, y: float, pull: float, low: float, high: float
) -> float:
    """Where the excess passes zero, to the last bits; an end where it does not.

    The false position with halved weights (Illinois), and a bisection whenever that has not halved the bracket in
    three steps.
    """
    below, above = (
        _excess(loss, domain, anchor, V, i, y, pull, low),
        _excess(loss, domain, anchor, V, i, y, pull, high),
    )
    if below >= 0.0:
        return low
    if above <= 0.0:
        return high
    close, width, side = high * 2.0**-60, high - low, 0
    for turn in range(400):
        if high - low <= close + 4.0 * _TINY * max(abs(low), abs(high)):
            break
        s = high - above * (high - low) / (above - below)
        if turn % 3 == 2:
            if high - low > 0.5 * width:
                s = low + (high - low) / 2.0
            width = high - low
        if not low < s < high:
            s = low + (high - low) / 2.0
            if not low < s < high:
                break
        value = _excess(loss, domain, anchor, V, i, y, pull, s)
        if value == 0.0:
            return s
        if value > 0.0:
            high, above = s, value
            below = below / 2.0 if side == 1 else below
            side = 1
        else:
            low, below = s, value
            above = above / 2.0 if side == -1 else above
            side = -1
    return low + (high - low) / 2.0
