"""Attacks on released tables: synthetic data, and marginals with noise.

Two settings. *One release, many records*: each record gets a score, and members are compared with others of the same
population; that is what one table shows about that population. *One record, many releases*: the mechanism is run with
and without the record, which is what a promise is about: give :func:`synthetic_scores` as the ``score`` of
:func:`deniable.audit.check_promise`.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.stats import binom

from deniable._check import FloatArray, Indices, InputError, IntArray, Seed, choice
from deniable.audit.results import AttackScores
from deniable.audit.scores import REVERSED, Copies
from deniable.tables import Schema, SharedColumn, read_alike

SyntheticMethod = Literal["nearest", "density", "marginals"]
METHODS: tuple[SyntheticMethod, ...] = ("nearest", "density", "marginals")

_NEIGHBOURS = {"nearest": 1, "density": 5}  # which neighbour's distance counts
_BINS = 8  # bins of numbers, in marginals
_TOUCHING = 1e-9  # smaller distances count as a copy
# shares of the permitted error, next to that of exact copies: of the nearest neighbour without a reference, and of all
# attacks with one; the first is the same with and without, so that to know more never weakens a verdict
ALONE, REFERRED = 0.65, 0.15


def attack_synthetic(
    synthetic: Any,
    members: Any,
    nonmembers: Any,
    reference: Any = None,
    method: Literal["auto"] | SyntheticMethod = "auto",
    *,
    schema: Schema | None = None,
    rng: Seed = None,
) -> AttackScores:
    """Measure how well a released table distinguishes the records it was made from from others of the same population.

    Parameters
    ----------
    synthetic
        The released table: a path, a data frame or whatever else holds one.
    members, nonmembers
        Records that it was made from, and records drawn like them that it was not made from (a holdout), same columns.
    reference
        Further records of the population that the attacker has, neither members nor attacked. With them the attacker
        knows which records are rare anyway; without them only "nearest" is possible.
    method
        "nearest": the distance to the closest released record, relative to that to the closest reference record;
        "density": the same with fifth neighbours, a density ratio (van Breugel et al. 2023); "marginals": how much more
        frequent the record's pairs of values are than in the reference. "auto": "nearest", with and without the
        reference, while the others share the permitted error.
    schema
        What is declared of how the columns of all tables are written; the rest is inferred from all of their cells.
    rng
        Seed or generator of the audit (see :func:`deniable.audit_scores`).

    Returns
    -------
    AttackScores
        Records that equal a released one, and no other record, come first. How many equal one is tested before the
        scores. Scores of records under one release need not be independent, so the intervals are about this attack on
        this population. For a verdict on a promise run the generator with and without a record
        (:func:`deniable.audit.check_promise`).

    Raises
    ------
    InputError
        If a table lacks a column, or if a released column is not written as the members' is.

    Examples
    --------
    >>> import numpy as np
    >>> import deniable as dn
    >>> rng = np.random.default_rng(0)
    >>> members, others = rng.normal(size=(100, 3)), rng.normal(size=(100, 3))
    >>> s = dn.attack_synthetic(members + 0.01, members, others, rng=0)  # records that barely moved
    >>> s.audit().advantage().estimate > 0.8
    True
    >>> dn.audit.synthetic_scores(members + 0.01, others).shape
    (100,)
    """
    choice("method", method, ("auto", *METHODS))
    if reference is None and method in ("density", "marginals"):
        raise InputError(
            f"method {method!r} needs reference records to compare with; give reference=, or use 'nearest'"
        )
    given = {"synthetic": synthetic, "members": members, "nonmembers": nonmembers, "reference": reference}
    columns, rows = _read_released({name: table for name, table in given.items() if table is not None}, schema)
    table, inside, outside, known = (*(rows[name] for name in list(given)[:3]), rows.get("reference"))
    records = slice(inside.start, outside.stop)
    row = _row_codes(columns)
    refuse_shared_records(row, {name: part for name, part in rows.items() if name != "synthetic"})
    copies, alone = _copies(row, table, inside, outside)
    where = "{} in a released table"
    scored = {where.format("nearest"): _scores(columns, table, records, None, "nearest")}
    if known is not None:
        asked = METHODS if method == "auto" else (method,)
        scored |= {
            f"{where.format(one)}, with a reference": _scores(columns, table, records, known, one) for one in asked
        }
    shares = {name: REFERRED / (len(scored) - 1) if i else ALONE for i, name in enumerate(scored)}
    name = list(scored)[min(1, len(scored) - 1)]
    if method != "auto" and known is not None:  # the attack that was asked for, and no other
        scored, shares = {name: scored[name]}, {name: ALONE + REFERRED}
    n = inside.stop - inside.start
    scored = {other: np.where(alone, values.max() + 1, values) for other, values in scored.items()}
    parts, found = tuple((shares[other], values[:n], values[n:]) for other, values in scored.items()), scored[name]
    details = {"released": table.stop, "rng": rng}
    return AttackScores(found[:n], found[n:], name, "synthetic table", details, copies, parts)


def synthetic_scores(
    synthetic: Any,
    records: Any,
    reference: Any = None,
    method: SyntheticMethod = "nearest",
    *,
    schema: Schema | None = None,
) -> FloatArray:
    """Return one score per record, larger for "was used"; see :func:`attack_synthetic` for the methods.

    Parameters
    ----------
    synthetic
        The synthetic table.
    records
        The attacked records, with the same columns.
    reference
        Other records of the population, for the methods that compare with them; not among the attacked ones.
    method, schema
        As for :func:`attack_synthetic`.

    Returns
    -------
    array
        Shape (records,); larger says "was used".

    Raises
    ------
    InputError
        If columns differ, or the method is unknown or needs a reference that is not given.

    Examples
    --------
    See ``attack_synthetic``.
    """
    choice("method", method, METHODS)
    given = {"synthetic": synthetic, "records": records} | ({} if reference is None else {"reference": reference})
    columns, rows = _read_released(given, schema)
    return _scores(columns, rows["synthetic"], rows["records"], rows.get("reference"), method)


def _read_released(tables: dict[str, Any], schema: Schema | None) -> tuple[list[SharedColumn], dict[str, slice]]:
    """Return the columns in which the released table has a filled cell: the others say nothing."""
    columns, rows = read_alike(tables, schema)
    filled = [column for column in columns if np.any(column.codes[rows["synthetic"]] >= 0)]
    if not filled:
        raise InputError("synthetic must have a filled cell")
    return filled, rows


def _row_codes(columns: list[SharedColumn]) -> IntArray:
    """Return one number for each row of all tables, equal where all cells are."""
    row = np.zeros(len(columns[0].codes), dtype=np.int64)
    for column in columns:
        code = np.unique(column.codes, return_inverse=True)[1]
        row = np.unique(row * (1 + code.max()) + code, return_inverse=True)[1]
    return row


def refuse_shared_records(row: IntArray, sides: dict[str, slice]) -> None:
    """Refuse tables that hold the same records, or one of them many times: they are not independent draws.

    Whatever rows there are, records drawn alike fall into the two tables in random order. Two equal rows then fall into
    both with probability 2nm/((n + m)(n + m − 1)), k equal rows all into the one of share q with at most q^k, and any
    of the rows that stand k times or more with at most q^k for each of them: a union bound, as their number does not
    depend on how they fall. Of all that stand twice or more, each falls all into it with at most q². What has a
    probability of at most :data:`REVERSED` did not come about by chance.
    """
    for (one, first), (other, second) in combinations(sides.items(), 2):
        counts = [np.bincount(row[side], minlength=1 + row.max()) for side in (first, second)]
        n, m, total = len(row[first]), len(row[second]), counts[0] + counts[1]
        twice, both = total == 2, (counts[0] == 1) & (counts[1] == 1)
        shared, chance = int(both.sum()), 2 * n * m / ((n + m) * (n + m - 1))
        if binom.sf(shared - 1, int(twice.sum()), chance) <= REVERSED:
            raise InputError(
                f"{one} and {other} must hold different records, and {shared:,} rows stand in both, more than chance "
                "puts there; leave them out of one"
            )
        for name, own, share in ((one, counts[0], n / (n + m)), (other, counts[1], m / (n + m))):
            repeated = own[(own == total) & (own > 1)]
            if name == "reference" or not repeated.size:
                continue
            most, chance = int(repeated.max()), binom.sf(repeated.size - 1, np.sum(total > 1), share**2)
            if min(share**most * np.sum(total >= most), chance) <= REVERSED:
                raise InputError(
                    f"{name} must be independent records, and rows stand up to {most:,} times in it and never in "
                    f"{other} (how many: {repeated.size:,}); give each record once"
                )


def _copies(row: IntArray, table: slice, inside: slice, outside: slice) -> tuple[Copies, NDArray[np.bool_]]:
    """Count what equals a record, and return which records equal a released one and no other record."""
    copied = np.isin(row, row[table])
    others = np.bincount(np.delete(row, np.r_[table]), minlength=1 + row.max())
    here = slice(inside.start, outside.stop)
    equal, sides = [int(np.isin(row[table], row[side]).sum()) for side in (inside, outside)], (inside, outside)
    hits, sizes = zip(*((int(copied[side].sum()), side.stop - side.start) for side in sides), strict=True)
    return Copies(equal[0], equal[1], *hits, *sizes), (copied & (others[row] == 1))[here]


def _scores(
    columns: list[SharedColumn], table: slice, records: slice, reference: slice | None, method: SyntheticMethod
) -> FloatArray:
    if method == "marginals":
        if reference is None:
            raise InputError("method 'marginals' needs reference records to compare with; give reference=")
        return _pair_scores(columns, table, records, reference)
    parts = [part for part in (table, records, reference) if part is not None]
    used = np.concatenate([np.r_[part] for part in parts])
    points = np.hstack([_points(column, used) for column in columns])
    near = _log_distance(points[table], points[records], _NEIGHBOURS[method])
    return -near if reference is None else _log_distance(points[reference], points[records], _NEIGHBOURS[method]) - near


def _points(column: SharedColumn, used: Indices) -> FloatArray:
    """Return a column as coordinates: numbers in standard deviations, words as vertices at distance 1."""
    if column.numbers is None:
        return np.asarray((column.codes[:, None] == np.unique(column.codes[used])) / np.sqrt(2))
    known = column.numbers[used][~np.isnan(column.numbers[used])]
    centre, spread = (float(known.mean()), float(known.std())) if known.size else (0.0, 1.0)
    return np.nan_to_num((column.numbers - centre) / (spread or 1.0))[:, None]  # a missing number counts as the mean


def _log_distance(table: FloatArray, asked: FloatArray, neighbours: int) -> FloatArray:
    distance = np.asarray(cKDTree(table).query(asked, k=[min(neighbours, len(table))])[0])
    return np.asarray(np.log(np.maximum(distance[:, 0], _TOUCHING)))


def _pair_scores(columns: list[SharedColumn], table: slice, records: slice, reference: slice) -> FloatArray:
    """Return the sum over pairs of columns of log(frequency in the table / frequency in the reference)."""
    codes = [_bins(column, np.r_[table, reference]) for column in columns]
    total = np.zeros(records.stop - records.start)
    pairs = list(combinations(range(len(codes)), 2)) or [(0, 0)]
    for i, j in pairs:
        both = np.unique(codes[i] * (1 + codes[j].max()) + codes[j], return_inverse=True)[1]
        counts = [np.bincount(both[part], minlength=1 + both.max()) for part in (table, reference)]
        share = [np.log((count + 0.5) / (count.sum() + 0.5)) for count in counts]
        total += (share[0] - share[1])[both[records]]
    return total / len(pairs)


def _bins(column: SharedColumn, used: Indices) -> IntArray:
    """Return codes from 0; numbers fall into eight bins, equally full where they are ``used``."""
    if column.numbers is None or len(np.unique(column.codes)) <= _BINS:
        return np.asarray(column.codes - column.codes.min())
    values = np.nan_to_num(column.numbers)
    edges = np.unique(np.quantile(values[used], np.linspace(0, 1, _BINS + 1)[1:-1]))
    return np.asarray(np.searchsorted(edges, values, side="right"), dtype=np.int64)
