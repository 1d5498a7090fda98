"""The Rényi curve of a tuned mechanism: see :func:`deniable.mechanisms.tuned` for theorem and proof."""

from __future__ import annotations

import math

import numpy as np

from deniable._check import FloatArray, InputError
from deniable._floats import EPS
from deniable.accounting.renyi import TabulatedCurve
from deniable.curves import OPPOSITE, Direction, Tradeoff
from deniable.mechanisms import Tuned

_ORDERS = np.concatenate([1 + np.geomspace(0.01, 1000.0, 70), [np.inf]])
_SLACK = 1e-9  # by which the law's parameter is moved to the safe side


def tuned_curve(mechanism: Tuned, one_run: Tradeoff) -> TabulatedCurve:
    """Return the bounds on the divergences of a tuned mechanism, from the trade-off of one run.

    Raises
    ------
    InputError
        If no Rényi divergence of a run is known to be finite.
    """
    known: dict[Direction, FloatArray] = {way: one_run.renyi(_ORDERS, way) for way in ("add", "remove")}
    if not np.isfinite(known["add"][:-1]).any() or not np.isfinite(known["remove"][:-1]).any():
        raise InputError(
            f"mechanism must have finite Rényi divergences to be tuned, got {mechanism.mechanism!r}; an (ε, δ) "
            "guarantee with δ > 0 has none"
        )
    bounds = {way: _bound(mechanism, one_run, known, way) for way in known}
    return TabulatedCurve(_ORDERS, bounds["add"], bounds["remove"])


def _bound(mechanism: Tuned, one_run: Tradeoff, known: dict[Direction, FloatArray], way: Direction) -> FloatArray:
    other, mean = OPPOSITE[way], mechanism.trials * (1 + 4 * EPS)
    less = _ORDERS - 1
    if math.isinf(mechanism.shape):
        with np.errstate(invalid="ignore", over="ignore"):
            gamma = np.where(np.isinf(_ORDERS), 1.0, _ORDERS / less) * (1 - 4 * EPS)
            chosen = known[way] + mean * np.asarray(one_run.hockey_stick(gamma, other)) + math.log(mean) / less
            found = np.logaddexp(-mechanism.trials, less * chosen) / less  # of the moment, K = 0 included
        found = np.where(np.isinf(_ORDERS), np.maximum(chosen, 0.0), found)
    else:
        log_stop = -math.log(mechanism.stop) * (1 + 4 * EPS) + _SLACK
        share = 1 / _ORDERS
        with np.errstate(invalid="ignore"):
            second = np.where(np.isinf(known[other]), np.inf, (1 - share) * known[other] + log_stop * share)
        found = known[way] + (1 + mechanism.shape) * float(np.min(second)) + math.log(mean) / less
    return np.asarray(np.maximum(found, 0.0) * (1 + 32 * EPS) + 32 * EPS)
