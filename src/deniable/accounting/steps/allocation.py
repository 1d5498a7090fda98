"""One epoch of random allocation: a record enters exactly one of t batches, chosen uniformly.

Out of the data an epoch releases x ~ N(0, σ²I_t), in it x ~ (1/t)·Σ_i N(e_i, σ²I_t). The likelihood ratio is
S = (1/t)·Σ Y_i with independent Y_i = e^{(2x_i − 1)/(2σ²)}, log-normal with mean 1 under "out".

The pair dominates every adaptive use, adding and removing alike: given the other records and all that was released, a
batch releases N(g, σ²) out of the data and, in the batch, N(g + r·u, σ²) with a unit vector u and r ≤ 1 that earlier
releases may decide (clipped contributions, public divisor). From x_i this is made by r·u·x_i + N(0, σ²(1 − r²)) along u
and fresh noise elsewhere, by the same rule whether or not the record was there, so that the whole transcript
post-processes x (Chua et al. 2024, arXiv 2412.16802; Feldman & Shenfeld 2025, arXiv 2502.08202). It is attained
by contributions that do not change. The other records' batches do not depend on the record, and the divisor must be
public: a batch mean over its realised size is another mechanism.

*Convex order.* H_γ(P‖Q) = E(S − γ)₊ and H_γ(Q‖P) = E(1 − γS)₊ under Q are means of convex functions of S: a law that
is larger in convex order (masses and means agree) is that of a pair that is easier to tell apart, in either direction
and under every composition (Blackwell 1953). Sums of independent terms keep the order, so that terms may be brought
onto lattices, and sums of them onto coarser ones (:mod:`deniable.accounting.lattices`, squaring as with losses):

- *above*, a mass between two lattice points goes to both, mass and mean kept: convex functions rise in mean;
- *below*, a row holds the mass of a label k and another E[X − k; label k] ≥ 0, so that the two know the mean of all
  that has one label. Labels of independent sums add, and (m, d)∗(m′, d′) = (m∗m′, m∗d′ + d∗m′) are these rows of
  X + X′. The law of the means given the label is smaller in convex order (Jensen).

*Errors.* Sums of terms ≥ 0, and no transforms: rounding is relative, however far in a tail. A term is cut into cells of
u = x/σ, split onto their ends or merged. There three Gauss–Legendre nodes are wrong by a share below 1e-18, as
h⁷/2016000·max|f⁽⁶⁾| with h·(|u| + 1/σ) < 0.02, and masses by eight roundings at the most; a point by those of its
exponent, which moves S by no larger share. Masses of S, known to a share, are brought to the safe side in both worlds
alike: a pair of measures that are smaller by the same factor, outcome by outcome, has smaller hockey sticks, and so has
its product with anything. Then S errs below by a share of what means lie above their labels, and above not at all.
*Divergences.* Convex functions of S are on average largest in the law above. Of Gaussian noise, terms beyond 14
deviations are in no cell: t times what one such term adds to E S^c, c > 1, is at most, by Minkowski, t times the c-th
power of (E[Y^c; far])^{1/c}/t + (P(far)·m)^{1/c}, m = E Y^c or better (t/(t − 1))^c·E S^c, as it is bounded so far. To
E S^{−p} it adds (t/(t − 1))^p·P(far) times that of the other t − 1 terms, and E S^{−p} ≤ (E Y^{−p/t})^t =
e^{p(p/t + 1)/(2σ²)} by their geometric mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from deniable._check import FloatArray, InputError
from deniable._floats import EPS
from deniable._special import log_ndtr
from deniable.accounting.lattices import Law, convolve_directly, fitting, power, scales
from deniable.accounting.sizes import BLOCK, POINTS, ROUNDS, UNDERFLOW
from deniable.accounting.steps.base import Step, compared_with_out, log_moment
from deniable.accounting.steps.outcomes import REACH, ListedOutcomes
from deniable.accounting.steps.sampled_gaussian import SubsampledGaussianStep
from deniable.curves import Direction, Side
from deniable.mechanisms import Count

SHARPEST = 0.15  # noise multipliers below have terms beyond e^400
MOST_LOSS = 400.0  # of a step that is allocated: sums of ratios beyond would leave the doubles
_CELL = 2.0**-11  # share of the least ratio below which points are not told apart
_KNOWN = 1e-9  # relative error of cells of other steps; those that are known less are left out
_LARGER = 8.0  # terms that are expected beyond the finest class of a sum, at most


class SumLaw(Law):
    """Measures of sums by class: masses, below also their means above the labels, times mass."""

    rung = 2
    few = 2  # shares of splits are exact

    @property
    def least(self) -> float:
        """Nothing: large sums weigh much in P."""
        return 0.0

    def nearest(self, e: int) -> bool:
        """Means are known: a label may be the point below."""
        return False

    def share(self, above: FloatArray, spacing: float) -> FloatArray:
        return above / spacing

    def moved_by(self, far: FloatArray, rows: FloatArray) -> FloatArray:
        return np.stack([rows[0], rows[1] - far * rows[0]])

    def times(self, rows: FloatArray, others: FloatArray) -> FloatArray:
        mass = convolve_directly(rows[0], others[0])
        if self.side == "upper":
            return mass[None]
        return np.stack([mass, convolve_directly(rows[0], others[1]) + convolve_directly(rows[1], others[0])])


def _mean_of_terms(
    batches: int, side: Side, term: tuple[FloatArray, FloatArray], finest: float, middle: float, wrong: float
) -> ListedOutcomes:
    """The law of log S, of terms of these points and masses, to some roundings.

    ``finest`` is about the least distance of points, ``middle`` their median; their logarithms err by ``wrong``.
    """
    law, (point, mass), lowest = SumLaw.empty(side, 1.0, POINTS, True), term, math.frexp(finest)[1]
    least = float(point[0])  # labels count from there, so that none is at 0
    above = point - least
    table = scales(above, above, mass)

    def laid(count: int) -> tuple[int, float]:
        """The finest class of a sum, and about the mean of what it can hold."""
        fits, mean = fitting([table], [count], _LARGER) or (above[-1], 0.0)
        return SumLaw.rung * (max(math.frexp(fits / POINTS)[1], lowest) // SumLaw.rung), mean

    far, e, reach = np.abs(above - min(middle - least, least)), laid(1)[0], 0.0
    while reach <= far.max():
        h = law.spacing(e)
        some = (far >= reach) & (far < h * law.points / 2)
        if some.any():
            base = np.floor(above[some] / h).astype(np.intp)
            rows = np.stack([mass, np.zeros(mass.size)])[: 1 if side == "upper" else 2, some]
            law.put(e, law.laid(base, above[some] - h * base, h, 0.0, rows))
        e, reach = e + law.rung, h * law.points / 2
    law.relative = 16 * EPS
    law = power(law, batches, laid, math.frexp(float(above[-1]) * batches)[1])
    x, _, rows = law.listed()
    label, q = x + batches * least, rows[0] * (1 + law.relative if side == "upper" else 1 - law.relative)
    total = label + rows[1:].sum(axis=0) / np.maximum(rows[0], UNDERFLOW)
    some = total > 0  # not what the record is surely out of
    label, q, total = label[some], q[some], total[some]
    unsure = 2 * law.relative * (1 - label / total)  # of the ratio: there is none above
    loss, p = np.log(total / batches), q * total / batches * (1 - unsure)
    shift, seen = unsure + 4 * EPS * (4 + np.abs(loss)) + wrong, np.minimum(p, q) > UNDERFLOW
    return ListedOutcomes(loss[seen], p[seen], q[seen], shift[seen], 8 * EPS + 2 * wrong)


@dataclass(frozen=True)
class AllocatedStep(Step):
    """One epoch of ``batches`` batches, one of them with the record: there ``step`` runs, in others as if it were out.

    S is the mean of independent ratios Y = e^L of the step under "out". Y is 0 where only Q can produce an outcome;
    what only P can produce shows with the probability that it has in one step. *Proof that it dominates.* What turns
    the step's pair into that of a data set, given all that was released before, does so batch by batch (Blackwell). ∎
    """

    step: Step
    batches: Count
    side: Side = "upper"

    def _check_together(self) -> None:
        compared_with_out(self.step)

    def on(self, side: Side) -> AllocatedStep:
        return replace(self, step=self.step.on(side), side=side)

    @property
    def lowest(self) -> float:
        return self.step.lowest - (math.log(self.batches) * (1 + EPS) if self.step.only[1] > 0 else 0.0)

    @property
    def highest(self) -> float:
        return self.step.highest

    @property
    def noise(self) -> float:
        """Noise multiplier of Gaussian steps with every record, whose moments are known; else 0."""
        return self.step.noise if isinstance(self.step, SubsampledGaussianStep) and self.step.rate == 1 else 0.0

    @property
    def bounds_divergence(self) -> bool:
        return self.noise > 0 or super().bounds_divergence

    def divergence(self, order: FloatArray, direction: Direction) -> FloatArray:
        if not self.noise:
            return super().divergence(order, direction)
        (found,), t, square = self.pieces(), self.batches, 2 * self.noise**2
        loss, p = (found if direction == "remove" else found.swapped()).above(POINTS)
        log_p = np.log(p)
        least, farthest, lost = float(log_ndtr(-REACH)) + math.log(2), REACH + 1 / self.noise, sum(self.lost)
        most = order / square if direction == "remove" else np.minimum(order, (order - 1) / t + 1) / square
        known = np.isfinite(order) & (_terms(self.step, self.side)[3] == 0)
        for k, a in zip(np.flatnonzero(known), order[known].tolist(), strict=True):
            added = (a - 1) * math.log(t / (t - 1)) + (a - 1) * ((a - 1) / (t - 1) + 1) / square + least
            whole, rounds = a * (a - 1) / square, ROUNDS if direction == "remove" else 1
            tail = whole + np.logaddexp(log_ndtr(a / self.noise - farthest), log_ndtr(-REACH))
            for _ in range(rounds):
                if direction == "remove":
                    rest = (whole + least) / a + math.log(t / (t - 1))
                    added = a * float(np.logaddexp(tail / a - math.log(t), rest))
                far = math.log(t) + added
                within = log_moment(loss, log_p, a, math.exp(min(far, 0.0)) + (1 + a) * lost)
                whole = within if far <= 0 else float(np.logaddexp(within, far))
            most[k] = min(most[k], whole / (a - 1))
        return np.asarray(most * (1 + 8 * EPS))

    @property
    def only(self) -> tuple[float, float]:
        inside, out = self.step.only
        return inside, out**self.batches

    @property
    def lost(self) -> tuple[float, float]:
        beyond = math.fsum(piece.beyond + piece.swapped().beyond for piece in self.step.pieces())
        every = self.batches * (sum(self.step.lost) + beyond + _terms(self.step, self.side)[3] + 8 * EPS * self.only[1])
        return every, every

    def pieces(self) -> tuple[ListedOutcomes]:
        return (_allocated(self),)


@lru_cache(maxsize=8)
def _allocated(step: AllocatedStep) -> ListedOutcomes:
    point, mass, wrong, _ = _terms(step.step, step.side)
    middle = float(point[np.searchsorted(np.cumsum(mass), mass.sum() / 2)])
    return _mean_of_terms(step.batches, step.side, (point, mass), float(point[point > 0][0]) * _CELL, middle, wrong)


@lru_cache(maxsize=8)
def _terms(step: Step, side: Side) -> tuple[FloatArray, FloatArray, float, float]:
    """Ratios and Q masses of a step, a bound on the error of their logarithms, and mass that is left out.

    *Above*, a cell from A to B has its mass and mean kept at its ends: weights u at B and 1 − u at A. Where u ≤ ½ is
    too large, A′ < A with the same weights has the mean, where u > ½ is too small a B′ > B: laws larger in convex
    order, off by no more than what bounds on p, on rise and on rest differ by. An error of all Y by a factor is one of
    S by that factor.
    """
    pieces = step.pieces()
    if not (size := max(abs(end) for piece in pieces for end in piece.ends)) <= MOST_LOSS:
        raise InputError(f"step must have losses up to {MOST_LOSS:g} to be allocated, got {size:g}; add more noise")
    points, masses, wrong, lost = [np.zeros(1)], [np.array([step.only[1]])], 8 * EPS * (1 + size), 0.0
    for piece in pieces:
        if isinstance(piece, ListedOutcomes):
            points.append(np.exp(piece.loss))
            masses.append(piece.q * (1 + piece.relative if side == "upper" else 1 - piece.relative))
            wrong = max(wrong, 8 * EPS * (1 + size) + float(np.max(piece.shift)))
            continue
        edges = np.linspace(*piece.ends, BLOCK >> 2)
        least, most, rise, rest = piece.cut(edges, 4 * EPS * np.abs(edges))
        known = (most - least + rise + rest - least) <= _KNOWN * least
        low, high, grown = np.exp(edges[:-1]), np.exp(edges[1:]), np.expm1(np.diff(edges))
        lost += float(np.sum((most + rest / low)[~known]))
        least, most, rise, rest, low, high, grown = (x[known] for x in (least, most, rise, rest, low, high, grown))
        if side == "upper":
            up = rise / (least - rise) / grown
            up = np.clip(np.where(up > 0.5, (least - rest) / rest / grown, up), 0.0, 1.0)
            points, masses = [*points, low, high], [*masses, rest / low * (1 - up), rest / low * up]
        else:
            points, masses = [*points, least / rest * low], [*masses, (least - rise) / low]
        wrong = max(
            wrong, 8 * EPS * (1 + size) + 4 * float(np.max((most - least + rise + rest - least) / least, initial=0.0))
        )
    point, mass = np.concatenate(points), np.concatenate(masses)
    order = np.argsort(point)[mass[np.argsort(point)] > UNDERFLOW]
    return point[order], mass[order], wrong, lost
