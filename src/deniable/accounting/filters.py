"""Privacy filters: a budget that holds although every next step's noise is chosen after looking at earlier outputs.

A filter fixes the guarantee of the whole run before it starts and is asked *before* each step. What was promised is the
budget, never the sum of what happened to be spent. Threads may share a filter. It has no deep copies and no pickles:
each of them would spend the whole budget.
"""

from __future__ import annotations

import math
from threading import Lock

import numpy as np
from numpy.typing import ArrayLike

from deniable._check import FloatArray, InputError, integer, number, numbers
from deniable._floats import EPS, LEAST, ROOM
from deniable.accounting.dispatch import tradeoff
from deniable.curves import GaussianTradeoff, Tradeoff
from deniable.mechanisms import GaussianDP, Mechanism, RenyiDP


class BudgetSpentError(InputError):
    """A step would pass the budget of a filter: it must not run. The filter is as it was before.

    Examples
    --------
    See ``GaussianFilter``.
    """


class GaussianFilter:
    """A budget ``mu`` of Gaussian DP for steps whose parameters are chosen from earlier outputs.

    Parameters
    ----------
    mu
        The budget, fixed before the run: with it the whole run is ``mu``-Gaussian DP, up to a share of 1e-11 for
        rounding, which :meth:`tradeoff` includes.

    Notes
    -----
    If step t is μ_t-Gaussian DP given everything before it, and Σ μ_t² ≤ μ² always, the run is μ-Gaussian DP (Smith &
    Thakurta 2022, arXiv:2210.17520; Koskela, Tobaben & Honkela 2022, arXiv:2209.15596). That serves Gaussian steps on
    full batches, with noise, number of steps and the moment to stop chosen adaptively. It does **not** serve
    Poisson-sampled steps: their curves are not Gaussian, and the filter that composes trade-off curves and stops at a
    curve is invalid (arXiv:2602.06756); use :class:`RenyiFilter`.

    Examples
    --------
    >>> from deniable.accounting import GaussianFilter
    >>> budget = GaussianFilter(mu=1.0)
    >>> budget.spend(0.6)
    >>> round(budget.remaining(), 12)
    0.8
    """

    def __init__(self, mu: float) -> None:
        self._mu = number("mu", mu, above=0.0, below=math.inf)
        self._shares: list[float] = []  # of the budget's square, so that no budget is too small or too large
        self._lock = Lock()

    @property
    def mu(self) -> float:
        """The budget; it cannot be changed."""
        return self._mu

    def remaining(self) -> float:
        """Return the largest μ that one more step may have."""
        return self._mu * math.sqrt(max(1 - math.fsum(self._shares), 0.0))

    def spend(self, step: float | Mechanism, times: int = 1) -> None:
        """Count ``times`` steps before they run.

        Parameters
        ----------
        step
            μ of a step, at least 0 (sensitivity over standard deviation), or a mechanism whose curve is Gaussian.
        times
            How many of them.

        Raises
        ------
        BudgetSpentError
            If the budget does not allow it; nothing is counted then.
        InputError
            For a mechanism whose curve is not Gaussian.
        """
        mu = _gaussian(step) if isinstance(step, Mechanism) else number("step", step, at_least=0.0)
        root = mu / self._mu * math.sqrt(integer("times", times, at_least=1))
        share = max(root * root * (1 + 8 * EPS), LEAST if mu > 0 else 0.0)
        with self._lock:
            if not math.fsum([*self._shares, share]) <= 1 + ROOM:
                raise BudgetSpentError(
                    f"step must have at most mu = {self.remaining():.6g}, what is left of {self._mu:g}, "
                    f"got {mu:g} × {times}; do not run it"
                )
            self._shares.append(share)

    def tradeoff(self) -> Tradeoff:
        """Return the curve of the whole run, whatever is spent of the budget."""
        return tradeoff(GaussianDP(self._mu * (1 + ROOM)))


class RenyiFilter:
    """A Rényi budget for steps whose parameters (noise, sampling rate, number) are chosen from earlier outputs.

    Parameters
    ----------
    orders, epsilons
        The budget, fixed before the run: with it the whole run is :class:`RenyiDP` with these, up to a share of 1e-11
        for rounding, which :meth:`tradeoff` includes.

    Notes
    -----
    If step t has Rényi divergences of at most ρ_t(α), in both directions and given everything before it,
    and Σ ρ_t(α) ≤ ε(α) always, then the run has at most ε(α) (Feldman & Zrnic 2021, arXiv:2008.11193, Theorem 3.1;
    Lécuyer 2021), for each order α separately. The filter stops a step that would pass the budget at **any** of its
    orders, so that all hold: choose the orders that you need, and a budget shaped like the divergences of the steps
    that you expect.

    Examples
    --------
    >>> import deniable as dn
    >>> orders = [2.0, 4.0, 8.0, 16.0]
    >>> planned = dn.tradeoff(dn.SubsampledGaussian(1.0, 0.01, 1000))
    >>> budget = dn.accounting.RenyiFilter(orders, planned.renyi(orders))
    >>> budget.spend(dn.SubsampledGaussian(2.0, 0.01, 500))
    >>> bool(budget.remaining().min() > 0)
    True
    """

    def __init__(self, orders: ArrayLike, epsilons: ArrayLike) -> None:
        self._budget = RenyiDP(orders, epsilons)
        self._spent = np.zeros(len(self._budget.orders))
        self._lock = Lock()

    @property
    def budget(self) -> RenyiDP:
        """The budget; it cannot be changed."""
        return self._budget

    def remaining(self) -> FloatArray:
        """Return what is left at each order, at least 0."""
        return np.maximum(np.array(self.budget.epsilons) - self._spent, 0.0)

    def spend(self, step: ArrayLike | Mechanism) -> None:
        """Count a step before it runs.

        Parameters
        ----------
        step
            A mechanism, or bounds on its Rényi divergences at the filter's orders, which hold in both directions and
            for whatever it may do.

        Raises
        ------
        BudgetSpentError
            If the budget does not allow it at some order; nothing is counted then.
        """
        orders = np.array(self.budget.orders)
        if isinstance(step, Mechanism):
            cost = np.asarray(tradeoff(_add_remove(step)).renyi(orders))
        else:
            cost = np.atleast_1d(numbers("step", step, at_least=0.0))
        if cost.shape != orders.shape:
            raise InputError(f"step must have one divergence per order, {orders.size}, got {cost.size}")
        with self._lock:
            total = (self._spent + cost) * (1 + 2 * EPS)
            over = ~(total <= np.array(self.budget.epsilons) * (1 + ROOM))
            if over.any():
                k = int(np.argmax(over))
                raise BudgetSpentError(
                    f"step must have a divergence of order {orders[k]:g} of at most {self.remaining()[k]:.6g}, what "
                    f"remains of {self.budget.epsilons[k]:g}, got {cost[k]:g}; do not run it"
                )
            self._spent = total

    def tradeoff(self) -> Tradeoff:
        """Return the curve of the whole run, whatever is spent of the budget."""
        return tradeoff(RenyiDP(self.budget.orders, np.array(self.budget.epsilons) * (1 + ROOM)))


def _add_remove(mechanism: Mechanism) -> Mechanism:
    if "add-remove" not in (mechanism.adjacency, *mechanism.also):
        raise InputError(
            f"step must be a mechanism for adding or removing a record, got adjacency {mechanism.adjacency!r}; "
            "pass its parameters instead if the whole run has that adjacency"
        )
    return mechanism


def _gaussian(mechanism: Mechanism) -> float:
    curve = tradeoff(_add_remove(mechanism))
    if not isinstance(curve, GaussianTradeoff):
        raise InputError(
            f"step must be Gaussian (a full batch, GaussianDP), got {mechanism!r}; RenyiFilter serves other mechanisms"
        )
    return curve.mu * (1 + 2 * EPS)
