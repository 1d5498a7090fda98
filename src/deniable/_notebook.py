"""Results as a notebook shows them: a small table, every text in it escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


def curve_rows(curve: Tradeoff) -> list[tuple[str, str]]:
    """Return the usual upper bounds of a curve in words."""
    rows = [("Advantage", f"≤ {shown(curve.advantage(), 'rate', 'upper')}")]
    for rate in USUAL_FPRS:
        found = shown(curve.tpr(rate), "rate", "upper")
        rows.append((f"TPR at FPR {shown(rate, 'rate', 'nearest')}", f"≤ {found}"))
    return rows
