"""Two or more assessments side by side, with intervals of their differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deniable._check import InputError
from deniable._notebook import Textual
from deniable._optional import require
from deniable._plot import draw_curves, marked
from deniable.curves import Assumptions
from deniable.report.model import Assessment, Curve, Number

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class ComparedRow:
    """One number in every assessment; None where one does not have it."""

    key: str
    label: str
    numbers: tuple[Number | None, ...]

    @property
    def differences(self) -> tuple[tuple[float, float] | None, ...]:
        """Where it lies by how much every further assessment exceeds the first.

        Two measured intervals hold together with probability at least 1 − 2·(1 − confidence), by the union bound. None
        where one is no interval: how far the truth lies below an upper bound is not known.
        """
        first, *others = map(_ends, self.numbers)
        return tuple(None if first is None or one is None else (one[0] - first[1], one[1] - first[0]) for one in others)


def _ends(number: Number | None) -> tuple[float, float] | None:
    """Where the truth lies, as far as the number says so on both sides."""
    if number is None:
        return None
    if number.low is not None and number.high is not None:
        return number.low, number.high
    if number.kind in ("exact", "parameter") and number.value is not None:
        return number.value, number.value
    return None


@dataclass(frozen=True)
class Comparison(Textual):
    """Assessments side by side, number by number.

    Examples
    --------
    See ``compare``.
    """

    titles: tuple[str, ...]
    statuses: tuple[str, ...]
    rows: tuple[ComparedRow, ...]
    curves: tuple[Curve | None, ...]
    decisions: tuple[str | None, ...] = ()
    assumptions: tuple[Assumptions, ...] = ()

    def _text(self) -> str:
        require("rich", purpose="A comparison as text")
        from deniable.report.text import plainly, side_by_side

        return plainly(side_by_side(self))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the first ROC of every assessment into one picture and return the matplotlib axes."""
        found = [(title, c.fpr, c.tpr) for title, c in zip(self.titles, self.curves, strict=True) if c is not None]
        if not found:
            raise InputError("none of the assessments has a ROC to draw")
        return marked(draw_curves(found, ax=ax), self.insecure)


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
        assumptions=tuple(a.assumptions for a in made),
    )
