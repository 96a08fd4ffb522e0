"""Private FTRL through a prefix-sum strategy: gradients at released points, so release after release.

Slow twins: `taciturn.kernel.learners.ftrl.FTRL` and `taciturn.kernel.mechanisms.blt.BLTCoder`.

Examples V are dense rows, or none of them and starts, columns and entries of compressed ones: four arrays, one type.
Between releases a compressed example then costs what its entries cost.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from taciturn.kernel.dot import along, dots_at
from taciturn.kernel.jit import compiled, inlined
from taciturn.kernel.lanes import LANES, add_up, between, put, rint, take, zeros
from taciturn.kernel.mechanisms.blt_loops import remembered
from taciturn.kernel.mechanisms.lattice_loops import noisy_steps
from taciturn.kernel.problem.clipping_loops import clip_one
from taciturn.kernel.problem.codes import MULTI_HINGE, ONE_HOT, SOFTMAX, Code, Leader
from taciturn.kernel.problem.losses_loops import slope
from taciturn.kernel.problem.multiclass_loops import multi_hinge, softmax, target
from taciturn.kernel.problem.sets_loops import nearest, project

_CLIPS_ABOVE = 1.0 + 2.0**-40  # which certificates charge: slopes that rounding alone makes longer stay as they are


@compiled
def through_blt(
    learner: Leader,
    point: Any,
    total: Any,
    t: int,
    V: Any,
    y: Any,
    rounds: Any,
    strides: Any,
    noisy: Any,
    points: Any,
    noise: Any,
    steps: Any,
    largest: Any,
    encoder: Any,
    decoder: Any,
    running: Any,
    decay: float,
) -> int:
    """Writes noisy sums and points of these rounds.

    `strides` are what noisy sums are divided by, `encoder` and `decoder` decays, weights and buffers, and `decay` is
    that of sums, which is 1 for prefix sums. Changed are `point`, `total` (gradients since the last release), the
    buffers and `running` (the decoder's sum).
    """
    loss, domain, steepest, most, lattice, curvature = learner
    done, since, scores = 0, 0, np.empty(len(point) // V[0].shape[1])
    for i in range(len(y)):
        add_gradient(loss, steepest, most, lattice, point, V, i, y[i], scores, total)
        if done < len(rounds) and rounds[done] == t + i + 1:
            add_curvature(curvature, most, lattice, point, i + 1 - since, total)
            since = i + 1
            lattice_of_row = largest[done], 1.0 / steps[done], steps[done]
            sums = encoder, decoder, running, decay
            squared = _noisy_sum(lattice_of_row, total, noise, noisy, done, sums, -1.0 / strides[done], point)
            project_point(domain, squared, point, done, points)
            done += 1
    return done


@inlined
def _noisy_sum(
    lattice_of_row: tuple[float, float, float],
    total: Any,
    noise: Any,
    noisy: Any,
    k: int,
    sums: Any,
    scale: float,
    point: Any,
) -> float:
    """Writes the noisy sum of row k, and `scale` times that into `point`: the square of its length.

    `lattice_of_row` is its largest entry, steps a unit, and units a step. One loop does everything to a coordinate;
    `total` is 0 afterwards.
    """
    most, to_steps, from_steps = lattice_of_row
    encoder, decoder, running, decay = sums
    size, squared = len(total), zeros()
    for j in range(0, size, LANES):
        left = size - j
        row = between(take(total, j, left), -most, most)
        put(total, j, left, zeros())
        encoded = row + remembered(encoder, row, j)
        noisy_row = noisy_steps(encoded, to_steps, noise, k * size + j, left) * from_steps
        added = take(running, j, left) * decay + noisy_row + remembered(decoder, noisy_row, j)
        put(running, j, left, added)
        put(noisy, k * size + j, left, added)
        led = added * scale
        put(point, j, left, led)
        squared = squared + led * led
    return add_up(squared)


@compiled
def gradients(learner: Leader, point: Any, total: Any, V: Any, y: Any) -> None:
    """Adds the contributions at one point to `total`."""
    loss, _, steepest, most, lattice, curvature = learner
    scores = np.empty(len(point) // V[0].shape[1])
    for i in range(len(y)):
        add_gradient(loss, steepest, most, lattice, point, V, i, y[i], scores, total)
    add_curvature(curvature, most, lattice, point, len(y), total)


@inlined
def _leader(numbers: Any) -> Leader:
    """The leader: ten numbers after the six of `clip_one`."""
    loss = int(numbers[6]), numbers[7], numbers[8]
    domain = int(numbers[9]), numbers[10], numbers[11]
    return loss, domain, numbers[12], numbers[13], numbers[14], numbers[15]


@inlined
def _one_dense(V: Any) -> Any:
    """Dense rows as the other functions take them."""
    return V, np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0)


@compiled
def clip_and_add(numbers: Any, point: Any, total: Any, X: Any, y: Any) -> bool:
    """`clip` and `gradients` for one example, without a release; changes `total`. False for a row that is rejected."""
    V = np.empty((1, int(numbers[16])))
    labels, rejected = clip_one(numbers, X, y, V)
    if rejected:
        return False
    gradients(_leader(numbers), point, total, _one_dense(V), labels)
    return True


@compiled
def clip_and_release(
    numbers: Any,
    point: Any,
    total: Any,
    X: Any,
    y: Any,
    rounds: Any,
    stride: float,
    noisy: Any,
    points: Any,
    noise: Any,
    step: float,
    largest: float,
    strategy: Any,
    encoder: Any,
    decoder: Any,
    running: Any,
) -> bool:
    """`clip` and `through_blt` for one example and the release after it. False for a row that is rejected.

    `strategy` has decays and weights as rows, in the order of `BLTCoder.arrays`; `encoder` and `decoder` are buffers.
    """
    V = np.empty((1, int(numbers[16])))
    labels, rejected = clip_one(numbers, X, y, V)
    if rejected:
        return False
    sides = (strategy[0], strategy[2], encoder), (strategy[1], strategy[3], decoder)
    places = rounds, _alone(stride), noisy, points, noise, _alone(step), _alone(largest), *sides, running
    t = rounds[0] - 1
    return through_blt(_leader(numbers), point, total, t, _one_dense(V), labels, *places, 1.0) == len(rounds)


@inlined
def _alone(number: float) -> Any:
    """An array of one number."""
    made = np.empty(1)
    made[0] = number
    return made


@inlined
def project_point(domain: Code, squared: float, point: Any, k: int, points: Any) -> None:
    """Projects a point onto the set, given the square of its length, and writes it into row k."""
    if not squared < math.inf:
        project(domain[0], domain[1], domain[2], point)
        squared = 0.0
    size = len(point)
    scale, least, most = nearest(domain[0], domain[1], domain[2], 1.0, squared)
    for j in range(0, size, LANES):
        lanes = between(take(point, j, size - j) * scale, least, most)
        put(point, j, size - j, lanes)
        put(points, k * size + j, size - j, lanes)


@inlined
def add_gradient(
    loss: Code,
    steepest: float,
    most: float,
    lattice: float,
    point: Any,
    V: Any,
    i: int,
    y: float,
    scores: Any,
    total: Any,
) -> None:
    """Adds row i's gradient, its entries on their lattice, to `total`; entries that are 0 add nothing."""
    dense, starts, columns, entries = V
    d, per_lattice = dense.shape[1], 1.0 / lattice
    if len(starts) > 0:
        here, v = columns[starts[i] : starts[i + 1]], entries[starts[i] : starts[i + 1]]
        for row in range(len(scores)):
            scores[row] = dots_at(here, v, point, row * d)[1]
        _slopes(loss, steepest, y, scores)
        for row in range(len(scores)):
            steep, first = scores[row], np.uint64(row * d)
            for p in range(len(here)):
                entry = min(max(steep * v[p], -most), most)
                total[first + np.uint64(here[p])] += np.rint(entry * per_lattice) * lattice
    else:
        for row in range(len(scores)):
            scores[row] = along(dense, i, point, row * d)
        _slopes(loss, steepest, y, scores)
        for row in range(len(scores)):
            steep = scores[row]
            for j in range(0, d, LANES):
                multiples = rint(between(take(dense, i * d + j, d - j) * steep, -most, most) * per_lattice)
                put(total, row * d + j, d - j, take(total, row * d + j, d - j) + multiples * lattice)


@inlined
def add_curvature(curvature: float, most: float, lattice: float, point: Any, count: int, total: Any) -> None:
    """Adds the public part of `count` contributions: `-curvature·point` on the lattice, no product is rounded."""
    if curvature > 0.0:
        for j in range(len(point)):
            entry = min(max(curvature * point[j], -most), most)
            total[j] -= count * (np.rint(entry / lattice) * lattice)


@compiled
def _slopes(loss: Code, steepest: float, y: float, scores: Any) -> None:
    """The slope in each score, in place of the scores."""
    if loss[0] == SOFTMAX:
        softmax(scores)
    if loss[0] == SOFTMAX or loss[0] == ONE_HOT:
        for k in range(len(scores)):
            scores[k] -= target(loss[0], k, y, len(scores))
    elif loss[0] == MULTI_HINGE:
        multi_hinge(scores, y)
    if len(scores) > 1:
        squared = 0.0
        for k in range(len(scores)):
            squared += scores[k] * scores[k]
        if squared > (steepest * _CLIPS_ABOVE) ** 2:
            scores *= steepest / math.sqrt(squared)
    else:
        scores[0] = min(max(slope(loss[0], loss[1], loss[2], scores[0], y), -steepest), steepest)
