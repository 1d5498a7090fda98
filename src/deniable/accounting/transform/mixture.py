"""Composed losses of Gaussian mixtures, known through their transform."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.steps.gaussian_mixture import Case, GaussianMixtureStep, one_record
from deniable.accounting.steps.ratios import ComplexArray, complex_log1p, randomized_response_cumulants
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.accounting.transform.decay import Envelope
from deniable.accounting.transform.line import TINY
from deniable.accounting.transform.mixture_nodes import OneWindow
from deniable.accounting.transform.mixture_step import LossTable, MixtureTransform, StepTransform
from deniable.accounting.transform.responses import randomized_responses_rounding, randomized_responses_turned
from deniable.curves import Direction, Side

_PLACES = (11.0, 13.0, 15.0, 18.0, 22.0, 28.0)  # v of the windows, above the largest slope of the loss, J·s
_WIDTH = 1.0  # their δ
_EDGES = np.geomspace(1.0, 40.0, 40)  # panels of the envelope, in units of 1/√K″, and
_BEYOND = 1.2 ** np.arange(1.0, 105.0)  # beyond these


@dataclass(frozen=True, eq=False)
class MixtureLoss:
    """Composition of steps that are Gaussian mixtures, one Gaussian and randomised responses.

    It has what transform inversion asks of a loss, as :class:`deniable.accounting.transform.composed.PrivacyLoss` has.

    Attributes
    ----------
    parts
        Every step and how often it is made.
    gaussian, randomized_responses
        As in ``whole``.
    whole
        The same loss as all other engines see it.
    window
        v and δ of the window, if there is one.
    """

    parts: tuple[tuple[GaussianMixtureStep, int], ...]
    gaussian: float
    randomized_responses: tuple[tuple[float, float], ...]
    whole: PrivacyLoss
    window: OneWindow | None = None

    @classmethod
    def of(cls, loss: PrivacyLoss) -> MixtureLoss | None:
        """Return a loss in this form; None if some steps are not."""
        parts: list[tuple[GaussianMixtureStep, int]] = []
        for step, count in loss.others:
            if not isinstance(step, GaussianMixtureStep):
                return None
            parts.append((step, count))
        parts += [(one_record(step), int(count)) for step, count in loss.gaussian_steps if step.rate < 1]
        return cls(tuple(parts), loss.gaussian, loss.randomized_responses, loss)

    @cached_property
    def steps(self) -> FloatArray:
        """How often every step is made."""
        return np.array([count for _, count in self.parts], dtype=np.float64)

    @cached_property
    def transforms(self) -> list[tuple[int, StepTransform]]:
        """Every step's transform, and how often it is made."""
        return [(count, MixtureTransform(step, self.window)) for step, count in self.parts]

    @property
    def symmetric(self) -> bool:
        """Whether both orders of the worlds have the same law of the loss."""
        return self.whole.symmetric

    @property
    def lowest(self) -> float:
        """Essential infimum of the composed loss."""
        return self.whole.lowest

    @property
    def highest(self) -> float:
        """Essential supremum."""
        return self.whole.highest

    def largest_log_ratio(self, direction: Direction, side: Side) -> float:
        """Bound the essential supremum of the loss, as of ``whole``."""
        return self.whole.largest_log_ratio(direction, side)

    @property
    def steepest(self) -> float:
        """Largest slope of a step's loss in u."""
        return max(case.records[-1] / step.noise for step, case in self._cases)

    @cached_property
    def _cases(self) -> list[tuple[GaussianMixtureStep, Case]]:
        """Those of mixtures."""
        return [(step, case) for step, _ in self.parts for case in step.cases]

    @cached_property
    def fades(self) -> bool:
        """Whether |M(c + it)|/t is known to have a finite integral: of atoms without any Gaussian nothing is."""
        return self.gaussian > 0 or all(transform.floor == -math.inf for _, transform in self.transforms)

    @cached_property
    def floor(self) -> float:
        """About the logarithm of what atoms keep of |M(½ + it)|/M(½), whatever t is; −∞ where a part fades."""
        if self.gaussian > 0:
            return -math.inf
        return sum((count * transform.floor for count, transform in self.transforms), start=0.0)

    @property
    def truncation(self) -> MixtureLoss:
        """The same without outcomes so rare that they only make real transforms at large c explode."""
        return self.truncations[0]

    @cached_property
    def truncations(self) -> tuple[MixtureLoss, ...]:
        """Windows, the narrowest first."""
        if self.window is not None or not self._cases:
            return (self,)
        return tuple(replace(self, window=(place + self.steepest, _WIDTH)) for place in _PLACES)

    @cached_property
    def dropped(self) -> tuple[float, float]:
        """Mass that windows, and weights left out, take from the composed law under "out" and under "in"."""
        out = inside = 0.0
        for step, count in self.parts:
            for case in step.cases:
                share = count * case.probability
                out, inside = out + share * case.lost, inside + share * case.lost
                if self.window is not None:
                    place, width = self.window
                    scale = math.hypot(1.0, width)
                    shift = np.array(case.records) / step.noise
                    out += share * float(ndtr(-place / scale))
                    inside += share * float(np.array(case.weight) @ ndtr((shift - place) / scale))
        return out * (1 + 1e-9), inside * (1 + 1e-9)

    def edge(self, c: float) -> float:
        """Nothing is cut: windows are smooth."""
        return 0.0

    @property
    def guide(self) -> None:
        """Cumulants are quick themselves."""
        return None

    def guessed_cumulants(self, c: float) -> tuple[float, float, float]:
        """The cumulants."""
        return self.cumulants(c)

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """K(c), K′(c) and K″(c) of the composed loss under "out", for real c."""
        k = self.gaussian * c * (c - 1) / 2
        first, second = self.gaussian * (c - 0.5), self.gaussian
        for count, transform in self.transforms:
            one = transform.real(c)
            k, first, second = k + count * one.log_m, first + count * one.first, second + count * one.second
        for epsilon, times in self.randomized_responses:
            more = [float(x) for x in randomized_response_cumulants(epsilon, np.asarray(c))]
            k, first, second = k + times * more[0], first + times * more[1], second + times * more[2]
        return k, first, second

    def log_mgf(self, points: FloatArray) -> FloatArray:
        """K at several real points."""
        total: FloatArray = self.gaussian * points * (points - 1) / 2
        for count, transform in self.transforms:
            total = total + count * transform.log_mgf(points)
        for epsilon, times in self.randomized_responses:
            total = total + times * randomized_response_cumulants(epsilon, points)[0]
        return total

    def log_mgf_known(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Those of ``points`` (near ones first) at which K is small enough to be computed, and K there."""
        try:
            return points, self.log_mgf(points)
        except TooSlowError:
            found: list[float] = []
        for point in points:
            try:
                found.append(self.cumulants(float(point))[0])
            except TooSlowError:
                break
        if not found:
            raise TooSlowError("no real transform is in reach")
        return points[: len(found)], np.array(found)

    @property
    def furthest(self) -> float:
        """Order beyond which real transforms are not worth having."""
        if not self._cases:
            return math.inf
        least = min(case.weight[-1] for _, case in self._cases)
        return min(2 / self.steepest**2 * (40 - 2 * math.log(least)), 1000 / self.steepest)

    def line(self, c: float, t_max: float = 0.0, digits: float = 0.0) -> MixtureLine:
        """Prepare evaluations at w = c + it for 0 ≤ t ≤ ``t_max``, to far below rounding."""
        return MixtureLine(self, c, t_max)

    def envelope(self, c: float, width: float) -> Envelope:
        """Bound |M(c + it)|/M(c) of the composed loss, on panels and beyond.

        On Im u = y one step has |M(c + it)| ≤ ∫ |φ·r^c|·e^{−t·arg r} du, which falls as t grows: its value at the
        lower end of a panel holds on all of it. Continued to heights d ≤ y off that line the integrand is at most
        e^{F(y + d)} times φ·r^c, because arg r at y + d and at y − d are not negative: sums are as exact as those of
        the transform.

        Beyond the last panel e^{−tA} ≤ (t_0/t)^p·max over x ≥ 1 of x^p·e^{−x·t_0·A}: with p = 1/T for T steps, the
        composed transform falls at least like t_0/t there.
        """
        edges: FloatArray = np.concatenate([_EDGES, _EDGES[-1] * _BEYOND]) / width
        log_bound = -self.gaussian * edges**2 / 2
        log_last = float(log_bound[-1])
        total = float(self.steps.sum())
        for count, transform in self.transforms:
            fallen, last = transform.decay(c, edges, total)
            log_bound += count * np.minimum(fallen, 0.0)
            log_last += count * last
        rest = math.exp(log_last) if log_last < 0 else math.inf
        if self.gaussian > 0:  # ∫ e^{−gt²/2}/t beyond t_0 is at most e^{−gt_0²/2}/(g·t_0²)
            rest = min(rest, math.exp(float(log_bound[-1])) / (self.gaussian * float(edges[-1]) ** 2))
        return Envelope(edges, log_bound, rest)


@dataclass(frozen=True, eq=False)
class MixtureLine:
    """The transform on the line Re w = c."""

    of: MixtureLoss
    c: float
    furthest: float = 0.0

    @cached_property
    def cumulants(self) -> tuple[float, float, float]:
        """K, K′ and K″ of the composed loss at c."""
        return self.of.cumulants(self.c)

    @cached_property
    def _tables(self) -> list[LossTable]:
        return [transform.table(self.c, self.furthest) for _, transform in self.of.transforms]

    @property
    def loss(self) -> FloatArray:
        """Losses at the nodes of all steps: a sum has as many terms."""
        return np.concatenate([np.zeros(0), *(table.loss.real for table in self._tables)])

    @property
    def real_error(self) -> FloatArray:
        """Bound on the error of M(c) of one step, relative to it: sums on the real line have less than those off it."""
        errors = [2 * table.rounding * (abs(self.c) + 1) + 4 * table.missed for table in self._tables]
        return np.array(errors, dtype=np.float64)

    def log_transform(self, t: FloatArray, spacing: float | None = None) -> ComplexArray:
        """K(c + it) − K(c) of the composed loss (imaginary part modulo 2π·steps)."""
        return self.transform(t, spacing)[0]

    def transform(self, t: FloatArray, spacing: float | None = None) -> tuple[ComplexArray, FloatArray]:
        """K(c + it) − K(c) of the composed loss and a bound on the error of its exponential.

        ``spacing`` says that t is spacing·(0, 1, 2, …), which makes long sums much cheaper. Errors of single steps are
        put together as in :meth:`deniable.accounting.transform.line.Line.transform`.
        """
        loss = self.of
        total = np.asarray(loss.gaussian * (1j * t * (self.c - 0.5) - t**2 / 2), dtype=np.complex128)
        size = np.hypot(self.c, t)
        turned = np.abs(total)
        responses, relative_error = randomized_responses_turned(loss.randomized_responses, self.c, t)
        relative_error = relative_error + 2 * EPS * loss.gaussian * (abs(self.c) + 1) * size
        relative_error += randomized_responses_rounding(loss.randomized_responses, self.c, size)
        known = loss.gaussian * abs(self.c * (self.c - 1)) / 2
        for (count, transform), table in zip(loss.transforms, self._tables, strict=True):
            real = transform.real(self.c)
            one = complex_log1p(transform.difference(table, self.c, t, spacing) / real.size)
            known += count * abs(real.log_m)
            total = total + count * one
            turned = turned + count * np.abs(one)
            error = 2 * table.rounding * size + 4 * table.missed + 4 * EPS * np.abs(one)
            relative_error = relative_error + count * np.logaddexp(0.0, np.log(error + TINY) - one.real)
        total, turned = total + responses, turned + np.abs(responses)
        summands = 1 + len(loss.parts) + len(loss.randomized_responses)
        relative_error = relative_error + (4 + summands) * EPS * (turned + known) + 64 * EPS
        with np.errstate(over="ignore"):
            grown = np.exp(total.real) * np.expm1(np.minimum(relative_error, 1.0))
            return total, np.where(relative_error < 1, grown, np.exp(total.real + relative_error))


Transformed = PrivacyLoss | MixtureLoss  # what is known through a transform that lines can be laid for


def envelope_of(loss: Transformed, c: float, width: float, target: float, work: float = math.inf) -> Envelope:
    """Return a bound on |M(c + it)|/M(c) of the composed loss."""
    if isinstance(loss, MixtureLoss):
        return loss.envelope(c, width)
    return Envelope.of(loss, c, width, target, work)
