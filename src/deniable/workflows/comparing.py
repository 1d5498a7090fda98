"""``deniable.compare``: two or more sources, assessed where they are not yet, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deniable._check import InputError
from deniable.report.comparing import Comparison, compared
from deniable.report.model import Assessment
from deniable.workflows.assessing import assess


def compare(*sources: Any, **options: Any) -> Comparison:
    """Put two or more assessments side by side: every number that one of them has, and the differences.

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
        For fewer than two sources, or one that cannot be assessed.
    """
    if len(sources) == 1 and isinstance(sources[0], Sequence) and not isinstance(sources[0], str):
        sources = tuple(sources[0])
    if len(sources) < 2:
        raise InputError(f"sources must be at least two to compare, got {len(sources)}")
    made = [source if isinstance(source, Assessment) else assess(source, **options) for source in sources]
    return compared(made)
