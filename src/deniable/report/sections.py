"""From results to sections: every sentence that a person reads about a number is written here, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from deniable._check import FloatArray
from deniable._shown import plural, shown
from deniable.curves import TUNING_COUNTED, TUNING_PARTLY_COUNTED, Tradeoff
from deniable.report.model import Curve, Number, Section
from deniable.risks import replaced

SMALLEST_FPR = 1e-6  # one wrong accusation in a million: where ROC curves begin
CURVE_POINTS = 181  # 30 per decade from ``SMALLEST_FPR`` to 1, both ends included

OTHER_RISKS = (
    "Attribute inference, reconstruction and leakage about groups of records: this curve says nothing about them."
)
NOT_COVERED = (
    "What the result says about people in general, whoever was in the data.",
    "Anything released besides what was assessed: other models trained on the same data, statistics, logs, "
    "the training data itself, or a record profile.",
    "Mistakes in the implementation: the bound holds for the mechanism as described, with real-valued noise.",
    "Time and memory of a run, files on its owner's disk, and that a run which fails may say why.",
    "Choices made from the data: hyperparameters, features or stopping times tuned on the same records leak too, "
    "and are not counted.",
)
_OTHER_CHOICES = (
    "Other choices made from the data: features, stopping times or the list of settings, if they were chosen on "
    "the same records, leak too, and are not counted."
)

TUNING_WARNING = (
    "Hyperparameter tuning on the same data is not included. If several runs were tried and the best one kept, the "
    "guarantee of the whole is weaker than that of the last run."
)
_PARTLY_TUNED = (
    "Hyperparameter tuning on the same data is included for those parts of the composition only that say so. If "
    "another part is the best of several runs, the guarantee of the whole is weaker."
)


@dataclass(frozen=True)
class Asked:
    """Settings that every report has: prior, false positive rates, δ, chances of blind guessing, a title."""

    prior: float
    fpr: tuple[float, ...]
    delta: float
    baselines: tuple[float, ...]
    title: str | None
    command: str | None


def caveats(tradeoff: Tradeoff) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what a curve does not cover and what its readers are warned of, by whether it counts tuning in."""
    notes = tradeoff.assumptions.notes
    if TUNING_COUNTED in notes:
        return (*NOT_COVERED[:-1], _OTHER_CHOICES), ()
    return NOT_COVERED, (_PARTLY_TUNED if TUNING_PARTLY_COUNTED in notes else TUNING_WARNING,)


def bound_section(tradeoff: Tradeoff, asked: Asked, *, comparisons: Mapping[str, Tradeoff] | None = None) -> Section:
    """What any attacker can reach at most, with the ROC and the bounds that other methods give."""
    prior, fpr, delta = asked.prior, asked.fpr, asked.delta
    exact = tradeoff.confidence == 1.0
    sure = "" if exact else f", with confidence {shown(tradeoff.confidence, 'rate', 'lower')}"
    at, guess = _percent(prior), max(prior, 1 - prior)
    rows: list[_Row] = [
        ("advantage", "Advantage, prior 50 %", tradeoff.advantage(), 0.0,
         "No attack's true positive rate exceeds its false positive rate by more than this."),
        ("accuracy", "Accuracy, prior 50 %", tradeoff.accuracy(), 0.5,
         "No attacker who sees members and non-members equally often is right more often than this; guessing reaches "
         "50 %."),
        *((f"tpr@fpr={rate:g}", f"TPR at FPR {_percent(rate)}", tradeoff.tpr(rate), rate,
           f"An attacker who wrongly accuses at most {_percent(rate)} of non-members finds at most this share of "
           "members.") for rate in fpr),
        *((f"precision@fpr={rate:g}", f"Precision at FPR {_percent(rate)}, prior {at}",
           tradeoff.precision(rate, prior), prior,
           f"Of the records that such an attacker calls members, at most this share are, at a prior of {at}.")
          for rate in fpr),
    ]  # fmt: skip
    if prior != 0.5:
        rows[2:2] = [
            (f"accuracy@prior={prior:g}", f"Accuracy, prior {at}", tradeoff.accuracy(prior), guess,
             "The same for an attacker who believes beforehand that a record was in with probability "
             f"{at}; guessing reaches {_percent(guess)}."),
            (f"advantage@prior={prior:g}", f"Advantage, prior {at}", tradeoff.advantage(prior), 0.0,
             "Twice the accuracy gained over guessing from that prior."),
        ]  # fmt: skip
    epsilon = Number(
        f"bound.epsilon@delta={delta:g}", f"ε at δ = {delta:g}", tradeoff.epsilon(delta),
        "The differential privacy parameter that this guarantee corresponds to, for the two worlds stated below.",
        unit="number", at={"delta": delta},
    )  # fmt: skip
    return Section(
        key="bound",
        title="What any attacker can reach",
        summary=f"Provable upper bound under the assumptions stated{sure}. Method: {tradeoff.method}.",
        numbers=(*_bounds("bound", rows, prior), epsilon),
        curves=(
            roc_curve("bound", "provable upper bound", tradeoff),
            *(roc_curve(f"bound.{name}", name, other) for name, other in (comparisons or {}).items()),
        ),
        holds_for=tradeoff.holds_for,
        confidence=tradeoff.confidence,
    )


_Row = tuple[str, str, float, float, str]  # key, label, upper bound, what blind guessing reaches, meaning


def _bounds(section: str, rows: Sequence[_Row], prior: float = 0.5) -> tuple[Number, ...]:
    return tuple(
        Number(f"{section}.{key}", label, value, meaning, baseline=blind, at=_at(key, prior))
        for key, label, value, blind, meaning in rows
    )


def _at(key: str, prior: float) -> dict[str, float]:
    """The settings that a number is for, as its key names them; precision is at the prior asked for."""
    kind, _, setting = key.partition("@")
    name, _, value = setting.partition("=")
    stated = {"precision": {"prior": prior}, "reconstruction": {}, "tpr": {}}.get(kind, {"prior": 0.5})
    return stated | ({name: float(value)} if setting else {})


def _percent(rate: float) -> str:
    return shown(rate, "rate", "nearest")


def risk_section(curve: Tradeoff, baselines: Sequence[float], *, replacing: Tradeoff | None = None) -> Section:
    """What the curve bounds besides membership: secrets, replaced records, groups.

    ``curve`` has to hold for every record and every data set; ``replacing`` is its curve for replacing a record.
    Sketches are bounds too, a little wider and much faster.
    """
    unit = curve.assumptions.unit
    if replacing is None and curve.assumptions.adjacency.startswith(("add or remove one", "adjacency as its author")):
        replacing = replaced(curve).sketch()
    replaces: list[_Row] = [
        ("replacing", f"Advantage if a {unit} is replaced", one.advantage(), 0.0,
         f"Telling which of two contents a {unit} had, both known to the attacker, instead of its presence.")
        for one in (replacing,) if one is not None
    ]  # fmt: skip
    rows: list[_Row] = [
        *replaces,
        ("group2", f"Advantage for two {plural(unit)} together", curve.group(2).sketch().advantage(), 0.0,
         f"Two {plural(unit)} that are both in or both out, such as a couple with the same address."),
        *((f"reconstruction@baseline={blind:g}", f"Secret guessed blindly with chance {_percent(blind)}",
           curve.reconstruction(blind), blind,
           "An attacker who knows everything else names it at most this often; for instance one of "
           f"{shown(1 / blind, 'count', 'nearest')} equally likely values.") for blind in baselines),
    ]  # fmt: skip
    return Section(
        "risks",
        "Other risks, from the same curve",
        f"Provable upper bounds for every {unit} and every secret in it: reconstruction, attribute inference, linkage, "
        "groups.",
        _bounds("risk", rows),
    )


def roc_curve(key: str, label: str, tradeoff: Tradeoff) -> Curve:
    """Return the upper ROC as points, from FPR 0.0001 % to 100 %."""
    fpr = np.geomspace(SMALLEST_FPR, 1.0, CURVE_POINTS)
    tpr: FloatArray = tradeoff.tpr(fpr)
    return Curve(key, label, "provable upper bound", fpr.tolist(), tpr.tolist())


def bound_headline(tradeoff: Tradeoff) -> str:
    """Return the one sentence that a bound alone supports."""
    found = shown(tradeoff.tpr(0.01), "rate", "upper")
    accuracy = shown(tradeoff.accuracy(), "rate", "upper")
    sure = "" if tradeoff.confidence == 1 else f" (confidence {shown(tradeoff.confidence, 'rate', 'lower')})"
    return (
        f"Provable upper bound{sure}: at even odds, no attacker tells members from non-members with accuracy above "
        f"{accuracy} (guessing: 50 %), or finds more than {found} of the members at a false positive rate of 1 %, "
        "under the assumptions below."
    )
