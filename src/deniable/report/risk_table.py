"""One table of every risk: what blind guessing reaches, what is proven at most, what an attack showed."""

from __future__ import annotations

import re

from deniable._shown import shown
from deniable.report.model import Assessment, Grid, Number

_MEMBERSHIP = re.compile(r"bound(\d*)\.(.+)")


def risk_table(assessment: Assessment) -> Grid | None:
    """Return the risks of a report with their baselines; None if nothing is bounded."""
    numbers = assessment.numbers
    rows: list[list[str]] = []
    for key, number in numbers.items():
        if number.baseline is None or number.unit != "rate":
            continue
        match = _MEMBERSHIP.fullmatch(key)
        seen = numbers.get(f"attack{match[1]}.{match[2]}") if match else None
        rows.append([number.label, _rate(number.baseline), _bound(number), _measured(seen)])
    if not rows:
        return None
    columns = ["risk", "blind guessing reaches", "proven bound", "an attack showed"]
    return Grid("risk-table", "Every risk: baseline, bound and what was measured", columns, rows)


def _rate(value: float) -> str:
    return shown(value, "rate", "nearest")


def _bound(number: Number) -> str:
    return f"≤ {number.shown}" if number.kind == "provable upper bound" else f"≈ {number.shown} (not proven)"


def _measured(number: Number | None) -> str:
    if number is None:
        return "not measured"
    return number.shown
