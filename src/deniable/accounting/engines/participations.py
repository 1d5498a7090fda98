"""How often a record took part, as labels that are few and safe, and what bits about single steps tell."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable.accounting.engines.finite import FiniteTradeoff
from deniable.accounting.steps.binomial import binomial
from deniable.accounting.steps.finite_law import FiniteLaw
from deniable.accounting.steps.ratios import plain_losses
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.curves import GaussianTradeoff, Tradeoff

LEVELS = 256  # values of V told apart; those in between are rounded up
_MOST = 1 << 16  # numbers of participations of one phase
_MOST_SEEN = 10**6  # steps of a phase whose bits are looked at where all are too many: a post-processing
_LIKELY = 1e-14  # the levels are finest where all but this mass lies
_DEVIATIONS = np.concatenate([np.linspace(-8.0, 8.0, 129), np.geomspace(8.5, 60.0, 30)])  # of K where it is very large
_LIKELIHOODS = (0.3, 1.5, 4.0, 8.0, 14.0, 24.0, 45.0, 90.0, 180.0, 350.0)  # of a step's outcome that counts as a one
_NORMAL_ERROR = 64 * EPS  # relative error of Φ(x) over 1 + x²: see benchmarks/accounting/special_functions.py


def cases(loss: PrivacyLoss) -> tuple[FloatArray, FloatArray, float]:
    """V and the probability of every label, and the probability of all others, rounded to the safe side."""
    squared, weight, revealed = np.array([loss.gaussian]), np.ones(1), 0.0
    for sigma, rate, steps in zip(loss.noise, loss.rate, loss.steps, strict=True):
        taken, share, unseen = participations(int(steps), float(rate))
        with np.errstate(over="ignore"):
            sums = np.add.outer(squared, taken / float(sigma) ** 2).ravel() * (1 + 4 * EPS)
        squared, weight = rounded_up(sums, np.multiply.outer(weight, share).ravel() * (1 + 2 * EPS))
        revealed += unseen
    finite = np.isfinite(squared)
    revealed += float(weight[~finite].sum()) * (1 + 1e-12)
    squared, weight = squared[finite], weight[finite]
    if loss.gaussian == 0:  # "never taken" is no label: see took of KnownBatchesTradeoff
        squared, weight = squared[squared > 0], weight[squared > 0]
    return squared, weight, min(revealed, 1.0)


def participations(steps: int, rate: float) -> tuple[FloatArray, FloatArray, float]:
    """Numbers of participations, the probability of each, and that of all others, rounded to the safe side."""
    try:
        law = binomial(steps, rate, _MOST)
    except MemoryError:  # Bernstein: P(K ≥ mean + s) ≤ exp(−s²/(2(variance + s/3))), at a few levels
        mean, variance = steps * rate, steps * rate * (1 - rate)
        s = _DEVIATIONS * math.sqrt(variance)
        with np.errstate(under="ignore"):
            beyond = np.where(s > 0, np.exp(-(s**2) / (2 * (variance + np.maximum(s, 0.0) / 3))), 1.0)
        beyond *= 1 + 1e-9  # rounding of an exponent of a few hundred
        taken = np.minimum(np.ceil((mean + s) * (1 + 4 * EPS)), steps)
        return taken[1:], np.maximum(beyond[:-1] - beyond[1:], 0.0), float(beyond[-1])
    return *rounded_up(law.successes, law.mass * (1 + law.relative_error)), law.unseen


def rounded_up(values: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Merge labels into at most ``LEVELS``, each rounded up to the largest of its group: H grows with V."""
    order = np.argsort(values)
    values, weight = values[order], weight[order]
    if values.size <= LEVELS:
        return values, weight
    roots = np.sqrt(values)
    total = np.cumsum(weight)
    last = min(int(np.searchsorted(total, total[-1] * (1 - _LIKELY))), values.size - 1)
    fine = np.linspace(roots[np.searchsorted(total, _LIKELY)], roots[last], 3 * LEVELS // 4)
    coarse = np.linspace(roots[last], roots[-1], LEVELS // 4 - 1)
    ends = np.unique(np.searchsorted(roots, np.concatenate([fine, coarse]), side="right").clip(1, values.size))
    ends = np.unique(np.append(ends, values.size))
    starts = np.concatenate([[0], ends[:-1]])
    return values[ends - 1], np.add.reduceat(weight, starts) * (1 + values.size * EPS)


def attacks(loss: PrivacyLoss) -> tuple[Tradeoff, ...]:
    """Return what some attackers see: the Gaussian part; which steps' outcomes are above a threshold, for a few."""
    found: list[Tradeoff] = [GaussianTradeoff(math.sqrt(loss.gaussian) * (1 - 4 * EPS))] if loss.gaussian > 0 else []
    for likelihood in _LIKELIHOODS:
        law: FiniteLaw | None = None
        for sigma, rate, steps in zip(loss.noise, loss.rate, loss.steps, strict=True):
            step = above(float(sigma), float(rate), likelihood)
            if step is None:
                continue
            bits = _all_bits(int(steps), *step).coarse(4 * LEVELS, "lower")
            law = bits if law is None else law.composed(bits).coarse(4 * LEVELS, "lower")
        if law is not None:
            found.append(FiniteTradeoff.of(law))
    return tuple(found)


def _all_bits(steps: int, hit: float, false: float, error: float) -> FiniteLaw:
    try:
        return FiniteLaw.bits(steps, hit, false, error)
    except MemoryError:
        return FiniteLaw.bits(_MOST_SEEN, hit, false, error)


def above(sigma: float, rate: float, likelihood: float) -> tuple[float, float, float] | None:
    """Probability, "in" and "out", that a step's log-likelihood ratio is above ``likelihood``, and their error."""
    with np.errstate(all="ignore"):
        odds = float(plain_losses(np.array(likelihood), rate))
        threshold = 0.5 / sigma + sigma * odds
        false, hit = float(ndtr(-threshold)), float(ndtr(1 / sigma - threshold))
    hit = (1 - rate) * false + rate * hit
    return (hit, false, _NORMAL_ERROR * (1 + (threshold + 1 / sigma) ** 2)) if 1e-290 < false < hit < 1 else None


def any_above(loss: PrivacyLoss, likelihood: float) -> tuple[float, float] | None:
    """Probability that any step's outcome is that likely, "in" rounded down and "out" up."""
    log_none_in, log_none_out, error = [], [], 0.0
    for sigma, rate, steps in zip(loss.noise, loss.rate, loss.steps, strict=True):
        step = above(float(sigma), float(rate), likelihood)
        if step is None:
            return None
        hit, false, relative_error = step
        log_none_in.append(steps * math.log1p(-hit))
        log_none_out.append(steps * math.log1p(-false))
        error = max(error, 2 * relative_error / (1 - hit) + 16 * EPS)
    seen, mistaken = (
        -math.expm1(math.fsum(log_none_in)) * (1 - error - 16 * EPS),
        -math.expm1(math.fsum(log_none_out)) * (1 + error + 16 * EPS),
    )
    return (seen, mistaken) if 0 < mistaken < seen < 1 else None
