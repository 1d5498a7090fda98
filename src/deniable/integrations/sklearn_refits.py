"""Estimators as algorithms for a release: data in, parameters as one vector out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray
from deniable.integrations.sklearn_parameters import Arrays, Codec
from deniable.noise import ReleaseError


@dataclass(frozen=True, eq=False)
class Refit:
    """The algorithm handed to :func:`release`: a part of the data in, the parameters of a fit as one vector out.

    A part that lacks a class gives zeros instead of an error: whether there is an output must not tell who trained.
    ``shapes`` are those of the parameters of a fit to all data, by name.
    """

    estimator: Any
    codec: Codec
    classes: NDArray[Any] | None
    shapes: dict[str, tuple[int, ...]]

    def __call__(self, part: tuple[Any, ...]) -> FloatArray:
        """Return the parameters of a fit to this part of the data."""
        if self.classes is not None and len(np.unique(part[1])) < len(self.classes):
            return np.zeros(sum(int(np.prod(shape)) for shape in self.shapes.values()))
        arrays = self.codec.learn(self.estimator, part[0], part[1] if len(part) > 1 else None)
        if {name: value.shape for name, value in arrays.items()} != self.shapes:
            raise ReleaseError("the estimator's parameters have different shapes on different training parts")
        return np.concatenate([value.ravel() for value in arrays.values()])

    def split(self, flat: FloatArray) -> Arrays:
        """Return the named arrays of a vector."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes.values()])
        parts = np.split(flat, ends[:-1])
        return {name: part.reshape(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}
