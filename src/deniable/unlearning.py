"""Unlearning without retraining: how many deletion requests does plausible deniability cover? (Thudi et al. §6)

A release S is *B-MI unlearnt* for some records if P(none of them was in the training set | S) ≥ B (Definition 2).
Under ε-DP for adding or removing a record, and records drawn independently with priors π_i, each factor of the chain
rule P(x₁ out | S)·P(x₂ out | S, x₁ out)·… is at least L_i = 1/(1 + e^{+ε}·π_i/(1 − π_i)) (Corollary 1), because
knowing that other records are out leaves the guarantee as it is. The paper calls the posteriors independent, which
they need not be; the product of the L_i is right all the same, and attained by mechanisms that treat records apart.

Erratum E1: in its §6 and figure 7 the paper prints L with e^{−ε}, which overstates the capacity about e^{2ε} times.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_expit, logit

from deniable._check import FloatArray, InputError, number, numbers
from deniable._floats import EPS

_PRIOR_HINT = "a record that is surely in or out has nothing to deny"


def guarantee(epsilon: float, priors: ArrayLike) -> float:
    """Return B such that a release is B-MI unlearnt for the given records together.

    ``priors`` holds P(in) of every record whose deletion was asked for; an empty one gives 1, rounded down.

    Parameters
    ----------
    epsilon
        ε ≥ 0 of the training, for adding or removing a record.
    priors
        P(in) of each record, in (0, 1); any shape.

    Returns
    -------
    float
        B in [0, 1], rounded down.

    Raises
    ------
    InputError
        If a value is NaN or outside its range.

    Examples
    --------
    See ``deletion_capacity``.
    """
    eps = _epsilon(epsilon)
    pi = np.sort(numbers("priors", priors, above=0.0, below=1.0, hint=_PRIOR_HINT), axis=None)  # in any order
    logs = _log_out(eps, pi)
    # the log-odds carry the rounding of their two terms, and the sum that of its parts
    rounding = 4 * EPS * (1 + np.sum(1 + np.abs(logit(pi)) + eps) + logs.size * np.abs(np.sum(logs)))
    return float(np.exp(np.sum(logs)) * max(1 - rounding, 0.0))


def deletion_capacity(epsilon: ArrayLike, prior: ArrayLike, confidence: ArrayLike) -> int | NDArray[np.int64]:
    """Return how many deletion requests need no retraining: the largest m with L^m ≥ B, that is ⌊ln B / ln L⌋.

    Parameters
    ----------
    epsilon
        ε of the training, for adding or removing a record.
    prior
        P(in), the same for all records of one pool, such as (expected training size)/(pool size).
    confidence
        B in (0, 1): the probability with which none of the records was used, as far as anyone can tell.

    Returns
    -------
    int or array
        An ``int`` for scalars, an integer array of the broadcast shape otherwise; never more than 2⁶². For records
        with different priors use :func:`deletion_capacity_of_records`. The quotient is computed in double precision,
        so that L^m may miss B in its last digits where B is L^m by construction.

    Raises
    ------
    InputError
        If a value is NaN or outside its range, or shapes do not broadcast.

    Examples
    --------
    >>> import deniable as dn
    >>> u = dn.unlearning
    >>> u.deletion_capacity(0.1, 0.001, 0.9), u.deletion_capacity_of_records(0.1, [0.001] * 20, 0.9)
    (95, 20)
    >>> round(u.guarantee(0.1, [0.5, 0.5]), 3)
    0.226
    """
    eps = numbers("epsilon", epsilon, at_least=0.0)
    pi = numbers("prior", prior, above=0.0, below=1.0, hint=_PRIOR_HINT)
    b = _confidence(confidence)
    try:
        eps, pi, b = np.broadcast_arrays(eps, pi, b)
    except ValueError:
        raise InputError(
            f"epsilon, prior and confidence must broadcast, got shapes {eps.shape}, {pi.shape} and {b.shape}"
        ) from None
    with np.errstate(over="ignore", divide="ignore"):
        capacity = np.minimum(np.floor(np.log(b) / _log_out(eps, pi)), 2.0**62).astype(np.int64)
    return int(capacity) if capacity.ndim == 0 else capacity


def deletion_capacity_of_records(epsilon: float, priors: ArrayLike, confidence: float) -> int:
    """Return how many of these records, *whichever they are*, can ask for deletion without retraining.

    The records most likely to be in come first in the worst case: the largest m such that the m largest priors still
    give ``guarantee(epsilon, …) >= confidence``; at most the number of records.

    Parameters
    ----------
    epsilon
        ε ≥ 0 of the training, for adding or removing a record.
    priors
        P(in) of each record, in (0, 1), shape (records,).
    confidence
        B in (0, 1): the probability with which none of the records was used, as far as anyone can tell.

    Returns
    -------
    int
        A number of records, from 0 to all of them.

    Raises
    ------
    InputError
        If a value is NaN or outside its range.

    Examples
    --------
    See ``deletion_capacity``.
    """
    eps, b = _epsilon(epsilon), float(_confidence(number("confidence", confidence)))
    worst = np.sort(numbers("priors", priors, above=0.0, below=1.0, hint=_PRIOR_HINT), axis=None)[::-1]
    return bisect_right(range(1, worst.size + 1), -b, key=lambda m: -guarantee(eps, worst[:m]))


def _log_out(epsilon: float | FloatArray, prior: FloatArray) -> FloatArray:
    """ln L, the log of the smallest P(out | S): −ln(1 + e^ε·π/(1 − π)), without overflow or cancellation."""
    return np.asarray(log_expit(-(logit(prior) + epsilon)))


def _epsilon(epsilon: Any) -> float:
    return number("epsilon", epsilon, at_least=0.0)


def _confidence(confidence: ArrayLike) -> FloatArray:
    return numbers("confidence", confidence, above=0.0, below=1.0, hint="no release leaves certainty")
