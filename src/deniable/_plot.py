"""Small drawing helpers shared by every room; matplotlib is imported only when something is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from deniable import testing
from deniable._check import FloatArray, InputError
from deniable._optional import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

T = TypeVar("T")


def new_axes() -> Axes:
    """Return fresh axes on a figure of their own."""
    pyplot = require("matplotlib.pyplot", purpose="a plot")
    axes: Axes = pyplot.subplots(figsize=(5.2, 4.2), layout="constrained")[1]
    return axes


def draw_rocs(
    tprs: Sequence[Callable[[FloatArray], FloatArray]], labels: Sequence[str], *, ax: Axes | None = None
) -> Axes:
    """Draw true positive rates against the false positive rate, both in percent, on log–log axes."""
    fpr = np.geomspace(1e-6, 1.0, 400)
    drawn = [(label, fpr.tolist(), tpr(fpr).tolist()) for label, tpr in zip(labels, tprs, strict=True)]
    return draw_curves(drawn, ax=ax)


def marked(drawn: T, insecure: bool) -> T:
    """Return a picture, with the mark of a test's noise as its title where ``insecure`` says so."""
    if insecure:
        getattr(drawn, "suptitle", getattr(drawn, "set_title", None))(testing.INSECURE, wrap=True)  # type: ignore[misc]
    return drawn


def labels_of(methods: Sequence[str], label: str | Sequence[str] | None) -> list[str]:
    """A name for each curve: what was given, or its method, numbered where two are the same."""
    if label is None:
        return [f"{i}: {m}" if methods.count(m) > 1 else m for i, m in enumerate(methods, 1)]
    labels = [label] if isinstance(label, str) else list(label)
    if len(labels) != len(methods):
        raise InputError(f"label must hold one text for each of the {len(methods)} curves, got {len(labels)}")
    return labels


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
