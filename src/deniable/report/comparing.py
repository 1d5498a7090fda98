"""Two or more assessments side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deniable._check import InputError
from deniable.report.model import Assessment, Number


@dataclass(frozen=True)
class Row:
    """One number in every assessment; None where one does not have it."""

    key: str
    label: str
    numbers: tuple[Number | None, ...]

    @property
    def lowest(self) -> int | None:
        """Index of the assessment with the smallest value, if they differ and all have one."""
        values = [number.value for number in self.numbers if number is not None and number.value is not None]
        if len(values) < len(self.numbers) or len(set(values)) == 1:
            return None
        return values.index(min(values))


@dataclass(frozen=True)
class Comparison:
    """Assessments side by side, number by number."""

    titles: tuple[str, ...]
    statuses: tuple[str, ...]
    rows: tuple[Row, ...]


def compare(assessments: Sequence[Assessment]) -> Comparison:
    """Put assessments side by side: every number that at least one of them has, in order of appearance."""
    if len(assessments) < 2:
        raise InputError(f"assessments must be at least two to compare, got {len(assessments)}")
    keys = dict.fromkeys(key for a in assessments for key in a.numbers)
    rows = []
    for key in keys:
        numbers = tuple(a.numbers.get(key) for a in assessments)
        label = next(number.label for number in numbers if number is not None)
        rows.append(Row(key, label, numbers))
    return Comparison(tuple(a.title for a in assessments), tuple(a.status for a in assessments), tuple(rows))
