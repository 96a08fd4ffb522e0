"""Where a text goes among so many buckets, by a hash that is the same everywhere and always."""

from __future__ import annotations

from hashlib import blake2b


def signed_bucket(text: str, buckets: int) -> tuple[int, float]:
    """A bucket and a sign: the remainder and the lowest bit of 64 bits of BLAKE2b.

    Texts that share a bucket are added up, half of them with a minus, so that collisions cancel on average (Weinberger
    et al., *Feature hashing for large scale multitask learning*, 2009, Section 2).

    >>> signed_bucket("city=Rome", 16)
    (11, 1.0)
    """
    number = int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
    return (number >> 1) % buckets, 1.0 if number & 1 else -1.0
