"""Feature hashing: a bucket and a sign for any text, the same in every process."""

from __future__ import annotations

from functools import lru_cache
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


class BucketCache(dict[str, tuple[int, float]]):
    """`signed_bucket` of texts, of which up to 65,536 are remembered.

    >>> bucket_cache(16)["city=Rome"]
    (11, 1.0)
    """

    def __init__(self, buckets: int) -> None:
        self.buckets = buckets

    def __missing__(self, text: str) -> tuple[int, float]:
        if len(self) >= 2**16:
            self.clear()
        self[text] = signed_bucket(text, self.buckets)
        return self[text]


@lru_cache(maxsize=16)  # texts may be those of examples: cached here, so that copies of a model lack them
def bucket_cache(buckets: int) -> BucketCache:
    """The cache for so many buckets."""
    return BucketCache(buckets)
