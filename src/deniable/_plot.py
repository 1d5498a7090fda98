"""Small drawing helpers shared by every room; matplotlib is imported only when something is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from deniable._check import FloatArray
from deniable._optional import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def new_axes() -> Axes:
    """Return fresh axes on a figure of their own."""
    pyplot = require("matplotlib.pyplot", purpose="a plot")
    axes: Axes = pyplot.subplots(figsize=(5.2, 4.2), layout="constrained")[1]
    return axes


def draw_roc(
    tpr: Callable[[FloatArray], FloatArray],
    *,
    ax: Axes | None = None,
    label: str | None = None,
    smallest_fpr: float = 1e-6,
) -> Axes:
    """Draw a true positive rate against the false positive rate, both in percent, on log–log axes."""
    fpr = np.geomspace(smallest_fpr, 1.0, 400)
    return draw_curves([(label or "", fpr.tolist(), tpr(fpr).tolist())], ax=ax)


def draw_curves(curves: Sequence[tuple[str, Sequence[float], Sequence[float]]], *, ax: Axes | None = None) -> Axes:
    """Draw ROC curves (label, fpr, tpr), in percent on log–log axes; empty axes also get the diagonal."""
    axes = ax if ax is not None else new_axes()
    empty = not axes.lines
    for label, fpr, tpr in curves:
        axes.loglog(100 * np.asarray(fpr), 100 * np.asarray(tpr), label=label)
    if empty:
        ends = np.array([min(min(fpr) for _, fpr, _ in curves), 1.0])
        axes.loglog(100 * ends, 100 * ends, linestyle=":", color="grey", label="guessing")
        axes.set(xlabel="false positive rate (%)", ylabel="true positive rate (%)")
    axes.legend()
    return axes
