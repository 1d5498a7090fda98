"""Two or more assessments side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deniable._check import InputError
from deniable._plot import draw_curves
from deniable.report.model import Assessment, Curve, Number

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    curves: tuple[Curve | None, ...]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the first ROC of every assessment into one picture and return the matplotlib axes."""
        found = [(title, c.fpr, c.tpr) for title, c in zip(self.titles, self.curves, strict=True) if c is not None]
        if not found:
            raise InputError("none of the assessments has a ROC to draw")
        return draw_curves(found, ax=ax)


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
    return Comparison(
        titles=tuple(a.title for a in assessments),
        statuses=tuple(a.status for a in assessments),
        rows=tuple(rows),
        curves=tuple(next(iter(a.curves), None) for a in assessments),
    )
