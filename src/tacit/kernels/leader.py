"""Private follow-the-regularised-leader through a strategy: gradients at released points, so release after release.

Slow twins: `tacit.learners.ftrl.FTRL` and `tacit.mechanisms.blt.BLTCoder` or `tacit.mechanisms.tree.TreeCoder`.

Examples V are dense rows, or none of them and starts, columns and entries of compressed ones: four arrays, one type.
Between releases a compressed example then costs what its entries cost.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.kernels import blt, tree
from tacit.kernels.codes import MULTI_HINGE, ONE_HOT, SOFTMAX, Code, Leader
from tacit.kernels.compiling import compiled, inlined
from tacit.kernels.dots import along, dots_at
from tacit.kernels.losses import slope
from tacit.kernels.scores import multi_hinge, softmax, target
from tacit.kernels.sets import project


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
    inner: float,
    past: Any,
    epoch: Any,
) -> int:
    """Writes noisy sums and points of these rounds.

    `strides` are what noisy sums are divided by, `encoder` and `decoder` decays, weights and buffers. Encoded rows are
    multiplied by `inner`, and `past` is added to sums, for a strategy that is part of another; else it is empty.
    Changed are `point`, `total` (gradients since the last release), the buffers, `running` (the decoder's sum) and
    `epoch` (all rows, if it is not empty).
    """
    loss, domain, steepest, most, lattice = learner
    count, size, done = len(rounds), len(point), 0
    row, scores = np.empty(size), np.empty(size // V[0].shape[1])
    for i in range(len(y)):
        add_gradient(loss, steepest, most, lattice, point, V, i, y[i], scores, total)
        if done < count and rounds[done] == t + i + 1:
            most_of_row, to_steps, from_steps = largest[done], inner / steps[done], steps[done] / inner
            for j in range(size):
                total[j] = min(max(total[j], -most_of_row), most_of_row)
                row[j] = total[j]
            for j in range(len(epoch)):
                epoch[j] += total[j]
            blt.move(total, encoder[0], encoder[1], encoder[2], row)
            for j in range(size):
                row[j] = (math.floor(row[j] * to_steps + 0.5) + noise[done, j]) * from_steps
                running[j] += row[j]
                total[j] = 0.0
            blt.move(row, decoder[0], decoder[1], decoder[2], running)
            for j in range(size):
                noisy[done, j] = running[j]
            for j in range(len(past)):
                noisy[done, j] = past[j] + running[j]
            decide(domain, noisy, done, strides[done], point, points)
            done += 1
    return done


@compiled
def through_tree(
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
    k: int,
    waiting: Any,
    nodes: Any,
    weights: Any,
) -> int:
    """The same through a tree, from release k on; changes `waiting` and `nodes` instead of buffers."""
    loss, domain, steepest, most, lattice = learner
    count, size, done, place = len(rounds), len(point), 0, 0
    row, scores = np.empty((1, size), dtype=np.int64), np.empty(size // V[0].shape[1])
    for i in range(len(y)):
        add_gradient(loss, steepest, most, lattice, point, V, i, y[i], scores, total)
        if done < count and rounds[done] == t + i + 1:
            step = steps[done]
            for j in range(size):
                row[0, j] = np.int64(math.floor(min(max(total[j], -largest[done]), largest[done]) / step + 0.5))
                total[j] = 0.0
            encoded = tree.encode(row, k + done, waiting)
            for h in range(len(encoded)):
                for j in range(size):
                    encoded[h, j] += noise[place + h, j]
            place += len(encoded)
            noisy[done] = tree.decode(encoded * step, k + done, 1, nodes, weights)[0]
            decide(domain, noisy, done, strides[done], point, points)
            done += 1
    return done


@compiled
def gradients(learner: Leader, point: Any, total: Any, V: Any, y: Any) -> None:
    """Adds the gradients at one point to `total`."""
    loss, _, steepest, most, lattice = learner
    scores = np.empty(len(point) // V[0].shape[1])
    for i in range(len(y)):
        add_gradient(loss, steepest, most, lattice, point, V, i, y[i], scores, total)


@inlined
def decide(domain: Code, noisy: Any, k: int, stride: float, point: Any, points: Any) -> None:
    """The point of row k, in place of the last one, and into row k."""
    scale = -1.0 / stride
    for j in range(len(point)):
        point[j] = noisy[k, j] * scale
    project(domain[0], domain[1], domain[2], point)
    for j in range(len(point)):
        points[k, j] = point[j]


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
            steep, first = scores[row], np.uint64(row * d)
            for j in range(d):
                entry = min(max(steep * dense[i, j], -most), most)
                total[first + np.uint64(j)] += np.rint(entry * per_lattice) * lattice


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
    else:
        scores[0] = min(max(slope(loss[0], loss[1], loss[2], scores[0], y), -steepest), steepest)
