"""The privacy profile: for every record, what an attacker learns about it from this model and from typical ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable._check import FloatArray, InputError, choice, integer, number, numbers
from deniable._optional import require
from deniable._shown import shown
from deniable.curves import Side, Tradeoff
from deniable.records.fit import Fit, Normalization, fit
from deniable.records.groups import leave_groups_out
from deniable.records.inputs import Intercept, candidates, make_problem, released_model
from deniable.records.losses import Loss, as_loss
from deniable.records.mechanisms import OutputPerturbation
from deniable.records.neighbours import Changes, Neighbours, Pivot, default_tolerance, joined, leave_one_out
from deniable.records.objective import ObjectivePerturbation
from deniable.records.plots import draw_advantages, draw_curves, draw_ranked
from deniable.records.refine import refine
from deniable.records.transition import Transition, find_transition
from deniable.records.typical import BoundedSample, ExactTypical, SampledTypical, Typical

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from matplotlib.axes import Axes

_CONFIDENCE = 0.95
Ranking = Literal["release", "typical"]

WARNING = (
    "This profile was computed from the training data without noise: it is sensitive. "
    "Keep it with the data, never publish it with the model."
)


@dataclass(frozen=True, eq=False)
class PrivacyProfile:
    """Record by record, how far the released model and typical ones give a training record away.

    Worlds: *in*, the model was trained on all rows; *out*, on all rows but this one. n and the noise are public and
    the same in both. Everything about typical models is exact up to ``radius`` and the quadrature error, both charged
    to the safe side: upper values are never below the truth.

    Attributes
    ----------
    optimum
        Parameters of the model trained on all rows, without noise, (parameters,).
    optima, radii
        What :meth:`leave_one_out` and :meth:`radius` return.
    distance
        ‖Δ_i‖, distance of ``leave_one_out()[i]`` from ``optimum``, (n,). It is exact up to ``distance_error``.
    released
        The model that was released, (parameters,). If none was given: a simulated one, drawn with NumPy and not
        hardened, so not for publication (docs/records.md shows a draw that is).
    losses, loss_errors
        What :meth:`privacy_loss` returns, and a bound of its error.
    rate
        β (norm-Laplace) or 1/s (Gaussian). Under output perturbation ρ_i = rate·distance_i sets the law of l_i.
    typical
        Attack curves over models drawn from the in-world; ``advantage``, ``tpr`` and the rest read it.
    sensitivity
        The public bound of ``distance`` over all data sets from which ε calibrates the noise, 2LR/(nΛ); ``None`` if
        there is none.
    """

    optimum: FloatArray
    optima: FloatArray = field(repr=False)
    radii: FloatArray = field(repr=False)
    distance: FloatArray = field(repr=False)
    distance_error: FloatArray = field(repr=False)
    released: FloatArray
    losses: FloatArray = field(repr=False)
    loss_errors: FloatArray = field(repr=False)
    mechanism: OutputPerturbation | ObjectivePerturbation
    rate: float
    typical: Typical | None = field(repr=False)
    sensitivity: float | None
    regularization: float
    loss: str
    iterations: int
    groups: NDArray[np.generic] | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()
    warning: str = WARNING

    def __len__(self) -> int:
        return len(self.distance)

    def _repr_html_(self) -> str:
        from deniable._notebook import panel

        rows = [("Records", f"{len(self):,}")]
        if self.typical is not None:
            worst, median = (shown(float(of(self.advantage())), "rate", "upper") for of in (np.max, np.median))
            rows += [("Largest advantage", f"≤ {worst}"), ("Median advantage", f"≤ {median}")]
        return panel("Privacy profile", rows, self.notes, headline=self.warning, tone="bad")

    def leave_one_out(self) -> FloatArray:
        """Parameters of the model trained without record i, (n, parameters); for softmax (d, classes), flattened."""
        return self.optima

    def radius(self) -> FloatArray:
        """Certified bound of ‖leave_one_out()[i] − exact optimum without record i‖, (n,)."""
        return self.radii

    def privacy_loss(self) -> FloatArray:
        """Ex-post loss l_i at ``released``: log density in the in-world over that in the out-world, signed, (n,).

        Positive: the release looks more like the record was in. Exact up to ``loss_errors``.
        """
        return self.losses

    def ranking(self, by: Ranking = "release") -> NDArray[np.intp]:
        """Records, most exposed first by this ``"release"`` (|privacy loss|) or by ``"typical"`` ones (distance)."""
        exposure = np.abs(self.losses) if choice("by", by, ("release", "typical")) == "release" else self.distance
        return np.argsort(-exposure, kind="stable")

    def advantage(self, side: Side = "upper") -> FloatArray:
        """Bound of each record's advantage over typical models, TV of the two worlds, (n,).

        The two sides differ by the certified errors.
        """
        choice("side", side, ("upper", "lower"))
        return self._upper_advantage if side == "upper" else self._known().advantage("lower")

    @cached_property
    def _upper_advantage(self) -> FloatArray:
        return self._known().advantage("upper")

    def mean_loss(self) -> FloatArray:
        """E l_i over models of the in-world, the Kullback–Leibler divergence, (n,)."""
        return self._known().mean_loss()

    def mean_size(self) -> FloatArray:
        """E|l_i| over models of the in-world, (n,); divided by ``rate`` it is what LeBlond et al. draw."""
        return self._known().mean_size()

    def tpr(self, fpr: ArrayLike, side: Side = "upper") -> FloatArray:
        """Largest true positive rate against each record at ``fpr``: (n,) for a number, (n, k) for k of them."""
        rates = numbers("fpr", fpr, at_least=0.0, at_most=1.0, hint="it is a rate, not a percentage")
        choice("side", side, ("upper", "lower"))
        columns = [self._known().tpr(float(a), side) for a in rates.ravel()]
        return columns[0] if rates.ndim == 0 else np.stack(columns, axis=1)

    def epsilon(self, delta: float, side: Side = "upper") -> FloatArray:
        """Each record's smallest ε ≥ 0 at ``delta``, over typical models, (n,)."""
        d = number("delta", delta, at_least=0.0, at_most=1.0)
        choice("side", side, ("upper", "lower"))
        return self._known().epsilon(d, side)

    def tradeoff(self, record: int) -> Tradeoff:
        """The whole attack curve against one record, over typical models."""
        i = integer("record", record)
        if not -len(self) <= i < len(self):
            raise InputError(f"record must be between 0 and {len(self) - 1}, got {i}")
        return self._known().tradeoff(i)

    def transition(self, quantile: float = 1.0, low: float = 0.05, high: float = 0.95) -> Transition:
        """The band of ε in which the record at this ``quantile`` of exposure goes from hidden to exposed."""
        return find_transition(self, quantile=quantile, low=low, high=high)

    def to_frame(self, fpr: float = 0.001, by: Ranking = "release") -> pd.DataFrame:
        """One row per record, the most exposed by this ``"release"`` (``"typical"`` ones) first; sensitive data."""
        pandas = require("pandas", purpose="a data frame")
        order = self.ranking(by)
        frame: pd.DataFrame = pandas.DataFrame(
            {
                "record": order,
                "privacy_loss": self.losses[order],
                "distance": self.distance[order],
                "radius": self.radii[order],
            }
        )
        if self.typical is not None:
            frame["advantage"] = self.advantage()[order]
            frame[f"tpr_at_fpr_{fpr:g}"] = self.tpr(fpr)[order]
            frame["mean_loss"] = self.mean_loss()[order]
        frame.attrs["warning"] = self.warning
        return frame

    def most_exposed(self, k: int = 10, fpr: float = 0.001, by: Ranking = "release") -> pd.DataFrame:
        """The ``k`` records that this release, or typical ones, give away most: the first rows of :meth:`to_frame`."""
        return self.to_frame(fpr, by).head(integer("k", k, at_least=1))

    def by(self, column: ArrayLike, fpr: float = 0.001) -> pd.DataFrame:
        """Summarise subgroups: one value of ``column`` per record, one row of the result per value.

        ``share_of_top_1_percent`` is the group's share of the 1 % most exposed by typical models; compare it with
        ``share``, its share of all records.
        """
        pandas = require("pandas", purpose="a data frame")
        values = np.asarray(column)
        if values.shape != (len(self),):
            raise InputError(f"column must have one value per record, got shape {values.shape} for {len(self)} records")
        top = np.zeros(len(self), dtype=bool)
        top[self.ranking("typical")[: max(1, len(self) // 100)]] = True
        frame: pd.DataFrame = pandas.DataFrame(
            {
                "group": values,
                "advantage": self.advantage(),
                "tpr": self.tpr(fpr),
                "size": np.abs(self.losses),
                "top": top,
            }
        )
        grouped = frame.groupby("group", sort=True)
        summary: pd.DataFrame = pandas.DataFrame(
            {
                "records": grouped.size(),
                "share": grouped.size() / len(self),
                "share_of_top_1_percent": grouped["top"].sum() / top.sum(),
                "median_advantage": grouped["advantage"].median(),
                "largest_advantage": grouped["advantage"].max(),
                f"largest_tpr_at_fpr_{fpr:g}": grouped["tpr"].max(),
                "largest_size_of_privacy_loss": grouped["size"].max(),
            }
        )
        summary.attrs["warning"] = self.warning
        return summary

    def averaged_ranked_loss(self, n_samples: int = 100, rng: int | np.random.Generator | None = None) -> FloatArray:
        """Ranked |l| averaged over models drawn from the in-world, largest first, (n,) (LeBlond et al. Fig. 5).

        The k-th entry is the mean of the k-th largest |l|, whichever record has it; divide by ``rate`` for their
        units, and see :class:`Transition` for what its plateaus mean.
        """
        if not isinstance(self.mechanism, OutputPerturbation):
            raise InputError(
                "averaged_ranked_loss needs OutputPerturbation, whose models can be drawn without refitting"
            )
        total = np.zeros(len(self))
        generators = np.random.default_rng(rng).spawn(integer("n_samples", n_samples, at_least=1))
        step = self.optima - self.optimum
        for generator in generators:
            model = self.mechanism.sample(self.optimum, self.rate, generator)
            loss = self.mechanism.privacy_loss(self.optimum, step, self.radii, model, self.rate)[0]
            total += np.sort(np.abs(loss))[::-1]
        return total / len(generators)

    def plot_ranked(self, ax: Axes | None = None) -> Axes:
        """Draw the ranked |privacy loss| at the released model."""
        return draw_ranked(self, ax)

    def plot_advantages(self, ax: Axes | None = None) -> Axes:
        """Draw the share of records whose advantage reaches each value."""
        return draw_advantages(self, ax)

    def plot_curves(self, records: Sequence[int], ax: Axes | None = None) -> Axes:
        """Draw the attack curves against some records."""
        return draw_curves(self, records, ax)

    def _known(self) -> Typical:
        if self.typical is None:
            raise InputError("typical models have no known bound under this mechanism and loss: pass n_samples=1000")
        return self.typical


def privacy_profile(
    X: ArrayLike,
    y: ArrayLike,
    *,
    regularization: float,
    mechanism: OutputPerturbation | ObjectivePerturbation | None = None,
    loss: str | Loss = "logistic",
    released: ArrayLike | None = None,
    intercept: Intercept = "none",
    sample_weight: ArrayLike | None = None,
    normalization: Normalization = "mean",
    group: ArrayLike | None = None,
    added: tuple[ArrayLike, ArrayLike] | None = None,
    tolerance: float | None = None,
    n_samples: int = 0,
    rng: int | np.random.Generator | None = None,
) -> PrivacyProfile:
    """Return the privacy profile of a regularised linear model: every record's exposure, certified.

    The model minimises (1/n)Σ φ(x_jᵀf, y_j) + (Λ/2)‖f‖² over the rows that are in.

    Parameters
    ----------
    X, y
        Rows (n, d) and labels or responses (n,). For ``"logistic"`` and ``"squared_hinge"`` any two labels.
    regularization
        Λ. With ``normalization="sum"`` the *total* penalty, as in minimise Σ φ + (Λ/2)‖f‖².
    mechanism
        How the model is released; ``OutputPerturbation(epsilon=1.0)`` if not given.
    loss
        ``"logistic"``, ``"squared"``, ``"squared_hinge"``, ``"huber"``, ``"poisson"``, ``"softmax"`` or a ``Loss``.
    released
        The parameters that were released. If not given, one release is simulated.
    intercept
        ``"none"``, ``"regularized"`` or ``"unregularized"``: a column of ones at the end.
    sample_weight
        Weights of the rows, public.
    normalization
        ``"mean"``: the penalty counts per row and shrinks with a record that leaves; ``"sum"``: it is fixed.
    group
        One label per row: the rows of a label (a user) leave together, and the profile has one entry per label, in
        sorted order (``profile.groups``).
    added
        Rows and labels ``(Z, z)`` of candidates: the profile is theirs. In: the model was trained on all rows and
        this candidate; out: on the rows only. ``released`` then defaults to a release without any of them.
    tolerance
        Largest certified relative error (radius/distance) before a record is iterated. By default 1e-9 where
        iterating all is cheap (rows²·columns ≤ 2e9) and 1e-2 beyond. A record whose certificate cannot get there
        (rounding) keeps the best radius found: look at ``radius``.
    n_samples
        For ``ObjectivePerturbation``: how many models to draw (and fit) for the quantities over typical models. They
        are read from that sample with a confidence band, and for the logistic loss also from a certified bound.
    rng
        Only for reproducing simulated draws; by default fresh entropy.

    Raises
    ------
    InputError
        for arrays that do not fit or are not finite, rows longer than the mechanism allows, a fit without optimum.
    """
    mechanism = OutputPerturbation(epsilon=1.0) if mechanism is None else mechanism
    problem, training = make_problem(X, y, regularization, as_loss(loss), intercept, sample_weight, normalization)
    if isinstance(mechanism, ObjectivePerturbation):
        problem, rate = mechanism.prepare(training)
        sensitivity = None
    else:
        rate = mechanism.rate(training)
        sensitivity = mechanism.sensitivity(training) if mechanism.epsilon is not None else None
    model = None if released is None else released_model(released, problem.size)
    count = integer("n_samples", n_samples, at_least=0)
    base = fit(problem)
    sign = 1
    labels: NDArray[np.generic] | None = None
    if added is not None:
        if group is not None or isinstance(mechanism, ObjectivePerturbation):
            raise InputError("added goes with OutputPerturbation and without group")
        sign = -1
        found = _neighbours(*joined(base, *candidates(training, y, added, mechanism)), tolerance)
    elif group is not None:
        if isinstance(mechanism, ObjectivePerturbation):
            raise InputError("group goes with OutputPerturbation: objective perturbation is profiled row by row")
        labels, found = _left_together(base, group, tolerance)
    else:
        found = _neighbours(*leave_one_out(base), tolerance)
    error = found.radius + base.radius
    generator = np.random.default_rng(rng)
    typical: Typical | None
    if isinstance(mechanism, ObjectivePerturbation):
        if model is None:
            model = mechanism.sample(problem, rate, generator, base.centre)
        losses, loss_error = mechanism.privacy_loss(problem, model, rate)
        drawn = [mechanism.sample(problem, rate, g, base.centre) for g in generator.spawn(count)]
        sample = [mechanism.privacy_loss(problem, M, rate)[0] for M in drawn]
        bound = mechanism.dominated(base, rate)
        seen = SampledTypical(np.sort(sample, axis=0), _CONFIDENCE) if count else None
        typical = BoundedSample(bound, seen) if bound and seen else bound or seen
    else:
        if model is None:
            model = mechanism.sample(base.centre, rate, generator)
        losses, loss_error = mechanism.privacy_loss(base.centre, found.step, error, model, rate)
        losses = sign * losses
        typical = ExactTypical(mechanism.law(problem.size), rate, found.distance, error)
    return PrivacyProfile(
        optimum=base.centre,
        optima=found.optima,
        radii=found.radius,
        distance=found.distance,
        distance_error=error,
        released=model,
        losses=losses,
        loss_errors=loss_error,
        mechanism=mechanism,
        rate=rate,
        typical=typical,
        sensitivity=sensitivity,
        regularization=float(regularization),
        loss=problem.loss.name,
        iterations=found.iterations,
        groups=labels,
    )


def _neighbours(pivot: Pivot, changes: Changes, found: Neighbours, tolerance: float | None) -> Neighbours:
    """Iterate the records of one pass whose certificate is too wide."""
    limit = _tolerance(tolerance, len(changes.y), pivot.fit)
    wide = np.flatnonzero(~(found.radius <= limit * found.distance))
    return refine(pivot, changes, found, limit, wide) if wide.size else found


def _tolerance(tolerance: float | None, records: int, base: Fit) -> float:
    if tolerance is None:
        return default_tolerance(max(records, len(base.problem.y)), base.problem.size)
    return number("tolerance", tolerance, above=0.0)


def _left_together(base: Fit, group: ArrayLike, tolerance: float | None) -> tuple[NDArray[np.generic], Neighbours]:
    labels, codes = np.unique(np.asarray(group), return_inverse=True)
    n = len(base.problem.y)
    if codes.shape != (n,):
        raise InputError(f"group must have one label per row of X, got shape {codes.shape} for {n} rows")
    if len(labels) < 2:
        raise InputError("group must have at least two labels: without the only group nothing is left")
    return labels, leave_groups_out(base, codes, _tolerance(tolerance, len(labels), base))
