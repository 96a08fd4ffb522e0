"""Random Fourier features: a public map after which a linear model is a smooth function of the raw features.

For a row z and M/2 random directions w, whose entries have the standard deviation `scale`, the image is

    ( R·sqrt(1 - a)·sqrt(2/M)·(cos w₁·z, …, cos w_{M/2}·z, sin w₁·z, …, sin w_{M/2}·z),  sqrt(a)·clip(z) ),  a = 1/10,

where R is its `length`, to which z is clipped in the last part. The inner product of the first parts of two images is,
up to an error of order `sqrt(2/M)`, a Gaussian kernel of the distance of the rows, `R²·(1 - a)·exp(-‖scale·(z -
z')‖²/2)` (Rahimi and Recht, *Random Features for Large-Scale Kernel Machines*, 2007). Pairs of cosine and sine have a
smaller error than as many cosines with random phases (Sutherland and Schneider, *On the Error of Random Fourier
Features*, 2015), need half the products, and have a known norm. The raw features keep what is linear.

*Norm.* cos² + sin² = 1, so the first part has norm `R·sqrt(1 - a)` and the image at most R. That is up to rounding, so
certificates do not rest on it: `Problem` clips the image to its `feature_bound` after the map.

*Privacy.* An image is a function of its row and of public numbers, and nothing else is needed: the clipped image is
within the bound in both of two neighbouring streams, and all other rows have the same images in both, to the bit. The
product with the directions comes from BLAS, which rounds by the shape of a product; so all products have one shape
(`taciturn.kernel.problem.features.products`), and a row has one image, however a stream is cut. Of rows whose features
are about 10¹⁵ the last bit decides what the angle is. By another processor images may differ in their last bits.

*Randomness.* The directions come from a hash of a public seed (SHAKE-256, by the inverse of the normal distribution):
the same in every process, on every machine, in every version of NumPy. They are public and protect no data: they are
part of the published model.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import ndtri

from taciturn.errors import InvalidInput, integer, not_negative, positive
from taciturn.kernel.arrays import Array
from taciturn.kernel.problem.clipping import clip_rows
from taciturn.kernel.problem.features import FeatureMap, products

_LINEAR = 0.1  # share of the raw features in the squared norm of an image


@dataclass(frozen=True)
class RandomFeatures(FeatureMap):
    """Random Fourier features of the rows, and the rows themselves, in images of norm at most `length`.

    Parameters
    ----------
    count : int
        Number of random features, even; the raw ones come on top.
    scale : float or tuple of floats
        How fast a model may vary with a feature: the standard deviation of the change of an angle, in radians, as the
        feature grows by 1. One number for all features, or one for each; a feature of scale 0 stays linear.
    length : float
        Largest norm of an image; the problem's `feature_bound`.
    seed : int
        Of the directions; public.

    Examples
    --------
    >>> features = RandomFeatures(count=4, scale=2.0)
    >>> features.width(3)
    7
    >>> image = features(np.array([[0.6, 0.0, 0.0], [3.0, 0.0, 4.0]]))
    >>> np.linalg.norm(image, axis=1).round(3)
    array([0.967, 1.   ])
    """

    count: int
    scale: float | tuple[float, ...]
    length: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", integer("count", self.count, least=2))
        if self.count % 2:
            raise InvalidInput(f"random features are pairs of cosine and sine, got {self.count}. Take an even number.")
        if isinstance(self.scale, tuple):
            object.__setattr__(
                self, "scale", tuple(not_negative("a scale", scale, of_many=True) for scale in self.scale)
            )
        else:
            object.__setattr__(self, "scale", positive("scale", self.scale))
        object.__setattr__(self, "length", positive("length", self.length))
        object.__setattr__(self, "seed", integer("seed", self.seed, least=0))

    def __str__(self) -> str:
        scales = self.scale if isinstance(self.scale, tuple) else (self.scale,)
        least, most = f"{min(scales):.3g}", f"{max(scales):.3g}"
        scale = f"scale {least}" if least == most else f"scales {least} to {most}"
        return f"{self.count:,} random features of {scale} and seed {self.seed}, and the raw ones"

    def width(self, dimension: int) -> int:
        if isinstance(self.scale, tuple) and len(self.scale) != dimension:
            raise InvalidInput(f"scale has {len(self.scale)} numbers for {dimension} features. State one for each.")
        return self.count + dimension

    def __call__(self, X: Array) -> Array:
        from taciturn.tables import waves_loops as compiled

        return self._image(X, compiled.waves)

    def by_definition(self, X: Array) -> Array:
        """The images by NumPy's cosine and sine: the slow twin of the map."""
        return self._image(X, waves)

    def _image(self, X: Array, waves: Any) -> Array:
        out = np.empty((len(X), self.width(X.shape[1])))
        waves(
            products(X, _frequencies(self, X.shape[1])),
            self.length * math.sqrt(2.0 * (1.0 - _LINEAR) / self.count),
            out,
        )
        np.multiply(clip_rows(X, self.length), math.sqrt(_LINEAR), out=out[:, self.count :])
        return out

    def names(self, names: Sequence[str]) -> list[str]:
        waves = [f"{wave} {j}" for wave in ("cos", "sin") for j in range(1, self.count // 2 + 1)]
        return [*waves, *names]


def waves(turns: Array, length: float, out: Array) -> None:
    """Writes `length` times the cosines of angles, in turns, and then their sines, into the first columns of `out`.

    Fast twin: `taciturn.tables.waves_loops.waves`.
    """
    h = turns.shape[1]
    angles = 2.0 * math.pi * (turns - np.rint(turns))
    out[:, :h] = length * np.cos(angles)
    out[:, h : 2 * h] = length * np.sin(angles)


@lru_cache(maxsize=4)
def _frequencies(features: RandomFeatures, dimension: int) -> Array:
    """The directions w, in turns."""
    numbers = directions(features.count // 2, dimension, features.seed)
    scales = np.broadcast_to(np.asarray(features.scale) / (2.0 * math.pi), dimension)
    return np.asarray(scales[:, None] * numbers)


def directions(count: int, dimension: int, seed: int) -> Array:
    """Standard normal numbers of shape (dimension, count) from a hash of these three.

    They are rounded to multiples of 2^-20, so that machines whose logarithms differ in the last bit agree.

    >>> directions(2, 1, seed=0).round(3)
    array([[ 1.327, -2.498]])
    """
    content = f"taciturn random features: {count} directions, {dimension} features, seed {seed}".encode()
    bits = np.frombuffer(hashlib.shake_256(content).digest(8 * count * dimension), dtype="<u8")
    uniform = ((bits >> np.uint64(12)) + 0.5) * 2.0**-52
    numbers = np.rint(ndtri(uniform) * 2.0**20) * 2.0**-20
    return numbers.reshape(dimension, count)
