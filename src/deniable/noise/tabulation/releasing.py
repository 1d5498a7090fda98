"""Release statistics of one table under one budget: find what is not public, ask, add noise, estimate."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from deniable._check import FloatArray, InputError, IntArray, mapping, number
from deniable._floats import MANY_ROUNDINGS
from deniable.accounting import tradeoff
from deniable.curves import Tradeoff, with_assumptions
from deniable.mechanisms import ApproximateDP, Composition, GaussianDP, Mechanism
from deniable.noise import octaves
from deniable.noise.certificate import PRIVATE_GAME, Certificate
from deniable.noise.rounding import LARGEST_SCALE, add_rounded_gaussian
from deniable.noise.tabulation.answers import Limits, QueryAnswer, Row, hide_small
from deniable.noise.tabulation.asking import answered, query_of
from deniable.noise.tabulation.columns import Given, labelled, numeric
from deniable.noise.tabulation.dates import days_in_ranges
from deniable.noise.tabulation.grammar import Statistic, parse
from deniable.noise.tabulation.queries import OF_TREE, Query, Ranks, Tree
from deniable.noise.tabulation.records import Categories, ColumnScale, Records
from deniable.noise.tabulation.released import PricedLook, StatisticsRelease

_FEWEST = 4  # records
_FINDING = 0.2  # share of μ² for finding ranges and categories that were not given
_DELTA = 1e-6  # probability of failure of all lists of categories that were found together, at most a tenth of η
OTHER = "(other)"
_SAMPLER = "rounded Gaussians from the operating system's entropy, exact in law, added to whole numbers"


def release_statistics(
    data: Any,
    statistics: Sequence[str | Statistic] | str | Statistic,
    *,
    eta: float,
    ranges: Mapping[str, Sequence[Any]] | None = None,
    suppress_below: float = 0.0,
    confidence: float = 0.95,
) -> StatisticsRelease:
    """Release statistics of all records of a table, with error bars, under one bound for all of them together.

    Guarantee: an attacker who knows all records but one, and that this one is either x or x′, infers
    which of the two from everything that is released with accuracy at most ½ + ``eta``; ``certificate.tradeoff`` bounds
    the true positive rate at every false positive rate. This is Gaussian differential privacy for the replacement of a
    record (with a failure δ ≤ 1e-6 where categories are found in the data), so it does not depend on what else is
    known.

    Parameters
    ----------
    data
        A data frame, or the path of a table (see :func:`deniable.tables.understand`); one record in each row. From
        a Parquet file or folder, a Dask data frame or blocks only the requested columns are loaded into memory.
    statistics
        Such as ``"mean(income) by region"``; several share the budget. See :data:`deniable.noise.tabulation.FUNCTIONS`.
    eta
        Largest gain of any attack over guessing from prior ½, in (0, ½).
    ranges
        Public knowledge of columns: ``{"income": (0, 200_000), "region": ("N", "S")}``, of dates
        ``("2020-01-01", "2024-12-31")``. Numbers and dates are clipped to their range; records of other categories are
        not counted. It must not be read off the data. What is missing here is found in the data privately, which
        costs a fifth of μ²: the octaves in which a column lies, and the categories of enough records for their noise
        (all others together are "(other)").
    suppress_below
        Counts whose noisy value is below this are withheld.
    confidence
        Confidence level of the limits in the result.

    Returns
    -------
    StatisticsRelease
        With ``rows``, ``to_frame()``, ``to_csv()``, ``to_json()``, ``plot()``, ``certificate``, ``account``.

    Raises
    ------
    InputError
        For a statistic that cannot be read, unknown columns (with the nearest name), columns of the wrong kind,
        invalid ranges. Errors depend on the names and kinds of the columns, which are public, and quote no cell; those
        of columns with ranges depend on nothing of the data.

    Notes
    -----
    Public besides the ranges: the number of records, names and kinds of the columns, and which have missing cells.
    Values are unbiased except for clipping and what is withheld: counts may be below 0 and tables need not
    add up; what follows from the noise is in the limits. Dong, Roth & Su 2022, Theorem 2.7 and Corollary 3.3.
    """
    several = isinstance(statistics, Iterable) and not isinstance(statistics, str | bytes)
    texts: Any = statistics if several else [statistics]
    asked = [parse(one) for one in texts]
    if not asked:
        raise InputError("statistics must name at least one, such as 'mean(income) by region'")
    asked = list(dict.fromkeys(asked))
    target = number("eta", eta, above=0.0, below=0.5)
    limits = Limits(number("confidence", confidence, above=0.0, below=1.0))
    smallest = number("suppress_below", suppress_below, at_least=0.0, below=math.inf)
    public = days_in_ranges(mapping("ranges", ranges, "{'age': (0, 120)}"), asked)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # what numpy and pandas warn of depends on the records
        return _released(data, asked, public, target, limits, smallest)


def _released(
    data: Any,
    asked: list[Statistic],
    public: Mapping[str, Sequence[Any]],
    target: float,
    limits: Limits,
    smallest: float,
) -> StatisticsRelease:
    """Read what is needed, ask, add noise and estimate; nothing is said beside what is released."""
    from deniable.tables.reading import understand_any

    needed = {column for one in asked for column in (*one.columns, *one.by)} | set(public)
    table = understand_any(data, ranges=public, only=needed)
    if len(table.frame) < _FEWEST:
        raise InputError(
            f"data must have at least {_FEWEST} records, got {len(table.frame)}; fewer cannot hide one another"
        )
    given = Given.of(table, asked, public)
    wanted_delta = min(_DELTA, target / 10) if given.unknown_categories else 0.0
    mu, curve = _budget(target, wanted_delta)
    spending = _Spending(target, mu, wanted_delta)
    records = _found(table.frame, given, spending)
    queries = _shared([query_of(statistic, records) for statistic in asked], records)
    each = spending.left(len(set(queries)))
    answers: dict[Query, QueryAnswer] = {}
    for query in dict.fromkeys(queries):
        serves = tuple(str(s) for s, q in zip(asked, queries, strict=True) if q == query)
        answers[query] = spending.ask(query, records, each, serves)
    rows = []
    for statistic, query in zip(asked, queries, strict=True):
        found = answered(statistic, query, answers[query], records, limits)
        found = _warned(found, [column for column in statistic.columns if column in spending.guessed])
        counted = statistic.function in ("count", "histogram")
        rows.append(tuple(hide_small(found, smallest) if counted and smallest else found))
    return StatisticsRelease(
        tuple(asked),
        tuple(rows),
        _certificate(target, curve, spending, rows, records),
        tuple(spending.looks),
        given.shown_ranges(records.scales) | {name: found.labels for name, found in records.categories.items()},
        (*given.unknown_numbers, *given.unknown_categories),
        limits.confidence,
    )


def _warned(rows: list[Row], guessed: Sequence[str]) -> list[Row]:
    """Note on values clipped to a range that may be an artefact of noise; only the noisy counts decide."""
    if not guessed:
        return rows
    text = f"the range of {', '.join(guessed)} was lost in the noise, so values may be clipped far off: give --range"
    return [replace(row, note=f"{row.note}; {text}" if row.note else text) for row in rows]


def _budget(eta: float, delta: float) -> tuple[float, Tradeoff]:
    """Return the largest μ (rounded down) whose curve, with failure ``delta``, keeps ``eta``, and that curve.

    η = ½·(δ + (1 − δ)(2Φ(μ/2) − 1)), as an advantage is a total variation and η half of it at prior ½.
    """
    mu = 2 * float(ndtri(0.5 + (eta - delta / 2) / (1 - delta)))
    step = 1e-12
    while True:
        mechanism: Mechanism = GaussianDP(mu)
        if delta > 0:
            mechanism = Composition((mechanism, ApproximateDP(0.0, delta)))
        curve = tradeoff(mechanism)
        if 0.5 * curve.advantage() <= eta:
            break
        mu *= 1 - step
        step = min(2 * step, 0.5)
    worlds = "one record replaced by any other"
    return mu, with_assumptions(curve, game=PRIVATE_GAME, adjacency=worlds, access="all released statistics")


@dataclass(eq=False)
class _Spending:
    """The budget, each look with its price, and the only place where noise is added."""

    eta: float
    mu: float
    delta: float
    looks: list[PricedLook] = field(default_factory=list)
    guessed: list[str] = field(default_factory=list)  # columns whose range drowned in the noise

    def left(self, parts: int) -> float:
        """Return the μ of each of this many equal parts of what is left of the budget, rounded down."""
        rest = self.mu**2 * (1 - 1e-12) - math.fsum(look.mu**2 for look in self.looks)
        return math.sqrt(rest / parts) * (1 - 1e-12) if parts else 0.0

    def noised(self, sums: IntArray, sd: FloatArray) -> IntArray:
        """Return whole numbers plus rounded Gaussian noise; where ``sd`` is 0 they are public as they are."""
        out = sums.copy()
        noisy = np.broadcast_to(sd > 0, sums.shape)
        if noisy.any():
            out[noisy] = add_rounded_gaussian(sums[noisy], np.broadcast_to(sd, sums.shape)[noisy])
        return out

    def histogram(self, counts: IntArray, mu: float) -> tuple[IntArray, float]:
        """Return counts in cells with noise for ``mu``, and its standard deviation; each record is in one cell."""
        sd = math.sqrt(2) / mu * (1 + MANY_ROUNDINGS)
        return self.noised(counts, np.full(1, sd)), sd

    def ask(self, query: Query, records: Records, mu: float, serves: tuple[str, ...]) -> QueryAnswer:
        """Return the noisy sums of a query; a query of public numbers alone costs nothing."""
        if isinstance(query, Ranks):
            return self._ranks(query, records, mu, serves)
        weights, sensitivity = query.weights(records), query.sensitivity(records)
        sd = weights * (sensitivity / mu * (1 + MANY_ROUNDINGS))
        if not sd.max() * query.unit <= LARGEST_SCALE:
            raise InputError(f"eta = {self.eta:g} leaves too little for {_named(query)}: raise it or ask for less")
        self.looks.append(PricedLook(_named(query), serves, mu if weights.any() else 0.0))
        sums = self.noised(query.sums(records), sd * query.unit)
        return QueryAnswer(sums / query.unit, sd, records.labels(query.by), query.fixed(records))

    def _ranks(self, query: Ranks, records: Records, mu: float, serves: tuple[str, ...]) -> QueryAnswer:
        """Return chosen quantiles and the tree behind their error bars."""
        tree = self.ask(Tree(query.by, query.column), records, mu * math.sqrt(OF_TREE), ("error bars",))
        rest = mu * math.sqrt(1 - OF_TREE) * (1 - 1e-12)
        weights = query.choice_weights(rest)
        self.looks.append(PricedLook(_named(query), serves, rest))
        chosen = dict(zip(query.probabilities, query.chosen(records, weights), strict=True))
        return replace(tree, chosen=chosen, rank_noise=math.sqrt(2) / weights.rate)


def _found(frame: Any, given: Given, spending: _Spending) -> Records:
    """Return the records with a scale or labels for every column; what was not given is found by noisy histograms."""
    numbers = {column: numeric(frame[column]) for column in given.numbers}
    scales: dict[str, ColumnScale] = {}
    categories: dict[str, Categories] = {}
    unknown = len(given.unknown_numbers) + len(given.unknown_categories)
    each = spending.mu * math.sqrt(_FINDING / unknown) if unknown else 0.0
    for column, values in numbers.items():
        limits = given.limits.get(column)
        if limits is None:
            cells = octaves.octave_cells(values[~np.isnan(values)])
            counts = np.bincount(cells, minlength=octaves.CELLS).astype(np.int64)
            noisy, sd = spending.histogram(counts, each)
            limits = octaves.range_from_counts(noisy.astype(np.float64), sd)
            if not octaves.stands_out(noisy.astype(np.float64), sd):
                spending.guessed.append(column)
            spending.looks.append(PricedLook(f"range of {column}", (), each))
        scales[column] = ColumnScale(*limits, not np.isnan(values).any(), column in given.dates)
    for column in given.groups:
        texts = frame[column]
        labels = given.labels.get(column)
        if labels is None:
            delta = spending.delta / len(given.unknown_categories)
            labels = _categories(texts, each, delta, spending)
            spending.looks.append(PricedLook(f"categories of {column}", (), each, delta))
        categories[column] = labelled(texts, labels, given.yes.get(column), found=column not in given.labels)
    return Records(len(frame), numbers, scales, categories)


def _categories(texts: Any, mu: float, delta: float, spending: _Spending) -> tuple[str, ...]:
    """Return the categories whose noisy counts reach a threshold that one record alone passes with probability < δ.

    A record alone in its category is exposed only if that category passes; its noise is independent of all
    other noise, so the release is that of a histogram without it, but with probability δ (ApproximateDP(0, δ)); with x
    replaced by x′ both worlds fail with that probability, and hockey sticks are jointly convex.
    """
    found = texts.value_counts().sort_index()
    noisy, sd = spending.histogram(found.to_numpy(dtype=np.int64), mu)
    # 1 + round(sd·Z) ≥ threshold needs Z ≥ (threshold − 3/2)/sd; a quantile of SciPy's is charged 1e-9 of itself
    threshold = math.ceil(1.5 - sd * float(ndtri(delta)) * (1 + 1e-9))
    return (*(str(label) for label, count in zip(found.index, noisy, strict=True) if count >= threshold), OTHER)


def _shared(queries: list[Query], records: Records) -> list[Query]:
    """Replace each query by a wider one that answers it, if there is one; quantiles of a column are chosen together."""
    ranks: dict[str, set[float]] = {}
    for query in queries:
        if isinstance(query, Ranks):
            ranks.setdefault(query.column, set()).update(query.probabilities)
    queries = [
        replace(query, probabilities=tuple(sorted(ranks[query.column]))) if isinstance(query, Ranks) else query
        for query in queries
    ]

    def widest(query: Query) -> Query:
        wide = next((other for other in queries if other.answers(query, records)), None)
        return query if wide is None else widest(wide)

    return [widest(query) for query in queries]


def _named(query: Query) -> str:
    what = f"{type(query).__name__.lower()}({', '.join(query.columns)})"
    return f"{what} by {', '.join(query.by)}" if query.by else what


def _certificate(
    target: float, curve: Tradeoff, spending: _Spending, rows: list[tuple[Row, ...]], records: Records
) -> Certificate:
    from deniable.tables import PUBLIC

    noise = np.array([row.noise for part in rows for row in part if not math.isnan(row.noise)])
    looks = len(spending.looks)
    return Certificate(
        advantage=min(curve.advantage(), 2 * target),
        target=2 * target,
        kind="exact",
        confidence=1.0,
        tradeoff=curve,
        coupling=f"Gaussian differential privacy on all records, {looks} {'look' if looks == 1 else 'looks'} composed "
        f"(μ = {spending.mu:.6g}{f', δ = {spending.delta:.3g}' if spending.delta else ''})",
        prior=0.5,
        n_records=records.n,
        n_train=records.n,
        n_resamples=0,
        algorithm_runs=1,
        noise="gaussian",
        sampler=_SAMPLER,
        noise_scale=noise,
        assumptions=(
            PRIVATE_GAME,
            "ranges and categories that were given are public; so are the number of records and which columns have "
            "missing cells: a record in question lacks none in the others",
            PUBLIC,
            "out means replaced by any other record of the same columns; the prior is 1/2",
            "this release alone: other releases from the same records add to it",
        ),
        bound="dp",
    )
