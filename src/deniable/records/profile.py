"""The privacy profile: for every record, what an attacker learns about it from this model and from typical ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable._check import FloatArray, InputError, choice, integer, number, numbers
from deniable._files import check_writable, replacing
from deniable._notebook import Textual, lines
from deniable._optional import require
from deniable._shown import shown
from deniable.curves import Side, Tradeoff
from deniable.records.mechanisms import OutputPerturbation
from deniable.records.neighbours import Neighbours
from deniable.records.objective import ObjectivePerturbation
from deniable.records.transition import Transition, find_transition
from deniable.records.typical import Typical

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

RankedBy = Literal["release", "typical"]

WARNING = (
    "This profile was computed from the training data without noise: it is sensitive. "
    "Keep it with the data, never publish it with the model."
)


@dataclass(frozen=True, eq=False)
class PrivacyProfile(Textual):
    """How far the released model and typical ones expose each training record.

    Worlds: *in*, the model was trained on all rows; *out*, on all rows but this one. n and the noise are public and
    the same in both. Everything about typical models is exact up to ``radius`` and the quadrature error, both charged
    to the safe side: upper values are never below the truth.

    Attributes
    ----------
    optimum
        Parameters of the model trained on all rows, without noise, (parameters,).
    radii
        What :meth:`radius` returns.
    distance
        ‖Δ_i‖, distance of ``leave_one_out()[i]`` from ``optimum``, (n,). It is exact up to ``distance_error``.
    released
        The model that was released, (parameters,). If none was given: a simulated one, drawn with NumPy and not
        hardened, so not for publication (docs/records.md shows a draw that is).
    losses, loss_errors
        What :meth:`privacy_loss` returns, and a bound of its error.
    rate
        β (norm-Laplace) or 1/s (Gaussian). Under output perturbation ρ_i = rate·distance_i sets the law of l_i.
    neighbours
        Where the optimum goes without each record; :meth:`leave_one_out` reads it.
    typical
        Attack curves over models drawn from the in-world; ``advantage``, ``tpr`` and the rest read it.
    sensitivity
        The public bound of ``distance`` over all data sets from which ε calibrates the noise, 2LR/(nΛ); ``None`` if
        there is none.

    Examples
    --------
    See ``privacy_profile``.
    """

    optimum: FloatArray
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
    neighbours: Neighbours = field(repr=False)
    groups: NDArray[np.generic] | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()
    warning: str = WARNING

    def __len__(self) -> int:
        return len(self.distance)

    @property
    def noise(self) -> str:
        """The noise of the release in words: of a model that is released without it nothing here is true."""
        mechanism = self.mechanism
        size = f"scale {mechanism.scale:g}" if mechanism.epsilon is None else f"ε = {mechanism.epsilon:g}"
        delta = getattr(mechanism, "delta", None)
        law = "norm-Laplace" if mechanism.noise == "norm-laplace" else "Gaussian"
        where = "" if isinstance(mechanism, OutputPerturbation) else " in its objective"
        return f"{law} noise of {size}{'' if delta is None else f', δ = {delta:g}'}{where}"

    def _rows(self) -> list[tuple[str, str]]:
        rows = [("Records", f"{len(self):,}"), ("Only if released with", self.noise)]
        if self.typical is not None:
            worst, median = (shown(float(of(self.advantage())), "rate", "upper") for of in (np.max, np.median))
            rows += [("Largest advantage", f"≤ {worst}"), ("Median advantage", f"≤ {median}")]
        return rows

    def _text(self) -> str:
        return lines(f"Privacy profile\n{self.warning}", self._rows(), self.notes)

    def leave_one_out(self, records: ArrayLike | None = None) -> FloatArray:
        """Parameters of the model trained without record i, (n, parameters); for softmax (d, classes), flattened.

        With ``records``, row numbers or one of them, only those. They are computed on request, not held.
        """
        if records is None:
            return self.optimum + self.neighbours.steps(np.arange(len(self)))
        chosen = np.asarray(records)
        if chosen.dtype.kind not in "iu" or not np.all((chosen >= -len(self)) & (chosen < len(self))):
            raise InputError(f"records must be row numbers below {len(self)}, got {records!r}")
        found = self.optimum + self.neighbours.steps(np.atleast_1d(chosen) % len(self))
        return found.reshape(*chosen.shape, -1)

    def radius(self) -> FloatArray:
        """Certified bound of ‖leave_one_out()[i] − exact optimum without record i‖, (n,)."""
        return self.radii

    def privacy_loss(self) -> FloatArray:
        """Ex-post loss l_i at ``released``: log density in the in-world over that in the out-world, signed, (n,).

        Positive if the release is more likely with the record in. Exact up to ``loss_errors``.
        """
        return self.losses

    def ranking(self, by: RankedBy = "release") -> NDArray[np.intp]:
        """Records, most exposed first: by this ``"release"`` (|privacy loss|) or ``"typical"`` ones (distance)."""
        exposure = np.abs(self.losses) if choice("by", by, ("release", "typical")) == "release" else self.distance
        return np.argsort(-exposure, kind="stable")

    def advantage(self, side: Side = "upper") -> FloatArray:
        """Bound of each record's advantage over typical models, TV of the two worlds, (n,).

        The two sides differ by the certified errors.
        """
        choice("side", side, ("upper", "lower"))
        return self._upper_advantage if side == "upper" else self._bounds_of_typical().advantage("lower")

    @cached_property
    def _upper_advantage(self) -> FloatArray:
        return self._bounds_of_typical().advantage("upper")

    def mean_loss(self) -> FloatArray:
        """E l_i over models of the in-world, the Kullback–Leibler divergence, (n,)."""
        return self._bounds_of_typical().mean_loss()

    def mean_size(self) -> FloatArray:
        """E|l_i| over models of the in-world, (n,); divided by ``rate`` it is what LeBlond et al. draw."""
        return self._bounds_of_typical().mean_size()

    def tpr(self, fpr: ArrayLike, side: Side = "upper") -> FloatArray:
        """Largest true positive rate against each record at ``fpr``: (n,) for one rate, (n, k) for k rates."""
        rates = numbers("fpr", fpr, at_least=0.0, at_most=1.0, hint="it is a rate, not a percentage")
        choice("side", side, ("upper", "lower"))
        columns = [self._bounds_of_typical().tpr(float(a), side) for a in rates.ravel()]
        return columns[0] if rates.ndim == 0 else np.stack(columns, axis=1)

    def epsilon(self, delta: float, side: Side = "upper") -> FloatArray:
        """Each record's smallest ε ≥ 0 at ``delta``, over typical models, (n,)."""
        d = number("delta", delta, at_least=0.0, at_most=1.0)
        choice("side", side, ("upper", "lower"))
        return self._bounds_of_typical().epsilon(d, side)

    def tradeoff(self, record: int) -> Tradeoff:
        """The whole attack curve against one record, over typical models."""
        i = integer("record", record)
        if not -len(self) <= i < len(self):
            raise InputError(f"record must be between 0 and {len(self) - 1}, got {i}")
        return self._bounds_of_typical().tradeoff(i)

    def transition(self, quantile: float = 1.0, low: float = 0.05, high: float = 0.95) -> Transition:
        """The range of ε in which the record at this ``quantile`` of exposure goes from hidden to exposed."""
        return find_transition(self, quantile=quantile, low=low, high=high)

    def to_parquet(self, path: str | Path, fpr: float = 0.001) -> None:
        """Write one row per record, in the order of the records; the file is complete or absent. Sensitive data."""
        require("pyarrow", purpose="Writing Parquet")
        import pyarrow as pa
        from pyarrow import parquet

        place = check_writable("path", path, suffixes=(".parquet",))
        columns = {"record": np.arange(len(self)), "privacy_loss": self.losses}
        columns |= {"distance": self.distance, "radius": self.radii}
        if self.typical is not None:
            columns |= {"advantage": self.advantage(), f"tpr_at_fpr_{fpr:g}": self.tpr(fpr)}
        table = pa.table(columns).replace_schema_metadata({"warning": self.warning})
        with replacing(place) as begun:
            parquet.write_table(table, begun)

    def to_frame(self, fpr: float = 0.001, by: RankedBy = "release") -> pd.DataFrame:
        """One row per record, most exposed first (by this ``"release"`` or by ``"typical"`` ones); sensitive data."""
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

    def most_exposed(self, k: int = 10, fpr: float = 0.001, by: RankedBy = "release") -> pd.DataFrame:
        """The ``k`` records that this release, or typical ones, expose most: the first rows of :meth:`to_frame`."""
        return self.to_frame(fpr, by).head(integer("k", k, at_least=1))

    def _bounds_of_typical(self) -> Typical:
        if self.typical is None:
            raise InputError("typical models have no known bound under this mechanism and loss: pass n_samples=1000")
        return self.typical
