"""What an (ε, δ) guarantee means for a membership attacker with a given prior (Thudi et al.; Humphries et al.).

A record is in the training set with probability ``prior``, independently of the others. Everything here holds for
*every* mechanism with the guarantee and every attack; no other bound from ε and δ alone is smaller, because one pair
of laws (randomised response that fails with probability δ) attains them all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from deniable._check import FloatArray, InputError
from deniable._floats import EPS, LEAST, MOST_EXPONENT
from deniable.bounds._common import check_named, plain, raise_by, together
from deniable.curves import accuracy_from

BoundPair = tuple[float | FloatArray, float | FloatArray]


def advantage(epsilon: ArrayLike, *, delta: ArrayLike = 0.0, prior: ArrayLike = 0.5) -> float | FloatArray:
    """Return the largest membership advantage, 2·(accuracy − max(prior, 1 − prior)).

    At ``prior=0.5`` it is (e^ε − 1 + 2δ)/(e^ε + 1), the largest TPR − FPR of any attack.

    Source: Humphries et al.; Izzo et al., Theorem 4 (η is half of it); tight (Kairouz, Oh & Viswanath 2015).

    Parameters
    ----------
    epsilon
        ε ≥ 0 of the guarantee, in nats; infinity is allowed.
    delta
        δ in [0, 1].
    prior
        π = P(in) before the attack, in (0, 1).

    Returns
    -------
    float or array
        A float for scalars, otherwise an array of the broadcast shape; in [0, 2·min(π, 1 − π)], rounded up.

    Raises
    ------
    InputError
        If a value is NaN or outside its range, or shapes do not broadcast.

    Examples
    --------
    See ``accuracy``.
    """
    eps, dlt, pi = together(epsilon=epsilon, delta=delta, prior=prior)
    return plain(_advantage(eps, dlt, pi))


def accuracy(epsilon: ArrayLike, *, delta: ArrayLike = 0.0, prior: ArrayLike = 0.5) -> float | FloatArray:
    """Return the largest accuracy of an attacker who believes beforehand that P(in) = ``prior``.

    It is (1 − π) + π·H_{(1−π)/π} of the worst (ε, δ) pair: guessing from the prior, plus half the advantage.

    Parameters
    ----------
    epsilon
        ε ≥ 0 of the guarantee, in nats; infinity is allowed.
    delta
        δ in [0, 1].
    prior
        π = P(in) before the attack, in (0, 1).

    Returns
    -------
    float or array
        A float for scalars, otherwise an array of the broadcast shape; a probability in [max(π, 1 − π), 1], rounded up.

    Raises
    ------
    InputError
        If a value is NaN or outside its range, or shapes do not broadcast.

    Examples
    --------
    >>> import deniable as dn
    >>> b = dn.bounds
    >>> [round(float(f), 3) for f in (b.accuracy(1.0), b.advantage(1.0), b.humphries(1.0), b.sablayrolles(1.0))]
    [0.731, 0.462, 0.462, 0.75]
    >>> [round(float(f), 3) for f in (b.yeom(0.3), b.erlingsson(0.3), b.pinsker(0.1))]
    [0.675, 0.63, 0.224]
    >>> round(b.epsilon_for_accuracy(0.55), 4) == round(b.epsilon_for_advantage(0.1), 4)
    True
    """
    eps, dlt, pi = together(epsilon=epsilon, delta=delta, prior=prior)
    gain = _advantage(eps, dlt, pi)
    return plain(np.clip(accuracy_from(pi, gain / 2, "upper"), 0.0, 1.0))


def positive_accuracy(
    epsilon: ArrayLike,
    *,
    prior: ArrayLike,
    delta: ArrayLike = 0.0,
    fpr: ArrayLike | None = None,
    recall: ArrayLike | None = None,
) -> BoundPair:
    """Return (lower, upper) bounds on P(in | attack says in), the precision of a membership attack.

    With ``delta=0`` and no rate stated they hold for every attack (Thudi et al., Theorem 1):
    1/(1 + e^{±ε}·(1 − π)/π). With δ > 0 an attack that accuses hardly anyone can be right every time (Thudi et al.
    §5.2), so a false positive rate or a recall must be stated.

    Parameters
    ----------
    epsilon, prior, delta
        The guarantee and P(in); broadcast against each other and against the rate.
    fpr
        The bounds are those of an attack with exactly this false positive rate. The upper one also holds for every
        attack with a larger rate.
    recall
        Likewise for an attack whose true positive rate is exactly (for the upper bound: at least) this.

    Returns
    -------
    tuple
        (lower, upper), each a float for scalars, otherwise an array of the broadcast shape; rounded outwards.

    Raises
    ------
    InputError
        If a value is NaN or outside its range, shapes do not broadcast, both rates are stated, or none is while δ > 0.

    Notes
    -----
    A rate of 0 stands for the limit of ever rarer accusations.

    Examples
    --------
    >>> import deniable as dn
    >>> b = dn.bounds
    >>> low, high = b.positive_accuracy(1.0, prior=0.1, fpr=0.01)
    >>> round(high, 3), [round(side, 3) for side in b.negative_accuracy(1.0, prior=0.1, fpr=0.01)]
    (0.232, [0.899, 0.902])
    >>> found = b.positive_advantage(1.0, prior=0.1), b.jayaraman(1.0, fpr=0.01), b.jayaraman_advantage(1.0, fpr=0.01)
    >>> [round(float(f), 3) for f in found]
    [0.264, 0.731, 0.017]
    >>> round(b.epsilon_for_positive_accuracy(0.3, prior=0.1), 3)
    1.35
    """
    pi, low, high, size = _likelihood_ratios(epsilon, delta, prior, fpr, recall)
    return _posterior(pi, logit(pi), low, high, size)


def negative_accuracy(
    epsilon: ArrayLike,
    *,
    prior: ArrayLike,
    delta: ArrayLike = 0.0,
    fpr: ArrayLike | None = None,
    recall: ArrayLike | None = None,
) -> BoundPair:
    """Return (lower, upper) bounds on P(out | attack says out), for an attack that says "out".

    With ``delta=0`` and no rate stated: 1/(1 + e^{±ε}·π/(1 − π)) (Thudi et al., Corollary 1). With δ > 0 state a
    rate as for :func:`positive_accuracy`; the upper bound then also holds for every attack with a *smaller* false
    positive rate, or a smaller recall.

    Parameters
    ----------
    epsilon, prior, delta, fpr, recall
        As for :func:`positive_accuracy`; all broadcast against each other.

    Returns
    -------
    tuple
        (lower, upper), each a float for scalars, otherwise an array of the broadcast shape; rounded outwards.

    Raises
    ------
    InputError
        If a value is NaN or outside its range, shapes do not broadcast, both rates are stated, or none is while δ > 0.

    Examples
    --------
    See ``positive_accuracy``.
    """
    pi, low, high, size = _likelihood_ratios(epsilon, delta, prior, fpr, recall, mirrored=True)
    return _posterior(1 - pi, -logit(pi), low, high, size)


def positive_advantage(epsilon: ArrayLike, *, prior: ArrayLike) -> float | FloatArray:
    """Return the largest 2·(P(in | attack says in) − prior), the generalised advantage (Thudi et al., eq. 5).

    It peaks at prior 1/(1 + e^{ε/2}), with value 2·tanh(ε/4): guessing at even odds is not the worst case.

    Parameters
    ----------
    epsilon
        ε ≥ 0 of the guarantee, in nats; infinity is allowed.
    prior
        π = P(in) before the attack, in (0, 1).

    Returns
    -------
    float or array
        A float for scalars, otherwise an array of the broadcast shape; in [0, 2·(1 − π)], rounded up.

    Raises
    ------
    InputError
        If a value is NaN or outside its range, or shapes do not broadcast.

    Examples
    --------
    See ``positive_accuracy``.
    """
    eps, pi = together(epsilon=epsilon, prior=prior)
    gain = -np.expm1(-eps) * (1 - pi) * pi / (pi + (1 - pi) * np.exp(-eps))
    return plain(raise_by(2 * gain, 16 * EPS, most=2.0))


def subsampled_epsilon(epsilon: ArrayLike, *, rate: ArrayLike) -> float | FloatArray:
    """Return log(1 + T·(e^ε − 1)): the guarantee towards a *pool* of which each record is used with probability T.

    It answers "was the record in the pool?" (amplification by subsampling; with δ the pool's is T·δ). "Was it in the
    training set?" is another question: there ε stays as it is and the prior is at most T (Thudi et al. §4.2).

    Parameters
    ----------
    epsilon
        ε ≥ 0 of the guarantee, in nats; infinity is allowed.
    rate
        T in [0, 1]: the probability with which each record of the pool is used.

    Returns
    -------
    float or array
        A float for scalars, otherwise an array of the broadcast shape; in [0, ε], rounded up.

    Raises
    ------
    InputError
        If a value is NaN or outside its range, or shapes do not broadcast.

    Examples
    --------
    See ``scaled_total_variation``.
    """
    eps, t = together(epsilon=epsilon, rate=rate)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        product = t * np.expm1(np.minimum(eps, MOST_EXPONENT))
        direct = np.log1p(raise_by(product, most=np.inf) + LEAST * (eps > 0))  # a product may leave the normal doubles
        large = np.logaddexp(0.0, eps + np.log(t))  # of more than e^−46 at these ε, and no overflow
        slack = EPS * np.where(eps <= MOST_EXPONENT, 8.0, 8 + 4 * (eps - np.log(t)))
        value = np.where(eps <= MOST_EXPONENT, direct, large)
        bound = np.where(np.isinf(eps), np.inf, value * (1 + slack))
    return plain(np.where(t == 0, 0.0, np.minimum(bound, eps)))


def _advantage(epsilon: FloatArray, delta: FloatArray, prior: FloatArray) -> FloatArray:
    """2·min(π, 1−π)·H_γ of the worst pair; its spread is tanh(ε/2) − (1 − 2·min(π, 1−π)) where positive.

    For a rare case that is 2·(min(π, 1−π) − 1/(1 + e^ε)), which keeps its digits; at π near ½ the first form does.
    """
    rare = np.minimum(prior, 1 - prior)
    even, t = rare > 0.25, np.tanh(epsilon / 2)
    spread = np.maximum(np.where(even, t - (1 - 2 * rare), 2 * (rare - expit(-epsilon))), 0.0)
    rounding = 8 * EPS * np.where(even, t, rare)
    value = 2 * rare * delta + (1 - delta) * np.minimum(spread + rounding, 2 * rare)
    # a tie is settled by what is certain: where a spread of rounding may be left, it counts
    nothing = np.where(even, t + rounding <= 1 - 2 * rare, expit(-epsilon) * (1 - 8 * EPS) >= rare) | (epsilon == 0)
    certain = np.where(even & (rare == 0.5), delta, raise_by(2 * rare * delta, EPS))
    return np.where(nothing, certain, raise_by(value))


def _likelihood_ratios(
    epsilon: ArrayLike,
    delta: ArrayLike,
    prior: ArrayLike,
    fpr: ArrayLike | None,
    recall: ArrayLike | None,
    mirrored: bool = False,
) -> tuple[FloatArray, ...]:
    """Return the prior, the logs of an accusation's least and greatest likelihood ratio, and the size of their terms.

    An accusation "in" has the ratio TPR/FPR. ``mirrored`` is the accusation "out" with ratio (1 − FPR)/(1 − TPR): the
    same problem with false positive rate 1 − recall and recall 1 − fpr.
    """
    eps, dlt, pi = together(epsilon=epsilon, delta=delta, prior=prior)
    if fpr is not None and recall is not None:
        raise InputError(f"state fpr or recall, not both, got fpr={fpr!r} and recall={recall!r}")
    if fpr is not None:
        name, stated = "fpr", check_named("fpr", fpr)
    elif recall is not None:
        name, stated = "recall", check_named("recall", recall)
    elif np.any(dlt > 0):
        raise InputError(
            f"for delta above 0 state fpr= or recall=, got delta {float(np.max(dlt)):g} alone; the precision has "
            "no bound: an attack that accuses only on an event of probability delta can be right every time"
        )
    else:
        return pi, -eps, eps, eps
    eps, dlt, pi, stated = together(epsilon=eps, delta=dlt, prior=pi, **{name: stated})
    rate, rest = (1 - stated, stated) if mirrored else (stated, 1 - stated)
    low, high = _log_rate_ratios(eps, dlt, rate, rest)
    with np.errstate(divide="ignore"):
        size = eps + np.where(rate > 0, np.abs(np.log(rate)), 0.0)
    nothing = (eps == 0) & (dlt == 0)  # the worlds are equal: no test says anything
    low, high, size = (np.where(nothing, 0.0, array) for array in (low, high, size))
    return (pi, low, high, size) if (name == "fpr") != mirrored else (pi, -high, -low, size)


def _log_rate_ratios(
    epsilon: FloatArray, delta: FloatArray, rate: FloatArray, rest: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return log(other/rate) at the least and the greatest *other* rate that (ε, δ) allows together with ``rate``.

    The worst pair is its own mirror image, so one function serves TPR at a FPR and FPR at a TPR. With a = rate:
    greatest min(δ + e^ε·a, 1 − e^{−ε}·(1 − δ − a), 1), least max(e^{−ε}·(a − δ), 1 − δ − e^ε·(1 − a), 0).
    ``rest`` is 1 − a, passed separately because one of the two is known exactly.
    """
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log_rate = np.log(rate)
        rising = np.logaddexp(np.where(delta > 0, np.log(delta) - log_rate, -np.inf), epsilon)
        falling = np.log(-np.expm1(-epsilon) + np.exp(-epsilon) * (delta + rate)) - log_rate
        capped = np.where(rest > delta, np.minimum(falling, -log_rate), -log_rate)
        high = np.where(rate > 0, np.minimum(rising, capped), rising)

        shrunk = np.log(np.maximum(rate - delta - 2 * EPS * rate, 0.0)) - log_rate - epsilon
        steep = np.where(rest > 0, np.exp(epsilon + np.log(rest)), 0.0)
        left = np.log(np.maximum(1 - delta - steep - 1500 * EPS * steep, 0.0)) - log_rate
        low = np.where(rate > 0, np.maximum(shrunk, left), np.where(delta > 0, -np.inf, -epsilon))
    return low, high


def _posterior(
    prior: FloatArray, log_odds: FloatArray, low: FloatArray, high: FloatArray, size: FloatArray
) -> BoundPair:
    """P(accused world) from its prior odds and the log-likelihood ratios, rounded outwards.

    ``size`` is that of the terms whose rounding the ratios carry; where it is 0 and the ratio 1 the prior is exact.
    """

    def slack(log_ratio: FloatArray) -> FloatArray:
        parts = np.abs(log_odds) + size + np.where(np.isfinite(log_ratio), np.abs(log_ratio), 0.0)
        return EPS * (8 + 4 * np.minimum(parts, 3000.0))  # beyond that nothing is left to round

    lower = np.minimum(expit(log_odds + low) * (1 - slack(low)), prior)
    upper = np.maximum(np.minimum(expit(log_odds + high) * (1 + slack(high)), 1.0), prior)
    equal = (size == 0) & (low == 0) & (high == 0)
    return plain(np.where(equal, prior, lower)), plain(np.where(equal, prior, upper))
