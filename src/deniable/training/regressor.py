"""``PrivateRegressor``: a regression that bounds what any attacker can infer about membership in its training data."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import ndtr
from sklearn.base import RegressorMixin
from sklearn.utils.validation import _check_y, column_or_1d

from deniable._check import FloatArray, InputError, choice, nearest_names
from deniable.limits import Limit
from deniable.mechanisms import Mechanism
from deniable.noise.queries import Queries
from deniable.tables import DATE, NUMBER, ColumnCells
from deniable.tables.schema import ColumnSchema, Schema
from deniable.training import bins
from deniable.training.base import Begun, PrivateModel, TrainingWarning
from deniable.training.levels import LEVEL_SHARE, wide_clip
from deniable.training.looks import number_cells
from deniable.training.losses import ClippedLoss, ClippedPoisson, ClippedSquared

TARGET_SHARE = 0.05  # of μ²: location and spread of the target
_CLIP = 0.5  # in spreads of the target
_MANY = 800.0  # n·μ above which a larger clip pays: less bias on skewed targets, noise matters less
_WIDEST = 4.0  # times the smallest clip, for the number of records alone
_WIDER = 2.0 ** np.arange(6)  # what is tried where the target has a long tail
_NOISE = 16.0  # error of predictions by the noise of the smallest clip, in spreads, times n·μ
_SEEN = 3.0  # standard deviations by which a cell of a tail must stand out of the noise
_MOSTLY = 0.84 - 0.16  # share of the mass from which on one cell may hold all three quantiles
_ENOUGH = 150.0  # n·μ above which the range of a target is found even if most of it is at one end
_ONE_SIDED = 0.2  # distance of the nearer of the 16 % and 84 % quantiles from the median, as a share of the other's


class PrivateRegressor(RegressorMixin, PrivateModel):  # type: ignore[misc]
    """Regression fitted to a membership target; see :class:`deniable.PrivateClassifier` for what is not described here.

    Parameters
    ----------
    advantage, limit
        What an attacker may reach: at most one of them, ``advantage=0.1`` unless given.
    model, schema, ranges, categories, discovery_delta, interactions, individual_filter, tune, group, records_per_person
        As for the classifier.
    loss
        "squared": residuals are clipped at ½ to 16 spreads of the target (half of what lies between 16 % and 84 %, or
        the mean distance from the median), by the number of records and the weight of its tail; "huber": always at ½;
        "poisson": counts, with a logarithmic link.
    target_range
        (low, high) of the target if it is public; otherwise its location and spread are found privately. Where most
        of the target is at one end (zeros) and records are few, ``fit`` warns that the rest may not be found.
    """

    @nearest_names
    def __init__(
        self,
        *,
        advantage: float | None = None,
        limit: Limit | Mechanism | None = None,
        model: str = "additive",
        loss: str = "squared",
        target_range: tuple[float, float] | None = None,
        schema: Schema | None = None,
        ranges: Mapping[Any, tuple[Any, Any]] | None = None,
        categories: Mapping[Any, Any] | str | None = None,
        discovery_delta: float = 1e-6,
        interactions: int = 0,
        individual_filter: bool = False,
        tune: bool = False,
        group: Any = None,
        records_per_person: int = 1,
    ) -> None:
        self.advantage = advantage
        self.limit = limit
        self.model = model
        self.loss = loss
        self.target_range = target_range
        self.schema = schema
        self.ranges = ranges
        self.categories = categories
        self.discovery_delta = discovery_delta
        self.interactions = interactions
        self.individual_filter = individual_filter
        self.tune = tune
        self.group = group
        self.records_per_person = records_per_person

    @property
    def _aim(self) -> ColumnSchema:
        declared = super()._aim
        if self.target_range is None:
            return declared
        return replace(declared, range=self.target_range, categories=()).checked("the target")

    def _target(self, y: Any, look: Queries) -> tuple[FloatArray, tuple[float, float] | None]:
        """Return the targets, and their range if it is declared; what is no number in it then weighs nothing."""
        choice("loss", self.loss, ("squared", "huber", "poisson"))
        aim = self._aim
        if aim.kind not in ("", "number", "whole", "date"):
            raise InputError(f"the target is declared as {aim.kind!r}, a regression needs numbers or dates")
        span, kind = aim.span, DATE if aim.kind == "date" else NUMBER
        if self.loss == "poisson" and span is not None and span[0] < 0:
            raise InputError("loss='poisson' needs counts of at least 0 in target_range")
        cells = y if isinstance(y, ColumnCells) else aim.read(column_or_1d(y, warn=True))
        fits = cells.kind == kind
        if not (aim.kind or isinstance(y, ColumnCells)):
            values = _check_y(np.where(fits, cells.number, np.nan), y_numeric=True, estimator=self)
            if self.loss == "poisson" and values.min() < 0:
                raise InputError("loss='poisson' needs counts of at least 0")
            return np.asarray(values), None
        if self.loss == "poisson":
            fits &= ~(cells.number < 0)
        look.units = look.units.only(fits)
        values = np.where(fits, cells.number, 0.0)
        return (values, None) if span is None else (np.clip(values, *span), span)

    def _learn(self, begun: Begun, target: Any, n: float) -> dict[str, Any]:
        (values, span), look = target, begun.look
        self._advise(n, begun)
        mu = look.ledger.mu * math.sqrt(TARGET_SHARE)
        cells = number_cells(look, "the target", values, mu, span, n, again=True)
        one_sided = self.loss != "poisson" and _one_sided(cells)
        few = cells.mass.size <= 2 or (one_sided and n * mu < _ENOUGH)
        if span is None and self.loss != "poisson" and few:
            warnings.warn(
                "most of the target is at one end and the records are too few to find the range of the rest: the model "
                "may predict worse than the mean; more records, a weaker target or, if it is public, "
                "target_range=(low, high) help",
                TrainingWarning,
                stacklevel=5,
            )
        centre, spread = _location(cells, self.loss, mu, one_sided)
        loss = _loss(self.loss, n * look.ledger.left, _tails(cells, centre, spread, mu))
        public = ("the range of the target",) * (span is not None)
        wide, one = None, 1 / spread if self.loss == "poisson" else None
        if self.loss != "huber":
            part = look.ledger.mu * math.sqrt(LEVEL_SHARE)
            wide = wide_clip(part, n, loss.clip, one, one_sided=one_sided)
        fitted = self._common(begun, (values - centre) / spread, loss, n, public, wide)
        return fitted | {"centre_": centre, "spread_": spread}

    def predict(self, X: Any) -> FloatArray:
        """Return the predicted target of each row."""
        scores = self._scores(X)[:, 0]
        if self.loss == "poisson":
            return np.asarray(self.spread_ * np.exp(np.minimum(scores, 50.0)))
        return np.asarray(self.centre_ + self.spread_ * scores)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # tiny data sets are mostly noise: that is the promise
        return tags


def _loss(name: str, strength: float, tails: FloatArray) -> ClippedLoss:
    """Return the loss whose clip and travel grow with the number of records in units of the noise.

    A long tail that the clip cuts off biases all predictions towards the median: the clip grows until the bias, the
    mean of what is cut off, is about what the noise of a wider clip adds.
    """
    wider = min(max(math.sqrt(strength / _MANY), 1.0), _WIDEST)
    cost = np.square(tails) + np.square(_NOISE * _WIDER / max(strength, 1e-9))
    wider = max(wider, float(_WIDER[np.argmin(cost)]))
    if name == "poisson":
        return ClippedPoisson(_CLIP * wider, travel=1.05 * wider)
    return ClippedSquared(_CLIP * wider if name == "squared" else _CLIP, travel=1.05 * wider)


def _tails(cells: bins.NoisyCells, centre: float, spread: float, mu: float) -> FloatArray:
    """Return what the clips ``_CLIP·_WIDER`` cut off on average, in spreads, beyond what a normal law loses."""
    mass, away = _seen(cells, mu), np.abs(_middles(cells) - centre) / spread
    clips = _CLIP * _WIDER
    cut = np.maximum(away[:, None] - clips, 0.0)
    usual = 2 * (np.exp(-(clips**2) / 2) / math.sqrt(2 * math.pi) - clips * ndtr(-clips))
    return np.asarray(np.maximum(mass @ cut / max(float(cells.mass.sum()), 1e-300) - usual, 0.0))


def _middles(cells: bins.NoisyCells) -> FloatArray:
    return (cells.bounds[1:] + cells.bounds[:-1]) / 2


def _seen(cells: bins.NoisyCells, mu: float) -> FloatArray:
    """Return the mass of the cells that stand out of the noise; 0 for the others."""
    return np.where(cells.mass > _SEEN * 2 / mu, cells.mass, 0.0)


def _quantiles(cells: bins.NoisyCells) -> tuple[float, float, float]:
    low, middle, high = (bins.quantile(cells, share) for share in (0.16, 0.5, 0.84))
    return low, middle, high


def _one_sided(cells: bins.NoisyCells) -> bool:
    """Return whether most of the target is at one end, as the zeros of claims are: the median is then not the mean."""
    low, middle, high = _quantiles(cells)
    if cells.mass.max() > _MOSTLY * cells.mass.sum():
        return True
    return min(high - middle, middle - low) < _ONE_SIDED * max(high - middle, middle - low)


def _location(cells: bins.NoisyCells, loss: str, mu: float, one_sided: bool) -> tuple[float, float]:
    """Return the centre and the spread in which the target is measured.

    The spread is half of what lies between 16 % and 84 %, which is next to nothing where most targets are equal (gains,
    of which 92 % are 0); then, and in long tails, it is the mean distance from the median, where that is larger: of
    what stands out of the noise, or of everything if most targets are at one end and the 84 % may lie in the noise.
    """
    middles = _middles(cells)
    if loss == "poisson":
        mean = float(np.sum(middles * cells.mass) / cells.mass.sum()) if cells.mass.sum() > 0 else cells.high / 2
        return 0.0, max(mean, 1e-9)
    low, middle, high = _quantiles(cells)
    mass = cells.mass if one_sided else _seen(cells, mu)
    distance = float(mass @ np.abs(middles - middle) / max(float(cells.mass.sum()), 1e-300))
    spread = max((high - low) / 2, distance)
    return middle, spread if spread > 0 else max((cells.high - cells.low) / 2, 1e-12)
