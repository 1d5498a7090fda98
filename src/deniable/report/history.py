"""Earlier reports beside this one: what was decided and how the deciding numbers moved."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from deniable._shown import shown
from deniable.report.model import Assessment, Grid, Number, Section, Series

KEY = "history"


def history_section(now: Assessment, earlier: Iterable[Assessment]) -> Section:
    """Return a table of earlier reports, the oldest first, and this one last, each as its own file states it.

    Nothing is decided anew: every line has the outcome that its report had under its own policy. Bounds are the worst
    of a report, measured numbers the largest lower end of an interval.
    """
    every = [*earlier, now]
    rows = [_row(report, "this report" if report is now else str(place)) for place, report in enumerate(every, 1)]
    columns = ["report", "date", "version", "what", "decision", "advantage, proven", "advantage, measured"]
    bounds, shows = [_bound(report) for report in every], [_attack(report) for report in every]
    lines = {
        name: [math.nan if value is None else 100 * value for value in values]
        for name, values in (("proven at most", bounds), ("measured at least", shows))
        if all(value is not None for value in values)
    }
    series = Series(
        KEY, "Membership advantage from report to report.", "report", "advantage (%)",
        [float(place) for place in range(1, len(every) + 1)], lines,
        alt=f"Membership advantage in {len(every)} reports, the last one being this.",
    )  # fmt: skip
    return Section(
        KEY,
        "History",
        "Earlier reports, the oldest first, each as it was decided then. Releases of the same data add up, and a bound "
        "here is that of one report alone.",
        series=(series,) if lines and len(every) > 2 else (),
        grids=(Grid(KEY, "This report and those before it", columns, rows),),
        protected=not any(report.for_owner for report in every),
    )


def _row(report: Assessment, place: str) -> list[str]:
    bound, attack = _bound(report), _attack(report)
    decision = report.decision
    return [
        place,
        report.meta.get("date", "–"),
        report.meta.get("version", "–"),
        report.title,
        "–" if decision is None else f"{decision.outcome} ({decision.policy.name})",
        "–" if bound is None else f"≤ {shown(bound, 'rate', 'upper')}",
        "–" if attack is None else f"≥ {shown(attack, 'rate', 'lower')}",
    ]


def _bound(report: Assessment) -> float | None:
    found = _of(report, r"bound\d*\.advantage") or _of(report, r"records\d*\.worst\.advantage")
    proven = [number for number in found if number.kind == "provable upper bound"]
    return max((1.0 if number.value is None else number.value for number in proven), default=None)


def _attack(report: Assessment) -> float | None:
    found = [number.low for number in _of(report, r"attack\d*\.advantage") if number.low is not None]
    return max(found, default=None)


def _of(report: Assessment, pattern: str) -> list[Number]:
    return [number for key, number in report.numbers.items() if re.fullmatch(pattern, key)]
