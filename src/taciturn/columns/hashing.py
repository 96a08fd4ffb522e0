"""Feature hashing: a bucket and a sign for any text, the same in every process."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np

from taciturn._util.arrays import Array, Integers


def signed_bucket(text: str, buckets: int) -> tuple[int, float]:
    """A bucket and a sign: the remainder and the lowest bit of 64 bits of BLAKE2b.

    Texts that share a bucket are added up, half of them with a minus, so that collisions cancel on average (Weinberger
    et al., *Feature hashing for large scale multitask learning*, 2009, Section 2).

    >>> signed_bucket("city=Rome", 16)
    (11, 1.0)
    """
    number = int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
    return (number >> 1) % buckets, 1.0 if number & 1 else -1.0


def signed_buckets(texts: Iterable[str], buckets: int) -> tuple[Integers, Array]:
    """`signed_bucket` of each text: an array of buckets, and one of signs.

    >>> signed_buckets(["city=Rome", "city=Oslo"], 16)
    (array([11, 10]), array([1., 1.]))
    """
    placed = [signed_bucket(text, buckets) for text in texts]
    return np.array([bucket for bucket, _ in placed], dtype=np.int64), np.array([sign for _, sign in placed])
