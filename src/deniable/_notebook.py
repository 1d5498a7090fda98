"""Results as a shell shows them; a notebook shows the same text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from html import escape
from typing import TYPE_CHECKING

from deniable._shown import shown

if TYPE_CHECKING:
    from deniable.curves import Tradeoff

USUAL_FPRS = (0.1, 0.01, 0.001)


def lines(title: str, rows: Iterable[tuple[str, str]], notes: Sequence[str] = ()) -> str:
    """Return a title, rows of a name and a value, and remarks as text."""
    found = list(rows)
    wide = max((len(name) for name, _ in found), default=0)
    return "\n".join([title, *(f"  {name:<{wide}}  {value}" for name, value in found), *notes])


def as_html(text: str) -> str:
    """Return a text as a notebook shows it."""
    return f'<pre style="white-space:pre-wrap">{escape(text)}</pre>'


class Textual:
    """A result that has a text: a notebook shows the same."""

    def _repr_html_(self) -> str:
        return as_html(str(self))


def curve_rows(curve: Tradeoff) -> list[tuple[str, str]]:
    """Return the usual upper bounds of a curve in words."""
    rows = [("Advantage", f"≤ {shown(curve.advantage(), 'rate', 'upper')}")]
    for rate in USUAL_FPRS:
        found = shown(curve.tpr(rate), "rate", "upper")
        rows.append((f"TPR at FPR {shown(rate, 'rate', 'nearest')}", f"≤ {found}"))
    return rows


def curve_text(curve: Tradeoff) -> str:
    """Return the usual upper bounds of a curve, how they were computed and in which game they hold."""
    sure = [] if curve.confidence == 1 else [f"confidence {curve.confidence:g}"]
    a = curve.assumptions
    notes = [f"Method: {curve.method}", *sure, a.game, a.adjacency]
    return lines("What any attacker can reach", curve_rows(curve), notes)


def two_lines(curve: Tradeoff) -> str:
    """Kind, numbers and method of a curve; what it protects and what it holds for. Nothing is computed."""
    own = {one.name: vars(curve).get(one.name) for one in fields(curve) if one.repr and not one.kw_only}
    said = ", ".join(f"{name}={value!r}" for name, value in own.items() if isinstance(value, int | float | str))
    sure = "" if curve.confidence == 1 else f"; with confidence {curve.confidence:g}"
    head = f"{type(curve).__name__}({said}): {curve.method}"
    return f"{head}\n  {curve.assumptions.adjacency}; {curve.holds_for}{sure}"
