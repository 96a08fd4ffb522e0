"""Sums of `x xᵀ` and `r x` for each arm. Slow twin: `taciturn.kernel.learners.linear_bandit.LinearBandit`."""

from __future__ import annotations

from typing import Any

from taciturn.kernel.jit import compiled


@compiled
def sums(total: Any, V: Any, rewards: Any, arms: Any, t: int, rounds: Any, rows: Any) -> None:
    """Writes what came up to and between these rounds to `rows`, and leaves what came after the last in `total`.

    Contexts and rewards are integers below 2¹⁸, as floats: their products are exact, and so are sums of integers.
    """
    n, d = V.shape
    size, done = d * (d + 1) // 2 + d, 0
    for i in range(n):
        v, place = V[i], arms[i] * size
        for a in range(d):
            scale = v[a]
            for b in range(a, d):
                total[place + b - a] += int(scale * v[b])
            place += d - a
        for b in range(d):
            total[place + b] += int(rewards[i] * v[b])
        if done < len(rounds) and rounds[done] == t + i + 1:
            rows[done] = total
            total[:] = 0
            done += 1
