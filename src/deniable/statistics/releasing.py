"""Release statistics of one table under one budget: find what is not declared, ask, estimate."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from deniable._check import FloatArray, InputError, integer, number
from deniable._floats import MANY_ROUNDINGS
from deniable._shown import plural
from deniable.limits import Limit
from deniable.mechanisms import Mechanism
from deniable.noise import (
    KINDS_SHARE,
    Account,
    Queries,
    QueryBudget,
    Units,
    certificate_of,
    columns,
    enter,
    only_our_words,
    units_of,
)
from deniable.planning import AsTellingAs, as_limit, budget, failure_of
from deniable.statistics.distribution import OF_COUNT, Choice, Ranked
from deniable.statistics.estimates import Limits, QueryAnswer, hide_small, reconcile
from deniable.statistics.grammar import ColumnScale, Statistic, nearest, parse
from deniable.statistics.queries import (
    CANDIDATES,
    LATTICE,
    Categories,
    CellCounts,
    Moments,
    Query,
    Ranks,
    Records,
)
from deniable.statistics.released import StatisticsRelease
from deniable.statistics.requests import Given, declared, estimand, query_of, rows_of_answer, share_queries, shares_of
from deniable.tables import DATE, NUMBER, WORD, ColumnCells, Schema, above_header, open_table

_COUNT = 0.01  # share of μ² for the number of records
_FINDING = 0.21  # share of μ² for all that is not declared: kinds, ranges, categories, the number of records
HEAVIEST = 720  # weight of a person's records together; more would leave less room for noise in whole numbers


@only_our_words()
def release_statistics(
    data: Any,
    statistics: Sequence[str | Statistic] | str | Statistic,
    *,
    advantage: float | None = None,
    limit: Limit | Mechanism | None = None,
    schema: Schema | None = None,
    ranges: Mapping[str, Sequence[Any]] | None = None,
    group: str | None = None,
    n: int | None = None,
    suppress_below: float = 0.0,
    confidence: float = 0.95,
    ledger: Account | None = None,
) -> StatisticsRelease:
    """Release statistics of all records of a table, with error bars, under one bound for all of them together.

    Guarantee: an attacker who knows all records but one infers whether that one is in the table from everything that is
    released no better than the limit allows: with ``advantage=0.1``, at even odds, with accuracy at most 55 %.
    ``certificate.tradeoff`` bounds the true positive rate at every false positive rate. This is Gaussian differential
    privacy for adding or removing a record (with a failure δ ≤ 1e-6 where categories are found in the data), so it does
    not depend on what else is known, and adds up with that of a :class:`deniable.PrivateClassifier`.
    ``certificate.replacement`` is the curve for telling a record from another in its place.

    Parameters
    ----------
    data
        The path of a table, or whatever else holds one: a data frame of pandas, Polars, PyArrow, DuckDB or Dask, what
        has ``__arrow_c_stream__``, blocks, a dict of columns. One record in each row, each cell of which is read alone
        (:func:`deniable.tables.read_cell`). From Parquet, DuckDB, Dask or blocks only the requested columns are loaded
        into memory.
    statistics
        Such as ``"mean(income) by region"``; several share the budget. See :data:`deniable.statistics.FUNCTIONS`.
    advantage, limit
        What an attacker may reach, one of them, as for :class:`deniable.PrivateClassifier`.
    schema
        Public knowledge of columns: their kinds, formats, ranges and categories. It must not be read off the data.
        Cells that do not fit are missing.
    ranges
        Short for a part of it: ``{"income": (0, 200_000), "region": ("N", "S")}``, of dates
        ``("2020-01-01", "2024-12-31")``. Numbers and dates are clipped to their range; records of other categories are
        "(other)", and those without one "(missing)". What is not declared is found in the data privately, which costs a
        fifth of μ²: the octaves (of dates the years) in which a column lies, and the categories of enough records.
    group
        Short for the schema's ``person``, the column that says whose record each one is: whole persons are hidden then.
        Each counts once: her records share that in equal parts, in counts, too. A sum needs a bound on what one person
        adds, ``sum(spend, per_person=5000)``, to which more is scaled down. A record that names nobody does not count.
        Of more than 720 records of one person the first 720 have a say in ranges and categories that are found.
    n
        The number of records (with ``group``, of persons), if it is public. What is not declared is counted with noise.
    suppress_below
        Counts whose noisy value is below this are withheld.
    confidence
        Confidence level of the limits in the result.
    ledger
        A :class:`deniable.Ledger`, in which the release is entered before any noise is drawn.

    Returns
    -------
    StatisticsRelease
        With ``rows``, ``to_frame()``, ``to_csv()``, ``to_json()``, ``plot()``, ``certificate``, ``account``.

    Raises
    ------
    InputError
        For a statistic that cannot be read, columns that are not there (with the nearest name), invalid ranges, files
        that cannot be opened. Errors depend on the names of the columns and on what was released, on no cell.

    Notes
    -----
    Public besides what is declared: the names of the columns. Values are unbiased except for clipping and what is
    withheld: counts may be below 0 and tables need not add up; what follows from the noise is in the limits. Dong, Roth
    & Su 2022, Theorem 2.7 and Corollary 3.3.

    Examples
    --------
    >>> import numpy as np
    >>> import deniable as dn
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"town": ["A", "B"] * 500, "income": np.arange(1000.0)})
    >>> mean = dn.statistics.parse("mean(income) by town")
    >>> r = dn.release_statistics(frame, [mean], advantage=0.1, ranges={"income": (0, 1000)})
    >>> isinstance(r, dn.statistics.StatisticsRelease), len(r.to_frame())
    (True, 4)
    """
    several = isinstance(statistics, Iterable) and not isinstance(statistics, str | bytes)
    texts: Any = statistics if several else [statistics]
    asked = list(dict.fromkeys(parse(one) for one in texts))
    if not asked:
        raise InputError("statistics must name at least one, such as 'mean(income) by region'")
    goal = as_limit(advantage, limit)
    limits = Limits(number("confidence", confidence, above=0.0, below=1.0))
    smallest = number("suppress_below", suppress_below, at_least=0.0, below=math.inf)
    known = None if n is None else integer("n", n, at_least=1)
    public = declared(schema, ranges, group, asked)
    given = Given.of(asked, public)
    source = read_columns(data, (*given.numbers, *given.groups), public)
    return _release(*source, asked, given, goal, known, limits, smallest, ledger)


def _release(
    rows: int,
    cells: Mapping[str, ColumnCells],
    units: Units,
    asked: list[Statistic],
    given: Given,
    goal: Limit | AsTellingAs,
    known: int | None,
    limits: Limits,
    smallest: float,
    ledger: Account | None,
) -> StatisticsRelease:
    """Ask and estimate; nothing is said but what is released."""
    allowed = budget(goal, unit=units.unit, failure=failure_of(goal) if given.unknown[1] else 0.0)
    ask = _Asking(Queries(QueryBudget(allowed.mu, allowed.delta), units=units), limits)
    entry = enter(ledger, ask.queries.ledger.mechanism(), unit=units.whom, what="statistics")
    n, records = ask.found(rows, cells, given, known)
    queries = share_queries([query_of(statistic, records) for statistic in asked])
    public: dict[Query, QueryAnswer] = (
        {CellCounts(()): QueryAnswer(np.array([[n]]), np.zeros(1), [()])} if known is not None else {}
    )
    parts = shares_of([query for query in queries if query not in public])
    left = ask.queries.ledger.left * (1 - MANY_ROUNDINGS)
    serves = {q: "; ".join(str(s) for s, own in zip(asked, queries, strict=True) if own == q) for q in parts}
    answers = public | {q: ask.sums(q, records, left * math.sqrt(part), serves[q]) for q, part in parts.items()}
    for query in parts:
        group = CellCounts(query.by)
        if isinstance(query, Moments) and group in answers:
            answers[group], answers[query] = reconcile(answers[group], answers[query])
    made = []
    for statistic, query in zip(asked, queries, strict=True):
        found = rows_of_answer(statistic, query, answers[query], records.scales, records.categories, n, limits)
        notes = [note for column in statistic.columns for note in ask.notes.get(column, ())]
        found = [replace(row, note="; ".join(filter(None, (row.note, *notes)))) for row in found]
        if smallest and statistic.function in ("count", "histogram"):
            found = hide_small(found, smallest)
        made.append(tuple(found))
    # what is found decides which queries follow: their sum is a bound where nothing is to be found, and else 2μ is
    open_ = units.weights is not None or any(given.unknown)
    replaced = math.inf if open_ else math.hypot(*ask.replaced) * (1 + MANY_ROUNDINGS)
    estimands = tuple(estimand(statistic, records.scales, units.unit) for statistic in asked)
    named = "; ".join(f"{statistic} is the {text}" for statistic, text in zip(asked, estimands, strict=True))
    declared_too = "what is declared: kinds, ranges, categories" + ", a number" * (known is not None)
    return StatisticsRelease(
        tuple(asked),
        estimands,
        tuple(tuple(replace(r, estimand=text) for r in rows) for text, rows in zip(estimands, made, strict=True)),
        certificate_of(
            ask.queries,
            allowed.words,
            ("the names of the columns", declared_too, f"what is released: {named}"),
            entry,
            replaced,
        ),
        round(n),
        {name: scale.ends for name, scale in records.scales.items() if name in given.ranged}
        | {name: found.labels[:-2] for name, found in records.categories.items()},
        tuple(dict.fromkeys((*given.unknown[0], *given.unknown[1]))),
        limits.confidence,
    )


@dataclass(eq=False)
class _Asking:
    """Private queries of one release, what they cost where a record is replaced, and ranges that noise hides."""

    queries: Queries
    limits: Limits = field(default_factory=lambda: Limits(0.95))
    replaced: list[float] = field(default_factory=list)  # μ of each query
    notes: dict[str, list[str]] = field(default_factory=dict)  # on columns: cells not read, a range that was lost

    def found(
        self, rows: int, cells: Mapping[str, ColumnCells], given: Given, known: int | None
    ) -> tuple[float, Records]:
        """Return how many there are, and the records with a scale or labels for every column, found where not declared.

        Replacing a record does not change their number.
        """
        (numbers, groups), mu = given.unknown, self.queries.ledger.mu
        first = KINDS_SHARE if numbers else _COUNT if known is None else 0.0
        kinds: list[columns.ColumnKind] = []
        if numbers:
            holding = [cells[name] for name in numbers]
            n, kinds = columns.ask_kinds(self.queries, holding, rows, mu * math.sqrt(first))
            self.replaced.append(columns.REPLACED * mu * math.sqrt(first))
        elif known is None:
            n = self.queries.count(rows, mu * math.sqrt(first), f"the number of {plural(self.queries.units.unit)}")
        n = n if known is None else float(known)
        each = mu * math.sqrt((_FINDING - first) / max(len(numbers) + len(groups), 1))
        self.replaced += [math.sqrt(2) * each] * (len(numbers) + len(groups))  # one cell is left, another entered
        found = zip(numbers, kinds, strict=True)
        scales = dict(given.scales) | {name: self._scale(name, kind, cells[name], each) for name, kind in found}
        categories = {}
        for name in given.groups:
            labels = given.labels.get(name)
            if labels is None:
                delta = self.queries.ledger.delta / len(groups) * (1 - MANY_ROUNDINGS)
                labels = tuple(self.queries.words(name, cells[name].spelled.tolist(), each, delta))
            categories[name] = Categories.of(cells[name], labels)
        values = {name: numbers_of(cells[name], scales[name].dates) for name in given.numbers}
        kept = {name: scales[name] for name in given.numbers}
        return n, Records(rows, values, kept, categories, self.queries.units)

    def _scale(self, name: str, kind: columns.ColumnKind, cells: ColumnCells, mu: float) -> ColumnScale:
        """Return the range of a column of numbers or dates; from no to yes where most cells say that."""
        if kind.most == "flag":
            return ColumnScale(0.0, 1.0, whole=True)
        dates = kind.most == "date"
        notes = self.notes.setdefault(name, [])
        if kind.other:
            notes.append(f"about {kind.other:,.0f} cells of {name} are no {'date' if dates else 'number'}s")
        values = numbers_of(cells, dates)
        rows = np.flatnonzero(~np.isnan(values))
        label, purpose = f"range of {name}", f"in which {'years' if dates else 'octaves'} a column lies"
        counts, (low, high) = columns.find_range(self.queries, label, purpose, mu, rows, values[rows], dates=dates)
        if not columns.standing_out(counts, 1 / mu) > 0:
            notes.append(f"the range of {name} was lost in the noise, so values may be clipped far off: declare it")
        notes += filter(None, [self.queries.notes.get(label)])
        return ColumnScale(low, high, dates, kind.whole and not dates)

    def sums(self, query: Query, records: Records, mu: float, purpose: str) -> QueryAnswer:
        """Return the noisy sums of a query."""
        if isinstance(query, Ranks):
            return self._ranks(query, records, mu, purpose)
        added, replaced = query.lengths()
        sd = query.weights() * (added / mu * (1 + MANY_ROUNDINGS))
        paid = self.queries.pay(str(query), purpose, mu)
        self.replaced.append(mu * replaced / added)
        whole = query.sums(records)
        unit = query.unit if records.units.owners is None else LATTICE
        noisy = paid.channel(str(query), np.broadcast_to(sd * unit, whole.shape))(whole)
        return QueryAnswer(noisy / unit, sd, records.labels(query.by))

    def _ranks(self, query: Ranks, records: Records, mu: float, purpose: str) -> QueryAnswer:
        """Return chosen quantiles, and how many numbers each group has."""
        numbers = CellCounts(query.by, query.columns, (-math.inf, math.inf))
        counted = self.sums(numbers, records, mu * math.sqrt(OF_COUNT), "error bars")
        groups, each = query.sorted_candidates(records), mu / math.sqrt(len(query.probabilities))
        choices = [Choice.plan(p, each, counted.sums[:, 0], self.limits) for p in query.probabilities]
        draws = [draw for choice in choices for draw in choice.draws]
        points = self.queries.quantiles(str(query), purpose, groups, (-CANDIDATES, CANDIDATES), draws)
        self.replaced += [max(law.replaced, math.sqrt(2) * law.mu) for law, _ in draws]  # in one group, or in two
        drawn = np.reshape(points, (-1, 3, len(groups))) / CANDIDATES
        chosen = [replace(choice, points=found) for choice, found in zip(choices, drawn, strict=True)]
        return Ranked(counted.sums, counted.noise, counted.labels, {choice.p: choice for choice in chosen})


def read_columns(source: Any, needed: Collection[str], schema: Schema) -> tuple[int, dict[str, ColumnCells], Units]:
    """Return how many records there are, the cells of the columns that are needed, each read alone, and who is hidden.

    Where the schema names the column of persons, each person's records count as one together, in equal parts. A record
    that names nobody counts for nothing.

    Raises
    ------
    InputError
        For a source that cannot be opened, and for columns that the header does not name, or names twice.
    """
    frame = (opened := open_table(source, schema).checked()).frame
    names = frame.columns
    for name in (*needed, *schema.columns, *({schema.person} - {None})):
        if name not in names:
            raise InputError(f"the table has no column {name!r}{nearest(name, names)}{above_header(names)}")
    cells = {name: schema.column(name).read(frame[name]) for name in needed}
    if schema.person is None:
        return len(frame), cells, Units(opened.unit)
    who, said = frame[schema.person], schema.column(schema.person)
    return len(frame), cells, units_of(who, schema.person, heaviest=HEAVIEST, declared=said)


def numbers_of(cells: ColumnCells, dates: bool) -> FloatArray:
    """Return the dates of a column in days, or its numbers, yes and no among them as 1 and 0; NaN for other cells."""
    out = np.where(cells.kind == (DATE if dates else NUMBER), cells.number, np.nan)
    return out if dates else np.where(cells.kind == WORD, cells.flags, out)
