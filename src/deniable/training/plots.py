"""Pictures of an additive model: what each column adds to the score."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from deniable._check import FloatArray, InputError
from deniable.tables import column_among, names_of
from deniable.training.additive import Additive
from deniable.training.encoders import Encoder, Levels, Listed, Pair, Thermometer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST = 12  # panels drawn if no columns are named; bars of a panel, the strongest of a long list


def draw(model: Additive, columns: Any = None, dates: Collection[Any] = ()) -> Figure:
    """Return a figure with one panel per column; of several classes, for the last one's score.

    Parameters
    ----------
    columns
        Names of the columns; without them the twelve whose values matter most.
    dates
        Names of the columns whose numbers are days since 1970-01-01.
    """
    import matplotlib.pyplot as plt

    chosen = _choose_columns(model, columns)
    wide = min(len(chosen), 4)
    deep = -(-len(chosen) // wide)
    figure, axes = plt.subplots(deep, wide, figsize=(3.2 * wide, 2.5 * deep), layout="constrained", squeeze=False)
    for ax in axes.ravel()[len(chosen) :]:
        ax.set_axis_off()
    for ax, j in zip(axes.ravel(), chosen, strict=False):
        block, values = model.blocks[j], model.block(j)[:, -1]
        if isinstance(block, Pair):
            _heat_map(ax, block, values)
        elif block.number is not None:
            _line(ax, block.number, values, dated=block.name in dates)
        else:
            _bars(ax, block, values, model.occupied(j))
        ax.set_title(str(block.name), fontsize=9)
        ax.tick_params(labelsize=7)
    figure.supylabel("adds to the score (bars: to the right)", fontsize=8)
    return figure


def _choose_columns(model: Additive, columns: Any) -> list[int]:
    names = [block.name for block in model.blocks]
    if columns is None:
        spread = [model.spread(j) for j in range(len(names))]
        return [int(j) for j in np.argsort(spread, kind="stable")[::-1][:_MOST]]
    wanted = names_of([columns] if isinstance(columns, str) else columns)
    if not wanted:
        raise InputError("columns must name at least one column")
    return [names.index(column_among("columns", name, names)) for name in wanted]


def _heat_map(ax: Any, pair: Pair, values: FloatArray) -> None:
    grid = pair.grid(values)
    most = max(float(np.abs(grid).max()), 1e-12)
    drawn = ax.imshow(grid.T, origin="lower", cmap="coolwarm", vmin=-most, vmax=most, aspect="auto")
    ax.figure.colorbar(drawn, ax=ax).ax.tick_params(labelsize=6)
    ax.set(xticks=[], yticks=[])
    ax.set_xlabel(f"{pair.names[0]}, from its lowest to its highest eighth", fontsize=7)
    ax.set_ylabel(f"{pair.names[1]}, likewise", fontsize=7)


def _line(ax: Any, number: Thermometer | Levels, values: FloatArray, *, dated: bool) -> None:
    if isinstance(number, Levels):
        ax.plot(np.linspace(number.low, number.high, number.size - 1), values[: number.size - 1])
    else:
        ends, levels, wide = number.drawn(values)
        ax.stairs(levels, ends, baseline=None)
        ax.set_xscale("log" if wide else "linear")
    ax.axhline(0.0, color="grey", linewidth=0.6)
    if dated:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        places = AutoDateLocator(minticks=3, maxticks=5)  # type: ignore[no-untyped-call]
        ax.xaxis.set_major_locator(places)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(places))  # type: ignore[no-untyped-call]


def _bars(ax: Any, encoder: Encoder, values: FloatArray, known: Any) -> None:
    """Draw the strongest cells of words as bars: those of a list in its order, or those that records are in."""
    listed = encoder.word.values if isinstance(encoder.word, Listed) else ()
    names = (*listed, "(other)") if listed else map("cell {}".format, range(encoder.size - 1))
    labels = [*names, "(missing)"]
    cells = np.union1d(np.arange(len(listed)), known)
    if len(cells) > _MOST:
        strongest = cells[np.argsort(-np.abs(values[cells]), kind="stable")[:_MOST]]
        ax.set_xlabel(f"{_MOST} strongest of {len(cells)}", fontsize=7)
        cells = strongest[np.argsort(-values[strongest], kind="stable")]
    ax.barh(np.arange(len(cells)), values[cells])
    ax.set_yticks(np.arange(len(cells)), [labels[k][:24] for k in cells], fontsize=6)
    ax.axvline(0.0, color="grey", linewidth=0.6)
    ax.invert_yaxis()
