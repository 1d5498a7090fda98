"""Pictures of an additive model: what each column adds to the score."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

import numpy as np

from deniable._check import FloatArray, InputError
from deniable.training.encoders import Encoder, Hashed, Levels, Listed, Thermometer
from deniable.training.fitting import Additive
from deniable.training.interactions import LEVELS, Pair

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST = 12  # panels drawn if no columns are named


def draw(
    model: Additive, columns: Any = None, *, output: int = -1, texts: dict[Any, list[str]] | None = None
) -> Figure:
    """Return a figure with one panel per column.

    Parameters
    ----------
    columns
        Names of the columns; without them the twelve whose values matter most.
    output
        Which class's score (several classes only); the last one unless given.
    texts
        {column: list of texts}: labels for hashed columns, whose texts a model does not know.
    """
    import matplotlib.pyplot as plt

    chosen = _chosen(model, columns, output)
    wide = min(len(chosen), 4)
    deep = -(-len(chosen) // wide)
    figure, axes = plt.subplots(deep, wide, figsize=(3.2 * wide, 2.5 * deep), layout="constrained", squeeze=False)
    for ax in axes.ravel()[len(chosen) :]:
        ax.set_axis_off()
    for ax, j in zip(axes.ravel(), chosen, strict=False):
        _panel(ax, model.blocks[j], block(model, j)[:, output], (texts or {}).get(model.blocks[j].name))
        if not isinstance(model.blocks[j], Pair):
            ax.axhline(0.0, color="grey", linewidth=0.6)
        ax.set_title(str(model.blocks[j].name), fontsize=9)
        ax.tick_params(labelsize=7)
    for row in axes:
        row[0].set_ylabel("adds to the score", fontsize=8)
    return figure


def block(model: Additive, j: int) -> FloatArray:
    """Return what each cell of column j adds to the scores, centred over its cells without the missing one."""
    start = int(model.basis.starts[j])
    values = model.cell_scores()[start : start + model.blocks[j].size]
    return np.asarray(values - values[:-1].mean(axis=0))


def _chosen(model: Additive, columns: Any, output: int) -> list[int]:
    names = [encoder.name for encoder in model.blocks]
    if columns is None:
        spread = [float(np.std(block(model, j)[:-1, output])) for j in range(len(names))]
        return [int(j) for j in np.argsort(spread, kind="stable")[::-1][:_MOST]]
    wanted = [columns] if isinstance(columns, str) else list(columns)
    for name in wanted:
        if name not in names:
            near = difflib.get_close_matches(str(name), [str(n) for n in names], n=1)
            raise InputError(
                f"columns names {name!r}, which the model does not have"
                + "".join(f"; did you mean {w!r}?" for w in near)
            )
    if not wanted:
        raise InputError("columns must name at least one column")
    return [names.index(name) for name in wanted]


def _panel(ax: Any, encoder: Encoder | Pair, values: FloatArray, texts: list[str] | None) -> None:
    match encoder:
        case Thermometer():
            ends = np.concatenate(([encoder.low], encoder.edges, [encoder.high]))
            ax.stairs(values[:-1], ends, baseline=None)
            if encoder.low > 0 and encoder.high > 100 * encoder.low:
                ax.set_xscale("log")
        case Levels():
            ax.plot(np.linspace(encoder.low, encoder.high, len(values) - 1), values[:-1])
        case Listed():
            _bars(ax, [*encoder.values, "(other)", "(missing)"], values)
        case Hashed() if texts:
            _bars(ax, texts, values[[encoder.cell(text) for text in texts]])
        case Pair():
            grid = values.reshape(LEVELS + 1, LEVELS + 1)[:LEVELS, :LEVELS]
            most = max(float(np.abs(grid).max()), 1e-12)
            ax.imshow(grid.T, origin="lower", cmap="coolwarm", vmin=-most, vmax=most, aspect="auto")
            ax.set(xticks=[], yticks=[])
            ax.set_xlabel(f"{encoder.names[0]}, from its lowest to its highest quarter", fontsize=7)
        case Hashed():
            ax.bar(np.arange(len(values)), values, width=1.0)
            ax.set_xlabel("cell of the public hash", fontsize=7)


def _bars(ax: Any, labels: list[str], values: FloatArray) -> None:
    ax.barh(np.arange(len(labels)), values)
    ax.set_yticks(np.arange(len(labels)), labels, fontsize=6)
    ax.invert_yaxis()
