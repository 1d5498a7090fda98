"""Covariance matrices: swapping a record also changes them through the mean of the training set."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from deniable._check import FloatArray, Indices, InputError, integer
from deniable._floats import EPS
from deniable.noise.blocks import Summary, blocks
from deniable.noise.coordinates import alike
from deniable.noise.evidence import ExactRows
from deniable.noise.kinds import ExactSwap
from deniable.noise.laws import NoiseLaw
from deniable.noise.resampling import Population
from deniable.noise.statistics import (
    SLACK,
    alike_products,
    matrix_of,
    outstanding,
    rounding_of_means,
    typical_distance,
    upper_distance,
    without_own,
)

_CANCELLED = 1e-12  # relative to the added terms, charged for rounding


@dataclass(frozen=True)
class Covariance(ExactSwap):
    """Covariance matrix, divisor n − ``ddof``; with ``with_mean`` the mean, then the matrix row by row, as a vector."""

    ddof: int = 1
    with_mean: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "ddof", integer("ddof", self.ddof, at_least=0))

    def __call__(self, data: Any) -> FloatArray:
        """Return the covariance matrix of ``data``."""
        x = matrix_of(data)
        if len(x) <= self.ddof:
            raise InputError(f"data must have more records than ddof={self.ddof}, got {len(x)}")
        mean = x.mean(axis=0)
        matrix = np.zeros((x.shape[1], x.shape[1]))
        for rows in blocks(len(x), x.shape[1]):
            centred = x[rows] - mean
            matrix += centred.T @ centred
        matrix /= len(x) - self.ddof
        return np.concatenate([mean, matrix.ravel()]) if self.with_mean else matrix

    def alike(self, data: Any) -> Indices:
        """Compare the columns: elements of the matrix are alike where both their columns are."""
        x = matrix_of(data)
        d = x.shape[1]
        first = alike(x[rows] for rows in blocks(len(x), d))
        of_matrix = alike_products(first, any_constant=True)
        return np.concatenate([first, np.where(of_matrix >= 0, of_matrix + d, -1)]) if self.with_mean else of_matrix

    def influence(self, population: Population, coordinates: Indices) -> Summary:
        """uᵢuⱼ − mean, and uᵢ for the mean: a record's first-order contribution."""
        u = self._centred(matrix_of(population.data))
        means, a, b = self._places(coordinates, u.shape[1])
        middle = (u.T @ u / len(u))[a, b]

        def parts() -> Iterator[FloatArray]:
            for rows in blocks(len(u), len(coordinates)):
                part = np.ascontiguousarray(u[rows].T)  # columns side by side: gathering them is copying rows
                both = part[a]
                both *= part[b]
                both -= middle[:, None]
                yield np.concatenate([part[means], both]).T if means.size else both.T

        return Summary.of(parts())

    def swap_rows(self, population: Population, law: NoiseLaw, coordinates: Indices) -> ExactRows:
        """Return bounds on the mean swap distance of each pair.

        With C the k − 1 records that stay, m_C their mean and δ = m_C − mean(D), the change is c·[(uuᵀ − u'u'ᵀ)
        − (vδᵀ + δvᵀ)], u = x* − mean(D), v = x* − x', c = (k−1)/(k(k−ddof)). The first bracket is fixed; the second
        is bounded by its root mean square over C, coordinate by coordinate, from the variance of a sample mean
        without replacement. The mean changes by v/k.
        """
        n, k = population.n_records, population.n_train
        if k <= max(self.ddof, 1):
            raise InputError(f"the covariance of {k} training records is not defined; use more data or fraction")
        c = (k - 1) / (k * (k - self.ddof))
        x = matrix_of(population.data)
        rounding = upper_distance(law, 2 * self._rounding(x, k)[coordinates + x.shape[1] * (not self.with_mean)])
        u = self._centred(x)
        deviation = self._mean_deviation(u, population)
        make = _Diagonal if law.factor.ndim == 1 else _Full
        changes = make(law, u, 1 / k, c, *self._places(coordinates, u.shape[1]))
        everyone = list(blocks(n, u.shape[1]))

        def correction(size: FloatArray) -> FloatArray:
            """Bound the distance of c(vδᵀ + δvᵀ) given |u| + |u'|, shape (rows, d)."""
            return changes.joint(size, size / (n - 2) + deviation)

        typical = typical_distance(changes.from_mean())
        order, rows = outstanding(typical)
        distances = np.empty((rows, n))
        for row, i in zip(distances, order[:rows], strict=True):
            for some in everyone:
                row[some] = changes.between(i, some) + correction(np.abs(u[i]) + np.abs(u[some]))
        rest = 0.0
        if rows < n:
            most = correction(2 * np.maximum(u.max(axis=0), -u.min(axis=0))[None])[0]
            rest = float(typical[order[rows]] + most) * SLACK + float(rounding)
        others = without_own(distances, order[:rows])
        del distances  # as large as a column or two
        others *= SLACK
        others += rounding
        return ExactRows(others, rest=rest, averaged=True)

    def _places(self, coordinates: Indices, d: int) -> tuple[Indices, Indices, Indices]:
        """Columns of the means among the coordinates (which are in order), and rows and columns of the elements."""
        of_matrix = coordinates - d * self.with_mean
        a, b = np.unravel_index(of_matrix[of_matrix >= 0], (d, d))
        return coordinates[of_matrix < 0], a, b

    @staticmethod
    def _centred(x: FloatArray) -> FloatArray:
        return np.asarray(x - x.mean(axis=0))

    @staticmethod
    def _mean_deviation(u: FloatArray, population: Population) -> FloatArray:
        """Bound the root mean square of mean(C) − mean(D without x*, x') per column, C of k − 1 of those n − 2."""
        n, k = population.n_records, population.n_train
        square = np.einsum("nd,nd->d", u, u)
        return np.asarray(np.sqrt(square / (n - 3) * (n - k - 1) / (max(k - 1, 1) * (n - 2))))

    def _rounding(self, x: FloatArray, k: int) -> FloatArray:
        """Bound the rounding of the mean (d) and of the matrix (d²) of any k records.

        |x − mean| averages at most 2Σ|u|/k over them, and its square at most Σu²/k.
        """
        n = len(x)
        raw = Summary.of(x[rows] for rows in blocks(n, x.shape[1]))
        mean = x.mean(axis=0)
        u = Summary.of(x[rows] - mean for rows in blocks(n, x.shape[1]))
        of_mean = rounding_of_means(n * raw.absolute, k)
        off = of_mean + EPS * raw.largest  # of each centred value
        size, square = 2 * n * u.absolute / k + off, n * u.square / k + off**2
        matrix = size[:, None] * off + off[:, None] * size + (k + 4) * EPS * np.sqrt(np.outer(square, square))
        return np.concatenate([of_mean, k / (k - self.ddof) * matrix.ravel()])


@dataclass(frozen=True, eq=False)
class _Changes(ABC):
    """Distances between the changes that records make: ``first``·u at ``means``, ``second``·u_a·u_b elsewhere."""

    law: NoiseLaw
    u: FloatArray
    first: float
    second: float
    means: Indices
    a: Indices
    b: Indices

    @abstractmethod
    def from_mean(self) -> FloatArray:
        """Squared distance of each record to the mean of all, rounded up."""

    @abstractmethod
    def between(self, record: int, rows: slice) -> FloatArray:
        """Distance of one record to each of the rows, rounded up."""

    @abstractmethod
    def joint(self, size: FloatArray, other: FloatArray) -> FloatArray:
        """Upper distance of ``second``·(size_a·other_b + other_a·size_b) for each row of both, none negative."""


class _Diagonal(_Changes):
    """Noise of a diagonal shape F: Σ_ab (c/F_ab)²·(u_a·u_b − m_ab)², as quadratic forms in u and in u².

    Their differences cancel: sums of d sums of d terms are wrong by less than 4d·2⁻⁵³ of what is added. 10⁻¹² of that,
    enough for 2,000 columns, is added on top.
    """

    def from_mean(self) -> FloatArray:
        middle = self.u.T @ self.u / len(self.u)
        return np.concatenate([self._square(rows, middle, 0.0) for rows in blocks(len(self.u), self.u.shape[1])])

    def between(self, record: int, rows: slice) -> FloatArray:
        own = self.u[record]
        return np.asarray(np.sqrt(self._square(rows, np.outer(own, own), own)))

    def joint(self, size: FloatArray, other: FloatArray) -> FloatArray:
        G = self._weights
        sums = ((size**2 @ G) * other**2).sum(axis=1) + ((other**2 @ G) * size**2).sum(axis=1)
        return np.asarray(np.sqrt(sums + 2 * ((size * other @ G) * (size * other)).sum(axis=1)))

    @cached_property
    def _weights(self) -> FloatArray:
        """(c/F_ab)² at the elements that are released."""
        weights = np.zeros((self.u.shape[1],) * 2)
        weights[self.a, self.b] = (self.second / self.law.factor[self.means.size :]) ** 2
        return weights

    def _square(self, rows: slice, middle: FloatArray, mean: FloatArray | float) -> FloatArray:
        u, G = self.u[rows], self._weights
        square = u**2
        own = ((square @ G) * square).sum(axis=1)
        fixed = float(np.sum(G * middle**2))
        cross = ((u @ (G * middle)) * u).sum(axis=1)
        straight = (u - mean)[:, self.means] * (self.first / self.law.factor[: self.means.size])
        return np.asarray(
            np.maximum(own + fixed - 2 * cross, 0.0) + _CANCELLED * (own + fixed) + (straight**2).sum(axis=1)
        )


class _Full(_Changes):
    """Noise of any shape."""

    def from_mean(self) -> FloatArray:
        everyone = list(blocks(len(self.u), self.a.size))
        middle = np.sum([self._white(self.u[rows]).sum(axis=0) for rows in everyone], axis=0) / len(self.u)
        return np.concatenate([np.sum((self._white(self.u[rows]) - middle) ** 2, axis=1) for rows in everyone])

    def between(self, record: int, rows: slice) -> FloatArray:
        return np.asarray(np.linalg.norm(self._white(self.u[rows]) - self._white(self.u[[record]]), axis=1))

    def joint(self, size: FloatArray, other: FloatArray) -> FloatArray:
        both = self.second * (size[:, self.a] * other[:, self.b] + other[:, self.a] * size[:, self.b])
        return upper_distance(self.law, np.hstack([np.zeros((len(size), self.means.size)), both]))

    def _white(self, u: FloatArray) -> FloatArray:
        return self.law.whiten(np.hstack([self.first * u[:, self.means], self.second * u[:, self.a] * u[:, self.b]]))
