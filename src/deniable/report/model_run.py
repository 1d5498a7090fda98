"""From a fitted model, its training data and the noise that will release it to one assessment."""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable._check import InputError, Seed, integer, seeded
from deniable._progress import stage
from deniable.accounting import tradeoff as tradeoff_of
from deniable.curves import Assumptions
from deniable.integrations.fitted import profile_estimator
from deniable.records import ObjectivePerturbation, OutputPerturbation
from deniable.report.data_run import attack_worst_record, attacked_headline
from deniable.report.model import Assessment, Section, Status
from deniable.report.profiled import NOT_FOR_PUBLICATION, profile_section
from deniable.report.registry import PAIR, Asked, assesses
from deniable.report.sections import NOT_COVERED, TUNING_WARNING, bound_headline, bound_section, risk_section


@assesses(PAIR, what="a fitted model with its training data")
def assess_model(
    source: Any,
    asked: Asked,
    *,
    model: Any,
    mechanism: OutputPerturbation | ObjectivePerturbation | None = None,
    group: tuple[str, Any] | None = None,
    n_samples: int | None = None,
    confidence: float = 0.95,
    rng: Seed = None,
    progress: bool = False,
    sample_weight: Any = None,
    tolerance: float | None = None,
    first_row: int = 0,
) -> Assessment:
    """Bound, profile and attack a fitted scikit-learn model on its own training data.

    Parameters
    ----------
    source
        (X, y), what ``model`` was fitted on, in its own format.
    model
        Fitted; see :func:`deniable.profile_estimator` for the kinds and settings that can be mapped.
    mechanism
        How its parameters are, or would be, released. With an ``epsilon`` the bound over all data sets is part of
        the report; with a noise ``scale`` only what holds for this very model.
    group
        A column's name and values by which the exposure of the records is summarised.
    n_samples, confidence, rng
        With output perturbation: simulated releases in each world for the attack on the most exposed record, at least
        100 (20,000 if not given). With objective perturbation: models drawn for quantities over typical models (none
        if not given). Then the confidence of the attack's intervals, and the seed.
    sample_weight, tolerance
        Passed on to :func:`deniable.profile_estimator`.
    first_row
        The number by which the reader calls the first row.
    """
    if mechanism is None:
        raise InputError(
            "mechanism is missing; say how the model is released, for example OutputPerturbation(epsilon=1)"
        )
    if not (isinstance(source, tuple) and len(source) == 2):
        raise InputError("with model=, source must be the pair (X, y) that it was fitted on")
    simulated = None if n_samples is None else integer("n_samples", n_samples, at_least=100)
    generator = seeded(rng)
    given = {"sample_weight": sample_weight, "tolerance": tolerance}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if isinstance(mechanism, ObjectivePerturbation):
        options["n_samples"] = simulated or 0
    with stage("leaving each record out", shown=progress):
        profile = profile_estimator(model, *source, mechanism=mechanism, rng=generator, **options)
        records = profile_section(
            profile, fpr=asked.fpr, rows=np.arange(len(profile)) + integer("first_row", first_row), group=group
        )
    guarantee = mechanism.guarantee()
    bound = None if guarantee is None else tradeoff_of(guarantee)
    sections: list[Section] = [records]
    proven = f"Provable upper bound for this very model: advantage at most {records.numbers[0].shown} for every record."
    if bound is not None:
        sections[:0] = [bound_section(bound, asked), risk_section(bound, asked.baselines)]
        proven = bound_headline(bound)
    status: Status = "bounded"
    if isinstance(mechanism, OutputPerturbation):
        attack, audit, status = attack_worst_record(
            profile,
            mechanism,
            bound,
            n=simulated or 20_000,
            confidence=confidence,
            fpr=asked.fpr,
            rng=generator,
            progress=progress,
        )
        sections.append(attack)
        proven = attacked_headline(proven, audit, status)
    strength = "" if mechanism.epsilon is None else f" with ε = {mechanism.epsilon:g}"
    return Assessment(
        title=asked.title or f"{type(model).__name__} on {len(profile):,} records, released{strength}",
        status=status,
        headline=proven,
        sections=tuple(sections),
        assumptions=Assumptions(
            access="the released parameters of the model", notes=("n and the noise are public.", *profile.notes)
        ),
        not_covered=NOT_COVERED,
        warnings=(NOT_FOR_PUBLICATION, TUNING_WARNING),
        reproduction={"model": repr(model), "mechanism": repr(mechanism), "training rows": len(profile)},
        what_ran=guarantee,
    )
