"""Results as a notebook and a shell show them: a small table, every text in it escaped in HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from html import escape
from typing import TYPE_CHECKING

from deniable._shown import shown

if TYPE_CHECKING:
    from deniable.curves import Tradeoff

USUAL_FPRS = (0.1, 0.01, 0.001)
_TONES = {"good": "#1a6b35", "bad": "#b01424", "open": "#7a5400", "none": "#0b57a4"}


def panel(
    title: str, rows: Iterable[tuple[str, str]], notes: Sequence[str] = (), *, headline: str = "", tone: str = "none"
) -> str:
    """Return a panel of HTML: a title, rows of a name and a value, and remarks. Everything is text and is escaped."""
    colour = _TONES[tone]
    head = f'<div style="color:{colour};font-weight:600">{escape(headline)}</div>' if headline else ""
    cells = "".join(
        f'<tr><th scope="row" style="text-align:left;font-weight:400;padding:0 1.2em 0 0">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in rows
    )
    table = f'<table style="margin:.3em 0;font-variant-numeric:tabular-nums"><tbody>{cells}</tbody></table>'
    remarks = "".join(f'<div style="font-size:.9em;opacity:.75">{escape(note)}</div>' for note in notes)
    return (
        f'<div style="border-left:.3em solid {colour};padding:.1em 0 .1em .8em">'
        f"<div><strong>{escape(title)}</strong></div>{head}{table if cells else ''}{remarks}</div>"
    )


def lines(title: str, rows: Iterable[tuple[str, str]], notes: Sequence[str] = (), *, headline: str = "") -> str:
    """Return what :func:`panel` shows as plain text."""
    found = list(rows)
    wide = max((len(name) for name, _ in found), default=0)
    table = [f"  {name:<{wide}}  {value}" for name, value in found]
    return "\n".join([title, *([headline] if headline else []), *table, *notes])


class Textual:
    """A result that has a text: a notebook shows the same."""

    def _repr_html_(self) -> str:
        return f'<pre style="white-space:pre-wrap">{escape(str(self))}</pre>'


def curve_rows(curve: Tradeoff) -> list[tuple[str, str]]:
    """Return the usual upper bounds of a curve in words."""
    rows = [("Advantage", f"≤ {shown(curve.advantage(), 'rate', 'upper')}")]
    for rate in USUAL_FPRS:
        found = shown(curve.tpr(rate), "rate", "upper")
        rows.append((f"TPR at FPR {shown(rate, 'rate', 'nearest')}", f"≤ {found}"))
    return rows


def curve_panel(curve: Tradeoff) -> tuple[str, list[tuple[str, str]], list[str]]:
    """Return title, rows and notes of a curve."""
    sure = [] if curve.confidence == 1 else [f"confidence {curve.confidence:g}"]
    a = curve.assumptions
    return "What any attacker can reach", curve_rows(curve), [f"Method: {curve.method}", *sure, a.game, a.adjacency]


def two_lines(curve: Tradeoff) -> str:
    """Kind, numbers and method of a curve; what it protects and what it holds for. Nothing is computed."""
    own = {one.name: vars(curve).get(one.name) for one in fields(curve) if one.repr and not one.kw_only}
    said = ", ".join(f"{name}={value!r}" for name, value in own.items() if isinstance(value, int | float | str))
    sure = "" if curve.confidence == 1 else f"; with confidence {curve.confidence:g}"
    head = f"{type(curve).__name__}({said}): {curve.method}"
    return f"{head}\n  {curve.assumptions.adjacency}; {curve.holds_for}{sure}"
