"""What a release promises, in a form that can be kept, sent and read by a machine."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from deniable._check import FloatArray
from deniable._files import write_atomically
from deniable._shown import shown
from deniable.curves import Tradeoff

Kind = Literal["exact", "sampled", "estimate", "published"]

GAME = (
    "the data set and the algorithm are known to the attacker; the training set is a uniform random subset of the "
    "stated size, drawn with fresh entropy; the attacker sees the released value and names one record's membership"
)
_FPRS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)


@dataclass(frozen=True, eq=False)
class Certificate:
    """The membership guarantee of one release.

    Attributes
    ----------
    eta
        Certified bound on (accuracy of the best attack) − max(π, 1 − π), for every record; NaN if ``kind`` is
        "estimate": then nothing is known.
    target
        The η that was asked for; ``eta`` is never above it unless ``kind`` is "published".
    kind
        "exact": proved, nothing sampled. "sampled": holds with ``confidence`` over the resampling. "estimate": the
        noise follows from what was seen at ``records``; nothing is promised, not even for them.
        "published": the sampler of the paper as printed.
    confidence
        Probability over the resampling with which ``eta`` and the whole of ``tradeoff`` hold; 1 for a proof.
    tradeoff
        Certified ROC of every attack, so also the true positive rate at 0.1 % false positives.
    coupling
        How the worlds in and out were paired.
    prior
        π = n_train / n_records, the chance that a record is in the training set.
    records
        Row numbers that an "estimate" looked at; None otherwise.
    n_resamples, algorithm_runs
        Resamples behind the certificate and the number of times the algorithm ran for it.
    noise, sampler
        Name of the noise law; how it was drawn and which parts are hardened.
    noise_scale
        Standard deviation of the noise on each coordinate, in the shape of the value.
    assumptions
        What has to be true for the number to hold.
    """

    eta: float
    target: float
    kind: Kind
    confidence: float
    tradeoff: Tradeoff = field(repr=False)
    coupling: str
    prior: float
    n_records: int
    n_train: int
    n_resamples: int
    algorithm_runs: int
    noise: str
    sampler: str
    noise_scale: FloatArray = field(repr=False)
    records: tuple[int, ...] | None = None
    assumptions: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether this is a guarantee for every record (not an estimate, not the published sampler beyond d = 1)."""
        return self.kind in ("exact", "sampled")

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python types; ``tradeoff`` becomes TPR at some FPRs and the advantage at prior ½."""
        plain: dict[str, Any] = {
            name: getattr(self, name) for name in self.__dataclass_fields__ if name not in ("tradeoff", "noise_scale")
        }
        plain["records"] = None if self.records is None else list(self.records)
        plain["assumptions"] = list(self.assumptions)
        plain["holds"] = self.holds
        plain["noise_scale"] = self.noise_scale.tolist()
        plain["eta"] = None if math.isnan(self.eta) else self.eta
        plain["tradeoff"] = {
            "advantage": self.tradeoff.advantage(),
            "tpr_at_fpr": [{"fpr": fpr, "tpr": self.tradeoff.tpr(fpr)} for fpr in _FPRS],
        }
        return plain

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the certificate as JSON and, if ``path`` is given, write it there."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
        if path is not None:
            write_atomically(path, text + "\n")
        return text

    def __str__(self) -> str:
        spread = math.sqrt(float(np.mean(self.noise_scale**2))) if self.noise_scale.size else 0.0
        if math.isnan(self.eta):
            return self._without_promise(spread)
        accuracy = shown(max(self.prior, 1 - self.prior) + self.eta, "number", "upper")
        claim = f"no attack names a record's membership with accuracy above {accuracy}"
        lines = [
            f"η ≤ {shown(self.eta, 'number', 'upper')} ({self.kind}, confidence {self.confidence:.4g}): {claim}",
            f"TPR at 0.1 % FPR ≤ {shown(self.tradeoff.tpr(1e-3), 'number', 'upper')}",
            f"{self.noise} noise, root mean square {spread:.4g} a coordinate; {self.sampler}",
            f"coupling: {self.coupling}; training set {self.n_train} of {self.n_records}; "
            f"{self.n_resamples} resamples, {self.algorithm_runs} runs",
        ]
        return "\n".join([*lines, *(f"assumes: {text}" for text in self.assumptions)])

    def _without_promise(self, spread: float) -> str:
        """What can be said where nothing is proven."""
        looked = len(self.records or ())
        lines = [
            f"NOT a guarantee: the noise follows from {looked} random records, the others may be exposed; η is unknown",
            f"{self.noise} noise, root mean square {spread:.4g} a coordinate; {self.sampler}",
        ]
        return "\n".join([*lines, *(f"note: {text}" for text in self.assumptions)])


@dataclass(frozen=True, eq=False)
class Release:
    """A released value with its guarantee; nothing of the training set is kept here but the value itself.

    Attributes
    ----------
    value
        Output of the algorithm on a secret random subset, plus noise; the shape of the algorithm's output.
    noise_scale
        Standard deviation of the noise on each coordinate, in the shape of ``value``.
    certificate
        What was promised, and under which assumptions.
    """

    value: FloatArray
    noise_scale: FloatArray
    certificate: Certificate
