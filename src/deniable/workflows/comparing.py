"""``deniable.compare``: two or more sources, assessed where they are not yet, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deniable._check import InputError
from deniable.accounting import tradeoff
from deniable.curves import Tradeoff
from deniable.mechanisms import Mechanism
from deniable.report import Assessment, Comparison, compared
from deniable.risks import replaced
from deniable.workflows.assessing import assess


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
    if len(sources) == 1 and isinstance(sources[0], Sequence) and not isinstance(sources[0], str):
        sources = tuple(sources[0])
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
    'Unit: record (replace one record)'
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
