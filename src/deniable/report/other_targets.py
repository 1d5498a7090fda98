"""A table whose target has several classes, or is a number: a private model for it, in place of a logistic regression.

Output perturbation needs one convex loss of two classes. For other targets the report is that of
:func:`deniable.report.training_run.train_table`: a private classifier or regression with (ε, δ)-differential privacy.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from deniable._check import InputError
from deniable._files import write_atomically
from deniable._optional import require
from deniable.report.model import Assessment
from deniable.report.private_model import assess_private
from deniable.report.registry import Asked
from deniable.report.training_run import train_table
from deniable.tables.understanding import warn_of

NO_ATTACK = (
    "The target does not have two classes, so the report is that of a private model ({kind}) with the same ε and "
    "δ = {delta:g}, not of a logistic regression with output perturbation; no attack was run (model.attack does)."
)


def assess_other_target(
    source: Any,
    asked: Asked,
    *,
    target: str | None,
    epsilon: float,
    save_model: Path | None,
    only_for_two_classes: dict[str, Any],
    **how: Any,
) -> Assessment:
    """Fit a private model to a table whose target is not binary and return its assessment.

    ``only_for_two_classes`` are options that were given and mean nothing here; any is refused.
    """
    if only_for_two_classes:
        names = ", ".join(f"{name}=" for name in only_for_two_classes)
        raise InputError(f"{names} goes with a target of two classes, {target!r} has others; leave it out")
    made = train_table(source, target=target, epsilon=epsilon, delta=asked.delta, title=asked.title, **how)
    if save_model is not None:
        write_atomically(save_model, require("skops.io", purpose="writing a .skops model").dumps(made.model))
    warn_of(Path(source).name if isinstance(source, str | Path) else "the table", made.surprises)
    report = made.assessment
    kind = "classification" if hasattr(made.private, "classes_") else "regression"
    note = NO_ATTACK.format(kind=kind, delta=asked.delta)
    fresh = assess_private(made.private, asked, usefulness=made.usefulness)
    notes = (note, *report.assumptions.notes, *(line for line in made.remarks if line.startswith("task:")))
    return replace(
        fresh,
        title=report.title,
        assumptions=replace(report.assumptions, notes=tuple(dict.fromkeys(notes))),
        warnings=tuple(dict.fromkeys((*report.warnings, *fresh.warnings))),
        reproduction={key: value for key, value in report.reproduction.items() if key != "command"},
    )
