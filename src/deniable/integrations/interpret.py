"""The exact Gaussian curve behind the (ε, δ) of interpret's DP-EBM, or a refusal that says why.

interpret is not imported: its fitted models are used as they come (read from interpret-core 0.7.8).
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deniable._check import InputError, number
from deniable.accounting import tradeoff
from deniable.curves import Tradeoff, with_assumptions
from deniable.mechanisms import GaussianDP

_SAME = 1e-6  # relative difference between a noise scale and what the parameters give
_PUBLIC = {
    "count": "the number of records, which stands on the model (bag_weights_) and decides where bins are cut",
    "bounds": "the smallest and largest value of each numeric column, read off the data without privacy_bounds",
    "types": "the kind of each column, inferred from the data as feature_types does not name it",
    "categories": "the list of categories of each nominal column: only those in the data are counted",
    "weights": "the sample weights that the model was fitted with, and their maximum",
    "classes": "the two classes: in data without either of them, another model is fitted",
    "fit": "that fit() was given no bags=, no init_score=, and no sample_weight= unless 'weights' is named: they may "
    "leave no trace, bags count a record several times, and scores may come from other records",
}


@dataclass(frozen=True)
class DPEBM(GaussianDP):
    """What a differentially private explainable boosting machine ran, as one Gaussian mechanism.

    ``mu`` is for adding or removing a record, ``replacing_mu`` for replacing one. ``promised_epsilon`` and
    ``promised_delta`` are what interpret states; ``public`` is what its account leaves out: that is in its notes.
    """

    replacing_mu: float
    promised_epsilon: float
    promised_delta: float
    public: tuple[str, ...]

    def _check_together(self) -> None:
        vars(self)["notes"] = tuple(f"public: {_PUBLIC[name]}" for name in self.public)

    def tradeoff(self) -> Tradeoff:
        """Return the curve for adding or removing a record, with what has to be public among its assumptions."""
        return tradeoff(self)

    def replacing(self) -> Tradeoff:
        """Return the curve for replacing a record."""
        return with_assumptions(tradeoff(replace(self, mu=self.replacing_mu)), adjacency="replace one record")


def from_interpret(model: Any, *, public: Collection[str] = ()) -> DPEBM:
    """Return the mechanism behind a fitted ``DPExplainableBoostingClassifier``, with its exact Gaussian curve.

    A model releases one noisy histogram per column (a record is in one cell) and, for each term and round, noisy sums
    of the gradients over the leaves of one random tree (a record is in one leaf, and |p − y| ≤ 1). With noise of
    standard deviation s_bin and s_boost, F columns, T rounds times terms, learning rate r and largest weight w it is

        μ² = F·(w/s_bin)² + T·(r·w/s_boost)²

    Gaussian DP for adding or removing a record; interpret splits (ε, δ) into two parts and adds them, which is looser.
    For replacing a record the histograms move by √2·w and the sums by at most 2·r·w.

    Parameters
    ----------
    model
        A fitted ``DPExplainableBoostingClassifier`` of interpret-core, unchanged since: no terms removed.
    public
        What you state to be public although it was read off the data: ``"count"`` and ``"classes"`` (always),
        ``"bounds"``, ``"types"``, ``"categories"``, ``"weights"``. interpret's account leaves these out, so the curve
        cannot hold unless they are; the error lists those that apply to this model. Always ``"fit"`` as well, which
        states that ``fit`` was given no ``bags=``, ``init_score=`` or further weights: no model shows it.

    Returns
    -------
    DPEBM
        The mechanism; ``dn.tradeoff`` gives its curve.

    Raises
    ------
    InputError
        For other models; for a fixed ``random_state`` (whoever knows it subtracts the noise); for regression
        (nothing on the model shows that residuals stay within the range the noise is scaled to); where the noise
        scales do not follow from the parameters; and where something has to be public and is not stated to be.

    Examples
    --------
    >>> import deniable as dn
    >>> public = ["count", "classes", "fit"]  # what of a fitted DP-EBM does not depend on one record
    >>> mechanism = dn.integrations.from_interpret(model, public=public)  # doctest: +SKIP
    """
    _require_kind(model)
    unknown = sorted(set(public) - set(_PUBLIC))
    if isinstance(public, str) or unknown:
        raise InputError(f"public must be a list of {', '.join(map(repr, _PUBLIC))}, got {public!r}")
    if model.random_state is not None:
        raise InputError(
            f"model was fitted with random_state={model.random_state!r}, which is stored in the "
            "model: whoever reads it can draw the same noise and subtract it, so nothing is "
            "protected; fit with random_state=None"
        )
    columns = int(model.n_features_in_)
    steps = int(model.max_rounds) * len(model.term_features_) * int(model.outer_bags)
    if steps == 0:
        raise InputError("model must have boosted at least one term for one round; there is no noise to account for")
    if int(np.sum(model.best_iteration_)) > steps:
        raise InputError("model has run more steps than its parameters allow; they were changed after the fit")
    weight = _largest_weight(model, columns, steps)
    needed = _conditions(model, weight)
    missing = [name for name in needed if name not in public]
    if missing:
        reasons = "; ".join(f"{name!r}: {_PUBLIC[name]}" for name in missing)
        raise InputError(
            f"public must name what interpret reads off the data outside its account, if it is public: {reasons}"
        )
    binned = columns * (weight / float(model.noise_scale_binning_)) ** 2
    boosted = steps * (float(model.learning_rate) * weight / float(model.noise_scale_boosting_)) ** 2
    up = 1 + 1e-12
    return DPEBM(
        math.sqrt(binned + boosted) * up,
        math.sqrt(2 * binned + 4 * boosted) * up,
        float(model.epsilon),
        float(model.delta),
        tuple(needed),
    )


def _require_kind(model: Any) -> None:
    name = type(model).__name__
    if name == "DPExplainableBoostingRegressor":
        raise InputError(
            "model must be a classifier: the noise of DPExplainableBoostingRegressor is scaled to the range of the "
            "target, and nothing on the model shows that residuals (target minus unclipped prediction) stay within it"
        )
    if name != "DPExplainableBoostingClassifier":
        raise InputError(f"model must be interpret's DPExplainableBoostingClassifier, got {name}")
    if not getattr(model, "has_fitted_", False) or not hasattr(model, "noise_scale_boosting_"):
        raise InputError("model must be fitted: it has no noise scales yet")
    if model.objective != "log_loss" or len(model.classes_) != 2 or model.validation_size != 0:
        raise InputError(
            "model must be fitted to two classes with objective='log_loss' and validation_size=0, got "
            f"{len(model.classes_)} classes, {model.objective!r} and {model.validation_size!r}"
        )


def _largest_weight(model: Any, columns: int, steps: int) -> float:
    """The largest sample weight, by which interpret scales both noises; refused where the two disagree."""
    epsilon, delta = number("epsilon", model.epsilon, above=0.0), number("delta", model.delta, above=0.0, below=1.0)
    share = number("bin_budget_frac", model.bin_budget_frac, above=0.0, below=1.0)
    bins = _scale(model.composition, columns, share * epsilon, delta / 2)
    boosts = _scale(model.composition, steps, epsilon - share * epsilon, delta - delta / 2)
    first = float(model.noise_scale_binning_) / bins
    second = float(model.noise_scale_boosting_) / (boosts * float(model.learning_rate))
    if not (first > 0 and second > 0 and abs(first - second) <= _SAME * max(first, second)):
        raise InputError(
            "model's noise scales do not follow from its parameters (epsilon, delta, max_rounds, learning_rate, "
            "composition, bin_budget_frac, terms); pass the model as it was fitted"
        )
    return max(first, second)


def _scale(composition: str, queries: int, epsilon: float, delta: float) -> float:
    """interpret's noise for queries of sensitivity 1."""
    if composition == "classic":
        return math.sqrt(8 * queries * math.log(math.e + epsilon / delta)) / epsilon
    if composition != "gdp":
        raise InputError(f"composition must be 'gdp' or 'classic', got {composition!r}")
    with np.errstate(all="ignore"):
        return math.sqrt(queries) / _mu(epsilon, delta)


def _mu(epsilon: float, delta: float) -> float:
    """The μ that interpret takes, with its arithmetic: at large ε and small δ that is not the one that solves δ(ε)."""

    def excess(mu: float) -> float:
        low, high = -epsilon / mu - mu / 2, -epsilon / mu + mu / 2
        below, above = ((math.erf(x / math.sqrt(2)) + 1.0) * 0.5 for x in (low, high))
        return float(above - np.exp(epsilon) * below - delta)

    left, right = 1e-5, 1000.0
    at_left, best, least, idle = excess(left), (left + right) / 2, math.inf, 0
    while idle < 100:  # rounds without a better μ
        middle = left * 0.5 + right * 0.5
        here, idle = excess(middle), idle + 1
        if abs(here) < least:
            best, least, idle = middle, abs(here), 0
        if at_left * here < 0:
            right = middle
        else:
            left, at_left = middle, here
    return best


def _conditions(model: Any, weight: float) -> list[str]:
    """What has to be public, or stated, for the account to be complete."""
    kinds = [str(kind) for kind in model.feature_types_in_]
    given = [None] * len(kinds) if model.feature_types is None else list(model.feature_types)
    named = [
        str(asked) == kind or not isinstance(asked, str | int | None) for asked, kind in zip(given, kinds, strict=True)
    ]
    weights = np.asarray(getattr(model, "bag_weights_", 0.0), dtype=float)
    needed = {
        "count": True,
        "bounds": any(kind == "continuous" and not _has_own_bounds(model, i) for i, kind in enumerate(kinds)),
        "types": not all(named),
        "categories": any(kind != "continuous" for kind in kinds),
        "weights": abs(weight - 1) > _SAME or bool((weights != np.round(weights)).any()),
        "classes": True,
        "fit": True,
    }
    return [name for name, asked in needed.items() if asked]


def _has_own_bounds(model: Any, place: int) -> bool:
    """Whether the bounds of a numeric column are those of ``privacy_bounds``, found as interpret finds them."""
    bounds = model.privacy_bounds
    if isinstance(bounds, dict):
        by_name = bounds.get(getattr(model, "feature_names_in_", {place: None})[place])
        found = bounds.get(place) if bounds.get(place) is not None else by_name
    else:
        found = None if bounds is None else bounds[place]
    used = getattr(model, "feature_bounds_", {place: found})[place]
    return found is not None and all(float(a) == float(b) for a, b in zip(found, used, strict=False))  # NaN is not
