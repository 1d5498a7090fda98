"""The pictures of a page, as Plotly figures without colours of their own: the page paints them light or dark."""

from __future__ import annotations

import math
from typing import Any

from deniable.report.model import Assessment, Curve, Series

_DASHES = ["solid", "dash", "dashdot", "dot", "longdash"]


def roc_figure(assessment: Assessment) -> dict[str, Any] | None:
    """Return the log–log ROC: bounds, measured bands and the diagonal; None if there is no curve."""
    curves = assessment.curves
    if not curves:
        return None
    lowest = min(min(x for x in curve.fpr if x > 0) for curve in curves)
    ends = [math.log10(100 * lowest), 2.03]  # a little above 100 %
    traces: list[dict[str, Any]] = [
        _line("guessing", [100 * lowest, 100.0], [100 * lowest, 100.0], dash="dot", role="grid")
    ]
    bounds = 0
    for curve in curves:
        if curve.low is None:
            traces.append(_line(curve.label, _percent(curve.fpr), _percent(curve.tpr), dash=_DASHES[bounds % 5],
                                role="bound" if bounds == 0 else "comparison"))  # fmt: skip
            bounds += 1
        else:
            traces.append(_band(curve))
    return {
        "data": traces,
        "layout": {
            "xaxis": _rate_axis("false positive rate (%)", ends),
            "yaxis": _rate_axis("true positive rate (%)", ends),
            "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02},
        },
    }


def _rate_axis(title: str, ends: list[float]) -> dict[str, Any]:
    return {"type": "log", "title": {"text": title}, "exponentformat": "none", "dtick": 1, "range": ends}


def series_figure(series: Series) -> dict[str, Any]:
    """Return one line picture."""
    return {
        "data": [
            _line(name, series.x, values, dash=_DASHES[i % 5], role="bound" if i == 0 else "comparison")
            for i, (name, values) in enumerate(series.lines.items())
        ],
        "layout": {
            "xaxis": {"type": "log" if series.log_x else "linear", "title": {"text": series.x_label}},
            "yaxis": {"type": "log" if series.log_y else "linear", "title": {"text": series.y_label}},
            "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02},
        },
    }


def _line(name: str, x: list[float], y: list[float], *, dash: str, role: str) -> dict[str, Any]:
    return {"type": "scatter", "mode": "lines", "name": name, "x": x, "y": y, "line": {"dash": dash}, "meta": role,
            "hovertemplate": "%{x:.4~g} → %{y:.4~g}<extra>" + name + "</extra>"}  # fmt: skip


def _band(curve: Curve) -> dict[str, Any]:
    """Measured rates with their intervals as error bars (a point whose interval is unknown is left out)."""
    low, high = curve.low or [], curve.high or []
    kept = [i for i, high_end in enumerate(high) if high_end < 1 or low[i] > 0]
    middle = [100 * curve.tpr[i] for i in kept]
    return {
        "type": "scatter", "mode": "markers", "name": curve.label, "meta": "measured",
        "x": [100 * curve.fpr[i] for i in kept], "y": middle,
        "error_y": {
            "type": "data", "symmetric": False,
            "array": [100 * high[i] - m for i, m in zip(kept, middle, strict=True)],
            "arrayminus": [m - 100 * low[i] for i, m in zip(kept, middle, strict=True)],
        },
        "hovertemplate": "%{x:.4~g} → %{y:.4~g}<extra>" + curve.label + "</extra>",
    }  # fmt: skip


def _percent(values: list[float]) -> list[float]:
    return [100 * value for value in values]
