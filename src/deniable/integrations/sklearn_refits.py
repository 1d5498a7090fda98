"""Estimators as algorithms for a release: data in, parameters as one vector out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray
from deniable.integrations.sklearn_parameters import Arrays, Codec
from deniable.noise import ReleaseError


@dataclass(frozen=True)
class Refitted:
    """An estimator as an algorithm on ``data``, and how its flat value splits into the estimator's arrays."""

    algorithm: Callable[[Any], FloatArray]
    data: Any
    split: Callable[[FloatArray], Arrays]


def by_refitting(estimator: Any, codec: Codec, X: FloatArray, y: Any, classes: NDArray[Any] | None) -> Refitted:
    """Return the estimator as an algorithm that fits a clone to each part of the data."""
    layout = _Layout.of(codec.learn(estimator, X, y))
    data = (X,) if y is None else (X, y)
    return Refitted(_Refit(estimator, codec, classes, layout), data, layout.split)


@dataclass(frozen=True)
class _Layout:
    """Where each named array lies in the flat vector."""

    shapes: tuple[tuple[str, tuple[int, ...]], ...]

    @classmethod
    def of(cls, arrays: Arrays) -> _Layout:
        return cls(tuple((name, value.shape) for name, value in arrays.items()))

    @property
    def size(self) -> int:
        return sum(int(np.prod(shape)) for _, shape in self.shapes)

    def join(self, arrays: Arrays) -> FloatArray:
        if _Layout.of(arrays) != self:
            raise ReleaseError("the estimator's parameters have different shapes on different training parts")
        return np.concatenate([value.ravel() for value in arrays.values()])

    def split(self, flat: FloatArray) -> Arrays:
        ends = np.cumsum([int(np.prod(shape)) for _, shape in self.shapes])
        parts = np.split(flat, ends[:-1])
        return {name: part.reshape(shape) for (name, shape), part in zip(self.shapes, parts, strict=True)}


@dataclass(frozen=True, eq=False)
class _Refit:
    """The algorithm handed to :func:`release`: a part of the data in, the parameters of a fit as one vector out.

    A part that lacks a class gives zeros instead of an error: whether there is an output must not tell who trained.
    """

    estimator: Any
    codec: Codec
    classes: NDArray[Any] | None
    layout: _Layout

    def __call__(self, part: tuple[Any, ...]) -> FloatArray:
        if self.classes is not None and len(np.unique(part[1])) < len(self.classes):
            return np.zeros(self.layout.size)
        return self.layout.join(self.codec.learn(self.estimator, part[0], part[1] if len(part) > 1 else None))
