"""``deniable.assess``: one door from anything that can be assessed to one report.

One adapter per kind of source is a function ``adapter(source, asked, *, option=…)`` that returns an ``Assessment``; its
keyword-only parameters are the options of :func:`deniable.assess` for that kind of source. It stands with the libraries
that it needs, and is imported when a source of its kind turns up.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from deniable._check import InputError, Seed, number, numbers, refuse_unknown
from deniable.accounting import tradeoff
from deniable.curves import Tradeoff
from deniable.mechanisms import Mechanism, together
from deniable.report import Asked, Assessment, Comparison, Policy, compared, read_meta
from deniable.risks import replaced

if TYPE_CHECKING:
    from deniable.audit import Method
    from deniable.workflows.usefulness import Usefulness

_BASELINES = (0.1, 0.001, 1e-6)  # chances of blind guessing at which secrets are reported


@dataclass(frozen=True)
class Adapter:
    """A function from a source of one kind to its assessment."""

    what: str
    make: Callable[..., Assessment]

    @property
    def options(self) -> list[str]:
        """Names of the options of this kind of source."""
        parameters = inspect.signature(self.make).parameters.values()
        return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]

    def __call__(self, source: Any, asked: Asked, options: dict[str, Any]) -> Assessment:
        """Return the assessment; an option that this kind of source does not have is refused."""
        if {"X", "y"} & (set(options) - set(self.options)):
            raise InputError(f"X and y go with a fitted model, got {self.what}")
        refuse_unknown(f"assess of {self.what}", options, [*COMMON, *self.options])
        return self.make(source, asked, **options)


COMMON = ("prior", "fpr", "delta", "title", "command", "policy", "meta")

# classes of deniable or scikit-learn → module and function that assess their objects, and what messages call them
_ADAPTERS = {
    ("Mechanism", "Tradeoff"): ("run", "assess_mechanism", "a mechanism or a trade-off"),
    ("PrivateRun",): ("run", "assess_run", "a record of a training run"),
    ("PrivateModel",): ("private_model", "assess_private", "a fitted private model"),
    ("PrivateSynthesizer",): ("synthetic", "assess_synthesizer", "a fitted synthesizer"),
    ("SequentialAudit",): ("audited", "assess_sequential", "a sequential audit"),
    ("PromiseCheck",): ("audited", "assess_check", "a checked promise"),
    ("OneRunAudit",): ("audited", "assess_one_run", "an audit of one run"),
    ("AttackScores", "ScoreAudit"): ("results", "assess_audit", "the scores of an attack"),
    ("Release", "HalfCertificate"): ("results", "assess_half", "a release or its certificate"),
    ("StatisticsRelease", "Certificate"): ("results", "assess_queries", "statistics or a certificate of queries"),
    ("PrivacyProfile",): ("results", "assess_profile", "a record profile"),
    ("Ledger",): ("ledgered", "assess_ledger", "a ledger"),
    ("BaseEstimator",): ("fitted_estimator", "assess_estimator", "a fitted model"),
}


def adapter_for(source: Any) -> Adapter:
    """Return the adapter of the nearest class of ``source``.

    Raises
    ------
    InputError
        If there is none; the message lists what can be assessed.
    """
    rows = {name: row for names, row in _ADAPTERS.items() for name in names}
    kinds = [kind for kind in type(source).__mro__ if kind.__module__.partition(".")[0] in ("deniable", "sklearn")]
    known = next((kind.__name__ for kind in kinds if kind.__name__ in rows), None)
    recorded = any(hasattr(source, name) for name in ("accountant", "history", "private_run"))
    if recorded or isinstance(source, dict) or type(source).__name__.endswith(("DpEvent", "ExecutionPlanConfig")):
        known = known or "PrivateRun"
    if known is None:
        raise InputError(
            "source must be a mechanism, a trade-off, a record of a training run, a fitted model, or a result of "
            "deniable (of a table: train a PrivateClassifier, or make its privacy_profile), got "
            f"{source!r:.200}"
        )
    module, function, what = rows[known]
    return Adapter(what, getattr(importlib.import_module(f"deniable.workflows.{module}"), function))


class Options(TypedDict, total=False):
    """The options of all kinds of sources; one that does not apply to the kind is refused."""

    group: tuple[str, Any] | None
    method: Method | str
    n_shadows: int
    n_targets: int
    n_jobs: int | None
    bound: Tradeoff | Mechanism | None
    usefulness: Usefulness | None
    confidence: float
    rng: Seed
    progress: bool | None


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
    policy: Policy | str | Path | None = None,
    meta: str | Path | dict[str, Any] | None = None,
    **options: Unpack[Options],
) -> Assessment:
    """Answer whether an attacker could tell that a record was in the training data, as one report.

    Parameters
    ----------
    source
        What to assess:

        - a mechanism or a :class:`~deniable.Tradeoff`: the bounds on every attack; a list of releases: on all together;
        - what a training run left behind: an Opacus ``PrivacyEngine``, accountant or its ``state_dict``, or a
          ``DpEvent`` (JAX Privacy, TF Privacy, dp-accounting): the same bounds;
        - any other fitted scikit-learn model or pipeline, with ``X`` and ``y`` its training data: nothing is proven;
          shadow models attack it;
        - a fitted :class:`~deniable.PrivateClassifier` or ``PrivateRegressor``, or the pipeline of ``deniable train``:
          its account, curve, other risks and shape functions; with ``X`` and ``y``, records held out from the fit, also
          how useful it is. Any other step before it, or a wrapper around it, is refused: it saw the records without
          noise;
        - what :func:`deniable.release` returned: the certificate of the release;
        - what :func:`deniable.privacy_profile` returned: the exposure of every record;
        - what :func:`deniable.audit_scores` returned, or an audit of one run: the measured attack (``bound=`` a
          trade-off to compare with);
        - a :class:`~deniable.SequentialAudit`, what :func:`deniable.audit.check_promise` or a private model's
          ``attack`` returned: the same with the verdict on its own promise.
    X, y
        For a fitted private model: held-out records. What is measured on them is not protected. For any other fitted
        model: the data that it was fitted to.
    prior
        The attacker's prior probability of membership, P(in), in (0, 1).
    fpr
        False positive rates to report.
    delta
        δ at which the corresponding ε is stated.
    title, command
        Title of the report, and the command that it prints for reproduction.
    policy
        The limits that the report is decided by: a :class:`~deniable.Policy`, the path of a TOML file, or None for the
        default policy.
    meta
        What a person adds: a ``meta.toml`` or a dictionary with date, author, version, data, signature, review date
        (:data:`deniable.report.meta.FIELDS`).
    **options
        Those of the kind of source, for example ``group=`` of a profile and ``bound=`` of scores. An option that does
        not apply to the kind is refused.

    Returns
    -------
    Assessment
        Numbers first, with the ``decision``; ``.to_html(path)``, ``.to_json()`` and ``print`` draw it. A proof and
        attacks share a page: ``assess(run) + assess(scores)``; two releases add up: ``assess([a, b])``.

    Raises
    ------
    InputError
        If the source cannot be assessed; the message says why and what to do.

    Examples
    --------
    See ``Policy``.
    """
    rules = policy if isinstance(policy, Policy) else Policy() if policy is None else Policy.from_toml(policy)
    filled = {} if meta is None else read_meta(meta)
    rates = numbers("fpr", fpr, above=0.0, at_most=1.0).ravel().tolist()
    asked = Asked(
        prior=number("prior", prior, above=0.0, below=1.0, hint="a prior of 0 or 1 is certainty"),
        fpr=_with(rates, [limit.fpr for limit in rules.limits]),
        delta=number("delta", delta, above=0.0, below=1.0),
        baselines=_with(_BASELINES, [limit.baseline for limit in rules.limits]),
        title=title,
        command=command,
    )
    source, X = _unwrap(together(source) if isinstance(source, list) else source, X)
    given = {name: value for name, value in (("X", X), ("y", y)) if value is not None}
    made = adapter_for(source)(source, asked, {**given, **options})
    versions = {"deniable": version("deniable"), "python": platform.python_version(), "numpy": np.__version__}
    first = {"command": command} if command else {}
    made = replace(made, meta=filled, reproduction={**first, **made.reproduction, **versions})
    decided = made.decide(rules)
    verdict = decided.decision.verdict if decided.decision else ""
    logging.getLogger("deniable").info("%s: %s (%s)", decided.title, verdict, rules.name)
    return decided


def _with(rates: Sequence[float], asked: Sequence[float | None]) -> tuple[float, ...]:
    """``rates`` and those that the policy asks for; where two would be named alike the larger one stays."""
    named: dict[str, float] = {}
    for rate in (*rates, *(rate for rate in asked if rate is not None)):
        named[f"{rate:g}"] = max(rate, named.get(f"{rate:g}", 0.0))
    return tuple(named.values())


def _unwrap(source: Any, X: Any) -> tuple[Any, Any]:
    """A private model behind steps that learn nothing, as ``deniable train`` writes it: the model, and X as it sees it.

    Whatever else stands before or around it was fitted to the records, and no certificate covers that: it is refused.
    """
    if not _holds_private(source, set()):
        return source, X
    from deniable.training import TableReader

    *before, last = _steps(source)
    readers = [step for step in before if type(step) is TableReader]
    learnt = [step for step in before if type(step) is not TableReader and step not in (None, "passthrough")]
    ours = _is_private(last) and type(last).__module__.startswith("deniable.")  # a subclass may prepare what it fits
    for step in (*learnt, *([] if ours else [last])):
        raise InputError(
            f"{type(step).__name__} was fitted to the records without noise; give the private model the raw table, it "
            "reads it itself (before it, TableReader and 'passthrough' alone are certified; to measure what this "
            "source leaks, use deniable.attack_estimator)"
        )
    for reader in readers if X is not None else ():
        X = reader.transform(X)
    return last, X


def _steps(source: Any) -> list[Any]:
    """The steps of a pipeline, those of pipelines inside it in their place; ``FrozenEstimator`` never fits."""
    named = f"{type(source).__module__}.{type(source).__name__}"
    if named == "sklearn.pipeline.Pipeline":
        return [step for _, one in source.steps for step in _steps(one)]
    return _steps(source.estimator) if named == "sklearn.frozen._frozen.FrozenEstimator" else [source]


def _is_private(source: Any) -> bool:
    ours = [kind.__name__ for kind in type(source).__mro__ if kind.__module__.startswith("deniable.")]
    return "PrivateModel" in ours or "PrivateSynthesizer" in ours


def _holds_private(source: Any, seen: set[int]) -> bool:
    """Whether a private model is anywhere in an estimator: among its parameters, its steps or what it fitted."""
    if id(source) in seen:
        return False
    seen.add(id(source))
    parts = source if isinstance(source, list | tuple) else source.values() if isinstance(source, dict) else ()
    if hasattr(source, "get_params") and not isinstance(source, type):
        parts = getattr(source, "__dict__", {}).values()
    return _is_private(source) or any(_holds_private(part, seen) for part in parts)


def compare(*sources: Any, **options: Any) -> Comparison:
    """Put two or more assessments side by side: every number that one of them has, and the differences.

    If their bounds are for different pairs of worlds, all are for a replaced record: bounds for adding or removing one
    are converted.

    Parameters
    ----------
    sources
        Assessments, or anything that :func:`deniable.assess` takes without further data (mechanisms, trade-offs,
        releases, profiles, scores).
    options
        Passed on to :func:`deniable.assess` for what is not an assessment yet: ``prior``, ``fpr``, ``policy``.

    Returns
    -------
    Comparison
        ``rows`` with ``numbers`` and ``differences``: by how much each further assessment exceeds the first,
        an interval where both numbers are measured or exact.

    Raises
    ------
    InputError
        For fewer than two sources, one that cannot be assessed, or one that cannot be converted.

    Examples
    --------
    >>> import deniable as dn
    >>> comparison = dn.compare(dn.GaussianDP(0.2), dn.SubsampledGaussian(1.0, 0.01, 1000))
    >>> isinstance(comparison, dn.report.Comparison), comparison.titles
    (True, ('GaussianDP with mu = 0.2', 'DP-SGD: noise multiplier 1, sample rate 0.01, 1,000 steps'))
    """
    if len(sources) < 2:
        raise InputError(f"sources must be at least two to compare, got {len(sources)}")
    return compared(alike(sources, **options))


def alike(sources: Sequence[Any], **options: Any) -> list[Assessment]:
    """Return the assessments, their bounds all for the same pair of worlds: a replaced record where they differ.

    Parameters
    ----------
    sources
        What :func:`deniable.assess` takes, one each.
    options
        Passed on to it.

    Returns
    -------
    list of Assessment
        In the order of the sources.

    Raises
    ------
    InputError
        If they differ and one of them, such as a saved report, cannot be converted.

    Examples
    --------
    >>> import deniable as dn
    >>> from deniable.workflows import alike
    >>> sampled, drawn = alike([dn.GaussianDP(0.5), dn.WithoutReplacement(9.0, 10, 100, 2)])
    >>> sampled.assumptions.line
    'record (replace one record)'
    """
    made = [source if isinstance(source, Assessment) else assess(source, **options) for source in sources]
    kinds = {_worlds(one) for one in made} - {""}
    if len(kinds) < 2:
        return made
    return [
        one if _worlds(one) in ("replace", "") else _replacing(source, one, options)
        for source, one in zip(sources, made, strict=True)
    ]


def _worlds(made: Assessment) -> str:
    """The first word of the adjacency of a bound: add, replace, or another pair; "" where nothing is bounded."""
    return "" if made.section("bound") is None else made.assumptions.adjacency.split()[0]


def _replacing(source: Any, made: Assessment, options: dict[str, Any]) -> Assessment:
    """The assessment of the same source for a replaced record."""
    try:
        if isinstance(source, Mechanism):
            curve = tradeoff(source, adjacency="replace")
        else:
            curve = replaced(source) if isinstance(source, Tradeoff) else source.replacement_tradeoff_
    except (AttributeError, InputError):
        raise InputError(
            f"sources must be for the same two worlds, and {made.title!r} is for: {made.assumptions.adjacency}; it "
            "cannot be converted to a replaced record: compare the runs themselves, or leave it out"
        ) from None
    return assess(curve, **{**options, "title": made.title})
