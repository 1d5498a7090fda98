"""``deniable.assess``: one door from anything that can be assessed to one report."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from deniable._check import InputError, number, numbers
from deniable.accounting import tradeoff as tradeoff_of
from deniable.curves import FIXED_BEFOREHAND, ApproximateTradeoff, Assumptions, Tradeoff
from deniable.integrations.dp_event import from_dp_event
from deniable.integrations.interpret import DPEBM
from deniable.integrations.opacus import from_opacus
from deniable.integrations.private_run import PrivateRun
from deniable.mechanisms import Composition, Mechanism, SubsampledGaussian
from deniable.planning.comparison import pinsker
from deniable.report.model import Assessment
from deniable.report.sections import NOT_COVERED, TUNING_WARNING, bound_headline, bound_section


def assess(
    source: Any,
    X: Any = None,
    y: Any = None,
    *,
    prior: float = 0.5,
    fpr: Sequence[float] = (0.1, 0.01, 0.001),
    delta: float = 1e-5,
    title: str | None = None,
    command: str | None = None,
    **options: Any,
) -> Assessment:
    """Answer whether an attacker could tell that a record was in the training data, as one report.

    Parameters
    ----------
    source
        What to assess:

        - a mechanism or a :class:`~deniable.Tradeoff`: the bounds on every attack;
        - what a training run left behind: an Opacus ``PrivacyEngine``, accountant or its ``state_dict``, or a
          ``DpEvent`` (JAX Privacy, TF Privacy, dp-accounting): the same bounds;
        - the path of a .csv or .parquet file, a data frame, or a built-in name (``"breast-cancer"``,
          ``"digits-3-8"``), with ``target=`` and ``epsilon=``: a logistic regression is fitted, released by output
          perturbation, and bounded, profiled record by record and attacked;
        - a pair (X, y) with ``model=`` a scikit-learn model fitted on it and ``mechanism=`` how it is released
          (``OutputPerturbation`` or ``ObjectivePerturbation``): the same of that model;
        - a fitted :class:`~deniable.PrivateClassifier` or ``PrivateRegressor``, or a pipeline that ends in one: its
          account, curve, other risks and shape functions; with ``X`` and ``y``, records held out from the fit, also how
          useful it is;
        - what :func:`deniable.release` returned: the certificate of the release;
        - what :func:`deniable.privacy_profile` returned: the exposure of every record;
        - what :func:`deniable.audit_scores` returned: the measured attack (``bound=`` a trade-off to compare with).
    X, y
        For a fitted private model: held-out records. What is measured on them is not protected.
    prior
        What the attacker believes beforehand, P(in), in (0, 1).
    fpr
        False positive rates to report.
    delta
        δ at which the corresponding ε is stated.
    title, command
        What the report calls itself, and the command that it gives for reproduction.
    **options
        Those of the kind of source; see :func:`deniable.report.data_run.assess_data` for data
        and :func:`deniable.report.model_run.assess_model` for a fitted model.

    Returns
    -------
    Assessment
        Numbers first; ``.to_html(path)``, ``.to_json()``, ``.to_markdown()`` and ``print`` draw it. Assessments add up:
        ``assess(run) + assess(scores)``.

    Raises
    ------
    InputError
        If the source cannot be assessed; the message says why and what to do.
    """
    common: dict[str, Any] = {
        "prior": number("prior", prior, above=0.0, below=1.0, hint="a prior of 0 or 1 is certainty"),
        "fpr": tuple(numbers("fpr", fpr, above=0.0, at_most=1.0).ravel().tolist()),
        "delta": number("delta", delta, above=0.0, below=1.0),
    }
    reproduction = {"command": command} if command else {}
    source = _what_ran(source)
    steps = getattr(source, "steps", None)
    if isinstance(steps, list) and _is_private_model(steps[-1][-1]):  # a pipeline, as ``deniable train`` writes it
        X, source = (X if X is None else source[:-1].transform(X)), source[-1]
    private = _is_private_model(source)
    if (X is not None or y is not None) and not private:
        raise InputError(f"X and y go with a fitted private model, got {type(source).__name__}")
    if private:
        from deniable.report.private_model import assess_private

        made = assess_private(source, X, y, title=title, **common, **options)
    elif isinstance(source, Mechanism | Tradeoff):
        made = _assess_mechanism(source, title=title, **common, **options)
    elif "model" in options:
        from deniable.report.model_run import assess_model

        made = assess_model(source, title=title, **common, **options)
    elif isinstance(source, str | Path | pd.DataFrame | tuple):
        from deniable.report.data_run import assess_data

        made = assess_data(source, title=title, **common, **options)
    else:
        from deniable.report.results import assess_result

        made = assess_result(source, title=title, **common, **options)
    return _with_reproduction(made, reproduction)


def _is_private_model(source: Any) -> bool:
    """Whether ``source`` is a fitted private model; scikit-learn is not imported to find out."""
    kinds = {kind.__module__ for kind in type(source).__mro__}
    if "deniable.training.base" not in kinds:
        return False
    if not hasattr(source, "tradeoff_"):
        raise InputError(f"source must be fitted first: call fit on this {type(source).__name__}")
    return True


def _assess_mechanism(
    source: Mechanism | Tradeoff, *, prior: float, fpr: tuple[float, ...], delta: float, title: str | None
) -> Assessment:
    if isinstance(source, DPEBM):
        bound = source.tradeoff()  # with what has to be public
    else:
        bound = source if isinstance(source, Tradeoff) else tradeoff_of(source)
    comparisons = {}
    epsilon = bound.epsilon(delta)
    if not isinstance(bound, ApproximateTradeoff) and np.isfinite(epsilon):
        comparisons[f"from (ε, δ) = ({epsilon:.4g}, {delta:g}) alone"] = ApproximateTradeoff(max(epsilon, 0.0), delta)
        if isinstance(source, Mechanism) and (total := pinsker(source)) < 1:
            comparisons["from the KL divergence alone (Pinsker)"] = ApproximateTradeoff(0.0, total)
    section = bound_section(bound, prior=prior, fpr=fpr, delta=delta, comparisons=comparisons)
    return Assessment(
        title=title or (describe(source) if isinstance(source, Mechanism) else "A release"),
        status="bounded",
        headline=bound_headline(bound),
        sections=(section,),
        assumptions=_assumptions(bound, source),
        not_covered=NOT_COVERED,
        warnings=(TUNING_WARNING,),
        reproduction={"source": _python(source)} if isinstance(source, Mechanism) else {},
    )


def _assumptions(bound: Tradeoff, source: Mechanism | Tradeoff) -> Assumptions:
    """Those of the curve; of several steps also that nobody chose the later ones by the earlier ones."""
    several = isinstance(source, Composition) or (isinstance(source, SubsampledGaussian) and source.steps > 1)
    notes = bound.assumptions.notes
    if several and FIXED_BEFOREHAND not in notes:
        notes = (*notes, FIXED_BEFOREHAND)
    return replace(bound.assumptions, notes=notes)


def _what_ran(source: Any) -> Any:
    """Return the mechanism that a foreign record of a training run describes; anything else unchanged."""
    if type(source).__name__.endswith("DpEvent"):
        return from_dp_event(source)
    if isinstance(source, PrivateRun):
        return source.mechanism
    names = ("accountant", "history", "private_run")
    recorded = isinstance(source, dict) or any(hasattr(source, name) for name in names)
    return from_opacus(source) if recorded and not isinstance(source, pd.DataFrame) else source


def describe(mechanism: Mechanism) -> str:
    """Return a title for a mechanism."""
    match mechanism:
        case SubsampledGaussian(sigma, rate, steps):
            return f"DP-SGD: noise multiplier {sigma:g}, sample rate {rate:g}, {steps:,} steps"
        case Composition(parts) if all(isinstance(part, SubsampledGaussian) for part in parts):
            steps = sum(part.steps for part in parts if isinstance(part, SubsampledGaussian))
            return f"DP-SGD: {len(parts)} phases, {steps:,} steps"
        case DPEBM():
            stated = f"({mechanism.promised_epsilon:g}, {mechanism.promised_delta:g})"
            return f"A private explainable boosting machine, stated to be {stated}-DP"
        case Composition(parts):
            return f"A composition of {len(parts)} mechanisms"
    given = ", ".join(f"{name} = {value:g}" for name, value in asdict(mechanism).items())  # type: ignore[call-overload]
    return f"{type(mechanism).__name__} with {given}"


def _python(mechanism: Mechanism) -> str:
    text = repr(mechanism)
    return text if len(text) < 400 else f"{type(mechanism).__name__} of {text.count('(') - 1} mechanisms"


def _with_reproduction(assessment: Assessment, first: dict[str, Any]) -> Assessment:
    """Put what is needed to repeat the run at the end: versions and the command."""
    versions = {"deniable": version("deniable"), "python": platform.python_version(), "numpy": np.__version__}
    return replace(assessment, reproduction={**first, **assessment.reproduction, **versions})
