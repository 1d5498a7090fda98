"""The transform of a composed loss along a vertical line Re w = c: sums for every kind of step, with their errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS, MOST_EXPONENT
from deniable.accounting.sizes import BLOCK, MOST, PATIENT, UNDERFLOW
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.steps.ratios import ComplexArray, log_ratio
from deniable.accounting.transform.nodes import Nodes
from deniable.accounting.transform.terms import StepLaw, Terms

if TYPE_CHECKING:
    from deniable.accounting.transform.composed import PrivacyLoss


@dataclass(frozen=True, eq=False)
class Phases(Terms):
    """Nodes in u for all phases at once."""

    of: PrivacyLoss
    u: FloatArray
    spacing: float

    @classmethod
    def on(cls, loss: PrivacyLoss, c: float, grid: Nodes) -> Phases:
        """Lay the nodes of a grid."""
        most = min(PATIENT * max(loss.steps.size, 1), MOST)
        if not (grid.high - grid.low) * loss.steps.size < most * grid.spacing:
            raise TooSlowError(f"the law tilted by {c:g} is too wide")
        count = int((grid.high - grid.low) / grid.spacing) + 2
        u: FloatArray = grid.low + grid.spacing * np.arange(count, dtype=np.float64)
        if grid.high >= loss.ceiling:  # every line must cut at the same place: half a spacing beyond the last node
            u += loss.ceiling - (u[-1] + grid.spacing / 2)
        log_weight, unit = (
            np.broadcast_to(-(u**2) / 2, (loss.steps.size, u.size)),
            grid.spacing / math.sqrt(2 * math.pi),
        )
        ratio = log_ratio(u, loss.noise[:, None], loss.rate[:, None])
        return cls(c, ratio, log_weight, unit, np.exp(log_weight) * unit, loss, u, grid.spacing)

    @property
    def edge(self) -> float:
        """Density left at the ceiling, relative to its largest value: 0 means that nothing is cut."""
        if math.isinf(self.of.ceiling):
            return 0.0
        end = np.array([self.of.ceiling])
        top = np.max(np.maximum(self.c * self.loss, 0) + self.log_weight, axis=1)
        cut = self.c * log_ratio(end, self.of.noise[:, None], self.of.rate[:, None]) - end**2 / 2
        return float(np.exp(np.max(cut[:, 0] - top)))

    def at_ceiling(self, points: FloatArray, scale: FloatArray | float = 0.0) -> FloatArray:
        v = self.of.ceiling
        if self.u[-1] + self.spacing < v:
            return np.zeros((self.of.steps.size, points.size))
        end = np.array([v])
        height = log_ratio(end, self.of.noise[:, None], self.of.rate[:, None]) * points - v**2 / 2 - scale
        return 2 * self.unit * np.exp(np.minimum(height, MOST_EXPONENT))

    @cached_property
    def posterior(self) -> FloatArray:
        """P(record was in the batch | u) = q·e^a/r, which is also σ·L′(u), at the nodes."""
        sigma, rate = self.of.noise[:, None], self.of.rate[:, None]
        return np.exp(np.log(rate) + self.u / sigma - 1 / (2 * sigma**2) - self.loss)

    @property
    def argument(self) -> FloatArray:
        sigma = self.of.noise[:, None]
        moved: FloatArray = np.abs(self.loss) * (8 + self.u**2)
        return moved + self.posterior * (np.abs(self.u) / sigma + 1 / sigma**2)

    def log_ratios(self, t: FloatArray, spacing: float | None = None) -> ComplexArray:
        """log M(c + it)/M(c) of one step, one row per phase; ``spacing`` as above."""
        some, count = max(BLOCK // (self.u.size * (math.isqrt(t.size) + 1)), 1), self.of.steps.size
        parts = [self.log_ratios_of(slice(k, k + some), t, spacing) for k in range(0, count, some)]
        return np.concatenate([np.zeros((0, t.size), dtype=np.complex128), *parts])


@dataclass(frozen=True, eq=False)
class Line:
    """The sums of a composed loss on the line Re w = c: of its phases, and of every other law and how often it is."""

    of: PrivacyLoss
    c: float
    phases: Phases
    others: tuple[tuple[StepLaw, Terms, float], ...]

    @property
    def size(self) -> int:
        """Number of nodes."""
        return self.phases.loss.size + sum(terms.loss.size for _, terms, _ in self.others)

    @cached_property
    def rows(self) -> list[tuple[Terms, int, float]]:
        """Every sum with its row, and how often its step is made."""
        found: list[tuple[Terms, int, float]] = [(self.phases, k, n) for k, n in enumerate(self.of.steps.tolist())]
        return found + [(terms, 0, count) for _, terms, count in self.others]

    @cached_property
    def cumulants(self) -> tuple[float, float, float]:
        """K, K′ and K″ of the composed loss at the real point c."""
        c, variance = self.c, self.of.gaussian
        k = np.array([variance * c * (c - 1) / 2, variance * (c - 0.5), variance])
        for terms, counts in ((self.phases, self.of.steps), *((terms, np.array([n])) for _, terms, n in self.others)):
            k += [float(counts @ x) for x in (terms.log_mgf, *terms.moments)]
        return float(k[0]), float(k[1]), float(k[2])

    def transform(self, t: FloatArray, spacing: float | None = None) -> tuple[ComplexArray, FloatArray]:
        """K(c + it) − K(c) of the composed loss and a bound on the error of its exponential, from rounding and ceiling.

        ``spacing`` says that t is spacing·(0, 1, 2, …), which makes long sums much cheaper.

        With errors Δ_j of single steps, |Π(M_j + Δ_j)^{T_j} − ΠM_j^{T_j}| ≤ Π|M_j|^{T_j}·(e^S − 1) where
        S = Σ T_j·log(1 + |Δ_j|/|M_j|): all orders of Δ are in it. Logarithms of parts are added up with a rounding
        each, those of K(c), which prefactors need, among them.
        """
        total = np.asarray(self.of.gaussian * (1j * t * (self.c - 0.5) - t**2 / 2), dtype=np.complex128)
        size = np.hypot(self.c, t)
        turned = np.abs(total)
        relative_error = 2 * EPS * self.of.gaussian * (abs(self.c) + 1) * size
        sums = np.zeros_like(turned)
        for terms, row, steps in self.rows:
            one = terms.log_ratio_of(row, t, spacing)
            total = total + steps * one
            turned = turned + steps * np.abs(one)
            # the errors of one step are relative to M(c): where |M(c + it)| is smaller, they weigh more
            error = np.log(terms.step_errors(row, size) + UNDERFLOW)
            relative_error = relative_error + steps * np.logaddexp(0.0, error - one.real)
            sums = sums + steps * abs(float(terms.log_mgf[row]))
        sums = sums + turned + self.of.gaussian * abs(self.c * (self.c - 1)) / 2
        relative_error = relative_error + (4 + self.of.summands) * EPS * sums + 64 * EPS
        with np.errstate(over="ignore"):  # an unknown transform is ∞, and its line useless
            grown = np.exp(total.real) * np.expm1(np.minimum(relative_error, 1.0))
            return total, np.where(relative_error < 1, grown, np.exp(total.real + relative_error))
