"""Guarantees in Rényi divergences, as other accountants and papers state them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from deniable._check import InputError, numbers
from deniable.mechanisms.core import Mechanism
from deniable.mechanisms.fields import real


@dataclass(frozen=True)
class RenyiDP(Mechanism):
    """Any mechanism whose Rényi divergences of these ``orders`` are at most ``epsilons``, in both directions.

    Parameters
    ----------
    orders
        Orders α above 1, increasing; ``inf`` means pure ε-DP.
    epsilons
        One bound per order, at least 0; ``inf`` says nothing.

    Notes
    -----
    Mironov 2017: D_α(M(D)‖M(D′)) ≤ ε(α) for all neighbours, hence with the two exchanged, too. What order 1 (the KL
    divergence) says is not used: give an order just above 1.

    Examples
    --------
    >>> import deniable as dn
    >>> promises = [dn.ZeroConcentratedDP(0.01), dn.RenyiDP([2.0, 8.0], [0.02, 0.09])]
    >>> [round(dn.tradeoff(promise).epsilon(1e-5), 2) for promise in promises]
    [0.55, 1.2]
    """

    orders: tuple[float, ...]
    epsilons: tuple[float, ...]

    def __init__(self, orders: ArrayLike, epsilons: ArrayLike) -> None:
        alpha = np.atleast_1d(numbers("orders", orders, above=1.0, hint="an order just above 1 stands for KL"))
        bound = np.atleast_1d(numbers("epsilons", epsilons, at_least=0.0))
        if alpha.ndim != 1 or alpha.size == 0 or not np.all(np.diff(alpha) > 0):
            raise InputError(f"orders must be a non-empty increasing sequence, got {orders!r}")
        if bound.shape != alpha.shape:
            raise InputError(f"epsilons must be as many as orders, got {bound.size} for {alpha.size}")
        object.__setattr__(self, "orders", tuple(alpha.tolist()))
        object.__setattr__(self, "epsilons", tuple(bound.tolist()))


@dataclass(frozen=True)
class ZeroConcentratedDP(Mechanism):
    """Any mechanism with D_α ≤ ``xi`` + ``rho``·α at every order α > 1, in both directions (Bun & Steinke 2016).

    Parameters
    ----------
    rho
        At least 0 and finite: μ²/2 for a Gaussian mechanism.
    xi
        At least 0 and finite; 0 is what is usually meant by ρ-zCDP.

    Examples
    --------
    See ``RenyiDP``.
    """

    rho: Annotated[float, real(at_least=0.0, below=math.inf)]
    xi: Annotated[float, real(at_least=0.0, below=math.inf)] = 0.0
