"""Two or more assessments side by side, with intervals of their differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deniable._check import InputError
from deniable._notebook import Textual
from deniable._optional import require
from deniable._plot import draw_curves
from deniable.report.model import Assessment, Curve, Number

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Difference:
    """By how much a number of one assessment exceeds that of the first.

    Attributes
    ----------
    estimate
        The difference of the two numbers; None if one of them cannot be stated.
    low, high
        Where the true difference lies. From two measured intervals: the two hold together with probability at least
        1 − 2·(1 − confidence) by the union bound. None between upper bounds: how far the truth lies below them is not
        known.
    """

    estimate: float | None
    low: float | None
    high: float | None

    @property
    def clear(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


@dataclass(frozen=True)
class ComparedRow:
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

    @property
    def differences(self) -> tuple[Difference | None, ...]:
        """By how much every further assessment exceeds the first; None where one of the two lacks the number."""
        first = self.numbers[0]
        return tuple(
            None if first is None or other is None else _difference(first, other) for other in self.numbers[1:]
        )


def _difference(first: Number, other: Number) -> Difference:
    estimate = None if first.value is None or other.value is None else other.value - first.value
    ends = [_ends(number) for number in (first, other)]
    if any(end is None for end in ends):
        return Difference(estimate, None, None)
    (low, high), (other_low, other_high) = (end for end in ends if end is not None)
    return Difference(estimate, other_low - high, other_high - low)


def _ends(number: Number) -> tuple[float, float] | None:
    """Where the truth lies, as far as the number says so on both sides."""
    if number.low is not None and number.high is not None:
        return number.low, number.high
    if number.kind in ("exact", "parameter") and number.value is not None:
        return number.value, number.value
    return None


@dataclass(frozen=True)
class Comparison(Textual):
    """Assessments side by side, number by number."""

    titles: tuple[str, ...]
    statuses: tuple[str, ...]
    rows: tuple[ComparedRow, ...]
    curves: tuple[Curve | None, ...]
    decisions: tuple[str | None, ...] = ()

    def row(self, key: str) -> ComparedRow:
        """Return the row of one number."""
        for row in self.rows:
            if row.key == key:
                return row
        raise InputError(f"key must be one of {', '.join(row.key for row in self.rows)}; got {key!r}")

    def __str__(self) -> str:
        require("rich", purpose="A comparison as text")
        from deniable.report.text import plainly, side_by_side

        return plainly(side_by_side(self))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the first ROC of every assessment into one picture and return the matplotlib axes."""
        found = [(title, c.fpr, c.tpr) for title, c in zip(self.titles, self.curves, strict=True) if c is not None]
        if not found:
            raise InputError("none of the assessments has a ROC to draw")
        return draw_curves(found, ax=ax)


def compared(made: Sequence[Assessment]) -> Comparison:
    """Return the assessments number by number, in the order of their first appearance."""
    keys = dict.fromkeys(key for a in made for key in a.numbers)
    rows = []
    for key in keys:
        numbers = tuple(a.numbers.get(key) for a in made)
        label = next(number.label for number in numbers if number is not None)
        rows.append(ComparedRow(key, label, numbers))
    return Comparison(
        titles=tuple(a.title for a in made),
        statuses=tuple(a.status for a in made),
        rows=tuple(rows),
        curves=tuple(next(iter(a.curves), None) for a in made),
        decisions=tuple(None if a.decision is None else a.decision.outcome for a in made),
    )
