"""Steps of iterate learners on compressed rows: the time of an example depends on its entries alone.

Slow twins: those of `taciturn.compiled.igd`, for sets that contain 0 and a centre of 0.

**The iterate** is `x = scale·z`. To shrink it, or to project it on a ball, is to change the scale; to move it along an
example v is to change z where v is not 0. A box that contains 0 can be left in those coordinates alone, and there is
nothing else to project. The scale never grows but when it is multiplied into z: at releases, at the end of a
block, and before it is too small a number.

**The prox in a set** needs no more than v, its coordinates of the anchor `a` in a box, and in a ball the plane of a and
v: there `a = (a·v/‖v‖, rest)`, `rest² = ‖a‖² - (a·v)²/‖v‖²`, and `v = (‖v‖, 0)`. So `root_of_excess` finds it in these.

**The length.** In a ball `‖z‖²` goes along: an entry that moves from p to q adds `(q - p)·(q + p)`. With k entries that
add D in absolute values this errs by at most `(k + 3)·D + ‖z‖²` units of 2⁻⁵³. These bounds are added up in `error`
(with k + 4, for rounding in them), and before they exceed `2·(size + 8)` units of the larger of `‖z‖²` and
`(B/scale)²`, the sum of squares is taken anew, with `size + 2` units of error. An example that moves z by little adds
little more than `‖z‖²`, none more than `9·(k + 5)` times the larger of the two: a sum over `size` entries comes with a
ninth as many entries of examples, or less often.

**What rounding can do** is what certificates pay for (`taciturn.learners.iterate.IterateLearner.rounding`, and
`taciturn.learners.igd.IGD` for the root). Let `w = 2⁻⁵³`, `‖a‖ ≤ B`, `‖v‖ ≤ R`, `M = B + G/D_i`, the pull along v at
most `G/D_i`, and k ≤ size.

*A step.* `a·v` errs by `(k + 2)w·‖a‖·‖v‖` and `v·v` by k·w of itself, and a scalar prox passes the first on as it is;
so the move errs by at most `(3k + 8)w·M`. Scale, moved entries, and multiplying the scale into z err by 8w of ‖x‖
together. A projection on the ball inherits half of the error of `‖z‖²`, `(size + 8)w`, and 3w. And whether the
constraint is active is judged by a square that, where `‖x‖ ≥ B`, errs by at most `(2·size + 4k + 33)w·M·‖x‖`: a step
judged wrongly ends outside by half of that over ‖x‖, and the prox of a function of smoothness m lies within `sqrt(m)`
times as much. In sum `(5k + 2·size + 44)w·M ≤ 16·(size + 8)w·M`, and `(size + 2k + 17)w·R·M·sqrt(curvature/D_i)`, the
root's share.

*The root.* In the plane `rest²` errs by at most `(2·size + 2k + 25)w·B²` and the first coordinate of a point p by
`(k + 4)w·M`; so where `‖p‖ ≥ B`, `v·Proj(p)` errs by at most `(size + k + 13 + k + 4)w·R·M` for the length and by
`(k + 3)w·R·M` for the product: no more than `4·(size + 8)w·R·M`, which is what IGD charges. In a box sums have k
terms where dense ones have `size`.

So how a stream is cut, which says when scales are multiplied in and sums taken anew, moves no release by more than
certificates allow for; and releases end a block, so that cuts at them change no bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from taciturn._util.jit import compiled
from taciturn.compiled._dot import dot, dots_at
from taciturn.compiled.codes import BALL, BOX, FADING, GRADIENT, IMPLICIT, PRINTED, Code
from taciturn.compiled.igd import root_of_excess
from taciturn.compiled.lattice import add_noise
from taciturn.compiled.losses import prox, slope
from taciturn.compiled.sets import project, project_row

Length = tuple[float, float, float]
"""The scale, and in a ball `‖z‖²` and the bound on its error."""

_SMALLEST = 2.0**-256  # scale: no radius over it has a square beyond floating point


@compiled
def iterates(
    how: Code,
    loss: Code,
    domain: Code,
    steepest: float,
    x: Any,
    t: int,
    starts: Any,
    columns: Any,
    entries: Any,
    y: Any,
    rounds: Any,
) -> Any:
    """The iterates after these rounds; changes `x`, the iterate after t examples, to that after all of them."""
    rows, start, work = np.empty((len(rounds), len(x))), 0, np.empty((2, len(x) + 2))
    for k in range(len(rounds)):
        end = rounds[k] - t
        _walk(how, loss, domain, steepest, x, t, starts, columns, entries, y, start, end, work)
        rows[k], start = x, end
    _walk(how, loss, domain, steepest, x, t, starts, columns, entries, y, start, len(y), work)
    return rows


@compiled
def releases(
    how: Code,
    loss: Code,
    domain: Code,
    steepest: float,
    x: Any,
    t: int,
    starts: Any,
    columns: Any,
    entries: Any,
    y: Any,
    rounds: Any,
    steps: Any,
    magnitude: float,
    noise: Any,
    noisy: Any,
    points: Any,
) -> int:
    """Writes noisy iterates on their lattice and their projections onto the set; returns how many."""
    start, work = 0, np.empty((2, len(x) + 2))
    for k in range(len(rounds)):
        end = rounds[k] - t
        _walk(how, loss, domain, steepest, x, t, starts, columns, entries, y, start, end, work)
        squared = add_noise(x, steps[k], magnitude, noise, noisy, k)
        project_row(domain[0], domain[1], domain[2], noisy, k, steps[k], squared, points)
        start = end
    _walk(how, loss, domain, steepest, x, t, starts, columns, entries, y, start, len(y), work)
    return len(rounds)


@compiled
def _walk(
    how: Code,
    loss: Code,
    domain: Code,
    steepest: float,
    x: Any,
    t: int,
    starts: Any,
    columns: Any,
    entries: Any,
    y: Any,
    start: int,
    end: int,
    work: Any,
) -> None:
    """The steps on examples `start` to `end`; changes `x`, which is z on the way."""
    if start == end:
        return
    length = _measured(domain, x)
    for i in range(start, end):
        here, v = columns[starts[i] : starts[i + 1]], entries[starts[i] : starts[i + 1]]
        length = _step(how, loss, domain, steepest, x, length, t + i + 1, here, v, y[i], work)
    _multiply(domain, x, length[0])


@compiled
def _step(
    how: Code,
    loss: Code,
    domain: Code,
    steepest: float,
    z: Any,
    length: Length,
    i: int,
    columns: Any,
    v: Any,
    y: float,
    work: Any,
) -> Length:
    """The step on example i, counted from 1; changes `z`."""
    kind, strength, delay = how
    if kind == IMPLICIT:
        eta = 1.0 / (strength * i)
        shrink = 1.0 / (1.0 + eta * strength)
        return _prox_in_set(loss, domain, steepest, z, length, shrink, columns, v, y, eta * shrink, work)
    if kind == FADING:
        total, weight = 4.0 / 3.0 * strength * i**0.75, strength * i**-0.25
        shrink, pull = total / (total + weight), 1.0 / (total + weight)
        return _prox_in_set(loss, domain, steepest, z, length, shrink, columns, v, y, pull, work)
    if kind == GRADIENT or i >= delay:
        eta = 1.0 / (strength * (i / 2.0 if kind == PRINTED else i + delay))
        steep = slope(loss[0], loss[1], loss[2], length[0] * dots_at(columns, v, z, 0)[1], y)
        return _moved(domain, z, _shrunk(domain, z, length, max(1.0 - eta * strength, 0.0)), -eta * steep, columns, v)
    return length


@compiled
def _prox_in_set(
    loss: Code,
    domain: Code,
    steepest: float,
    z: Any,
    length: Length,
    shrink: float,
    columns: Any,
    v: Any,
    y: float,
    pull: float,
    work: Any,
) -> Length:
    """`argmin_{w in C} ½‖w - shrink·x‖² + pull·loss(w)`, in place of x."""
    length = _shrunk(domain, z, length, shrink)
    norm, along = dots_at(columns, v, z, 0)
    if not norm > 0.0:
        return length
    start = length[0] * along
    move = (prox(loss[0], loss[1], loss[2], start, y, pull * norm) - start) / norm
    if domain[0] == BALL:
        longest, first = math.sqrt(norm), start / math.sqrt(norm)
        rest = max(length[0] * length[0] * length[1] - first * first, 0.0)
        if not (first + move * longest) ** 2 + rest <= domain[2] * domain[2]:
            work[0, 0], work[0, 1], work[1, 0], work[1, 1] = first, math.sqrt(rest), longest, 0.0
            move = -pull * root_of_excess(loss, domain, work[0, :2], work, 1, y, pull, -steepest, steepest)
    elif domain[0] == BOX and not _in_box(domain, z, length[0], move, columns, v):
        for p in range(len(columns)):
            work[0, p], work[1, p] = length[0] * z[columns[p]], v[p]
        move = -pull * root_of_excess(loss, domain, work[0, : len(columns)], work, 1, y, pull, -steepest, steepest)
    return _moved(domain, z, length, move, columns, v)


@compiled
def _in_box(domain: Code, z: Any, scale: float, move: float, columns: Any, v: Any) -> bool:
    """Whether a move along v ends in the box."""
    for p in range(len(columns)):
        if not domain[1] <= scale * z[columns[p]] + move * v[p] <= domain[2]:
            return False
    return True


@compiled
def _shrunk(domain: Code, z: Any, length: Length, shrink: float) -> Length:
    """The length after multiplying the iterate by `shrink`."""
    scale = length[0] * shrink
    if scale > _SMALLEST:
        return scale, length[1], length[2]
    _multiply(domain, z, scale)
    return _measured(domain, z)


@compiled
def _moved(domain: Code, z: Any, length: Length, move: float, columns: Any, v: Any) -> Length:
    """The length after moving the iterate by `move·v`, and on to the nearest point of the set."""
    scale, squared, error = length
    pace, change, volume = move / scale, 0.0, 0.0
    for p in range(len(columns)):
        old = z[columns[p]]
        new = old + pace * v[p]
        if domain[0] == BOX:
            new = min(max(new, domain[1] / scale), domain[2] / scale)
        z[columns[p]] = new
        grown = (new - old) * (new + old)
        change += grown
        volume += abs(grown)
    if domain[0] != BALL:
        return length
    squared += change
    return _in_ball(domain, z, scale, squared, error + abs(squared) + (len(columns) + 4.0) * volume)


@compiled
def _in_ball(domain: Code, z: Any, scale: float, squared: float, error: float) -> Length:
    """The length after projecting, and one that is sharp enough for the next step."""
    if not squared < math.inf:  # the square of the norm has overflowed
        _multiply(domain, z, scale)
        project(domain[0], domain[1], domain[2], z)
        return _measured(domain, z)
    border = (domain[2] / scale) ** 2
    if error > 2.0 * (len(z) + 8.0) * max(squared, border):
        _, squared, error = _measured(domain, z)
    if squared > border:
        scale = domain[2] / math.sqrt(squared)
    return scale, squared, error


@compiled
def _measured(domain: Code, z: Any) -> Length:
    """Scale 1, and in a ball the sum of squares, taken anew."""
    squared = dot(z, z) if domain[0] == BALL else 0.0
    return 1.0, squared, (len(z) + 2.0) * squared


@compiled
def _multiply(domain: Code, z: Any, scale: float) -> None:
    """Multiplies the scale into z, whose entries then are the iterate's."""
    for j in range(len(z)):
        z[j] *= scale
    if domain[0] == BOX:
        project(domain[0], domain[1], domain[2], z)
