"""Epochs of random allocation, composed with each other and with everything else, on a certified lattice.

The one-epoch law of S = dP/dQ comes from :mod:`deniable.accounting.steps.allocation`, once larger and once smaller in
convex order. Both are brought onto a lattice of log S in the same way, so that log-ratios of independent parts add on
one lattice; the composition is that of :mod:`deniable.accounting.engines.grid`, tilted to the tail that is asked for.
Errors of an epoch's law that are relative, or whose place is known, are charged to its tilted law
(:mod:`deniable.accounting.steps.law_errors`); what may lie anywhere is charged to the tails themselves, under "out" and
"in", and so is what is placed where that costs less.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr

from deniable._check import FloatArray
from deniable._floats import EPS, MOST_EXPONENT
from deniable._search import bisect
from deniable.accounting.engines.cells import Cells, LatticeLaw, above, all_cells, below, log_sum, widest_step
from deniable.accounting.engines.epochs import Epochs
from deniable.accounting.engines.failure import with_failure
from deniable.accounting.engines.finite import FiniteTradeoff
from deniable.accounting.engines.grid import GridTradeoff
from deniable.accounting.engines.inversion import Region
from deniable.accounting.engines.lattice import MIRRORED, Lattice, Product, window_of
from deniable.accounting.loss import sum_of_squares
from deniable.accounting.renyi import loss_divergence
from deniable.accounting.steps.allocation import SHARPEST, Allocation
from deniable.accounting.steps.allocation_moments import log_moments
from deniable.accounting.steps.finite_law import FiniteLaw
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.curves import BracketTradeoff, Direction, Side, SmallestTradeoff, Tradeoff
from deniable.mechanisms import GaussianDP, Mechanism, RandomAllocation, SubsampledGaussian

METHOD = "law of an epoch bracketed in convex order, composed on a certified grid"
_BRACKETED = "the upper bound is of a stronger attacker, the lower one of what some attackers reach"
_THRESHOLDS = (0.5, 0.65, 0.8, 1.0)  # for the largest batch, in units of a contribution
POINTS = 1 << 19  # of the composed lattice
_FEW_EPOCHS = (8, 128)  # that half of these points, and half of those, serve as well
_SHARES = (0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # of a tilt: large terms grow faster with it than their tail
_ROUNDED = 1e-13  # of a composed law, about
_FARTHEST = 12.0  # tilts beyond 0 and 1, in units of the composed law's spread
_OCTAVE = 4  # spacings an octave: neighbouring thresholds share the laws laid on them
_LARGEST = 1e300  # μ² of a Gaussian part: nothing is left to hide
_BISECTIONS = 10  # of the tilt: only the width depends on how near it comes


@dataclass(frozen=True, eq=False)
class AllocatedLoss(PrivacyLoss):
    """A composed loss with epochs of random allocation in it."""

    epochs: tuple[Epochs, ...] = ()
    side: Side = "upper"

    @cached_property
    def lower(self) -> AllocatedLoss:
        """The same with cumulants of the laws that bound from below."""
        return replace(self, side="lower")

    @classmethod
    def with_epochs(cls, rest: PrivacyLoss, epochs: tuple[Epochs, ...]) -> AllocatedLoss:
        """Add epochs to a loss."""
        return cls(
            rest.noise, rest.rate, rest.steps, rest.gaussian, rest.randomized_responses, rest.others, epochs=epochs
        )

    @property
    def rest(self) -> PrivacyLoss:
        """All but the epochs."""
        return PrivacyLoss(self.noise, self.rate, self.steps, self.gaussian, self.randomized_responses, self.others)

    @property
    def _alone(self) -> bool:
        return self.steps.size == 0 and self.gaussian == 0 and not (self.randomized_responses or self.others)

    @property
    def symmetric(self) -> bool:
        """Adding and removing a record differ in every epoch."""
        return False

    @cached_property
    def lowest(self) -> float:
        """−∞: the largest and the least term are unbounded."""
        return -math.inf

    @cached_property
    def highest(self) -> float:
        """∞, likewise."""
        return math.inf

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """Those of the rest and, as a guide, those of the epochs."""
        found = np.zeros(3) if self._alone else np.array(super().cumulants(c))
        for part in self.epochs:
            found = found + part.count * np.array(part.guide(self.side).cumulants(c))
        return float(found[0]), float(found[1]), float(found[2])

    def log_mgf(self, points: FloatArray) -> FloatArray:
        """K at several points, likewise."""
        found = np.zeros(points.shape) if self._alone else super().log_mgf(points)
        return found + sum(part.count * part.guide(self.side).log_mgf(points) for part in self.epochs)

    def reach(self) -> tuple[float, float]:
        """Least and largest loss of one epoch."""
        ends = [part.guide(self.side).ends for part in self.epochs]
        return min(low for low, _ in ends), max(high for _, high in ends)


@dataclass(frozen=True)
class AllocationTradeoff(GridTradeoff):
    """Two-sided bounds on a composition with epochs of random allocation in it."""

    loss: AllocatedLoss
    points: int = POINTS

    def _hockey_stick_at(self, log_gamma: float, direction: Direction, side: Side) -> float:
        """Beyond a lattice: H_γ falls with γ, and H_γ − (1 − γ), the hockey stick of the other order, rises."""
        lattice = self._lattice(log_gamma, direction, side)
        if side == "upper" and not lattice.holds(log_gamma):
            last = lattice.first + lattice.spacing * (lattice.above_out.size - 2)
            if log_gamma > last:
                return super()._hockey_stick_at(last, direction, side)
            least = lattice.first + lattice.spacing
            known = super()._hockey_stick_at(least, direction, side)
            between = math.exp(least) * (1 + 8 * EPS) - math.exp(log_gamma) * (1 - 8 * EPS)
            return min((known + between) * (1 + 4 * EPS), 1.0)
        return super()._hockey_stick_at(log_gamma, direction, side)

    def _lattice(self, threshold: float, direction: Direction, side: Side) -> Lattice:
        """Tilts stop somewhere: all thresholds beyond share a lattice."""
        low, high = self._typical
        if direction == "remove":
            low, high = -high, -low
        return super()._lattice(min(max(threshold, low), high), direction, side)

    def _design(self, threshold: float) -> float:
        """Beyond the losses that are typical of the last tilts, these; else as for other grids."""
        low, high = self._typical
        return threshold if threshold in (low, high) else super()._design(threshold)

    def _renyi(self, order: FloatArray, direction: Direction) -> FloatArray:
        """Moments of an epoch, exact at whole orders for adding, and those of the rest."""
        finite = order[np.isfinite(order)]
        total = np.zeros(finite.shape) if self.loss._alone else loss_divergence(self.loss.rest, finite, direction)
        for epochs in self.loss.epochs if finite.size else ():
            moments = log_moments(epochs.step.sigma, epochs.step.batches, finite if direction == "add" else 1 - finite)
            total = total + epochs.count * moments / (finite - 1) * (1 + 4 * EPS)
        found = np.full(order.shape, np.inf)
        found[np.isfinite(order)] = total * (1 + 4 * len(self.loss.epochs) * EPS)
        return found

    @cached_property
    def _typical(self) -> tuple[float, float]:
        low, high = _tilts(self.loss)
        return self.loss.cumulants(low)[1], self.loss.cumulants(high)[1]

    def _composed(self, design: float, direction: Direction, side: Side) -> Lattice:
        loss = self.loss if side == "upper" else self.loss.lower
        return _composed(loss, design, direction, side, self.points)


def _tilts(loss: AllocatedLoss) -> tuple[float, float]:
    """The least and the largest tilt: 0 and 1 beside other laws, whose errors are known under these."""
    if loss.others:
        return 0.0, 1.0
    farthest = _FARTHEST / math.sqrt(loss.cumulants(0.5)[2])
    return -farthest, 1 + farthest


def _tilt(loss: AllocatedLoss, threshold: float) -> tuple[Region, float]:
    """Region and tilt at which a threshold is typical, or the nearest."""
    low, high = _tilts(loss)
    c = high if threshold >= loss.cumulants(high)[1] else low
    if loss.cumulants(low)[1] < threshold < loss.cumulants(high)[1]:
        ends = bisect(lambda c: loss.cumulants(float(c))[1] < threshold, low, high, halvings=_BISECTIONS)
        c = float(ends[0] + ends[1]) / 2
    if 0 < c < 1:
        return "middle", c
    tried = [1 + share * (c - 1) if c >= 1 else share * c for share in _SHARES]
    # a lattice serves thresholds on either side, of which those further out have less to be charged to
    further = threshold + math.copysign(math.sqrt(loss.cumulants(0.5)[2]), c)
    return "right" if c >= 1 else "left", min(tried, key=lambda c: _charged(loss, c, further))


def _charged(loss: AllocatedLoss, c: float, threshold: float) -> float:
    """About the logarithm of what a tilt's errors are in the tail: it chooses a tilt and bounds nothing."""
    scale = math.exp(min(loss.cumulants(c)[0] - c * threshold, MOST_EXPONENT))
    wrong = sum((part.count * part.guide(loss.side).wrong(c) for part in loss.epochs), np.array([[_ROUNDED, 0.0]]))
    return float(np.log(np.min(scale * wrong[:, 0] + wrong[:, 1])))


def _composed(loss: AllocatedLoss, threshold: float, direction: Direction, side: Side, points: int) -> Lattice:
    """Build the tilted composed law around a threshold."""
    region, c = _tilt(loss, threshold if direction == "add" else -threshold)
    width, low, high, witnesses = window_of(loss, c)
    least, largest = loss.reach()
    widest = max(largest - least, 0.0 if loss._alone else widest_step(loss, c))
    widest = max([widest, *(end - start for start, end in (step.range(c) for step, _ in loss.others))])
    spacing = max((high - low) / (points - 8), widest / points)
    spacing = 2 ** (math.ceil(_OCTAVE * math.log2(spacing)) / _OCTAVE)
    if direction == "remove":
        low, c, region, witnesses = -high, 1 - c, MIRRORED[region], (-witnesses[1], -witnesses[0])
    epochs = [part.tilted(spacing, side, 1 - c if direction == "remove" else c) for part in loss.epochs]
    charges = sum((charged for _, charged in epochs), np.zeros((3, 2)))
    errors: list[float] = []
    laws = _laws(loss, [law for law, _ in epochs], spacing, c, direction, side, errors)
    product = Product.of(laws, (c, c + witnesses[0], c + witnesses[1], 0.0), spacing, points)
    found = product.lattice(region, c, threshold, width, low, witnesses, spacing, side, points, sum(errors))
    # errors of several parts at once: (1 + x)^n − 1 ≤ e^{nx} − 1, and a lost part beside any others
    every = math.exp(min(float(charges[1].sum()), MOST_EXPONENT))
    (error, lost), *instead = (
        (math.expm1(min(math.log1p(found.error) + float(part), MOST_EXPONENT)), float(lost) * every)
        for part, lost in charges
    )
    return replace(found, parts=None, error=error, lost=lost, instead=tuple(instead))


def _laws(
    loss: AllocatedLoss,
    epochs: list[LatticeLaw],
    spacing: float,
    c: float,
    direction: Direction,
    side: Side,
    errors: list[float],
) -> Iterator[tuple[LatticeLaw, float]]:
    """Every part on the lattice; errors of the other steps' tilted laws are added to ``errors``."""
    if not loss._alone:
        tilt = 1 - c if direction == "remove" else c
        for part in all_cells(loss, spacing, tilt):
            cells = part.flipped(spacing) if direction == "remove" else part
            yield (above(cells, spacing), 0.0) if side == "upper" else below(cells, spacing)
    for step, count in loss.others:
        found = step.cells(spacing, 1 - c if direction == "remove" else c)
        # masses above an edge are known up to a factor: of single cells the errors add up
        tails = max(float(np.cumsum(mass[::-1]).sum()) for mass in (found.p, found.q))
        lost = max(found.lost) + 2 * found.relative_error * tails + found.centre_error
        lost += max(1 - float(found.p.sum()), 1 - float(found.q.sum()), 0.0)  # what one world alone produces, too
        part = Cells(found.first, found.p, found.q, found.centre, float(count), 0.0, 0.0)
        cells = part.flipped(spacing) if direction == "remove" else part
        law, cost = (above(cells, spacing), 0.0) if side == "upper" else below(cells, spacing)
        errors.append(count * lost / math.exp(log_sum(law.log_mass + c * law.values(spacing))))
        yield law, cost
    for law in epochs:
        values = law.values(spacing)
        flipped = LatticeLaw(-float(values[-1]), (law.log_mass + values)[::-1], law.steps, law.lost)
        yield (flipped if direction == "remove" else law), 0.0


def allocated(
    parts: Sequence[RandomAllocation],
    rest: Sequence[Mechanism],
    others: Callable[[list[Mechanism]], Tradeoff],
    finer: int,
) -> Tradeoff:
    """Return the trade-off of epochs of random allocation and the ``rest``; ``others`` gives that of Gaussian parts.

    ``finer`` times as many points of an epoch's law as usual are laid.

    k of t batches, from above: a random partition of the batches into r = t mod k groups of ⌊t/k⌋ + 1 and k − r of
    ⌊t/k⌋, known to the attacker, with one batch per group, is a uniform choice of k batches; all partitions give the
    same curve, and H is jointly convex. From below: the sum of an epoch's batches is N(0, tσ²) against N(k, tσ²), and
    whether the largest exceeds a threshold is one bit per epoch. Noise so small that terms overflow is bounded in the
    same way, from above by revealing the batches.
    """
    upper, exact = Counter[Allocation](), Counter[Allocation]()
    full: list[float] = []  # μ² of Gaussian parts: of both bounds, of the upper one, of the lower one
    revealed: list[float] = []
    loose: list[float] = []
    wide = []
    for part in parts:
        sigma, t, k, epochs = part.noise_multiplier, part.batches, part.batches_per_record, part.epochs
        if k == t:
            full.append(_squared(epochs * t, sigma))
            continue
        if sigma < SHARPEST:
            revealed.append(_squared(epochs * k, sigma))
        else:
            size, larger_groups = divmod(t, k)
            upper[Allocation(sigma, size + 1, finer)] += larger_groups * epochs
            upper[Allocation(sigma, size, finer)] += (k - larger_groups) * epochs
        if k == 1 and sigma >= SHARPEST:
            exact[Allocation(sigma, t, finer)] += epochs
        else:
            wide.append(part)
            loose.append(_squared(epochs * k * (k / t), sigma))
    revealed += [_squared(count, step.sigma) for step, count in upper.items() if step.batches == 1]
    steps = [Epochs(step, count) for step, count in upper.items() if step.batches > 1 and count > 0]
    known = {epochs.step: epochs for epochs in steps}
    gentle = [m for m in rest if not _is_sharp(m)]
    found = _composition(gentle, tuple(steps), sum_of_squares(full + revealed) * (1 + 16 * EPS), others)
    sharp = [m for m in rest if isinstance(m, SubsampledGaussian) and _is_sharp(m)]
    if not (wide or sharp):
        return found
    never = math.fsum(m.steps * m.records_per_person * math.log1p(-m.sample_rate) for m in sharp)
    above_all = with_failure(found, min(-math.expm1(never) * (1 + 16 * EPS), 1.0))
    ours = tuple(known.get(step, Epochs(step, count)) for step, count in exact.items())
    reached = [_composition(gentle, ours, sum_of_squares(full + loose) * (1 - 16 * EPS), others)]
    for part in wide:
        reached += [bit for bit in (_largest_batch(part, level) for level in _THRESHOLDS) if bit is not None]
    return BracketTradeoff(above_all, SmallestTradeoff(tuple(reached)), method=f"{METHOD}; {_BRACKETED}")


def _squared(count: float, sigma: float) -> float:
    """count/σ², ∞ rather than an OverflowError."""
    shift = 1 / sigma
    return count * shift * shift


def _is_sharp(mechanism: Mechanism) -> bool:
    return isinstance(mechanism, SubsampledGaussian) and mechanism.noise_multiplier < 0.1 and mechanism.sample_rate < 1


def _composition(
    rest: Sequence[Mechanism], epochs: tuple[Epochs, ...], squared: float, others: Callable[[list[Mechanism]], Tradeoff]
) -> Tradeoff:
    parts = (
        [*rest, GaussianDP(math.sqrt(min(squared, _LARGEST)))] if squared > 0 or not (rest or epochs) else list(rest)
    )
    if not epochs:
        return others(parts)
    loss = AllocatedLoss.with_epochs(PrivacyLoss.of(parts), epochs)
    quick = loss._alone and all(part.step.finer == 1 for part in epochs)
    count = sum(part.count for part in epochs) if quick else math.inf
    points = POINTS >> sum(count <= few for few in _FEW_EPOCHS)
    return AllocationTradeoff(loss, points, method=METHOD)


def _largest_batch(part: RandomAllocation, level: float) -> Tradeoff | None:
    """The attacker who counts the epochs in which some batch exceeds ``level``."""
    sigma, t, k = part.noise_multiplier, part.batches, part.batches_per_record
    log_false = float(log_ndtr(level / sigma))
    false = -math.expm1(t * log_false)
    hit = -math.expm1((t - k) * log_false + k * float(log_ndtr((level - 1) / sigma)))
    if not 1e-12 < false < hit < 1 - 1e-12:
        return None
    error = 1e-11  # of either probability, and of its complement: t·log Φ is good to 1e-13 of itself
    return FiniteTradeoff.of(FiniteLaw.bits(part.epochs, hit, false, error))
