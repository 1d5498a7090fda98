"""Released counts with error bars, and intervals of counts that somebody asks for later: they cost nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from pandas.api.types import is_scalar
from scipy.special import ndtri

from deniable._check import FloatArray, InputError, IntArray, number
from deniable.synthesis.columns import OTHER, MadeColumn
from deniable.synthesis.pairs import Counted
from deniable.tables import DATE, NUMBER, ColumnSchema, few, read_cell, read_cells, spelled

MISSING_CELL = "(missing)"
_OWN = 0.9  # of the chance of failure: the counts of the pair itself; the rest is of what bounds any pair


@dataclass(frozen=True, eq=False)
class Marginal:
    """Noisy counts of one column, or of a pair of columns.

    Attributes
    ----------
    columns
        The names.
    cells
        For each column, what its cells are, in words.
    counts
        As released, one axis a column. They may be below 0.
    sds
        The standard deviations of the noise, of the same shape.

    Examples
    --------
    >>> import deniable as dn
    >>> import numpy as np
    >>> made = dn.PrivateSynthesizer(advantage=0.5).fit(np.random.default_rng(0).normal(size=(1000, 2)))
    >>> [one.columns for one in made.marginals_[:2]]
    [('0',), ('1',)]
    """

    columns: tuple[Any, ...]
    cells: tuple[tuple[str, ...], ...]
    counts: FloatArray
    sds: FloatArray


@dataclass(frozen=True)
class CountInterval:
    """How many units there are: ``estimate``, and limits that hold with chance ``confidence``, at least.

    Examples
    --------
    >>> import deniable as dn
    >>> import pandas as pd
    >>> table = {"age": [20, 40] * 500, "ill": ["no", "yes"] * 500}
    >>> made = dn.PrivateSynthesizer(advantage=0.9).fit(pd.DataFrame(table))
    >>> found = made.intervals({"age": (30, 50), "ill": "yes"})
    >>> found.low <= found.estimate <= found.high
    True
    """

    estimate: float
    low: float
    high: float
    confidence: float


def cell_names(column: MadeColumn) -> tuple[str, ...]:
    """Return what the cells of a column are, in words."""
    axis, ends = (DATE if column.dates else NUMBER), column.bounds.tolist()
    texts = [str(spelled(axis, float(end))) for end in ends]
    numbers = texts[:-1] if column.single else [f"{a} to below {b}" for a, b in pairwise(texts)]
    return (*numbers, *column.words, MISSING_CELL)


def marginals_of(columns: Sequence[MadeColumn], pairs: Sequence[Counted]) -> tuple[Marginal, ...]:
    """Return the counts of all columns by fine cells, then of pairs by groups, as they were released."""
    names = [cell_names(column) for column in columns]
    groups = [_group_names(column, own) for column, own in zip(columns, names, strict=True)]
    alone = [Marginal((c.name,), (own,), c.counts, c.sds) for c, own in zip(columns, names, strict=True)]
    both = [
        Marginal((columns[a].name, columns[b].name), (groups[a], groups[b]), counts, np.full(counts.shape, sd))
        for (a, b), counts, sd in pairs
    ]
    return (*alone, *both)


def _group_names(column: MadeColumn, names: tuple[str, ...]) -> tuple[str, ...]:
    out = []
    for group in range(column.size):
        inside = np.flatnonzero(column.groups == group)
        numbers = [names[i] for i in inside if i < column.numbers]
        span = [numbers[0] if len(numbers) == 1 else f"{numbers[0]} … {numbers[-1]}"] if numbers else []
        words = [names[i] for i in inside if i >= column.numbers]
        out.append(", ".join([*span, *words[:3], *["…"] * (len(words) > 3)]))
    return tuple(out)


def interval(made: Any, query: Mapping[Any, Any], confidence: float) -> CountInterval:
    """Return limits for how many units fit ``query``, {column: a value, a list of values, or (low, high)}, of one
    column or two, by what a fitted synthesizer ``made`` holds.

    A sum of released counts has normal noise of known size. What cuts a cell counts wholly above and not at all below.
    Two columns, with a and b of n: from max(0, a + b − n) to min(a, b) (Fréchet). Where they were counted together,
    closer: the counts of all groups that are meant in part, and those less what else these groups hold. Where limits
    are combined each has its share of the probability of failure (Bonferroni).
    """
    columns, n = made.columns_, made.n_
    level = number("confidence", confidence, above=0.0, below=1.0)
    places = {column.name: i for i, column in enumerate(columns)}
    if not (isinstance(query, Mapping) and 1 <= len(query) <= 2 and all(name in places for name in query)):
        raise InputError(
            f"query must be {{column: value}} of one or two columns, got {query!r}; known are {few(list(places))}"
        )
    at = sorted(places[name] for name in query)
    asked = [(c, _cells_touched(c, query[c.name], made.schema_.column(c.name))) for c in map(columns.__getitem__, at)]
    if len(asked) == 1:
        low, high, middle = _alone(*asked[0], float(ndtri((1 + level) / 2)))
        return CountInterval(middle, low, high, level)
    counted = next((pair for pair in made.pairs_ if [*pair[0]] == at and not any(own[-1] for _, own in asked)), None)
    rest = (1 - level) * (1 - _OWN * (counted is not None))
    z = float(ndtri(1 - rest / 7))  # of seven one-sided limits
    one, other = (_alone(*own, z) for own in asked)
    low, high = max(0.0, one[0] + other[0] - n - z * made.n_sd_), min(one[1], other[1])
    middle = one[2] * other[2] / n
    if counted:
        _, counts, sd = counted
        (rows, outer, missed), (cols, part, beyond) = (_groups_meant(*own, z) for own in asked)
        middle, block = float(rows @ counts @ cols), counts[np.ix_(outer, part)]
        noise = sd * float(ndtri((1 + level + rest) / 2)) * math.sqrt(block.size)
        low, high = max(low, float(block.sum()) - noise - missed - beyond), min(high, float(block.sum()) + noise)
    high = max(high, low)
    return CountInterval(min(max(middle, low), high), low, high, level)


def _cells_touched(column: MadeColumn, wanted: Any, said: ColumnSchema) -> tuple[Any, ...]:
    """Return which cells hold only what is wanted, which are likely to, and which may hold some of it; and how many
    words it names that were not found.

    Fractions (of dates, times) lie in the cell of the whole number below, unless the column is declared as whole: few
    of them are hidden by the noise of a count. Everything beyond a range, a declared one, too, lies in the cell at its
    end: only a question that is open there holds all of that cell.
    """
    k, unseen, axis = column.numbers, 0, DATE if column.dates else NUMBER
    sure, inside, touched = np.zeros((3, len(column.mass)), dtype=bool)
    spans: list[Any] = []
    if isinstance(wanted, tuple) and len(wanted) == 2 and k:
        ends: Any = [(axis, end) if isinstance(end, float) and math.isinf(end) else read_cell(end) for end in wanted]
        (kind, low), (other, high) = ends
        if not (kind == other == axis and low <= high):
            raise InputError(f"a range of {column.name!r} must be (low, high) of its kind, got {wanted!r}")
        spans, wanted = [(low, high)], ()
    for value in wanted if np.iterable(wanted) and not isinstance(wanted, str | bytes) else [wanted]:
        if not is_scalar(value):
            raise InputError(f"{column.name!r} wants a value, a list of them or one (low, high), got {wanted!r}")
        cell = read_cells([int(value) if isinstance(value, bool | np.bool_) and not column.words else value])
        if (at := int(column.codes(cell)[0])) < k:
            spans.append((cell.number[0], cell.number[0]))
            continue
        named = at != len(sure) - 2 or value == OTHER  # the last word stands for all that were not found
        touched[at], unseen = True, unseen + (not named and column.unseen > 0)
        inside[at] = sure[at] = inside[at] | named
    edges, whole = np.concatenate(([-math.inf], column.bounds[1:-1], [math.inf])), column.holds.whole or column.single
    for low, high in spans if k else ():
        inside[:k] |= (column.bounds[:-1] >= low) & (column.bounds[1:] - whole <= high)
        touched[:k] |= (edges[1:] > low) & (edges[:-1] <= high)
        sure[:k] |= (edges[:-1] >= low) & (edges[1:] - (said.kind == "whole") <= high)
    return sure, inside, touched, 0 if inside[-2:-1].any() else unseen


def _alone(column: MadeColumn, touched: Any, z: float) -> tuple[float, float, float]:
    """Return limits and an estimate for the units in some cells of a column."""
    sure, inside, outer, unseen = touched
    known = outer.copy()
    known[-2:-1] &= not unseen  # of each word that was not found it is known how many it may have
    low = max(float(column.counts[sure].sum()) - z * float(np.linalg.norm(column.sds[sure])), 0.0)
    high = float(column.counts[known].sum()) + z * float(np.linalg.norm(column.sds[known]))
    high = max(high + unseen * (column.unseen + z * float(column.sds[0])), low)
    return low, high, min(max(float(column.mass[inside].sum()), low), high)


def _groups_meant(column: MadeColumn, touched: Any, z: float) -> tuple[FloatArray, IntArray, float]:
    """Return the share of each group that is meant, about; the groups meant at least in part, and at most how many they
    hold besides.

    Half of a cell that is cut is taken to be meant.
    """
    sure, inside, outer, _ = touched
    counts, groups = np.maximum(column.counts, 0.0), column.groups
    share = np.bincount(groups, (inside + 1.0 * outer) / 2 * counts) / np.maximum(np.bincount(groups, counts), 1.0)
    meant, none = np.unique(groups[outer]), np.zeros(len(sure), dtype=bool)
    return share, meant, _alone(column, (none, none, np.isin(groups, meant) & ~sure, 0), z)[1]
