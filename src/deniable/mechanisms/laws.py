"""Mechanisms with a law of their own for one step: Laplace and discrete noise, randomised response, finite pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

from deniable._check import InputError, integer, number, numbers
from deniable._floats import MOST_EXPONENT
from deniable.mechanisms.core import Mechanism
from deniable.mechanisms.fields import Count, LargestLoss, Positive, Rate, real, whole

_MOST_MOVED = 100_000  # integers by which discrete noise is moved: as many outcomes are kept


def _check_shift(name: str, value: Any) -> int:
    moved = integer(name, value, at_least=1, hint="the noise lies on the integers")
    if moved > _MOST_MOVED:
        raise InputError(f"{name} must be at most {_MOST_MOVED:,}, got {moved:,}; count in larger units")
    return moved


def _probabilities(name: str, value: Any) -> tuple[float, ...]:
    vector = numbers(name, value, at_least=0.0, at_most=1.0)
    if vector.ndim != 1 or vector.size == 0:
        raise InputError(f"{name} must be a vector of probabilities, got shape {vector.shape}")
    total = math.fsum(vector)
    if not abs(total - 1) <= 1e-9:
        raise InputError(f"{name} must sum to 1, got {total:.12g}; divide it by its sum")
    return tuple(float(x) for x in vector)


def _check_hidden(mechanism: Laplace | DiscreteLaplace) -> None:
    loss = mechanism.sensitivity / mechanism.scale
    number("sensitivity/scale", loss, above=0.0, at_most=MOST_EXPONENT, hint="less noise than this hides nothing")


@dataclass(frozen=True)
class Laplace(Mechanism):
    """Laplace noise on a number that one record changes by a bounded amount.

    Parameters
    ----------
    scale
        b of the density e^{−|x|/b}/(2b); above 0 and finite.
    sensitivity
        Largest change of the number by one record; above 0.
    steps
        Number of releases, each possibly chosen after seeing those before it.
    sample_rate
        Probability with which each record enters each step (Poisson sampling); 1 means always.

    Notes
    -----
    Out, a step releases Laplace(0, b); in, Laplace(sensitivity, b), with sampling the mixture of the two.

    *Vectors* with independent noise of one scale. If one record may move every coordinate k by up to Δ_k at once, a
    step without sampling is exactly the composition of d such mechanisms, of sensitivities Δ_1, …, Δ_d. If what is
    known is the L1 sensitivity s, ``sensitivity=s`` is a bound, sampled or not, and exact where one coordinate can move
    by all of s. *Proof.* Let the coordinates move one after the other: a chain of pairs whose ROC curves are those of
    one coordinate, f_1, …, f_d. A test of rate x has at most rate f_d(…f_1(x)) at its end, and this is the curve of one
    coordinate moved by the sum: tests of Laplace noise are thresholds, and one threshold serves all of the chain.
    Sampling is monotone in the curve. ∎

    Examples
    --------
    >>> import deniable as dn
    >>> noises = [dn.Laplace(20.0), dn.mechanisms.DiscreteLaplace(20.0), dn.DiscreteGaussian(20.0)]
    >>> [round(dn.tradeoff(noise).advantage(), 4) for noise in noises]
    [0.0247, 0.025, 0.0199]
    """

    scale: Positive
    sensitivity: Positive = 1.0
    steps: Count = 1
    sample_rate: Rate = 1.0

    def _check_together(self) -> None:
        _check_hidden(self)


@dataclass(frozen=True)
class BoundedRange(Mechanism):
    """Mechanisms of bounded range: all log-ratios between two neighbours lie in an interval of length ``epsilon``.

    Parameters
    ----------
    epsilon
        Length of the interval. The exponential mechanism with weights e^{ε·u/(2Δ)}, and "report noisy max" with Gumbel
        noise of scale 2Δ/ε, have range ε, where Δ bounds how far one record moves every score u; if one record moves
        all scores in the same direction, weights e^{ε·u/Δ} and Gumbel noise of scale Δ/ε have it already.
    steps
        Number of such mechanisms, each possibly chosen after seeing the outputs of those before it.

    Notes
    -----
    Range ε implies ε-DP and composes better (Dong, Durfee & Rogers 2020). Noisy max with Laplace noise and
    permute-and-flip are known to be ε-DP only: use :class:`PureDP` for them.

    Examples
    --------
    See ``RandomizedResponse``.
    """

    epsilon: LargestLoss
    steps: Count = 1


@dataclass(frozen=True)
class RandomizedResponse(Mechanism):
    """Each person reports the true category with odds e^``epsilon`` against every other one.

    Parameters
    ----------
    epsilon
        Logarithm of the odds, which is the ε of differential privacy.
    categories
        Number of categories, at least 2.
    steps
        Number of questions, each possibly chosen after seeing the answers to those before it.

    Notes
    -----
    The two worlds differ in the person's true category; somebody who is out still gives an answer, as if
    from any other category (or from a mixture of them), so that nobody's absence is visible. With two categories it is
    the worst pair of ``PureDP(epsilon)``, with more it leaks less. Two categories are all that a replacement changes.

    Examples
    --------
    >>> import deniable as dn
    >>> listed = dn.mechanisms.FinitePair((0.6, 0.4), (0.4, 0.6))
    >>> answers = [dn.RandomizedResponse(1.0), listed, dn.mechanisms.BoundedRange(1.0)]
    >>> [round(dn.tradeoff(answer).advantage(), 4) for answer in answers]
    [0.4621, 0.2, 0.2449]
    """

    epsilon: LargestLoss
    categories: Annotated[int, whole(2)] = 2
    steps: Count = 1

    also = ("replace",)


@dataclass(frozen=True)
class DiscreteLaplace(Mechanism):
    """Discrete Laplace (two-sided geometric) noise on a whole number.

    Parameters
    ----------
    scale
        b of the masses proportional to e^{−|x|/b} on the integers; above 0 and finite.
    sensitivity
        How far one record moves the number: a whole number of at least 1.
    steps, sample_rate
        As for :class:`Laplace`.

    Examples
    --------
    See ``Laplace``.
    """

    scale: Positive
    sensitivity: Annotated[int, _check_shift] = 1
    steps: Count = 1
    sample_rate: Rate = 1.0

    def _check_together(self) -> None:
        _check_hidden(self)


@dataclass(frozen=True)
class DiscreteGaussian(Mechanism):
    """Discrete Gaussian noise on a whole number (Canonne, Kamath & Steinke 2020).

    Parameters
    ----------
    sigma
        σ of the masses proportional to e^{−x²/(2σ²)} on the integers (about the standard deviation), from 0.05 to 1e5.
    sensitivity
        How far one record moves the number: a whole number of at least 1 and at most 1e5.
    steps, sample_rate
        As for :class:`Laplace`.

    Examples
    --------
    See ``Laplace``.
    """

    sigma: Annotated[
        float,
        real(
            at_least=0.05,
            at_most=1e5,
            hint="with less noise nearly every release shows the number; with more, GaussianDP is as good",
        ),
    ]
    sensitivity: Annotated[int, _check_shift] = 1
    steps: Count = 1
    sample_rate: Rate = 1.0


@dataclass(frozen=True)
class FinitePair(Mechanism):
    """Any mechanism with finitely many outcomes whose probabilities in both worlds are known.

    Parameters
    ----------
    p
        Probabilities of the outcomes if the record is in; they are taken as exact and must sum to 1.
    q
        Probabilities of the same outcomes if it is out; one that only the other world produces has 0.
    steps
        Number of releases, each possibly chosen after seeing those before it.

    Notes
    -----
    The pair must hold for every record and every rest of the data, or be at least as easy to tell apart.

    Examples
    --------
    See ``RandomizedResponse``.
    """

    p: Annotated[tuple[float, ...], _probabilities]
    q: Annotated[tuple[float, ...], _probabilities]
    steps: Count = 1

    def _check_together(self) -> None:
        if len(self.p) != len(self.q):
            raise InputError(f"p and q must be equally long, got {len(self.p)} and {len(self.q)} probabilities")
