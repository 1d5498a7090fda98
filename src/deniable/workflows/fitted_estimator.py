"""Any fitted scikit-learn model: nothing is proven; an attack on the procedure that made it."""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable._check import InputError, Seed, integer
from deniable._shown import LISTED, shown
from deniable.audit import AttackScores, attack_estimator
from deniable.curves import Assumptions
from deniable.report import (
    MEASURED,
    OTHER_ATTACKS,
    POPULATION_GAME,
    TUNING_WARNING,
    Asked,
    Assessment,
    Grid,
    Number,
    Section,
    audit_section,
)

NOTHING_PROVEN = "Nothing is proven about this model: it was trained without a privacy mechanism."


def assess_estimator(
    source: Any,
    asked: Asked,
    *,
    X: Any = None,
    y: Any = None,
    method: Any = "auto",
    n_shadows: int = 32,
    n_targets: int = 16,
    confidence: float = 0.95,
    rng: Seed = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> Assessment:
    """Attack the procedure that made a fitted model.

    Parameters
    ----------
    source
        A fitted scikit-learn classifier or regressor, or a pipeline that ends in one.
    asked
        Settings that every report has: prior, rates, title.
    X, y
        The data that it was fitted to. Shadow models are fitted to random halves of them.
    method, n_shadows, rng, n_jobs, progress
        See :func:`deniable.attack_estimator`.
    n_targets
        Models that are attacked in turn, each fitted to a random half. The first one gives the measured attack; how
        often the attack is right about a record over all of them is its vulnerability. 1: no such table.
    confidence
        Confidence level of the measured intervals; those of all records hold together.
    """
    _check(source, X, y)
    from sklearn.base import clone

    n_targets = integer("n_targets", n_targets, at_least=1)
    scores = attack_estimator(
        clone(source), X, y, method=method, n_shadows=n_shadows, rng=rng, n_jobs=n_jobs,
        n_targets=n_targets, progress=progress,
    )  # fmt: skip
    audit = scores.audit(confidence)
    vulnerable = (vulnerable_section(scores, confidence),) if n_targets > 1 else ()
    section, status, headline = audit_section(
        audit, fpr=asked.fpr, attack=f"{scores.method} with {n_shadows} shadow models", command=asked.command
    )
    name = type(getattr(source, "steps", [(None, source)])[-1][1]).__name__
    return Assessment(
        title=asked.title or f"{name} on {len(y):,} records",
        status=status,
        headline=f"{NOTHING_PROVEN} {headline}",
        sections=(section, *vulnerable),
        assumptions=Assumptions(
            game=POPULATION_GAME,
            adjacency="members and non-members come from one population",
            access="the predictions of the model",
            notes=(
                "The attack was run on models of the same kind, fitted to random halves of the data: it measures the "
                "procedure, not this very model.",
                "The records are independent draws from one population.",
            ),
        ),
        not_covered=(OTHER_ATTACKS, *MEASURED),
        warnings=(*audit.warnings, NOTHING_PROVEN, TUNING_WARNING),
        reproduction={
            "model": " ".join(repr(source).split()),
            "training rows": len(y),
            "seed": "fresh entropy" if rng is None else str(rng),
        },
    )


def vulnerable_section(scores: AttackScores, confidence: float) -> Section:
    """How often the attack was right about each record, over targets drawn anew: the records found most often."""
    every = scores.most_exposed(len(scores.member_scores) + len(scores.nonmember_scores), confidence=confidence)
    n, targets = len(every.record), scores.details["n_targets"]
    found = int(np.sum(every.low > 0.5))
    worst = Number(
        "vulnerable.worst", "Most vulnerable record: attack is right", float(every.right[0] / every.targets[0]),
        f"Chance that the attack is right about row {int(every.record[0])} in a fresh model; guessing "
        "reaches 50 %.", "measured interval", low=float(every.low[0]), high=float(every.high[0]), baseline=0.5,
    )  # fmt: skip
    count = Number(
        "vulnerable.records", "Records that the attack finds", float(found),
        f"Of {n:,}: about these it is right more often than guessing, shown for all of them together.",
        "empirical lower bound", "count",
    )  # fmt: skip
    rows = [
        [
            str(int(every.record[i])),
            f"{int(every.right[i])} of {int(every.targets[i])}",
            f"{shown(float(every.low[i]), 'rate', 'lower')} to {shown(float(every.high[i]), 'rate', 'upper')}",
        ]
        for i in range(min(LISTED, n))
    ]
    title = f"The {len(rows)} most vulnerable records"
    return Section(
        "vulnerable",
        "Which records the attack finds",
        f"Over {targets} models, each fitted to a random half of the records: how often the attack was right about a "
        f"record. All intervals hold together with {100 * confidence:g}\u00a0% confidence.",
        (worst, count),
        grids=(Grid("vulnerable", title, ["row", "right", "chance of being right"], rows),),
        notes=("The intervals are about attacks with these shadow models; another attack may find other records.",),
        protected=False,
    )


def _check(source: Any, X: Any, y: Any) -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    name = type(source).__name__
    if X is None or y is None or len(X) != len(y):
        raise InputError(f"a fitted {name} is assessed with its data, X and y of the same records: assess(model, X, y)")
    if not hasattr(source, "predict"):
        raise InputError(f"source must be a classifier or a regressor, got {name}, which cannot predict")
    try:
        check_is_fitted(source)
    except NotFittedError:
        raise InputError(f"source must be fitted first: call fit on this {name}") from None
