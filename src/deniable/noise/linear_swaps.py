"""Ridge regression of very many records: what a swap changes, to first order in closed form, the rest bounded.

With R the diagonal of penalties, A_C = Σ_C xᵢxᵢᵀ + R and θ_C the fit to C, adding record z to C changes the fit by
A_C⁻¹x_z(y_z − x_zᵀθ_C)/(1 + x_zᵀA_C⁻¹x_z). A swap takes S = C + x* to C + x', and given the pair (x*, x') the set C is
uniform among the (k − 1)-subsets of the other N = n − 2 records. Fix, from all records, a vector θ° and a matrix T
(about a root of the inverse of the expected A) and write θ = θ° + Tv, zᵢ = Tᵀxᵢ, eᵢ = yᵢ − xᵢᵀθ°, TᵀA_CT = I + E. To
first order a record adds zᵢeᵢ to v. What is left out, with g_C = Σ_C zᵢeᵢ − TᵀRθ°:

* *Nearly always I + E ≥ 1 − a.* E has mean Ē, ‖Ē‖ ≤ a₀ (the two records left out move it by 2(k−1)/N·max‖zᵢ‖²). The
  smallest eigenvalue of E − Ē is below −t with probability at most d·e^{−t²/2w}, w = (k−1)/N·‖Q‖, Q = Σ‖zᵢ‖²zᵢzᵢᵀ: for
  draws with replacement by E e^{−szzᵀ} ≤ exp(−sE zzᵀ + s²/2·E(zzᵀ)²) and Lieb's theorem (Tropp 2012, Theorem 3.6),
  without replacement by convexity (Hoeffding 1963, Theorem 4, with the trace of the exponential as in Gross & Nesme
  2010). a = a₀ + t at probability ``FAILURE``. This event costs at most its probability in H_γ, whatever γ ≥ 1, as H_γ
  is at most 1: it is added to η and to the whole curve.
* *There*, (I + E)⁻¹ is at most 1/(1 − a), ‖(I + E)⁻¹z − z‖ ≤ ‖Ez‖/(1 − a), the leverage is at most ‖z‖²/(1 − a), and
  v_C = (I + E)⁻¹g_C. So the change of v by record z differs from ze by at most
  (‖Ez‖·|e| + ‖z‖³|e|)/(1 − a) + ‖z‖²‖g_C‖/(1 − a)².
* *On average over C* (root mean squares, sampling without replacement, f = (k−1)(N−k+1)/(N(N−1))):
  E‖Ez‖ ≤ (a₀ + √(f‖Q‖))‖z‖, and E‖g_C‖ ≤ G = ‖mean‖ + √(f·Σ‖zᵢ‖²eᵢ²).

H_γ ≤ (a concave function of the distance) + 1[event], so a bound on the mean distance of each pair on the good event is
all that is needed (Jensen). Rounding is charged: sums err by at most (their length + 1)·eps·Σ|terms|, for every subset.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from deniable._check import FloatArray, Indices
from deniable._floats import EPS
from deniable.noise.blocks import Summary, blocks
from deniable.noise.evidence import ExactRows, NoGuaranteeError
from deniable.noise.kinds import ExactSwap
from deniable.noise.laws import NoiseLaw
from deniable.noise.resampling import Population
from deniable.noise.statistics import (
    SLACK,
    outstanding,
    typical_distance,
    upper_distance,
    without_own,
)

FAILURE = 1e-10  # probability, added to every H_γ, that a training set is unlike all records
_FARTHEST = 0.5  # largest a: the factors 1/(1 − a) and 1/(1 − a)² are then at most 2 and 4
_CONDITION = 1e10  # largest condition of the expected A, scaled to a unit diagonal
_REFUSED = "bound='swap' of a regression on this many records needs {what}; use bound='auto'"


@dataclass(frozen=True, eq=False)
class Around:
    """A point θ° (d,), a root T (d, d) of the inverse of the expected A, and the penalties (d,)."""

    theta: FloatArray
    root: FloatArray
    penalties: FloatArray

    def parts(self, X: FloatArray, y: FloatArray) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """Yield the design, z and e, block by block."""
        for x, target in designs(X, y, self.theta.size):
            yield x, x @ self.root, target - x @ self.theta


def designs(X: FloatArray, y: FloatArray, dimension: int) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield rows of the design (with a column of ones if X has fewer than ``dimension`` columns) and of y."""
    for rows in blocks(len(X), dimension):
        x = X[rows]
        yield (np.column_stack([x, np.ones(len(x))]) if x.shape[1] < dimension else x), y[rows]


@dataclass(frozen=True, eq=False)
class _Records:
    """Sums over all records, and bounds on what rounding changes in them, for any subset.

    Attributes
    ----------
    length, residual
        Upper bounds on ‖zᵢ‖ and |eᵢ|, (n,).
    rounding
        Upper bounds on ‖zᵢeᵢ − its computed value‖, (n,).
    products, moment, quartic
        Σzᵢzᵢᵀ, Σzᵢeᵢ and Q.
    of_products, of_moment, of_quartic
        Bounds on the rounding of these.
    """

    length: FloatArray
    residual: FloatArray
    rounding: FloatArray
    products: FloatArray
    moment: FloatArray
    quartic: FloatArray
    of_products: float
    of_moment: float
    of_quartic: float

    @classmethod
    def of(cls, around: Around, X: FloatArray, y: FloatArray) -> _Records:
        d, n = around.theta.size, len(X)
        stretch, theta = np.linalg.norm(around.root, axis=1), np.abs(around.theta)
        terms = (max(part.stop - part.start for part in blocks(n, d)) + sum(1 for _ in blocks(n, d)) + 4) * EPS
        kept: list[tuple[FloatArray, FloatArray, FloatArray]] = []
        products, moment, quartic, errors = np.zeros((d, d)), np.zeros(d), np.zeros((d, d)), np.zeros(3)
        for (x, z, e), rows in zip(around.parts(X, y), blocks(n, d), strict=True):
            size = np.abs(x)
            of_z = 2 * (d + 1) * EPS * (size @ stretch)
            of_e = (d + 3) * EPS * (np.abs(y[rows]) + size @ theta)
            length, residual = (np.sqrt(np.einsum("nd,nd->n", z, z)) + of_z) * SLACK, (np.abs(e) + of_e) * SLACK
            products += z.T @ z
            moment += e @ z
            quartic += (z * (length**2)[:, None]).T @ z
            of_term = of_z * residual + length * of_e
            errors += [
                2 * (length @ of_z) + terms * (length @ length),
                of_term.sum() + terms * (length @ residual),
                4 * (length**3 @ of_z) + 2 * terms * float(np.sum(length**4)),
            ]
            kept.append((length, residual, of_term + 2 * EPS * length * residual))
        length, residual, rounding = (np.concatenate(one) for one in zip(*kept, strict=True))
        return cls(length, residual, rounding, products, moment, quartic, *(errors * SLACK).tolist())


@dataclass(frozen=True, eq=False)
class LinearisedRidge(ExactSwap):
    """Ridge regression of (X, y) whose swaps are bounded around the fit to all records.

    Unlike :class:`deniable.noise.Ridge` it returns a value on every training set: θ° itself where there is no fit.
    """

    around: Around
    X: FloatArray
    y: FloatArray

    @classmethod
    def of(cls, X: FloatArray, y: FloatArray, penalties: FloatArray, population: Population) -> LinearisedRidge:
        """Fit all records, the sums scaled to the size of a training set."""
        d, share = penalties.size, population.prior
        products, moment = np.zeros((d, d)), np.zeros(d)
        for x, target in designs(X, y, d):
            products += x.T @ x
            moment += target @ x
        expected = share * products + np.diag(penalties)
        scale = np.sqrt(np.diag(expected))
        if not (np.all(np.isfinite(expected)) and np.all(scale > 0)):
            raise NoGuaranteeError(_REFUSED.format(what="columns that are not zero and whose squares do not overflow"))
        values, vectors = np.linalg.eigh(expected / np.outer(scale, scale))
        if not values[0] * _CONDITION > values[-1]:
            raise NoGuaranteeError(_REFUSED.format(what="columns that do not depend on one another, or a penalty"))
        root = vectors / np.sqrt(values) / scale[:, None]
        return cls(Around(root @ (root.T @ (share * moment)), root, penalties), X, y)

    def __call__(self, data: Any) -> FloatArray:
        """Return the coefficients, the intercept last if there is one, shape (d,)."""
        X, y = (np.asarray(part, dtype=np.float64) for part in data)
        around = self.around
        matrix = self._penalty.copy()
        gradient = -around.root.T @ (around.penalties * around.theta)
        for _, z, e in around.parts(X, y):
            matrix += z.T @ z
            gradient += e @ z
        try:
            v = cho_solve(cho_factor(matrix, lower=True), gradient)
        except np.linalg.LinAlgError:
            v = np.zeros_like(gradient)
        theta = around.theta + around.root @ v
        return np.asarray(theta if np.all(np.isfinite(theta)) else around.theta)

    def alike(self, data: Any) -> Indices:
        """Every coefficient gets noise of its own."""
        return np.arange(self.around.theta.size)

    def influence(self, population: Population, coordinates: Indices, *, products: bool) -> Summary:
        """Return a summary of k·Tzᵢeᵢ: what a record adds to k times the fit, to first order."""
        around, k = self.around, population.n_train
        root = around.root[coordinates].T
        parts = (k * ((z * e[:, None]) @ root) for _, z, e in around.parts(self.X, self.y))
        found = Summary.of(parts, products=products)
        if not found.largest.min() > 0:  # a coefficient that never varies
            raise NoGuaranteeError(_REFUSED.format(what="residuals or columns that are not all 0"))
        return found

    def swap_rows(self, population: Population, law: NoiseLaw, coordinates: Indices) -> ExactRows:
        """Return bounds on the mean distance of each pair on the good event, whose complement is the ``failure``.

        As for a mean, records are ordered by their root mean square distance to the others, plus what was left out.
        """
        n = population.n_records
        white = law.whiten(self.around.root[coordinates].T)  # (d, coordinates): distances are norms of v @ white
        added, slack = self._left_out(population, law, coordinates, white)
        everyone = blocks(n, self.around.theta.size)
        mean = self._records.moment @ white / n
        square = np.concatenate(
            [np.sum(((z * e[:, None]) @ white - mean) ** 2, axis=1) for _, z, e in self.around.parts(self.X, self.y)]
        )
        typical = typical_distance(square) * SLACK + added
        order, rows = outstanding(typical)
        first = np.concatenate(
            [(z * e[:, None]) @ white for i in order[:rows] for _, z, e in self.around.parts(self.X[[i]], self.y[[i]])]
        )
        distances = np.empty((rows, n))
        for some, (_, z, e) in zip(everyone, self.around.parts(self.X, self.y), strict=True):
            part = (z * e[:, None]) @ white
            for row, one, i in zip(distances, first, order[:rows], strict=True):
                row[some] = np.linalg.norm(part - one, axis=1) * SLACK + added[i] + added[some] + slack
        rest = 0.0
        if rows < n:
            rest = (float(typical[order[rows]]) + float(added.sum()) / (n - 1) + slack) * SLACK
        return ExactRows(without_own(distances, order[:rows]), rest=rest, averaged=True, failure=FAILURE)

    def _left_out(
        self, population: Population, law: NoiseLaw, coordinates: Indices, white: FloatArray
    ) -> tuple[FloatArray, float]:
        """Bound the mean distance that each record's first-order change leaves out, (n,), and the rounding of fits."""
        found, around = self._records, self.around
        n, k, d = population.n_records, population.n_train, around.theta.size
        share, others = (k - 1) / (n - 2), n - 2
        finite_share = (k - 1) * (others - k + 1) / (others * (others - 1))
        largest = float(found.length.max())
        joint = found.length * found.residual
        size = float(np.linalg.norm(found.products + self._penalty, 2)) + found.of_products
        of_penalty = 12 * d**2 * EPS * size  # rounding of TᵀRT and of solving
        quartic = float(np.linalg.norm(found.quartic, 2)) * SLACK + found.of_quartic
        mean = float(np.linalg.norm(share * found.products + self._penalty - np.eye(d), 2)) * SLACK
        mean += found.of_products + of_penalty + 2 * share * largest**2
        away = mean + float(np.sqrt(2 * share * quartic * np.log(d / FAILURE))) * SLACK
        if not away <= _FARTHEST:
            what = "more records, or columns within public bounds: single records weigh too much in it"
            raise NoGuaranteeError(_REFUSED.format(what=what))
        pull = around.root.T @ (around.penalties * around.theta)
        of_moment = found.of_moment + 4 * (d + 1) * EPS * float(
            np.linalg.norm(np.abs(around.root).T @ (around.penalties * np.abs(around.theta)))
        )
        gradient = float(np.linalg.norm(share * found.moment - pull)) * SLACK + of_moment
        gradient += 2 * share * float(joint.max()) + float(np.sqrt(finite_share * (joint @ joint))) * SLACK
        turned = mean + float(np.sqrt(finite_share * quartic)) * SLACK
        stays = 1 - away
        left = (turned * joint + found.length**2 * joint) / stays + found.length**2 * gradient / stays**2
        reach, whole = float(np.linalg.norm(white, 2)) * SLACK, float(np.linalg.norm(white)) * SLACK
        added = (reach * left + whole * (found.rounding + 4 * (d + 2) * EPS * joint)) * SLACK
        # a computed fit: (K + Δ)v̂ = ĝ, with ‖v‖ ≤ (G + max‖zᵢ‖|eᵢ|)/(1 − a) on average
        typical, wrong = (gradient + float(joint.max())) / stays, found.of_products + of_penalty
        fit = reach * (of_moment + wrong * typical) / (stays - wrong)
        diagonal = law.factor.ndim == 1
        entries = whole if diagonal else law.stretch * float(np.linalg.norm(around.root[coordinates]))
        fit += entries * 4 * (d + 1) * EPS * typical
        shift = float(upper_distance(law, 8 * EPS * np.abs(around.theta[coordinates])))
        return added, (2 * fit + shift) * SLACK

    @cached_property
    def _records(self) -> _Records:
        return _Records.of(self.around, self.X, self.y)

    @property
    def _penalty(self) -> FloatArray:
        return np.asarray((self.around.root.T * self.around.penalties) @ self.around.root)
