"""Outcomes of one step, as lines and as atoms: what P and Q give to cells of the privacy loss, rounded safely.

For edges x_0 < x_1 < … a step gives, cell by cell, bounds ``least`` and ``most`` on its P mass p,
``rise`` ≥ E_P[1 − e^{−(L − x_i)}] and ``rest`` ≥ E_P[e^{−(L − x_i)}] = Q·e^{x_i} (both over the cell). Nothing else
of a mechanism is needed. The other order of the two laws is another step (:meth:`OutcomeLine.swapped`), so that no
cell is ever read backwards.

*Edges.* A cell is what lies between two outcomes u_i < u_{i+1}, doubles that are taken as they are. They are chosen
such that L(u_{i+1}) ≤ x_{i+1} for certain: the loss is worked out there again, with a bound on its error, and an
outcome that fails the check is replaced by the one before. How far L(u_i) may lie below x_i, the *gap*, is known then
too. Losses below x_i are raised to it: with M = max(L, x_i), E_P[1 − e^{−(M − x_i)}] exceeds E_P[1 − e^{−(L − x_i)}]
by at most the gap times p, which ``rise`` contains. So no label needs to be moved.

*Quadrature.* Densities of P and of Q are sums of w·f, f = φ(u − m), entire functions. A Gauss–Legendre rule of n nodes
on a cell of middle c and half-length h is wrong by at most h·(64/15)·max|f|·ρ^{2 − 2n}/(1 − ρ^{−2}), |f| being taken on
the ellipse of Bernstein with parameter ρ (Trefethen, SIAM Review 50 (2008), Theorem 4.5). There Re u is within hR of c
and |Im u| ≤ hR, R = (ρ + 1/ρ)/2, so that |f| exceeds its least value on the cell by at most
e^{(1 + R)h(|c| + |m|) + (hR)²}. With a = h·(|c| + 14 + max|m|) and ρ = 4(n − 1)/a, hR is at most 1.1 for n = 5, 2.9 for
n = 12, and the error below 1e-16 of the integral for n = 5 up to a = 0.05, for n = 12 up to a = 2. The integrand of
``rest`` is e^{x_i} times Q's density and that of ``rise`` the difference of the two: 4e-16 of p covers it. Wider cells
are known by differences of Φ, each tail from its own side.

*Rounding.* Of a mass by quadrature an exponent (u − m)²/2 errs by 2ε·(|u| + |m|)², and sums of positive terms by a few
ε: all of it relative. Φ(x) errs by 64ε·(1 + x²) of itself (benchmarks/accounting/special_functions.py), and its
argument by a rounding: what that makes of a difference is added up cell by cell. Where Q's mass leaves the doubles,
``rise`` and ``rest`` stand for all of p, which is safe for either.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self, TypeAlias

import numpy as np

from deniable._check import FloatArray, Indices, InputError
from deniable._floats import EPS, PRODUCT_EXPONENT
from deniable._special import ndtr
from deniable.accounting.sizes import BLOCK, ROUNDS, UNDERFLOW
from deniable.accounting.steps.ratios import plain_losses, sampled_error, sampled_losses

Losses = Callable[[FloatArray], FloatArray]
_RULES = ((5, 0.05), (12, 2.0))  # nodes, and the a up to which they serve
_TABLE = 4001  # points of a line between which an outcome is looked for
REACH = 14.0  # deviations beyond which a normal law has 1e-44
_NORMAL = 64.0  # roundings by which Φ(x) errs, over 1 + x²


class Cut(NamedTuple):
    """Masses of cells between consecutive edges."""

    least: FloatArray
    most: FloatArray
    rise: FloatArray
    rest: FloatArray


class ListedOutcomes(NamedTuple):
    """Outcomes one by one: losses known to ``shift``, positive masses of P and of Q to a factor 1 ± ``relative``.

    Below, both masses of an outcome may be too small by the same factor, above too large.

    Examples
    --------
    See ``Step``.
    """

    loss: FloatArray
    p: FloatArray
    q: FloatArray
    shift: float | FloatArray
    relative: float

    def swapped(self) -> ListedOutcomes:
        """The same with P and Q exchanged."""
        return self._replace(loss=-self.loss, p=self.q, q=self.p)

    def sampled(self, rate: float) -> ListedOutcomes:
        """The same where P is made with probability ``rate``, else Q."""
        shift = sampled_error(self.loss, np.broadcast_to(self.shift, self.loss.shape), rate)
        p = (1 - rate) * self.q + rate * self.p
        return ListedOutcomes(sampled_losses(self.loss, rate), p, self.q, shift, self.relative + 4 * EPS)

    @property
    def beyond(self) -> float:
        """P mass that is in no cell."""
        return 0.0

    @property
    def ends(self) -> tuple[float, float]:
        """Losses between which all lie, their errors allowed for."""
        low, high = float(self.loss.min()), float(self.loss.max())
        shift = 2 * float(np.max(self.shift))
        return low - shift - 16 * EPS * (1 + abs(low)), high + shift + 16 * EPS * (1 + abs(high))

    def sample(self) -> tuple[FloatArray, FloatArray]:
        """Losses and about their P masses: a guide."""
        return self.loss, self.p

    def above(self, count: int) -> tuple[FloatArray, FloatArray]:
        """Losses, moved away from 0 by their error, and P masses, rounded up."""
        return self.loss + np.where(self.loss < 0, -1, 1) * self.shift, self.p * (1 + self.relative)

    def cut(self, edges: FloatArray, blur: FloatArray) -> Cut:
        """An atom belongs to the cell whose upper edge it surely does not exceed."""
        near = np.clip(np.searchsorted(edges, self.loss), 0, edges.size - 1)
        shift = self.shift + 2 * np.maximum(blur[near], blur[np.maximum(near - 1, 0)])
        cell = np.searchsorted(edges, self.loss + shift, side="left") - 1
        above, size = self.loss - edges[cell], edges.size - 1
        rise = np.clip(-np.expm1(-(above + 2 * shift)), 0.0, 1.0)
        rest = np.exp(2 * shift - above)
        known = self.relative + 16 * EPS
        factors = (np.full_like(rise, 1 - known), np.full_like(rise, 1 + known), rise * (1 + known), rest * (1 + known))
        return Cut(*(np.bincount(cell, self.p * x, size).astype(np.float64) for x in factors))


@dataclass(frozen=True, eq=False, kw_only=True)
class OutcomeLine(ABC):
    """Outcomes u in [low, high] along which the loss rises.

    Attributes
    ----------
    loss, wrong
        L(u), and a bound on the error of what ``loss`` returns.
    low, high
        Ends of the line, infinite where the loss has a limit there.
    outcome
        About the u at which the loss is x, where there is a formula.

    Examples
    --------
    See ``Step``.
    """

    loss: Losses
    wrong: Losses
    low: float
    high: float
    outcome: Losses | None = None

    @abstractmethod
    def cut(self, edges: FloatArray, blur: FloatArray) -> Cut:
        """Masses in cells of the loss; the edges go beyond :attr:`ends` and are off by up to ``blur``."""

    @abstractmethod
    def _density(self, u: FloatArray) -> FloatArray:
        """About P's density: a guide."""

    def swapped(self) -> Self:
        """The same with P and Q exchanged: outcomes and losses change sign."""
        loss, wrong, outcome = self.loss, self.wrong, self.outcome
        return replace(
            self,
            loss=lambda u: -loss(-u),
            wrong=lambda u: wrong(-u),
            low=-self.high,
            high=-self.low,
            outcome=outcome and (lambda x: -outcome(-x)),
        )

    def sampled(self, rate: float) -> OutcomeLine:
        """The same where P is made with probability ``rate``, else Q."""
        raise InputError(f"{type(self).__name__} must have a method sampled(rate) for a step to be sampled; see Step")

    def above(self, count: int) -> tuple[FloatArray, FloatArray]:
        """Losses and P masses of a pair that is easier to tell apart: split onto so many edges."""
        edges = np.linspace(*self.ends, count)
        _, most, rise, _ = self.cut(edges, 4 * EPS * np.abs(edges))
        up = np.clip(rise / -np.expm1(-np.diff(edges)), 0.0, most)
        return edges, np.append(most - up, 0.0) + np.append(0.0, up)

    @property
    def beyond(self) -> float:
        """P mass, at most, that is on the line but in no cell."""
        return 0.0

    @property
    def _within(self) -> tuple[float, float]:
        """Finite ends between which all but 1e-43 of both laws lies."""
        return self.low, self.high

    @cached_property
    def _bounds(self) -> tuple[float, float]:
        """Ends of the outermost cells: infinite ones where the loss has a limit."""
        low, high = self._within
        return (self.low if np.isinf(self.low) and np.isfinite(self._at(self.low)) else low), (
            self.high if np.isinf(self.high) and np.isfinite(self._at(self.high)) else high
        )

    def _at(self, u: float) -> float:
        with np.errstate(all="ignore"):
            return float(self.loss(np.array([u]))[0])

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Losses between which all lie, their errors allowed for."""
        u = np.array(self._bounds)
        at, wrong = self.loss(u), 4 * self.wrong(u)
        wrong += 16 * EPS * np.abs(at)
        return float(at[0] - wrong[0]), float(at[1] + wrong[1])

    @cached_property
    def _table(self) -> tuple[FloatArray, FloatArray]:
        u = np.linspace(*self._within, _TABLE)
        return u, np.maximum.accumulate(self.loss(u))

    def sample(self) -> tuple[FloatArray, FloatArray]:
        """Losses and about the P masses near them: a guide."""
        u, loss = self._table
        return loss, self._density(u) * (u[1] - u[0])

    def _outcomes(self, x: FloatArray) -> FloatArray:
        """About the u at which the loss is x: a table, then secants kept between its neighbours."""
        low, high = self._bounds
        if self.outcome is not None:
            with np.errstate(all="ignore"):
                return np.clip(np.nan_to_num(self.outcome(x), nan=low, posinf=high, neginf=low), low, high)
        u, known = self._table
        place = np.searchsorted(known, x, side="left")
        found = np.where(place == 0, low, high)
        k = np.flatnonzero((place > 0) & (place < known.size))
        place, x = place[k], x[k]
        a, b, fa, fb = u[place - 1], u[place], known[place - 1] - x, known[place] - x
        was, wide = np.zeros(k.size), np.arange(k.size)
        for _ in range(ROUNDS):  # Illinois: an end that stays twice is halved; what is missed becomes a gap
            with np.errstate(all="ignore"):
                c = a - fa * ((b - a) / (fb - fa))
            c = np.where(np.isfinite(c), np.clip(c, a, b), (a + b) / 2)
            found[k[wide]] = c
            fc = self.loss(c) - x
            below = fc < 0
            now = np.where(below, -1.0, 1.0)
            same = now == was
            fa, fb = np.where(below, fc, np.where(same, fa / 2, fa)), np.where(below, np.where(same, fb / 2, fb), fc)
            a, b = np.where(below, c, a), np.where(below, b, c)
            more = np.abs(fc) > 4 * EPS * (EPS + np.abs(x))
            if not more.any():
                break
            a, b, fa, fb, x, was = (z[more] for z in (a, b, fa, fb, x, now))
            wide = wide[more]
        return found

    def _outcomes_below(self, edges: FloatArray, blur: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Outcomes whose losses surely do not exceed the edges, their gaps, and bounds on the error of the loss."""
        low, high = self._bounds
        if not (edges[0] <= self.ends[0] and self.ends[1] <= edges[-1]):
            raise ValueError("edges must enclose all losses")
        near = np.interp(edges, *self._table[::-1]) if self.outcome is None else self._outcomes(edges)
        u = self._outcomes(edges - 2 * (self.wrong(near) + blur))
        wrong = self.wrong(u) + blur
        with np.errstate(invalid="ignore"):
            sure = (self.loss(u) + wrong <= edges) | (u == low)
        u = np.maximum.accumulate(np.where(sure, u, low))
        u[0], u[-1] = low, high  # nothing is left out
        wrong = self.wrong(u) + blur
        with np.errstate(invalid="ignore"):
            gap = np.nan_to_num(np.maximum(edges - self.loss(u) + wrong, 0.0), nan=0.0, posinf=0.0)
        return u, gap, wrong


@dataclass(frozen=True, eq=False, kw_only=True)
class NormalOutcomes(OutcomeLine):
    """Laws Σ weight·N(mean, 1) of the outcome.

    Attributes
    ----------
    inside, outside
        (weights, means) of P and of Q.
    share
        Probability of this line, of which both laws are a part.
    error
        Of weights, relative.

    Examples
    --------
    See ``Step``.
    """

    inside: tuple[FloatArray, FloatArray]
    outside: tuple[FloatArray, FloatArray]
    share: float
    error: float
    low: float = -math.inf
    high: float = math.inf

    def swapped(self) -> NormalOutcomes:
        mirrored = ((self.outside[0], -self.outside[1]), (self.inside[0], -self.inside[1]))
        return replace(super().swapped(), inside=mirrored[0], outside=mirrored[1])

    def sampled(self, rate: float) -> NormalOutcomes:
        (weights, means), (outside, others), loss, wrong = self.inside, self.outside, self.loss, self.wrong
        outcome = self.outcome
        return replace(
            self,
            inside=(np.append((1 - rate) * outside, rate * weights), np.append(others, means)),
            loss=lambda u: sampled_losses(loss(u), rate),
            wrong=lambda u: sampled_error(loss(u), wrong(u), rate),
            outcome=outcome and (lambda x: outcome(plain_losses(x, rate))),
            error=self.error + 4 * EPS,
        )

    @property
    def _within(self) -> tuple[float, float]:
        means = np.concatenate([self.inside[1], self.outside[1]])
        return max(self.low, float(means.min()) - REACH), min(self.high, float(means.max()) + REACH)

    @property
    def steepest(self) -> float:
        """The largest of all |m|."""
        return float(max(np.abs(self.inside[1]).max(), np.abs(self.outside[1]).max()))

    @property
    def beyond(self) -> float:
        low, high = self._bounds
        cut_low, cut_high = low > self.low, high < self.high
        return self.share * float(
            sum(
                w * ((ndtr(low - m) if cut_low else 0.0) + (ndtr(m - high) if cut_high else 0.0))
                for w, m in zip(*self.inside, strict=True)
            )
        )

    @property
    def _ratios(self) -> bool:
        """Whether P's density is quicker known as that of a single bell times e^L, to the error of L."""
        return self.inside[0].size > 2 and self.outside[0].size == 1

    def _density(self, u: FloatArray) -> FloatArray:
        bells = sum(w * np.exp(-((u - m) ** 2) / 2) for w, m in zip(*self.inside, strict=True))
        return np.asarray(self.share / np.sqrt(2 * np.pi) * bells)

    def cut(self, edges: FloatArray, blur: FloatArray) -> Cut:
        u, gap, wrong = self._outcomes_below(edges, blur)
        least, most, rise, rest = (np.zeros(edges.size - 1) for _ in range(4))
        with np.errstate(invalid="ignore", over="ignore"):
            half, middle = np.diff(u) / 2, (u[1:] + u[:-1]) / 2
            extent = half * (np.abs(middle) + REACH + self.steepest)
        extent = np.where(np.isfinite(extent), extent, np.inf)
        slack = np.maximum(wrong[1:], wrong[:-1]) + 4 * EPS  # quadrature, and rounding of its sums
        done = ~(u[1:] > u[:-1])
        for count, widest in _RULES:
            cells = np.flatnonzero(~done & (extent < widest))
            done[cells] = True
            for k in range(0, cells.size, BLOCK // count):
                some = cells[k : k + BLOCK // count]
                p, raised, out = self._quadrature(middle[some], half[some], edges[some], count)
                known = EPS * (64 + 4 * (np.abs(middle[some]) + 1 + self.steepest) ** 2) + self.error
                if self._ratios:
                    known += 2 * slack[some]
                least[some], most[some] = p * (1 - known), p * (1 + known)
                rise[some] = (np.maximum(raised, 0.0) + (slack[some] + gap[some]) * p) * (1 + known)
                rest[some] = out * (1 + known + 2 * slack[some])
        wide = np.flatnonzero(~done)
        if wide.size:
            (p, off), (q, moved) = (_masses(law, u, wide) for law in (self.inside, self.outside))
            x = edges[wide]
            grown = np.exp(np.minimum(x, PRODUCT_EXPONENT))
            unknown = ~((q > UNDERFLOW) & (x < PRODUCT_EXPONENT))
            off, moved = off + (self.error + 16 * EPS) * p, moved + (self.error + 16 * EPS) * q
            least[wide], most[wide] = np.maximum(p - off, 0.0), p + off
            raised = np.maximum(p - q * grown, 0.0) + off + moved * grown + (slack[wide] + gap[wide]) * p
            rise[wide] = np.where(unknown, most[wide], raised)
            rest[wide] = np.where(
                unknown,
                most[wide] * np.exp(np.minimum(gap[wide], PRODUCT_EXPONENT)),
                (q + moved) * grown * (1 + 8 * EPS),
            )
        return Cut(*(self.share * z for z in (least, most, np.minimum(rise, most), rest)))

    def _quadrature(
        self, middle: FloatArray, half: FloatArray, edges: FloatArray, count: int
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """P mass, E_P[1 − e^{−(L − x)}] and E_P[e^{−(L − x)}] of every cell."""
        p, rise, rest = (np.zeros(middle.size) for _ in range(3))
        for node, share in zip(*np.polynomial.legendre.leggauss(count), strict=True):
            u = middle + half * node
            loss = self.loss(u)
            if self._ratios:
                density = self.outside[0][0] * np.exp(loss - (u - self.outside[1][0]) ** 2 / 2)
            else:
                density = sum(w * np.exp(-((u - m) ** 2) / 2) for w, m in zip(*self.inside, strict=True))
            weight = half * density * (share / np.sqrt(2 * np.pi))
            fall = edges - loss
            p, rise, rest = p + weight, rise - weight * np.expm1(fall), rest + weight * np.exp(fall)
        return p, rise, rest


def _masses(law: tuple[FloatArray, FloatArray], u: FloatArray, cells: Indices) -> tuple[FloatArray, FloatArray]:
    """Masses of cells between outcomes under a mixture of normal laws, and bounds on their errors."""
    mass, off = np.zeros(cells.size), np.zeros(cells.size)
    low, high = u[cells], u[cells + 1]
    for weight, mean in zip(*law, strict=True):
        a, b = low - mean, high - mean
        below = b <= 0  # the cell lies in the lower tail
        first, last = ndtr(np.where(below, b, -a)), ndtr(np.where(below, a, -b))
        mass += weight * np.maximum(first - last, 0.0)
        for tail, x, at in ((first, np.where(below, b, a), high), (last, np.where(below, a, b), low)):
            size = np.where(np.isfinite(x), np.abs(x), 0.0)
            blur = np.abs(np.where(np.isfinite(at), at, 0.0)) + abs(mean)
            off += weight * EPS * tail * (_NORMAL + _NORMAL * size**2 + 2 * (size + 1) * (size + blur))
    return mass, off


Piece: TypeAlias = ListedOutcomes | OutcomeLine
