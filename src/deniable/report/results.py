"""From finished results (a profile, a release, an audit) to an assessment."""

from __future__ import annotations

from typing import Any

from deniable._check import InputError
from deniable.report.model import Assessment


def assess_result(source: Any, **_: Any) -> Assessment:
    """Return the assessment of what a function of deniable returned."""
    raise InputError(
        f"source must be a mechanism, a trade-off, data, or a result of deniable, got {source!r}; see help(assess)"
    )
