"""Tuning counted in: a mechanism that is run a random number of times, of which the best output is kept."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from deniable._check import InputError, number
from deniable._floats import MOST_EXPONENT
from deniable._search import bisect
from deniable.mechanisms.core import Grouped, Mechanism, a_mechanism
from deniable.mechanisms.fields import real

_RUNS = "it is the mean number of runs"


@dataclass(frozen=True)
class Tuned(Mechanism):
    """``mechanism`` run a random number K of times, of which only the best output is released: see :func:`tuned`.

    Examples
    --------
    See ``tuned``.
    """

    mechanism: Annotated[Mechanism, a_mechanism]
    trials: Annotated[float, real(above=0.0, below=math.inf, hint=_RUNS)]
    shape: Annotated[float, real(above=-1.0, hint="1 is geometric, 0 logarithmic, inf Poisson")] = 1.0

    def _check_together(self) -> None:
        if isinstance(self.mechanism, Grouped):
            raise InputError(f"mechanism must be tuned before it is grouped, got {self.mechanism!r}")
        if not math.isinf(self.shape):
            number("trials", self.trials, above=1.0, hint=_RUNS)
        others = "how many runs were made, and the outputs and scores of all but the best one"
        vars(self)["hidden"] = (others, *self.mechanism.hidden)

    @property
    def stop(self) -> float:
        """γ of the truncated negative binomial law with this mean and shape: 1/trials for the geometric one."""
        if math.isinf(self.shape):
            raise InputError("stop goes with the truncated negative binomial laws; a Poisson law takes its mean")
        # log γ; the mean falls from e^690 or more to 1
        log_stop, _ = bisect(lambda x: _mean(float(x), self.shape) > self.trials, -690.0, 0.0)
        return math.exp(log_stop)


def tuned(mechanism: Mechanism, *, trials: float, shape: float = 1.0) -> Tuned:
    """Return the mechanism "run this a random number of times and release the best output": tuning, counted in.

    Draw K, run ``mechanism`` K times with fresh randomness (each run with a setting drawn at random from a public list,
    if settings are tuned), and release the one output that scores best. Neither K, nor the other outputs, nor their
    scores may be seen; the score of a run must be part of its private output or computed from that and public data.

    Parameters
    ----------
    mechanism
        One run, whichever setting is drawn: its curve must hold for all of them.
    trials
        Mean of K: above 1, above 0 for a Poisson law.
    shape
        η of the truncated negative binomial law of K: 1 (the default) is geometric, 0 logarithmic; it is heavier in the
        tail and costs less the smaller it is (above −1). inf is a Poisson law, under which K = 0 releases nothing.

    Returns
    -------
    Tuned
        A mechanism: ``dn.tradeoff`` gives its curve, which is an upper bound.

    Raises
    ------
    InputError
        If ``trials`` or ``shape`` is outside its range.

    Notes
    -----
    Papernot & Steinke 2022 (arXiv:2110.03620), with the two Rényi directions kept apart. *Proof.* Let f be the
    probability generating function of K, Q and Q′ the laws of a run in two worlds, with ties broken by an independent
    uniform. The output y is released with density Q(y)·f′(q), q the probability under Q of scoring below y; so
    E[(A/A′)^λ] ≤ e^{(λ−1)D_λ(Q‖Q′)}·sup f′(q)^λ·f′(q′)^{1−λ}, the supremum over the probabilities of one event.
    Truncated negative binomial: f′(q) = E[K]·(γ/p)^{η+1}, p = 1 − (1−γ)q ≥ γ, and p, p′ are again probabilities of one
    event: p′ ≤ (e^{ρ̂}p)^{1−1/λ̂} for every order λ̂ with D_λ̂(Q′‖Q) ≤ ρ̂. Hence

        D_λ(A‖A′) ≤ D_λ(Q‖Q′) + (1 + η)·[(1 − 1/λ̂)·D_λ̂(Q′‖Q) + log(1/γ)/λ̂] + log E[K]/(λ − 1).

    Poisson: f′(q) = μ·e^{μ(q−1)}, and (λ − 1)(1 − q′) − λ(1 − q) ≤ (λ − 1)·H_{λ/(λ−1)}(Q′‖Q), so that D_λ(Q‖Q′) +
    μ·H_{λ/(λ−1)}(Q′‖Q) + log μ/(λ − 1) takes that place; K = 0 adds e^{−μ} to the moment.

    Examples
    --------
    >>> import deniable as dn
    >>> run = dn.SubsampledGaussian(1.0, 0.01, 1000)
    >>> best = dn.mechanisms.tuned(run, trials=10)                    # the best of about ten runs is kept
    >>> isinstance(best, dn.mechanisms.Tuned), round(dn.tradeoff(best).epsilon(1e-5), 2)
    (True, 3.95)
    """
    return Tuned(mechanism, trials, shape)


def _mean(log_stop: float, shape: float) -> float:
    """E[K] of the truncated negative binomial law: η(1 − γ)/(γ(1 − γ^η)), (1 − γ)/(γ·log 1/γ) at η = 0."""
    if log_stop == 0:
        return 1.0
    missed = -math.expm1(log_stop)
    over = -log_stop if shape == 0 else -math.expm1(min(shape * log_stop, MOST_EXPONENT)) / shape
    return missed / over * math.exp(-log_stop)
