"""What a release of statistics hands over: rows with error bars, a certificate, what each query to the data cost."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from deniable._check import InputError
from deniable._files import plain, to_json, write_atomically
from deniable._notebook import Textual, sentences
from deniable._optional import require
from deniable._shown import DRAWN, between, beyond, plural, shown, with_error
from deniable.curves import Tradeoff
from deniable.mechanisms import Mechanism
from deniable.noise import Certificate, Use
from deniable.statistics.grammar import Statistic, parse, written

_NUMBERS = ("value", "noise", "low", "high", "population_error", "population_low", "population_high")
_PROMISE = ("advantage", "unit", "released", "assumes")
_DATES = ("date", "date_low", "date_high")


@dataclass(frozen=True)
class Row:
    """One number of a released table.

    Attributes
    ----------
    group
        Categories of the columns ``by``.
    item
        Which number of the statistic: an interval, a probability, a coefficient; empty if there is one only.
    value
        The estimate; NaN if it was withheld, for the reason in ``note``.
    noise
        Standard deviation of the noise in it: its error against the value on all records of the table.
    sampling
        Standard deviation by which the records themselves, drawn from a population, make it vary; NaN if not known.
    low, high
        Limits for the value on all records of the table.
    population_low, population_high
        Limits for the population.
    note
        Why a value was withheld, or what else to know.
    dated
        Whether value and limits are moments, in days since 1970-01-01.
    estimand
        What the value is of, such as "mean of values limited to (0, 100)".
    """

    group: tuple[str, ...]
    item: str
    value: float
    noise: float
    sampling: float
    low: float
    high: float
    population_low: float
    population_high: float
    note: str = ""
    dated: bool = False
    estimand: str = ""

    def written(self, value: float) -> str:
        """Return the value, or a limit, as people write it: a date, or a number of six digits."""
        return written(value, as_date=self.dated)

    def shown(self, *, named: bool = True) -> str:
        """Return the value and how far noise alone moves it, ``591 ± 15``; ``named``, also what is limited in it."""
        if named and self.estimand and not self.estimand.startswith("number of"):
            return f"{self.shown(named=False)} ({self.estimand})"
        if math.isnan(self.value):
            return f"withheld: {self.note}"
        if self.noise == 0:
            return f"{self.written(self.value)} (declared)"
        half = max(self.high - self.value, self.value - self.low)
        if self.dated:
            return f"{self.written(self.value)} ± {math.ceil(half)} days"
        if not self.low <= self.value <= self.high:  # it is impossible, and they are what is possible
            return beyond(self.value, self.low, self.high)
        return with_error(self.value, half)

    @property
    def label(self) -> str:
        """The categories and the item in words; nothing for a number of all records."""
        return ", ".join(word for word in (*self.group, self.item) if word)

    @property
    def population(self) -> str:
        """The limits for the population in words; nothing where they are not known."""
        ends = self.population_low, self.population_high
        if any(map(math.isnan, (self.value, *ends))):
            return ""
        return " to ".join(map(self.written, ends)) if self.dated else between(*ends)

    @property
    def population_error(self) -> float:
        """Standard error against the population: noise and sampling together."""
        return math.hypot(self.noise, self.sampling)


@dataclass(frozen=True, eq=False)
class StatisticsRelease(Textual):
    """Released statistics; everything here is covered by ``certificate``.

    Attributes
    ----------
    statistics
        The requested statistics, in the order of the request.
    estimands
        For each statistic what its numbers and limits are of, such as "mean of values limited to (0, 100)".
    rows
        For each statistic its rows.
    certificate
        The membership guarantee of all of them together, and what each query cost.
    n_records
        The number of records (with persons, of persons): declared, or a noisy count.
    ranges
        The range of each numeric column and the categories of each grouping column, as given or as found; every
        column has "(other)" and "(missing)" besides.
    found
        Columns whose ranges or categories were found in the data, privately.
    confidence
        Confidence level of the limits ``low``, ``high``, ``population_low`` and ``population_high``.
    released
        The day of the release, as 2024-12-31.

    Examples
    --------
    See ``release_statistics``.
    """

    statistics: tuple[Statistic, ...]
    estimands: tuple[str, ...]
    rows: tuple[tuple[Row, ...], ...]
    certificate: Certificate = field(repr=False)
    n_records: int
    ranges: Mapping[str, tuple[Any, ...]] = field(repr=False)
    found: tuple[str, ...]
    confidence: float
    released: str = field(default_factory=lambda: date.today().isoformat())

    @property
    def mechanism(self) -> Mechanism:
        """All queries together, for adding or removing a record; those of releases from the same records add up."""
        return self.certificate.mechanism

    @property
    def replacement_tradeoff(self) -> Tradeoff:
        """The curve for *replacing* one record by another."""
        return self.certificate.replacement

    @property
    def account(self) -> tuple[Use, ...]:
        """Each query to the records; their μ² add up."""
        return self.certificate.uses

    def __getitem__(self, statistic: str | Statistic) -> tuple[Row, ...]:
        """Return the rows of one statistic, named as in the request."""
        wanted = parse(statistic)
        if wanted not in self.statistics:
            raise InputError(f"{wanted} was not released; released: {'; '.join(map(str, self.statistics))}")
        return self.rows[self.statistics.index(wanted)]

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield each number as a dictionary: statistic, categories, item, value, its errors and limits, note, estimand.

        Each carries the guarantee of all of them: advantage, unit, the day on which they were released, and, if there
        is something, in few words what it ``assumes``; the certificate says it whole.

        Means and quantiles of dates are in days since 1970-01-01; ``date``, ``date_low`` and ``date_high`` are value
        and limits as dates, empty for other numbers (these keys are there only if some number is a date).
        """
        by = list(dict.fromkeys(column for statistic in self.statistics for column in statistic.by))
        dated = any(row.dated for rows in self.rows for row in rows)
        certificate = self.certificate
        most = float(shown(certificate.advantage, "number", "upper"))
        promise = {"advantage": most, "unit": certificate.unit, "released": self.released}
        heads = [re.split("[:;]", note)[0] for note in certificate.mechanism.notes]  # the rest: page, JSON, certificate
        promise |= {"assumes": "; ".join(heads)} if heads else {}
        for statistic, estimand, rows in zip(self.statistics, self.estimands, self.rows, strict=True):
            for row in rows:
                group = dict(zip(statistic.by, row.group, strict=True))
                labels = {_clear(column): group.get(column) for column in by}
                numbers = {name: getattr(row, name) for name in _NUMBERS}
                moment = dict(zip(_DATES, _dates_of(row), strict=True)) if dated else {}
                first = {"statistic": str(statistic)}
                last = {"note": row.note, "estimand": estimand, **promise}
                yield first | labels | {"item": row.item} | numbers | moment | last

    def to_frame(self) -> Any:
        """Return a pandas table, a row for each number; NaN where a value was withheld (``note`` says why)."""
        pandas: Any = require("pandas", purpose="a table of the released values")
        return pandas.DataFrame(list(self.records()))

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return the table as CSV, withheld numbers empty, and write it to ``path`` if given."""
        lines = list(self.records())
        text = io.StringIO()
        writer = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
        writer.writeheader()
        for line in lines:
            missing = {name for name, value in line.items() if isinstance(value, float) and math.isnan(value)}
            writer.writerow({name: "" if name in missing or value is None else value for name, value in line.items()})
        if path is not None:
            write_atomically(path, text.getvalue())
        return text.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python types: numbers, certificate, account, ranges."""
        return {
            "statistics": [plain(line) for line in self.records()],
            "confidence_of_limits": self.confidence,
            "n_records": self.n_records,
            "certificate": self.certificate.to_dict(),
            "released": self.released,
            "ranges": {name: plain(values) for name, values in self.ranges.items()},
            "found_privately": list(self.found),
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """Return everything as JSON and write it to ``path`` if given."""
        return to_json(self.to_dict(), path)

    def _text(self) -> str:
        promise, unit = self.certificate, self.certificate.unit
        whole = sum(use.mu**2 for use in promise.uses) or 1.0
        sure = f"{100 * self.confidence:g}\u00a0%"
        lines = [
            f"advantage ≤ {shown(promise.advantage, 'number', 'upper')} (exact) for everything released here "
            f"together: at even odds, no attack tells whether a {unit} is in the table with accuracy above "
            f"{shown(0.5 + promise.advantage / 2, 'number', 'upper')}; a {unit} from another in its place, "
            f"{shown(0.5 + promise.replacement.advantage() / 2, 'number', 'upper')}",
            f"TPR at 0.1 % FPR ≤ {shown(promise.tradeoff.tpr(1e-3), 'number', 'upper')}",
            *sentences(promise.mechanism.notes),
            f"±: where the value on these records is, with {sure} chance over the noise alone; population: noise and "
            "sampling together",
            *(f"  {use.mu**2 / whole:6.1%} of the budget  {use.name}" for use in promise.uses),
        ]
        for statistic, estimand, rows in zip(self.statistics, self.estimands, self.rows, strict=True):
            drawn = (_line(row, f"all {plural(unit)}") for row in rows[:DRAWN])
            lines += ["", f"{statistic}: {estimand}", *drawn]
            lines += [f"  … {len(rows) - DRAWN} more rows"] * (len(rows) > DRAWN)
        return "\n".join(lines)


def _clear(column: str) -> str:
    """Name a column of categories so that it does not collide with the columns of the result."""
    return f"by {column}" if column in ("statistic", "item", "note", "estimand", *_PROMISE, *_NUMBERS) else column


def _dates_of(row: Row) -> list[str]:
    known = row.dated and not math.isnan(row.value)
    return [row.written(value) if known else "" for value in (row.value, row.low, row.high)]


def _line(row: Row, whole: str) -> str:
    wide = f"; population {row.population}" if row.population else ""
    note = f"; {row.note}" if row.note and not math.isnan(row.value) else ""
    return f"  {row.label or whole}: {row.shown(named=False)}{wide}{note}"
