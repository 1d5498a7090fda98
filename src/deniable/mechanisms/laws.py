"""Mechanisms with a law of their own for one step: Laplace and discrete noise, randomised response, finite pairs."""

from __future__ import annotations

from dataclasses import dataclass

from deniable._check import integer, number
from deniable.mechanisms.core import Mechanism

_RATE_HINT = "it is the probability with which a record enters a step; 1 means every step"
_LARGEST = 700.0  # nats of a single step: beyond, its likelihood ratio is no double


@dataclass(frozen=True)
class Laplace(Mechanism):
    """Laplace noise on a number that one record moves by a bounded amount.

    Parameters
    ----------
    scale
        b of the density e^{−|x|/b}/(2b); above 0 and finite.
    sensitivity
        How far one record moves the number; above 0.
    steps
        Number of releases, each possibly chosen after seeing those before it.
    sample_rate
        Probability with which each record enters each step (Poisson sampling); 1 means always.

    Notes
    -----
    Out, a step releases Laplace(0, b); in, Laplace(sensitivity, b), with sampling the mixture of the two. A vector
    whose coordinates move by Δ_1, …, Δ_d is the composition of d such mechanisms.
    """

    scale: float
    sensitivity: float = 1.0
    steps: int = 1
    sample_rate: float = 1.0

    def __post_init__(self) -> None:
        for name in ("scale", "sensitivity"):
            value = number(name, getattr(self, name), above=0.0, below=float("inf"))
            object.__setattr__(self, name, value)
        number(
            "sensitivity/scale",
            self.sensitivity / self.scale,
            above=0.0,
            at_most=_LARGEST,
            hint="less noise than that hides nothing",
        )
        object.__setattr__(self, "steps", integer("steps", self.steps, at_least=1))
        rate = number("sample_rate", self.sample_rate, above=0.0, at_most=1.0, hint=_RATE_HINT)
        object.__setattr__(self, "sample_rate", rate)


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
    """

    epsilon: float
    steps: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", number("epsilon", self.epsilon, above=0.0, at_most=_LARGEST))
        object.__setattr__(self, "steps", integer("steps", self.steps, at_least=1))
