"""Hockey sticks of a curve, tabulated: quick, nearly right, and no bound. For proposing slopes to those who prove."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from deniable._check import FloatArray
from deniable.curves.base import Tradeoff
from deniable.curves.safe import ADD, OPPOSITE, REMOVE, Direction, Side, directions

_POINTS = 193
_DENSE = 0.25  # log γ up to which points are evenly spaced; further out they are by their logarithm
_UNSEEN = 1e-40  # hockey sticks below are not tabulated
_FARTHEST = 5e3


class TangentTable:
    """log H_γ of ``curve`` (upper side) for γ ≥ 1 in both directions, joined by cubics in log γ."""

    def __init__(self, curve: Tradeoff) -> None:
        self.curve = curve

    @cached_property
    def _tabulated(self) -> dict[Direction, tuple[FloatArray, FloatArray, FloatArray, FloatArray]]:
        """By direction: log γ, log H and its slope, and the coefficients of the cubics."""
        from scipy.interpolate import PchipInterpolator

        found = {}
        for way in directions("both", self.curve._symmetric):
            farthest, most = 1.0, min(self.curve._ratio_bound(way, "upper"), _FARTHEST)
            while farthest < most and self._asked(np.array([farthest]), way)[0] > _UNSEEN:
                farthest *= 2
            points = _DENSE * np.sinh(np.linspace(0.0, np.arcsinh(min(farthest, most) / _DENSE), _POINTS))
            logs = np.log(np.maximum(self._asked(points, way), _UNSEEN))
            joined = PchipInterpolator(points, logs)
            found[way] = points, logs, np.asarray(joined(points, nu=1)), np.asarray(joined.c)
        return found if len(found) == 2 else {ADD: found[ADD], REMOVE: found[ADD]}

    def _asked(self, log_gamma: FloatArray, direction: Direction) -> FloatArray:
        return self.curve._hockey_sticks(log_gamma, direction, "upper")

    def _hockey_sticks(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        """Return about H_γ, under the name by which curves return bounds on it; ``side`` is that of bounds."""
        height = np.zeros_like(log_gamma)
        for way, part in ((direction, log_gamma >= 0), (OPPOSITE[direction], log_gamma < 0)):
            height[part] = self._above_one(np.abs(log_gamma[part]), way)
        with np.errstate(over="ignore"):
            gamma = np.exp(np.minimum(log_gamma, 0.0))
        return np.where(log_gamma < 0, 1 - gamma + gamma * height, height)

    def _above_one(self, log_gamma: FloatArray, direction: Direction) -> FloatArray:
        points, _, _, cubics = self._tabulated[direction]
        cell = np.clip(np.searchsorted(points, log_gamma, side="right") - 1, 0, points.size - 2)
        x = log_gamma - points[cell]
        logs = ((cubics[0, cell] * x + cubics[1, cell]) * x + cubics[2, cell]) * x + cubics[3, cell]
        return np.where(log_gamma <= points[-1], np.exp(logs), 0.0)

    def tests(self, direction: Direction) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the log slopes of tangents, growing, and about the logits of FPR and TPR where they touch the ROC."""
        slopes, fprs, tprs = [], [], []
        for way, sign in ((OPPOSITE[direction], -1), (direction, 1)):
            slope, logs, bend, _ = self._tabulated[way]
            with np.errstate(all="ignore"):
                log_fpr = np.minimum(logs + np.log(-bend) - slope, -1e-300)
                log_tpr = np.minimum(np.logaddexp(logs, slope + log_fpr), -1e-300)
                pair = [log_fpr - np.log(-np.expm1(log_fpr)), log_tpr - np.log(-np.expm1(log_tpr))]
            fpr, tpr = pair if sign > 0 else [-pair[1], -pair[0]]
            known = np.isfinite(fpr) & np.isfinite(tpr)
            slopes.append((sign * slope[known])[::sign])
            fprs.append(fpr[known][::sign])
            tprs.append(tpr[known][::sign])
        return np.concatenate(slopes), np.concatenate(fprs), np.concatenate(tprs)
