"""The largest ε that keeps a promise to the attacked: inverses of the bounds, rounded to the private side."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from deniable._check import FloatArray, InputError
from deniable._search import bisect
from deniable.bounds._common import plain, together
from deniable.bounds.membership import accuracy, advantage, positive_accuracy

_LARGEST = 2048.0  # beyond it e^{−ε} has long underflowed: such an ε bounds nothing more than ∞ does


def epsilon_for_advantage(target: ArrayLike, *, delta: ArrayLike = 0.0, prior: ArrayLike = 0.5) -> float | FloatArray:
    """Return the largest ε with ``advantage(ε, delta, prior) <= target`` as computed; ∞ if every ε keeps it.

    Parameters
    ----------
    target
        Largest advantage allowed, in [0, 1].
    delta
        δ in [0, 1].
    prior
        π = P(in) before the attack, in (0, 1).

    Returns
    -------
    float or array
        A float for scalars, otherwise an array of the broadcast shape; ε in nats, rounded down.

    Raises
    ------
    InputError
        If a value is NaN or outside its range, shapes do not broadcast, or ε = 0 misses the target.

    Examples
    --------
    See ``accuracy``.
    """
    goal, dlt, pi = together(target=target, delta=delta, prior=prior)
    return _largest(lambda eps: advantage(eps, delta=dlt, prior=pi), goal, "advantage")


def epsilon_for_accuracy(target: ArrayLike, *, delta: ArrayLike = 0.0, prior: ArrayLike = 0.5) -> float | FloatArray:
    """Return the largest ε with ``accuracy(ε, delta, prior) <= target`` as computed; ∞ if every ε keeps it.

    Parameters
    ----------
    target
        Largest accuracy allowed, in [0, 1].
    delta
        δ in [0, 1].
    prior
        π = P(in) before the attack, in (0, 1).

    Returns
    -------
    float or array
        A float for scalars, otherwise an array of the broadcast shape; ε in nats, rounded down.

    Raises
    ------
    InputError
        If a value is NaN or outside its range, shapes do not broadcast, or ε = 0 misses the target.

    Examples
    --------
    See ``accuracy``.
    """
    goal, dlt, pi = together(target=target, delta=delta, prior=prior)
    return _largest(lambda eps: accuracy(eps, delta=dlt, prior=pi), goal, "accuracy")


def epsilon_for_positive_accuracy(
    target: ArrayLike,
    *,
    prior: ArrayLike,
    delta: ArrayLike = 0.0,
    fpr: ArrayLike | None = None,
    recall: ArrayLike | None = None,
) -> float | FloatArray:
    """Return the largest ε that keeps the upper end of ``positive_accuracy`` at ``target`` or below, as computed.

    For δ > 0 state ``fpr`` or ``recall``, as there. It is ∞ if every ε keeps the target.

    Parameters
    ----------
    target
        Largest precision allowed, in [0, 1].
    prior
        π = P(in) before the attack, in (0, 1).
    delta
        δ in [0, 1].
    fpr, recall
        Rate of the attack, in [0, 1], as for :func:`positive_accuracy`; one of them at most.

    Returns
    -------
    float or array
        A float for scalars, otherwise an array of the broadcast shape; ε in nats, rounded down.

    Raises
    ------
    InputError
        If a value is NaN or outside its range, shapes do not broadcast, or ε = 0 misses the target.

    Examples
    --------
    See ``positive_accuracy``.
    """
    goal, dlt, pi = together(target=target, delta=delta, prior=prior)
    if fpr is not None:
        fpr, goal = together(fpr=fpr, target=goal)
    if recall is not None:
        recall, goal = together(recall=recall, target=goal)
    return _largest(
        lambda eps: positive_accuracy(eps, prior=pi, delta=dlt, fpr=fpr, recall=recall)[1], goal, "positive accuracy"
    )


def _largest(bound: Callable[[FloatArray], float | FloatArray], target: FloatArray, name: str) -> float | FloatArray:
    """Bisect an increasing bound in ε for all targets at once and return the safe ends of the brackets."""
    floor = np.broadcast_to(bound(np.zeros(target.shape)), target.shape)
    if np.any(floor > target):
        worst = np.unravel_index(np.argmax(floor - target), target.shape)
        raise InputError(
            f"target must be at least {floor[worst]:.6g}, the {name} that remains at epsilon 0, "
            f"got {target[worst]:g}; lower delta or the prior"
        )
    high = np.full(target.shape, _LARGEST)
    kept = bisect(lambda epsilon: bound(epsilon) <= target, np.zeros(target.shape), high)[0]
    return plain(np.where(bound(high) <= target, np.inf, kept))
