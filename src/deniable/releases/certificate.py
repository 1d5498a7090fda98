"""The guarantee of a release from a secret half, and what is released with it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import ndtri

from deniable._check import FloatArray, choice, number
from deniable._files import plain, to_json
from deniable._notebook import Textual, lines
from deniable._optional import require
from deniable._plot import marked, new_axes
from deniable._shown import LISTED, shown
from deniable.curves import Tradeoff
from deniable.noise import points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CertificateKind = Literal["exact", "sampled"]

GAME = (
    "the data set and the algorithm are known to the attacker; the training set is a uniform random subset of the "
    "stated size, drawn with fresh entropy; the attacker sees the released value and names one record's membership"
)


class ReleaseWarning(UserWarning):
    """The release is safe but next to useless; the message says why and what to do.

    Examples
    --------
    See ``ReleaseError``.
    """


@dataclass(frozen=True, eq=False)
class HalfCertificate(Textual):
    """The membership guarantee of one release from a secret part of the records (:func:`deniable.release`).

    Attributes
    ----------
    advantage
        Certified bound on 2·(accuracy of the best attack − max(π, 1 − π)), for every record.
    target
        The advantage requested; ``advantage`` is never above it.
    kind
        "exact": proved; nothing was sampled. "sampled": holds with ``confidence`` over the resampling.
    confidence
        Probability over the resampling with which ``advantage`` and the whole of ``tradeoff`` hold; 1 for a proof.
    tradeoff
        Certified ROC of every attack, so also the true positive rate at 0.1 % false positives.
    coupling
        How the worlds "in" and "out" were paired.
    n_records, n_train
        Size of the data set and of its secret part; ``prior`` is their ratio π.
    n_resamples, algorithm_runs
        Resamples behind the certificate and the number of times the algorithm ran for it.
    noise, sampler
        Name of the noise law; how it was drawn and which parts are hardened.
    noise_scale
        Standard deviation of the noise on each coordinate, in the shape of the value.
    assumptions
        What must be true for the guarantee to hold.
    bound
        How it was proved: "direct", "swap" or "centre".
    warning
        What makes the value useless and what to do, or None.

    Examples
    --------
    See ``release``.
    """

    advantage: float
    target: float
    kind: CertificateKind
    confidence: float
    tradeoff: Tradeoff = field(repr=False)
    coupling: str
    n_records: int
    n_train: int
    n_resamples: int
    algorithm_runs: int
    noise: str
    sampler: str
    noise_scale: FloatArray = field(repr=False)
    assumptions: tuple[str, ...]
    bound: str
    warning: str | None = None

    @property
    def floor(self) -> float:
        """TPR that cannot be excluded at any FPR, however low; from a sampled certificate it shrinks with more runs."""
        return float(self.tradeoff.tpr(1e-15))

    @property
    def prior(self) -> float:
        """The chance π that a record is in the training set."""
        return self.n_train / self.n_records

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python types; ``tradeoff`` becomes TPR at some FPRs and the advantage at prior ½."""
        kept = [name for name in self.__dataclass_fields__ if name != "tradeoff"]
        own = {name: plain(getattr(self, name)) for name in (*kept, "prior", "holds", "insecure")}
        return own | {"tradeoff": points(self.tradeoff)}

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the certificate as JSON and, if ``path`` is given, write it there."""
        return to_json(self.to_dict(), path)

    def _text(self) -> str:
        spread = math.sqrt(float(np.mean(self.noise_scale**2))) if self.noise_scale.size else 0.0
        advantage, accuracy, rate, least = (
            shown(value, "number", "upper")
            for value in (
                self.advantage,
                max(self.prior, 1 - self.prior) + self.advantage / 2,
                self.tradeoff.tpr(1e-3),
                self.floor,
            )
        )
        floor = f"; at no FPR is less than {least} certified: it falls like 1/n_resamples"
        part = "half" if 2 * self.n_train == self.n_records else "part"
        lines = (
            *[f"WARNING: {self.warning}"] * (self.warning is not None),
            f"advantage ≤ {advantage} ({self.kind}, confidence {self.confidence:.4g}): at a prior of {self.prior:.3g}, "
            f"no attack tells if a record is in with accuracy above {accuracy}",
            f"secret {part}: {self.n_train} of {self.n_records} records, drawn at random and never named, were used; "
            f"membership means being in this {part}. Who is in the data set is not hidden",
            f"TPR at 0.1 % FPR ≤ {rate}{floor if self.kind == 'sampled' and self.floor < 1 else ''}",
            f"{self.noise} noise, RMS {spread:.4g} per coordinate; {self.sampler}",
            f"coupling: {self.coupling}; {self.n_resamples} resamples, {self.algorithm_runs} runs",
            *(f"assumes: {text}" for text in self.assumptions),
        )
        return "\n".join(lines)


@dataclass(frozen=True)
class Alternative:
    """One line of the comparison behind ``bound="auto"``; root mean squares over the coordinates, in the value's units.

    Attributes
    ----------
    bound, kind
        The bound, and whether its certificate is exact or sampled.
    noise
        Standard deviation of the noise needed for the requested advantage.
    sampling
        Distance of the value on training parts from that on all records, the cost of training on a part; None where
        nothing is known.
    error
        Both together: expected error against the value on all records.
    chosen
        Whether it was chosen.

    Examples
    --------
    See ``release``.
    """

    bound: str
    kind: CertificateKind
    noise: float
    sampling: float | None
    error: float | None
    chosen: bool


@dataclass(frozen=True, eq=False)
class Release(Textual):
    """A released value with its guarantee; nothing of the training set is kept here but the value itself.

    Attributes
    ----------
    value
        Output of the algorithm on a secret random subset, plus noise; the shape of the algorithm's output.
    noise_scale
        Standard deviation of the noise on each coordinate, in the shape of ``value``.
    certificate
        The guarantee and its assumptions.
    sampling_error
        Root mean square distance of the value on random training parts from that on all records, computed from the
        whole data set, so that it says nothing about who was trained on; None where nothing is known.
    alternatives
        What ``bound="auto"`` compared; empty otherwise.
    bias
        The part of ``sampling_error`` that is the same on every part, as of a sum; None: none.

    Examples
    --------
    See ``release``.
    """

    value: FloatArray
    noise_scale: FloatArray
    certificate: HalfCertificate
    sampling_error: FloatArray | None = None
    alternatives: tuple[Alternative, ...] = ()
    bias: FloatArray | None = None

    @property
    def standard_error(self) -> FloatArray:
        """Root mean square error against the value on *all* records: noise and sampling; NaN where it is not known."""
        if self.sampling_error is None:
            return np.full(self.value.shape, np.nan)
        return np.hypot(self.noise_scale, self.sampling_error)

    @property
    def population_error(self) -> FloatArray:
        """Standard error with respect to the population from which the records were drawn independently.

        NaN where it is not known: what is the same on every part may differ elsewhere, and what is mostly a bias on a
        part, as a sum is, has no value there.
        """
        bias, spread = self._bias_and_spread()
        error = np.hypot(self.noise_scale, spread / math.sqrt(1 - self.certificate.prior))
        return np.where(spread > bias, error, np.nan)

    def _bias_and_spread(self) -> tuple[FloatArray, FloatArray]:
        """Return what every part has in common as error, and the standard deviation over parts; NaN if not known."""
        if self.sampling_error is None:
            return np.full(self.value.shape, np.nan), np.full(self.value.shape, np.nan)
        bias = np.zeros(self.value.shape) if self.bias is None else self.bias
        return bias, np.sqrt(np.maximum(self.sampling_error**2 - bias**2, 0.0))

    def interval(self, confidence: float = 0.95, *, of: Literal["data", "population"] = "data") -> FloatArray:
        """Return approximate confidence limits, shape ``(2, *value.shape)``, from the normal law; a bias adds to them.

        ``of="data"``: for the value on all records; ``of="population"``: for the law that they were drawn from. NaN
        where the error is not known.
        """
        level = number("confidence", confidence, above=0.0, below=1.0)
        choice("of", of, ("data", "population"))
        bias, spread = self._bias_and_spread()
        error = np.hypot(self.noise_scale, spread) if of == "data" else self.population_error
        half = bias + float(ndtri(0.5 + level / 2)) * error
        return np.stack([self.value - half, self.value + half])

    def to_frame(self) -> Any:
        """Return a pandas table with one row for each coordinate: value, noise, standard error, 95 % interval."""
        pandas: Any = require("pandas", purpose="a table of the released values")
        low, high = self.interval()
        columns = {
            "value": self.value,
            "noise": self.noise_scale,
            "standard_error": self.standard_error,
            "low": low,
            "high": high,
        }
        return pandas.DataFrame({name: np.ravel(part) for name, part in columns.items()}, index=list(self._labels()))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the released values with their 95 % intervals (noise and sampling)."""
        axes = new_axes() if ax is None else ax
        labels, value = self._labels(), np.ravel(self.value)
        places = list(range(len(labels)))
        axes.errorbar(value, places, xerr=np.ravel(self.interval()[1] - self.value), fmt="o")
        axes.set_yticks(places, labels)
        axes.invert_yaxis()
        axes.set_xlabel("released value, 95 % interval of noise and sampling")
        return marked(axes, self.insecure)

    def _text(self) -> str:
        values, errors = np.ravel(self.value), np.ravel(self.standard_error)
        rows = [
            (name, f"{value:.6g} ± {'not known' if math.isnan(error) else f'{error:.2g}'}")
            for name, value, error in zip(self._labels(), values, errors, strict=True)
        ]
        left = [f"… and {len(rows) - LISTED:,} more"] if len(rows) > LISTED else []
        notes = [*left, "± is a standard error: noise and sampling together.", str(self.certificate)]
        return lines("Released value", rows[:LISTED], notes)

    def _labels(self) -> tuple[str, ...]:
        shape = self.value.shape
        return tuple("value" if not shape else ", ".join(map(str, index)) for index in np.ndindex(shape))
