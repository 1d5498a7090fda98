"""Pictures of an additive model: what each column adds to the score."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from deniable._check import FloatArray, InputError, IntArray
from deniable.training.additive import Additive
from deniable.training.encoders import Encoder, Hashed, Levels, Listed, Pair, Thermometer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST = 12  # panels drawn if no columns are named
_BARS = 12  # bars of a panel, the strongest of a long list
_LONGEST = 24  # characters of a label


def draw(
    model: Additive,
    columns: Any = None,
    *,
    output: int = -1,
    texts: dict[Any, list[str]] | None = None,
    dates: Collection[Any] = (),
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
    dates
        Names of the columns whose numbers are days since 1970-01-01 (``plot`` knows them).
    """
    import matplotlib.pyplot as plt

    chosen = _chosen(model, columns, output)
    wide = min(len(chosen), 4)
    deep = -(-len(chosen) // wide)
    figure, axes = plt.subplots(deep, wide, figsize=(3.2 * wide, 2.5 * deep), layout="constrained", squeeze=False)
    for ax in axes.ravel()[len(chosen) :]:
        ax.set_axis_off()
    for ax, j in zip(axes.ravel(), chosen, strict=False):
        drawn = model.blocks[j]
        known, words = model.occupied(j), (texts or {}).get(drawn.name)
        _panel(ax, drawn, model.block(j)[:, output], known, words)
        if not isinstance(drawn, Pair) and drawn.bins:
            ax.axhline(0.0, color="grey", linewidth=0.6)
        if drawn.name in dates:
            _show_dates(ax)
        ax.set_title(str(drawn.name), fontsize=9)
        ax.tick_params(labelsize=7)
    figure.supylabel("adds to the score (bars: to the right)", fontsize=8)
    return figure


def _chosen(model: Additive, columns: Any, output: int) -> list[int]:
    names = [encoder.name for encoder in model.blocks]
    if columns is None:
        spread = [model.spread(j, output) for j in range(len(names))]
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


def _show_dates(ax: Any) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    places = AutoDateLocator(minticks=3, maxticks=5)  # type: ignore[no-untyped-call]
    ax.xaxis.set_major_locator(places)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(places))  # type: ignore[no-untyped-call]


def _panel(ax: Any, encoder: Encoder | Pair, values: FloatArray, known: IntArray, texts: list[str] | None) -> None:
    """Draw one column: its bins where it has numbers, else its words."""
    part = encoder if isinstance(encoder, Pair) else encoder.number or encoder.word
    match part:
        case Thermometer():
            ends, levels, wide = part.drawn(values)
            ax.stairs(levels, ends, baseline=None)
            if wide:
                ax.set_xscale("log")
            else:
                ax.locator_params(axis="x", nbins=5)
        case Levels():
            ax.plot(np.linspace(part.low, part.high, part.size - 1), values[: part.size - 1])
        case Listed():
            labels = [*part.values, "(other)", "(missing)"]
            cells = [cell for cell in range(len(labels)) if cell < len(part.values) or cell in known]
            _bars(ax, [labels[cell] for cell in cells], values[cells])
        case Hashed() if texts:
            _bars(ax, texts, values[[part.cell(text) for text in texts]])
        case Pair():
            grid = part.grid(values)
            most = max(float(np.abs(grid).max()), 1e-12)
            drawn = ax.imshow(grid.T, origin="lower", cmap="coolwarm", vmin=-most, vmax=most, aspect="auto")
            ax.figure.colorbar(drawn, ax=ax).ax.tick_params(labelsize=6)
            ax.set(xticks=[], yticks=[])
            ax.set_xlabel(f"{part.names[0]}, from its lowest to its highest eighth", fontsize=7)
            ax.set_ylabel(f"{part.names[1]}, likewise", fontsize=7)
        case Hashed():
            labels = [*(f"cell {cell}" for cell in range(part.cells)), "(missing)"]
            _bars(ax, [labels[cell] for cell in known], values[known])
            ax.set_xlabel("cells of the public hash (texts= names them)", fontsize=7)


def _bars(ax: Any, labels: list[str], values: FloatArray) -> None:
    """Draw the strongest terms as bars, in the order of the list, those of a long list by size."""
    shown = np.arange(len(labels))
    if len(labels) > _BARS:
        strongest = np.argsort(-np.abs(values), kind="stable")[:_BARS]
        shown = strongest[np.argsort(-values[strongest], kind="stable")]
        ax.set_xlabel(f"{_BARS} strongest of {len(labels)}", fontsize=7)
    ax.barh(np.arange(shown.size), values[shown])
    ax.set_yticks(np.arange(shown.size), [_short(labels[i]) for i in shown], fontsize=6)
    ax.axvline(0.0, color="grey", linewidth=0.6)
    ax.invert_yaxis()


def _short(label: str) -> str:
    return label if len(label) <= _LONGEST else f"{label[: _LONGEST - 1]}…"
