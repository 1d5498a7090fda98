"""Attacks on released tables: synthetic data, and marginals with noise.

Two settings. *One release, many records*: each record gets a score, and members are compared with others of the same
population; that is what one table shows about that population. *One record, many releases*: the mechanism is run with
and without the record, which is what a promise is about: give :func:`synthetic_scores` as the ``score`` of
:func:`deniable.audit.check_promise`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from deniable._check import FloatArray, InputError, Seed, choice, seeded
from deniable.audit.rehearsal import area_under_log_roc
from deniable.audit.results import AttackScores

SyntheticMethod = Literal["nearest", "density", "marginals"]
METHODS: tuple[SyntheticMethod, ...] = ("nearest", "density", "marginals")

_PILOT = 0.2  # share of the records that choose the method
_LEAST_PILOT = 20  # records of a side, below which a pilot is too small to choose a method
_NEIGHBOURS = 5  # neighbours in density estimates
_BINS = 8  # bins of numbers, in marginals
_TOUCHING = 1e-9  # smaller distances count as a copy


def attack_synthetic(
    synthetic: Any,
    members: Any,
    nonmembers: Any,
    reference: Any = None,
    method: Literal["auto"] | SyntheticMethod = "auto",
    *,
    rng: Seed = None,
) -> AttackScores:
    """Measure how well a released table distinguishes the records it was made from from others of the same population.

    Parameters
    ----------
    synthetic
        The released table: an array of numbers or a DataFrame (numbers and categories).
    members, nonmembers
        Records that it was made from, and records drawn like them that it was not made from (a holdout), same columns.
    reference
        Further records of the population that the attacker has, neither members nor attacked. With them the attacker
        knows which records are rare anyway; without them only "nearest" is possible.
    method
        "nearest": the distance to the closest released record, relative to that to the closest reference record;
        "density": the same with fifth neighbours, a density ratio (van Breugel et al. 2023); "marginals": how much more
        frequent the record's pairs of values are than in the reference. "auto" lets a fifth of the records choose, and
        scores the others only, so that the intervals hold.
    rng
        Seed or generator of that division.

    Returns
    -------
    AttackScores
        Scores of records under one release need not be independent, so the intervals are about this attack on this
        population. For a verdict on a promise run the generator with and without a record
        (:func:`deniable.audit.check_promise`).
    """
    choice("method", method, ("auto", *METHODS))
    if reference is None and method in ("density", "marginals"):
        raise InputError(
            f"method {method!r} needs reference records to compare with; give reference=, or use 'nearest'"
        )
    inside, outside = _length("members", members), _length("nonmembers", nonmembers)
    asked = [method] if method != "auto" else list(METHODS if reference is not None else METHODS[:1])
    if len(asked) > 1 and min(inside, outside) * _PILOT < _LEAST_PILOT:
        asked = ["density"]
    scores = {
        one: [synthetic_scores(synthetic, side, reference, one) for side in (members, nonmembers)] for one in asked
    }
    kept = [np.arange(inside), np.arange(outside)]
    if len(asked) > 1:
        coins = seeded(rng)
        order = [coins.permutation(n) for n in (inside, outside)]
        pilot = [places[: int(_PILOT * len(places))] for places in order]
        kept = [np.sort(places[int(_PILOT * len(places)) :]) for places in order]
        strength = {one: area_under_log_roc(a[pilot[0]], b[pilot[1]]) for one, (a, b) in scores.items()}
        asked = [max(strength, key=lambda one: strength[one])]
    found = scores[asked[0]]
    details = {"member_records": kept[0], "nonmember_records": kept[1], "released": _length("synthetic", synthetic)}
    name = f"{asked[0]} in a released table"
    return AttackScores(found[0][kept[0]], found[1][kept[1]], name, "synthetic table", details)


def synthetic_scores(
    synthetic: Any, records: Any, reference: Any = None, method: SyntheticMethod = "nearest"
) -> FloatArray:
    """Return one score per record, larger for "was used"; see :func:`attack_synthetic` for the methods."""
    choice("method", method, METHODS)
    if method == "marginals":
        return _pair_scores(synthetic, records, reference)
    coder = _Coder.of([synthetic, records] if reference is None else [synthetic, records, reference])
    table, asked = coder(synthetic), coder(records)
    neighbours = 1 if method == "nearest" else _NEIGHBOURS
    near = _log_distance(table, asked, neighbours)
    return -near if reference is None else _log_distance(coder(reference), asked, neighbours) - near


@dataclass(frozen=True, eq=False)
class _Coder:
    """Tables as points: numbers in standard deviations, categories as vertices at distance 1."""

    centre: FloatArray
    spread: FloatArray
    categories: tuple[NDArray[Any] | None, ...]

    @classmethod
    def of(cls, tables: Sequence[Any]) -> _Coder:
        columns = [[_column(table, i) for table in tables] for i in range(_width(tables))]
        known = tuple(
            None if all(_numeric(part) for part in parts) else np.unique(np.concatenate([p.astype(str) for p in parts]))
            for parts in columns
        )
        numeric = [
            np.concatenate([part.astype(np.float64) for part in parts]) if values is None else np.zeros(1)
            for parts, values in zip(columns, known, strict=True)
        ]
        spread = np.array([float(np.nanstd(values)) for values in numeric])
        centre = np.array([float(np.nanmean(values)) for values in numeric])
        return cls(centre, np.where(spread > 0, spread, 1.0), known)

    def __call__(self, table: Any) -> FloatArray:
        parts = []
        for i, values in enumerate(self.categories):
            column = _column(table, i)
            if values is None:
                scaled = (column.astype(np.float64) - self.centre[i]) / self.spread[i]
                parts.append(np.nan_to_num(scaled)[:, None])  # a missing number counts as the mean
            else:
                parts.append((column.astype(str)[:, None] == values) / np.sqrt(2))
        return np.hstack(parts)


def _log_distance(table: FloatArray, asked: FloatArray, neighbours: int) -> FloatArray:
    distance = np.asarray(cKDTree(table).query(asked, k=[min(neighbours, len(table))])[0])
    return np.asarray(np.log(np.maximum(distance[:, 0], _TOUCHING)))


def _pair_scores(synthetic: Any, records: Any, reference: Any) -> FloatArray:
    """Return the sum over pairs of columns of log(frequency in the table / frequency in the reference)."""
    if reference is None:
        raise InputError("method 'marginals' needs reference records to compare with; give reference=")
    width = _width([synthetic, records, reference])
    codes = [_codes([_column(table, i) for table in (synthetic, reference, records)]) for i in range(width)]
    total = np.zeros(_length("records", records))
    pairs = list(combinations(range(width), 2)) or [(0, 0)]
    for i, j in pairs:
        size = 1 + max(int(part.max()) for part in codes[j])
        table, known, asked = (a * size + b for a, b in zip(codes[i], codes[j], strict=True))
        cells = 1 + int(max(part.max() for part in (table, known, asked)))
        counts = [np.bincount(part, minlength=cells) for part in (table, known)]
        share = [np.log((count + 0.5) / (len(part) + 0.5)) for count, part in zip(counts, (table, known), strict=True)]
        total += (share[0] - share[1])[asked]
    return total / len(pairs)


def _codes(parts: Sequence[NDArray[Any]]) -> list[NDArray[np.int64]]:
    """Return integer codes for values; numbers fall into eight bins, equally full for the first two parts."""
    if all(_numeric(part) for part in parts):
        values = [np.nan_to_num(part.astype(np.float64)) for part in parts]
        if len(np.unique(np.concatenate(values))) > _BINS:
            edges = np.unique(np.quantile(np.concatenate(values[:2]), np.linspace(0, 1, _BINS + 1)[1:-1]))
            return [np.searchsorted(edges, part, side="right").astype(np.int64) for part in values]
        parts = values
    known = np.unique(np.concatenate([part.astype(str) for part in parts]))
    return [np.searchsorted(known, part.astype(str)).astype(np.int64) for part in parts]


def _width(tables: Sequence[Any]) -> int:
    widths = {np.shape(table)[1] if len(np.shape(table)) == 2 else -1 for table in tables}
    if len(widths) != 1 or widths == {-1}:
        raise InputError("synthetic, members, nonmembers and reference must be tables with the same columns")
    names = {tuple(table.columns) for table in tables if hasattr(table, "columns")}
    if len(names) > 1:
        raise InputError("synthetic, members, nonmembers and reference must have the same columns in the same order")
    return widths.pop()


def _length(name: str, table: Any) -> int:
    if len(np.shape(table)) != 2 or not len(table):
        raise InputError(f"{name} must be a table with at least one record, got shape {np.shape(table)}")
    return len(table)


def _column(table: Any, place: int) -> NDArray[Any]:
    column = np.asarray(table.iloc[:, place].to_numpy() if hasattr(table, "iloc") else np.asarray(table)[:, place])
    if column.dtype.kind == "f" and np.isinf(column).any():
        name = table.columns[place] if hasattr(table, "iloc") else place
        raise InputError(f"column {name!r} must hold finite numbers (NaN is a missing one), got inf; clip or drop it")
    return column


def _numeric(column: NDArray[Any]) -> bool:
    return column.dtype.kind in "biuf"
