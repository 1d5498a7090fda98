"""Sections from a privacy profile: the most exposed records, the whole ranking, subgroups, the transition band."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable._shown import LISTED, shown
from deniable.records import OutputPerturbation, PrivacyProfile
from deniable.report import Grid, Number, Section, Series, roc_curve

NOT_FOR_PUBLICATION = (
    "This report is about the training data: the record profile and the measured attack were computed from it without "
    "noise. Keep the report with the data; publish at most the provable bound."
)
_RANKED_POINTS = 240  # evenly spaced in the logarithm of the rank


def profile_section(
    profile: PrivacyProfile,
    *,
    fpr: Sequence[float],
    group: tuple[str, NDArray[Any]] | None = None,
) -> Section:
    """Who is exposed: per-record attack curves of the fitted model, exact up to certified errors, or a bound on them.

    ``group`` is a column's name and values.
    """
    n = len(profile)
    worst, advantage = int(profile.ranking("typical")[0]), profile.advantage()
    curve = profile.tradeoff(worst)
    law, label = "the exact law of the noise", "most exposed record, exact"
    if not isinstance(profile.mechanism, OutputPerturbation):
        sure = f"{100 * curve.confidence:g}\u00a0% confidence for each record" if curve.confidence < 1 else "proved"
        law, label = f"{curve.method} ({sure})", "most exposed record, upper bound"
    numbers = [
        Number("records.worst.advantage", "Most exposed record: advantage", float(advantage[worst]),
               f"Largest TPR − FPR of any attack on row {worst}, over releases of this model with {profile.noise}."),
        *(Number(f"records.worst.tpr@fpr={rate:g}", f"Most exposed record: TPR at FPR {shown(rate, 'rate', 'nearest')}",
                 float(curve.tpr(rate)), "Share of releases in which an attacker finds it who is "
                 f"wrong about {shown(rate, 'rate', 'nearest')} of those without it.")
          for rate in fpr),
        Number("records.median.advantage", "Median record: advantage", float(np.median(advantage)),
               "At least half of the records are no more exposed than this."),
        Number("records.loss", "Largest ex-post privacy loss", float(np.abs(profile.privacy_loss()).max()),
               "At one release drawn from the mechanism: |log density with the record / density without it|.", "exact",
               unit="number"),
        Number("records.count", "Records", float(n), "Training records profiled.", "exact", unit="count"),
        Number("records.error", "Largest relative error of a leave-one-out model", _relative_error(profile),
               "Certified: the exact model without the record lies within this share of the distance it moves."),
    ]  # fmt: skip
    grids = [_most_exposed(profile)]
    if group is not None:
        grids.append(_subgroups(*group, advantage))
    return Section(
        key="records",
        title="Who is exposed by this very model, released with noise",
        summary=f"Provable upper bound for each of these records if the model is released with {profile.noise}, and "
        f"never without: the model with and without the record, {law}.",
        numbers=tuple(numbers),
        curves=(roc_curve("records.worst", label, curve),),
        series=(_by_rank(advantage), *_transition(profile)),
        grids=tuple(grids),
        notes=(profile.warning,),
        protected=False,
    )


def _relative_error(profile: PrivacyProfile) -> float:
    moved = profile.distance > 0
    return float(np.max(profile.radius()[moved] / profile.distance[moved], initial=0.0))


def _most_exposed(profile: PrivacyProfile) -> Grid:
    order = profile.ranking("typical")[:LISTED]
    rates = (profile.advantage(), profile.tpr(0.01))
    rows = [
        [str(i), *(shown(float(rate[i]), "rate", "upper") for rate in rates), float(profile.privacy_loss()[i])]
        for i in order
    ]
    columns = ["row", "advantage", "TPR at FPR 1\u00a0%", "ex-post loss at one release"]
    return Grid("most-exposed", f"The {len(rows)} most exposed records", columns, rows)


def _subgroups(name: str, values: NDArray[Any], advantage: NDArray[np.float64]) -> Grid:
    rows = []
    for value in sorted(set(values.tolist()), key=str):
        chosen = advantage[values == value]
        median, largest = float(np.median(chosen)), float(chosen.max())
        rows.append([str(value), f"{len(chosen):,}", shown(median, "rate", "upper"), shown(largest, "rate", "upper")])
    return Grid("subgroups", f"Exposure by {name}", [name, "records", "median advantage", "largest advantage"], rows)


def _by_rank(advantage: NDArray[np.float64]) -> Series:
    order = np.sort(advantage)[::-1]
    ranks = np.unique(np.geomspace(1, len(order), _RANKED_POINTS).astype(int))
    return Series(
        key="ranked",
        title="Advantage of the best attack on each record, most exposed first. A steep start means that few records "
        "carry most of the risk.",
        x_label="rank of the record",
        y_label="advantage (%)",
        x=ranks.astype(float).tolist(),
        lines={"advantage": (100 * order[ranks - 1]).tolist()},
        log_x=True,
        alt=f"Ranked advantage of {len(order)} records, from {shown(order[0], 'rate', 'upper')} for the most exposed "
        f"to {shown(order[-1], 'rate', 'upper')} for the least exposed.",
    )


def _transition(profile: PrivacyProfile) -> tuple[Series, ...]:
    """Advantage of the worst and the median record as ε varies: where it matters."""
    if profile.sensitivity is None or profile.mechanism.epsilon is None:
        return ()
    worst, median = profile.transition(), profile.transition(quantile=0.5)
    first, last = (shown(end, "number", "lower") for end in (worst.epsilon_low, worst.epsilon_high))
    grid = worst.epsilon
    lines = {
        "most exposed record": (100 * worst.advantage).tolist(),
        "median record": (100 * np.interp(np.log(grid), np.log(median.epsilon), median.advantage)).tolist(),
    }
    return (
        Series(
            key="transition",
            title="The same model released with other ε: the most exposed record goes from an advantage of 5\u00a0% to "
            f"95\u00a0% between ε = {first} and ε = {last}.",
            x_label="ε of the release",
            y_label="advantage (%)",
            x=grid.tolist(),
            lines=lines,
            log_x=True,
            alt="Advantage against ε for the most exposed and the median record: near zero, then rising to one.",
        ),
    )
