"""Which rows of a user count, compiled.

Slow twins: `_decide` and `lookup` of `taciturn.kernel.stream.participation`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from taciturn.kernel.jit import compiled


@compiled
def decide(
    found: Any, firsts: Any, ends: Any, blocks: Any, periods: Any, most: int, per_release: int, apart: int
) -> Any:
    """Which rows count, user by user, and their records updated in place."""
    counted = np.zeros(len(blocks), dtype=np.bool_)
    for user in range(len(firsts)):
        period, count, last, here = found[user, 0], found[user, 1], found[user, 2], found[user, 3]
        for row in range(firsts[user], ends[user]):
            block = blocks[row]
            if periods[row] > period:
                period, count = periods[row], 0
            fits = here < per_release if block == last else last == 0 or block - last >= apart
            if count < most and fits:
                count += 1
                here = here + 1 if block == last else 1
                last = block
                counted[row] = True
        found[user, 0], found[user, 1], found[user, 2], found[user, 3] = period, count, last, here
    return counted


@compiled
def lookup(hashes: Any, records: Any, users: Any, found: Any) -> None:
    """Copies the records of these users, of those that a layer has; both are sorted, so each search begins at the last.

    Hashes are spread evenly, so the next user is about as many places further as the ratio of the two lengths; the
    steps double until they pass it, and are halved again.
    """
    n = len(hashes)
    if n == 0:
        return
    low = 0
    for user in range(len(users)):
        high_part, low_part = users[user, 0], users[user, 1]
        step = 1
        top = low
        while top < n and (hashes[top, 0] < high_part or (hashes[top, 0] == high_part and hashes[top, 1] < low_part)):
            low = top + 1
            top += step
            step *= 2
        top = min(top, n)
        while low < top:
            middle = (low + top) // 2
            if hashes[middle, 0] < high_part or (hashes[middle, 0] == high_part and hashes[middle, 1] < low_part):
                low = middle + 1
            else:
                top = middle
        if low < n and hashes[low, 0] == high_part and hashes[low, 1] == low_part:
            for column in range(4):
                found[user, column] = records[low, column]


@compiled
def merge(old: Any, old_records: Any, new: Any, new_records: Any) -> Any:
    """Two layers in one; where both have a user, the newer record."""
    room = len(old) + len(new)
    hashes, records = np.empty((room, 2), dtype=np.uint64), np.empty((room, 4), dtype=np.int64)
    i = j = end = 0
    while i < len(old) or j < len(new):
        from_new = j < len(new)
        if from_new and i < len(old):
            if old[i, 0] == new[j, 0] and old[i, 1] == new[j, 1]:
                i += 1
            elif old[i, 0] < new[j, 0] or (old[i, 0] == new[j, 0] and old[i, 1] < new[j, 1]):
                from_new = False
        if from_new:
            hashes[end], records[end] = new[j], new_records[j]
            j += 1
        else:
            hashes[end], records[end] = old[i], old_records[i]
            i += 1
        end += 1
    return hashes[:end].copy(), records[:end].copy()
