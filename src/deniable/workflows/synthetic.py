"""From a synthesizer to an assessment: curve, account, what was counted and what was not; released numbers only."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import ndtri

from deniable._shown import plural, shown
from deniable.report import Asked, Assessment, Bars, Grid, Number, Section, Series
from deniable.synthesis import Marginal, PrivateSynthesizer
from deniable.workflows.private_model import assess_fit

_PICTURES, _ROWS = 6, 20  # columns drawn; rows of the tables of words and of pairs
_Z = float(ndtri(0.95))  # of error bars that hold nine times in ten


def assess_synthesizer(model: PrivateSynthesizer, asked: Asked) -> Assessment:
    """Return the assessment of a fitted :class:`deniable.PrivateSynthesizer`; it may be published."""
    access = "the synthesizer, any number of its rows, and every noisy count that it was made from"
    made = assess_fit(model, asked, "A made-up table", access, _table)
    return replace(made, headline=f"{made.headline} Rows are draws from a model, about nobody.")


def _table(model: PrivateSynthesizer) -> Section:
    """What the rows follow: pictures of released counts with error bars, pairs that were counted, and the rest."""
    units = plural(model.certificate_.unit)
    alone = [one for one in model.marginals_ if len(one.columns) == 1]
    pairs = [one for one in model.marginals_ if len(one.columns) == 2]
    numbers = [c for c in model.columns_ if c.numbers > 1][:_PICTURES]
    least = max((float(one.sds.max()) for one in pairs), default=0.0) * _Z
    rest = len(list(combinations(alone, 2))) - len(pairs)
    found = Number("synthesis.n", f"{units} in the table, about", model.n_, "A noisy count.", "estimate", "count",
                   low=model.n_ - _Z * model.n_sd_, high=model.n_ + _Z * model.n_sd_)  # fmt: skip
    labels = sum(model.certificate_.shares()[f"model of {name}"] for name in model.labels_)
    words = _words(model, alone, units)
    notes = (
        f"{rest} of {rest + len(pairs)} pairs of columns were not counted: they are independent given the others, so "
        "combinations may appear that cannot be.",
        f"Subgroups of fewer than about {least:.0f} {units} in a pair are not represented: noise hides them.",
        "Statistics of many made-up rows are those of the model: use the intervals of released counts instead.",
        "The number of rows equal to real ones is not protected: it must never be printed.",
        *[f"Labels are drawn by a private classifier, which took {shown(labels, 'rate', 'nearest', 2)} of the "
          "budget; at the same risk one that is alone has all of it."] * bool(labels),
        *(f"{name}: {held}; running numbers stand in the place of words." for name, held in model.surrogates_.items()),
    )  # fmt: skip
    return Section(
        "synthesis",
        "What the made-up rows follow",
        f"Rows are drawn from the law of largest entropy with these noisy counts: {len(alone)} columns, {len(pairs)} "
        "pairs of columns. Pictures and tables show what was released, not the records.",
        (found,),
        series=tuple(map(_picture, numbers, range(len(numbers)))),
        bars=words[:_PICTURES],
        grids=(
            Grid("pairs", f"Pairs that were counted, {min(_ROWS, len(pairs))} of {len(pairs)}; error, nine in ten",
                 ["pair", "cells", "error"],
                 [[" and ".join(map(str, one.columns)), int(one.counts.size), f"± {round(_Z * float(one.sds.max())):,}"]
                  for one in pairs][:_ROWS]),
        ),
        notes=notes,
    )  # fmt: skip


def _words(model: PrivateSynthesizer, alone: list[Marginal], units: str) -> tuple[Bars, ...]:
    """Draw how many have each word, of each column that has some, with error bars."""
    made = []
    for place, (column, one) in enumerate(zip(model.columns_, alone, strict=True)):
        counts, errors = one.counts, _Z * one.sds
        known = [i for i in range(column.numbers, len(counts)) if column.words or counts[i] > errors[i]]
        known = sorted(known, key=lambda i: -counts[i])[:_ROWS]
        low, high = np.maximum(counts - errors, 0.0)[known].tolist(), (counts + errors)[known].tolist()
        title = f"How many {units} have each word of {column.name}; dark lines, its noise (nine in ten)."
        labels = [str(one.cells[0][i]) for i in known]
        made.append(Bars(f"words{place}", title, str(column.name), labels, counts[known].tolist(), low, high))
    return tuple(bars for bars in made if bars.labels)


def _picture(column: Any, place: int) -> Series:
    """Draw counts of equally many neighbouring cells, at most forty, with error bars."""
    bounds, parts = column.bounds, np.array_split(np.arange(column.numbers), min(column.numbers, 40))
    middle = [float((bounds[part[0]] + bounds[part[-1] + 1]) / 2) for part in parts]
    width = np.array([bounds[part[-1] + 1] - bounds[part[0]] for part in parts])
    each = np.array([column.counts[part].sum() for part in parts]) / width
    noise = _Z * np.array([np.linalg.norm(column.sds[part]) for part in parts]) / width
    lines = {"count": each, "lower": each - noise, "upper": each + noise}
    title, drawn = f"Noisy counts of {column.name}, with error bars (nine in ten).", {k: [*v] for k, v in lines.items()}
    return Series(f"made{place}", title, str(column.name), "for a width of 1", middle, drawn, dates=column.dates)
