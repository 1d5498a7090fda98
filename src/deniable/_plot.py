"""Small drawing helpers shared by every room; matplotlib is imported only when something is drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from deniable._check import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def new_axes() -> Axes:
    """Return fresh axes on a figure of their own."""
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(5.2, 4.2), layout="constrained")[1]


def draw_roc(
    tpr: Callable[[FloatArray], FloatArray],
    *,
    ax: Axes | None = None,
    label: str | None = None,
    smallest_fpr: float = 1e-6,
) -> Axes:
    """Draw a true positive rate against the false positive rate, both in percent, on log–log axes."""
    axes = ax if ax is not None else new_axes()
    fpr = np.geomspace(smallest_fpr, 1.0, 400)
    axes.loglog(100 * fpr, 100 * tpr(fpr), label=label)
    if ax is None:
        axes.loglog(100 * fpr, 100 * fpr, linestyle=":", color="grey", label="guessing")
        axes.set(xlabel="false positive rate (%)", ylabel="true positive rate (%)")
    axes.legend()
    return axes
