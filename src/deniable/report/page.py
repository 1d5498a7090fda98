"""One self-contained page, and its pictures as SVG: no request leaves the machine that opens it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any

import numpy as np

from deniable._files import plain
from deniable._optional import missing
from deniable._shown import LISTED, percent, shown
from deniable.report.decision import Decision, Rule
from deniable.report.meta import FIELDS
from deniable.report.model import Assessment, Bars, Curve, Grid, Number, Series, cell_text

WIDTH, HEIGHT = 520.0, 340.0
LEFT, RIGHT, TOP, BOTTOM = 70.0, 18.0, 10.0, 46.0
_CAP = 3.5  # half the width of the end of an interval's bar


def to_html(assessment: Assessment) -> str:
    """Return the page: inline styles, drawings and data; numbers equal those of ``to_json``."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
    except ImportError as error:
        raise missing(error, "A page") from error

    environment = Environment(
        loader=PackageLoader("deniable.report", "."),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cell"] = cell_text
    environment.filters["rate"] = percent
    most = _most_right(assessment)
    decision, unbroken = assessment.decision, assessment.status != "violated" and not assessment.assumptions.insecure
    page = environment.get_template("page.html.j2").render(
        a=assessment,
        d=decision,
        tone=assessment.tone,
        rules=[_rule(rule, decision) for rule in decision.rules] if decision else [],
        meta=[(FIELDS.get(key, key), value) for key, value in assessment.meta.items()],
        game=assessment.threat_model,
        roc=roc_picture(assessment.curves, proven=unbroken),
        pictures={series.key: series_picture(series) for part in assessment.sections for series in part.series},
        most=most,
        right=0 if most is None else min(100, math.ceil(round(100 * (most.value or 1.0), 6))),
        barred={bars.key: bars_picture(bars) for part in assessment.sections for bars in part.bars},
        proven=unbroken and any(curve.kind == "provable upper bound" for curve in assessment.curves),
        measured=any(curve.low is not None for curve in assessment.curves),
        infinity=math.inf,
        data=_script_safe(assessment.to_dict()),
    )
    return page.lstrip()


def _rule(rule: Rule, decision: Decision) -> dict[str, Any]:
    """A rule as a person reads it: what was found is rounded to the side of the truth on which it lies."""
    limit = found = "–"
    if rule.limit is not None:
        limit = f"{rule.limit:g}" if rule.key == "utility_loss" else percent(rule.limit)
    if rule.found is not None and rule.key == "utility_loss":
        found = f"≈ {max(round(rule.found, 3), 0.0):g}"  # its interval stands in the reason
    elif rule.found is not None:
        lower = rule.number is not None and rule.number.startswith("attack")
        found = f"{'≥' if lower else '≤'} {shown(rule.found, 'rate', 'lower' if lower else 'upper')}"
    tone = {"met": "good", "missed": "bad", "not decided": "open"}.get(rule.outcome, "none")
    words = {"limit": limit, "found": found, "tone": tone, "decides": rule.key == decision.decided_by}
    return {"label": rule.label, "outcome": rule.outcome, **words}


def _script_safe(value: Any) -> str:
    """Return JSON that can stand inside a script element."""
    text = json.dumps(plain(value), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@dataclass(frozen=True)
class Picture:
    """One picture: the drawing, its legend (style class and words) and the same numbers as a table."""

    svg: str
    legend: tuple[tuple[str, str], ...]
    table: Grid


@dataclass(frozen=True)
class _Axis:
    """From numbers to places: ``low`` to ``high`` on ``start`` to ``end``, logarithmic or not."""

    low: float
    high: float
    log: bool
    start: float
    end: float
    dates: bool = False
    bare: bool = False  # without lines and numbers

    def at(self, value: float) -> float:
        low, high = self._scaled(self.low), self._scaled(self.high)
        share = (self._scaled(min(max(value, self.low), self.high)) - low) / (high - low)
        return self.start + share * (self.end - self.start)

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def ticks(self) -> list[float]:
        from matplotlib.ticker import LogLocator, MaxNLocator

        places: Any = []
        if self.dates:
            from matplotlib.dates import AutoDateLocator, num2date  # a second to import: only where there are dates

            ends = num2date([self.low, self.high])  # type: ignore[no-untyped-call]
            places = AutoDateLocator(minticks=3, maxticks=6).tick_values(*ends)  # type: ignore[no-untyped-call]
        elif self.log:
            subs = (1.0,) if self.high > 99 * self.low else (1.0, 2.0, 5.0)
            places = LogLocator(subs=subs, numticks=99).tick_values(self.low, self.high)
        elif not self.bare:
            places = MaxNLocator(6, steps=[1, 2, 5, 10]).tick_values(self.low, self.high)
        slack = 1e-9 * (self.high - self.low)
        return [float(place) for place in places if self.low - slack <= place <= self.high + slack]

    def tick(self, value: float) -> str:
        return _day(value).removesuffix("-01-01") if self.dates else _tick(value)


_across = partial(_Axis, start=LEFT, end=WIDTH - RIGHT)
_up = partial(_Axis, start=HEIGHT - BOTTOM, end=TOP)


def _day(value: float) -> str:
    return str(np.datetime64(0, "D") + round(value))


def roc_picture(curves: Sequence[Curve], *, proven: bool = True) -> Picture | None:
    """Return the log–log ROC: bounds, measured intervals and the diagonal of guessing; None if there is no curve.

    A measured interval that reaches above the one bound of the mechanism is drawn up to it: what lies beyond it is
    excluded by the proof. Where an attack is above it beyond its error (not ``proven``), the whole interval is drawn.
    """
    if not curves:
        return None
    lowest = 100 * min(min(x for x in curve.fpr if x > 0) for curve in curves)
    x, y = _across(lowest, 100.0, True), _up(lowest, 100.0, True)
    parts = [_frame(x, y, "false positive rate (%)", "true positive rate (%)")]
    parts.append(_path([lowest, 100.0], [lowest, 100.0], x, y, "guess"))
    drawn = [curve for curve in curves if curve.low is None]
    legend = [("guess", "guessing"), *((_style(i), curve.label) for i, curve in enumerate(drawn))]
    for i, curve in reversed(list(enumerate(drawn))):
        parts.append(_path([100 * v for v in curve.fpr], [100 * v for v in curve.tpr], x, y, _style(i)))
    roof = next((c for c in drawn if proven and (c.key, c.kind) == ("bound", "provable upper bound")), None)
    for curve in curves:
        if curve.low is not None:
            parts.append(_bars(curve, roof, x, y))
            legend.append(("measured", curve.label))
    return Picture(_svg(parts), tuple(legend), _roc_table(curves))


def series_picture(series: Series) -> Picture:
    """Return one line picture."""
    values = [v for line in series.lines.values() for v in line if _drawable(v, series.log_y)]
    places = [v for v in series.x if _drawable(v, series.log_x)]
    x = _across(*_ends(places, series.log_x), series.log_x, dates=series.dates)
    y = _up(*_ends(values, series.log_y), series.log_y)
    parts = [_frame(x, y, series.x_label, series.y_label)]
    legend = []
    for i, (name, line) in enumerate(series.lines.items()):
        parts.append(_path(series.x, line, x, y, _style(i)))
        legend.append((_style(i), name))
    table = Grid(f"{series.key}-table", series.title, [series.x_label, *series.lines], _rows(series))
    return Picture(_svg(parts), tuple(legend) if len(legend) > 1 else (), table)


def _most_right(a: Assessment) -> Number | None:
    """The proven accuracy at even odds; None where there is none."""
    found = a.numbers.get("bound.accuracy")
    proven = found is not None and found.kind == "provable upper bound" and found.value is not None
    return found if proven and not a.assumptions.insecure else None


_ROW, _LABELS, _LETTERS = 24.0, 150.0, 22  # of a picture of bars: height of a row, width and letters of a label


def bars_picture(bars: Bars) -> str:
    """Return a row for each category: its value as a dot, limits against noise as a line, wider ones as a pale one.

    Rows begin with a bar where the axis begins at 0.
    """
    ends = [value for value in (*bars.low, *bars.high, *bars.values, *bars.wide_low, *bars.wide_high)]
    low, high = _ends(ends, False)
    if low == 0.0 and high <= 0.0:
        high = 1.0
    height = TOP + _ROW * len(bars.labels) + BOTTOM
    x = _across(low, high, False, start=_LABELS, dates=bars.dates)
    parts = [_frame(x, _up(0, 1, False, start=height - BOTTOM, bare=True), bars.x_label, "", height)]
    for i, (label, value) in enumerate(zip(bars.labels, bars.values, strict=True)):
        at = TOP + _ROW * (i + 0.5)
        brief = label if len(label) <= _LETTERS else f"{label[: _LETTERS - 1]}…"
        parts.append(f'<text x="{_LABELS - 6:.1f}" y="{at + 4:.1f}" text-anchor="end">{escape(brief)}</text>')
        if low <= 0 <= high and not bars.dates:
            start, end = sorted((x.at(0), x.at(value)))
            parts.append(f'<rect class="bar" x="{start:.1f}" width="{end - start:.1f}" y="{at - 7:.1f}" height="14"/>')
        for style, below, above in (("wide", bars.wide_low, bars.wide_high), ("noise", bars.low, bars.high)):
            if below:
                parts.append(
                    f'<line class="{style}" x1="{x.at(below[i]):.1f}" x2="{x.at(above[i]):.1f}" y1="{at:.1f}" '
                    f'y2="{at:.1f}"/>'
                )
        parts.append(f'<circle class="dot" cx="{x.at(value):.1f}" cy="{at:.1f}" r="3.5"/>')
    return _svg(parts, height)


def _style(i: int) -> str:
    return "bound" if i == 0 else f"other other{min(i, 3)}"


def _drawable(value: float | None, log: bool) -> bool:
    return value is not None and math.isfinite(value) and (value > 0 or not log)


def _ends(values: Sequence[float], log: bool) -> tuple[float, float]:
    if not values:
        return (0.1, 1.0) if log else (0.0, 1.0)
    low, high = min(values), max(values)
    if low == high:
        return (low / 2, high * 2) if log else (low - 0.5, high + 0.5)
    return (low, high) if log else (min(low, 0.0) if low > 0 and low < 0.3 * high else low, high)


def _frame(x: _Axis, y: _Axis, x_title: str, y_title: str, height: float = HEIGHT) -> str:
    """Grid lines with their numbers, and the titles of the axes."""
    parts = []
    for value in x.ticks():
        at = x.at(value)
        parts.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{y.end:.1f}" y2="{y.start:.1f}"/>')
        parts.append(f'<text x="{at:.1f}" y="{y.start + 18:.1f}" text-anchor="middle">{x.tick(value)}</text>')
    for value in y.ticks():
        at = y.at(value)
        parts.append(f'<line class="grid" x1="{x.start:.1f}" x2="{x.end:.1f}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(f'<text x="{x.start - 6:.1f}" y="{at + 4:.1f}" text-anchor="end">{_tick(value)}</text>')
    middle, side = (x.start + x.end) / 2, (y.start + y.end) / 2
    parts.append(
        f'<text class="axis" x="{middle:.1f}" y="{height - 8:.1f}" text-anchor="middle">{escape(x_title)}</text>'
    )
    parts.append(
        f'<text class="axis" transform="translate(13 {side:.1f}) rotate(-90)" text-anchor="middle">'
        f"{escape(y_title)}</text>"
    )
    return "".join(parts)


def _tick(value: float) -> str:
    if value != 0 and not 1e-5 <= abs(value) < 1e6:
        return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")
    return f"{value:.6f}".rstrip("0").rstrip(".") if abs(value) < 1 else f"{value:,.6g}"


def _path(xs: Sequence[float], ys: Sequence[float], x: _Axis, y: _Axis, style: str) -> str:
    """A line through the points that can be drawn; below the axis it runs along it."""
    points = [(a, b) for a, b in zip(xs, ys, strict=True) if _drawable(a, x.log) and b is not None and math.isfinite(b)]
    if not points:
        return ""
    steps = " ".join(f"{x.at(a):.1f},{y.at(b):.1f}" for a, b in points)
    return f'<polyline class="line {style}" points="{steps}"/>'


def _bars(curve: Curve, roof: Curve | None, x: _Axis, y: _Axis) -> str:
    """Intervals as bars, their lower end as a dot: the attack showed at least this."""
    parts = []
    for at, low, high in zip(curve.fpr, curve.low or [], curve.high or [], strict=True):
        if not (high < 1 or low > 0):
            continue
        top = high if roof is None else min(high, float(np.interp(at, roof.fpr, roof.tpr)))
        place, lower, upper = x.at(100 * at), y.at(100 * low) if low > 0 else y.start, y.at(100 * max(top, low))
        words = f"FPR {100 * at:.3g} %: {100 * low:.3g} % to {100 * high:.3g} %"
        parts.append(
            f'<g class="measured"><title>{words}</title>'
            f'<line x1="{place:.1f}" x2="{place:.1f}" y1="{lower:.1f}" y2="{upper:.1f}"/>'
            + (f'<circle cx="{place:.1f}" cy="{lower:.1f}" r="3"/>' if low > 0 else "")
            + (f'<line x1="{place - _CAP:.1f}" x2="{place + _CAP:.1f}" y1="{upper:.1f}" y2="{upper:.1f}"/>'
               if top == high else "")
            + "</g>"
        )  # fmt: skip
    return "".join(parts)


def _svg(parts: list[str], height: float = HEIGHT) -> str:
    return f'<svg viewBox="0 0 {WIDTH:g} {height:g}" aria-hidden="true" focusable="false">{"".join(parts)}</svg>'


def _roc_table(curves: Sequence[Curve]) -> Grid:
    """True positive rates at powers of ten; of a bound that of the next point to the right, which is no less."""
    lowest = min(min(x for x in curve.fpr if x > 0) for curve in curves)
    decades = [10.0**k for k in range(math.ceil(math.log10(lowest) - 1e-9), 1)]
    rows = [[f"{100 * rate:.3g} %", *(_cell(curve, rate) for curve in curves)] for rate in decades]
    return Grid(
        "roc-table", "True positive rates of the picture", ["false positive rate", *(c.label for c in curves)], rows
    )


def _cell(curve: Curve, rate: float) -> str:
    if curve.low is None:
        at = next((i for i, x in enumerate(curve.fpr) if x >= rate * (1 - 1e-12)), len(curve.fpr) - 1)
        return f"≤ {shown(curve.tpr[at], 'rate', 'upper')}"
    limits = zip(curve.fpr, curve.low, curve.high or [], strict=True)
    here = [(low, high) for x, low, high in limits if abs(x / rate - 1) < 1e-9]
    return f"{shown(here[0][0], 'rate', 'lower')} to {shown(here[0][1], 'rate', 'upper')}" if here else "–"


def _rows(series: Series) -> list[list[str]]:
    ends = max(len(series.x) - 1, 0)
    chosen = np.unique(np.linspace(0, ends, LISTED).round().astype(int)).tolist() if series.x else []
    place = _day if series.dates else "{:.4g}".format
    sides = ["lower" if name.startswith("lower") or "remains" in name else "upper" for name in series.lines]
    lines = [*zip(series.lines.values(), sides, strict=True)]  # most are bounds: none is rounded to the unsafe side
    return [[place(series.x[i]), *(shown(line[i], "number", side) for line, side in lines)] for i in chosen]
