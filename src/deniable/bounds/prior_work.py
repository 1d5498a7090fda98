"""Older bounds, to compare with: never below those of :mod:`deniable.bounds.membership`, and clipped at 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from deniable._check import FloatArray, numbers
from deniable.bounds._common import check_named, plain, raise_by, together
from deniable.bounds.membership import advantage, positive_accuracy


def yeom(epsilon: ArrayLike) -> float | FloatArray:
    """Return e^ε/2, a bound on the *accuracy* at prior ½ of pure ε-DP (Yeom et al. 2018).

    Examples
    --------
    See ``accuracy``.
    """
    return plain(raise_by(np.exp(np.minimum(check_named("epsilon", epsilon), 1.0)) / 2))  # 1 from ε = ln 2 on


def erlingsson(epsilon: ArrayLike, *, delta: ArrayLike = 0.0) -> float | FloatArray:
    """Return 1 − (1 − δ)·e^{−ε}/2, a bound on the *accuracy* at prior ½ (Erlingsson et al. 2019).

    In terms of the advantage it is 1 − e^{−ε} + δe^{−ε}.

    Parameters
    ----------
    epsilon
        ε ≥ 0 of the guarantee, in nats; infinity is allowed.
    delta
        δ in [0, 1].

    Returns
    -------
    float or array
        A float for scalars, otherwise an array of the broadcast shape; a probability in [½, 1], rounded up.

    Raises
    ------
    InputError
        If a value is NaN or outside its range, or shapes do not broadcast.

    Examples
    --------
    See ``accuracy``.
    """
    eps, dlt = together(epsilon=epsilon, delta=delta)
    return plain(raise_by(1 - (1 - dlt) * np.exp(-eps) / 2))


def sablayrolles(epsilon: ArrayLike, *, prior: ArrayLike = 0.5) -> float | FloatArray:
    """Return prior + ε/4, a bound on the *positive accuracy* of pure ε-DP (Sablayrolles et al. 2019).

    The sum is rounded up only where it is not exact: at prior ½ and ε = 1 it is 0.75.

    Parameters
    ----------
    epsilon
        ε ≥ 0 of the guarantee, in nats; infinity is allowed.
    prior
        π = P(in) before the attack, in (0, 1).

    Returns
    -------
    float or array
        A float for scalars, otherwise an array of the broadcast shape; a probability in [π, 1], rounded up.

    Raises
    ------
    InputError
        If a value is NaN or outside its range, or shapes do not broadcast.

    Examples
    --------
    See ``accuracy``.
    """
    eps, pi = together(epsilon=epsilon, prior=prior)
    quarter = eps / 4
    value = pi + quarter
    with np.errstate(invalid="ignore"):
        excess = value - pi
        lost = (pi - (value - excess)) + (quarter - excess)  # what rounding left out, exactly (Knuth's two-sum)
    return plain(np.minimum(np.where(lost > 0, np.nextafter(value, np.inf), value), 1.0))


def humphries(epsilon: ArrayLike, *, delta: ArrayLike = 0.0) -> float | FloatArray:
    """Return (e^ε − 1 + 2δ)/(e^ε + 1), a bound on the *advantage* at prior ½ (Humphries et al. 2020). It is tight.

    Parameters
    ----------
    epsilon
        ε ≥ 0 of the guarantee, in nats; infinity is allowed.
    delta
        δ in [0, 1].

    Returns
    -------
    float or array
        A float for scalars, otherwise an array of the broadcast shape; in [0, 1], rounded up.

    Raises
    ------
    InputError
        If a value is NaN or outside its range, or shapes do not broadcast.

    Examples
    --------
    See ``accuracy``.
    """
    return advantage(epsilon, delta=delta)


def jayaraman(
    epsilon: ArrayLike, *, fpr: ArrayLike, prior: ArrayLike = 0.5, delta: ArrayLike = 0.0
) -> float | FloatArray:
    """Return the largest *positive accuracy* at false positive rate ``fpr`` (Jayaraman et al. 2020).

    It is TPR/(TPR + fpr·(1 − π)/π) at the largest TPR that (ε, δ) allows: the upper end of
    ``positive_accuracy(epsilon, prior, delta, fpr=fpr)``.

    Parameters
    ----------
    epsilon
        ε ≥ 0 of the guarantee, in nats; infinity is allowed.
    fpr
        False positive rate, in [0, 1].
    prior
        π = P(in) before the attack, in (0, 1).
    delta
        δ in [0, 1].

    Returns
    -------
    float or array
        A float for scalars, otherwise an array of the broadcast shape; a probability, rounded up.

    Raises
    ------
    InputError
        If a value is NaN or outside its range, or shapes do not broadcast.

    Examples
    --------
    See ``positive_accuracy``.
    """
    return positive_accuracy(epsilon, prior=prior, delta=delta, fpr=fpr)[1]


def jayaraman_advantage(epsilon: ArrayLike, *, fpr: ArrayLike, delta: ArrayLike = 0.0) -> float | FloatArray:
    """Return the largest *advantage* TPR − FPR of an attack with false positive rate ``fpr`` (Jayaraman et al. 2020).

    It is min((e^ε − 1)·fpr + δ, (1 − e^{−ε})(1 − fpr) + δ·e^{−ε}, 1 − fpr); its largest value over all rates, at
    fpr = (1 − δ)/(1 + e^ε), is ``humphries(epsilon, delta)``.

    Parameters
    ----------
    epsilon
        ε ≥ 0 of the guarantee, in nats; infinity is allowed.
    fpr
        False positive rate, in [0, 1].
    delta
        δ in [0, 1].

    Returns
    -------
    float or array
        A float for scalars, otherwise an array of the broadcast shape; in [0, 1 − fpr], rounded up.

    Raises
    ------
    InputError
        If a value is NaN or outside its range, or shapes do not broadcast.

    Examples
    --------
    See ``positive_accuracy``.
    """
    eps, dlt, alpha = together(epsilon=epsilon, delta=delta, fpr=fpr)
    with np.errstate(over="ignore", invalid="ignore"):
        rising = np.where(alpha > 0, np.expm1(eps) * alpha, 0.0) + dlt
    falling = -np.expm1(-eps) * (1 - alpha) + dlt * np.exp(-eps)
    return plain(np.minimum(raise_by(np.minimum(rising, falling)), 1 - alpha))


def pinsker(kl: ArrayLike) -> float | FloatArray:
    """Return √(KL/2), a bound on the *advantage* at prior ½ from a Kullback–Leibler divergence in nats.

    Either direction of the divergence between the worlds will do. It is vacuous (1) from KL = 2 on.

    Examples
    --------
    See ``accuracy``.
    """
    divergence = numbers("kl", kl, at_least=0.0, hint="a divergence in nats is not negative")
    return plain(raise_by(np.sqrt(divergence / 2)))
