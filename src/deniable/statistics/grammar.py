"""What a person asks for in one line, ``mean(income) by region, sex``, as an object.

    statistic  =  function "(" [argument {"," argument}] ")" ["by" column {"," column}]
    argument   =  column | number | name "=" number {":" number}      quantile(income, 0.1, 0.9), histogram(age, bins=9)
    number     =  0.25 | 2024-12-31                                   histogram(admitted, edges=2023-01-01:2024-01-01)
    regression =  "regression" "(" column "~" column {"+" column} ")" ["by" …]

A column whose name is not made of letters, digits, ``_``, ``.`` and single hyphens inside stands in double quotes or
backticks; a double quote inside is doubled, as in CSV.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import pairwise
from typing import Any, NoReturn, TypeVar

from deniable._check import InputError
from deniable.tables import names_of, near

T = TypeVar("T")
_WORD = r"[^\W\d][\w.]*(?:-[\w.]+)*"  # hyphens inside: nothing is subtracted in this grammar
_TOKEN = re.compile(
    r"""\s*(?:(?P<date>\d{4}-\d{2}-\d{2}(?![\w.-]))|(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]))|(?P<quoted>"(?:[^"]|"")+"|`[^`]+`)"""
    rf"""|(?P<word>{_WORD})|(?P<sign>[(),=:~+]))"""
)
OTHER, ABSENT = "(other)", "(missing)"  # categories that every column has
_MOST_POINTS = 256  # leaves of the tree behind distribution functions


class Day(float):
    """Days since 1970-01-01, written as a date."""

    @classmethod
    def of(cls, text: str) -> Day:
        """Return the day of a date such as 2024-12-31."""
        try:
            return cls(date.fromisoformat(text).toordinal() - date(1970, 1, 1).toordinal())
        except ValueError:
            raise InputError(f"{text} is not a date; write year-month-day, as in 2024-12-31") from None

    def __str__(self) -> str:
        place = math.floor(self) + date(1970, 1, 1).toordinal()
        known = 1 <= place <= date.max.toordinal()
        return date.fromordinal(place).isoformat() if known else f"day {float(self):.6g}"


def written(value: float, *, as_date: bool) -> str:
    """Return a number of six digits, or the date of the day in which a moment lies."""
    return str(Day(value)) if as_date else f"{value:.6g}"


@dataclass(frozen=True)
class Function:
    """What a function takes: how many columns, how many numbers, which options (``name=number`` or ``a:b:c``)."""

    summary: str
    columns: tuple[int, int]
    numbers: tuple[int, int] = (0, 0)
    options: tuple[str, ...] = ()


_MANY = 24  # columns of one covariance matrix or regression: the noise grows with their number
FUNCTIONS: dict[str, Function] = {
    "count": Function("number of records", (0, 0)),
    "share": Function("share of each category of a column", (1, 1)),
    "sum": Function(
        "sum of a column; with persons, per_person=5000 bounds each one's total", (1, 1), (0, 0), ("per_person",)
    ),
    "mean": Function("mean of a column", (1, 1)),
    "variance": Function("variance of a column (divisor n − 1)", (1, 1)),
    "sd": Function("standard deviation of a column", (1, 1)),
    "histogram": Function("counts between edges", (1, 1), (0, 0), ("bins", "edges")),
    "median": Function("median of a column", (1, 1)),
    "quantile": Function("quantiles of a column", (1, 1), (1, 99)),
    "ecdf": Function("distribution function at even points of the range", (1, 1), (0, 0), ("points",)),
    "covariance": Function("covariances of columns", (2, _MANY)),
    "correlation": Function("correlations of columns", (2, _MANY)),
    "regression": Function("least squares: target ~ predictor + predictor", (2, _MANY)),
}
_FORMS = {"count": "", "covariance": "x, y", "correlation": "x, y", "regression": "y ~ x", "quantile": "x, 0.5"}
# what others call it
_ALSO = {"average": "mean", "avg": "mean", "std": "sd", "var": "variance", "max": "quantile", "min": "quantile"}


@dataclass(frozen=True)
class Statistic:
    """One statistic of a table, for each combination of the categories of the columns ``by``.

    Attributes
    ----------
    function
        A key of :data:`FUNCTIONS`.
    columns
        What it is computed from; of a regression first the target, then the predictors.
    by
        Columns of categories; empty for all records together.
    numbers
        Probabilities of ``quantile``.
    options
        (name, numbers) of what was given by name: ``bins``, ``edges``, ``points``, ``per_person``.

    Raises
    ------
    InputError
        For an unknown function or option (with the nearest name) and for what the function does not take.

    Examples
    --------
    See ``release_statistics``.
    """

    function: str
    columns: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()
    options: tuple[tuple[str, tuple[float, ...]], ...] = ()

    @property
    def group_columns(self) -> tuple[str, ...]:
        """The columns whose categories make groups."""
        return (*(self.columns if self.function == "share" else ()), *self.by)

    def __post_init__(self) -> None:
        for name in ("columns", "by"):
            object.__setattr__(self, name, names_of(vars(self)[name]))
        if self.function not in FUNCTIONS:
            raise InputError(f"unknown statistic {self.function!r}{nearest(self.function, FUNCTIONS)}")
        rule = FUNCTIONS[self.function]
        self._within("columns", len(self.columns), rule.columns)
        self._within("numbers", len(self.numbers), rule.numbers)
        for name, _ in self.options:
            if name not in rule.options:
                raise InputError(f"{self.function} has no option {name!r}{nearest(name, rule.options)}")
        self._check_numbers()

    def _within(self, what: str, found: int, limits: tuple[int, int]) -> None:
        low, high = limits
        if not low <= found <= high:
            allowed = str(low) if low == high else f"{low} to {high}"
            form = f"{self.function}({_FORMS.get(self.function, 'x')})"
            raise InputError(f"{what} of {self.function} must be {allowed}, got {found}: {self}; write {form}")

    def _check_numbers(self) -> None:
        def whole(name: str, most: int) -> bool:
            value = self.option(name, (2.0,))
            return len(value) == 1 and 2 <= value[0] <= most and value[0] == int(value[0])

        edges, bound = self.option("edges", (0.0, 1.0)), self.option("per_person", (1.0,))
        rules = {
            "probabilities of quantile must be above 0 and below 1": all(0 < p < 1 for p in self.numbers),
            "give bins or edges, not both": not {"bins", "edges"} <= dict(self.options).keys(),
            "edges must be increasing numbers, as in edges=0:18:65": len(edges) > 1
            and all(a < b for a, b in pairwise(edges)),
            "bins must be a whole number from 2 to 1000": whole("bins", 1000),
            f"points must be a power of two (2, 4, …, {_MOST_POINTS})": whole("points", _MOST_POINTS)
            and _MOST_POINTS % self.option("points", (2.0,))[0] == 0,
            "per_person must be one number above 0, what one person may add at most": len(bound) == 1
            and 0 < bound[0] < math.inf,
        }
        for rule, kept in rules.items():
            if not kept:
                raise InputError(f"{rule}, got {self}")

    def option(self, name: str, default: tuple[float, ...]) -> tuple[float, ...]:
        """Return the numbers given as ``name``, or ``default``."""
        return dict(self.options).get(name, default)

    def __str__(self) -> str:
        joined = " + ".join(map(_column_as_written, self.columns[1:]))
        if self.function == "regression" and joined:
            inside = [f"{_column_as_written(self.columns[0])} ~ {joined}"]
        else:
            inside = list(map(_column_as_written, self.columns))
        inside += [f"{value:g}" for value in self.numbers]
        for name, values in self.options:
            inside.append(f"{name}={':'.join(str(one) if isinstance(one, Day) else f'{one:g}' for one in values)}")
        by = f" by {', '.join(map(_column_as_written, self.by))}" if self.by else ""
        return f"{self.function}({', '.join(inside)}){by}"


def nearest(word: str, known: object) -> str:
    """Return "; did you mean …?", or the list of what is known."""
    names = [str(name) for name in known]  # type: ignore[attr-defined]
    return near(_ALSO.get(word, word), names) or (f"; known: {', '.join(names)}" if names else "; it takes none")


def parse(text: str | Statistic) -> Statistic:
    """Return the statistic that ``text`` asks for, such as ``"mean(income) by region, sex"``.

    Raises
    ------
    InputError
        Where the text is not of the grammar, with what was expected there; and as :class:`Statistic`.

    Examples
    --------
    See ``release_statistics``.
    """
    if isinstance(text, Statistic):
        return text
    if not isinstance(text, str):
        raise InputError(f"a statistic must be a text such as 'mean(income) by region', got {text!r}")
    left = _Tokens(text)
    function = left.take("word", "a function, such as mean or count")
    columns: list[str] = []
    numbers: list[float] = []
    options: list[tuple[str, tuple[float, ...]]] = []
    left.sign("(", "'(' after the function, as in count() by region")
    while not left.has(")"):
        if columns or numbers or options:
            left.sign(",", "',' or ')'")
        if left.kind == "number":
            numbers.append(float(left.take("number", "")))
            continue
        name = left.column()
        if left.has("="):
            options.append((name, left.listed(":", partial(left.number, f"a number after {name}="))))
            continue
        columns.append(name)
        if function == "regression" and len(columns) == 1:
            left.sign("~")
            columns += left.listed("+", left.column)
    by: tuple[str, ...] = ()
    if left.kind != "end":
        if not left.has("by", "word"):
            left.fail("'by' and columns, or the end")
        by = left.listed(",", left.column)
    if left.kind != "end":
        left.fail("',' or the end")
    return Statistic(function, tuple(columns), by, tuple(numbers), tuple(options))


def _column_as_written(column: str) -> str:
    return column if re.fullmatch(_WORD, column) and column != "by" else '"' + column.replace('"', '""') + '"'


class _Tokens:
    """What is left of a text, from left to right."""

    def __init__(self, text: str) -> None:
        self._text, self._left = text, [*_tokens(text), ("end", "")]

    @property
    def kind(self) -> str:
        """What comes next."""
        return self._left[0][0]

    def take(self, kind: str, what: str) -> str:
        """Return the next token, which must be of this kind."""
        if self.kind != kind:
            self.fail(what)
        return self._left.pop(0)[1]

    def has(self, text: str, kind: str = "sign") -> bool:
        """Whether this sign, or word, comes next; it is taken then."""
        found = self._left[0] == (kind, text)
        del self._left[:found]
        return found

    def sign(self, sign: str, expected: str = "") -> None:
        """Take this sign."""
        if not self.has(sign):
            self.fail(expected or repr(sign))

    def column(self) -> str:
        """Take the name of a column."""
        quoted = self.kind == "quoted"
        text = self.take("quoted" if quoted else "word", "the name of a column")
        return text[1:-1].replace(text[0] * 2, text[0]) if quoted else text

    def number(self, what: str) -> float:
        """Take a number or a date."""
        return Day.of(self.take("date", what)) if self.kind == "date" else float(self.take("number", what))

    def listed(self, between: str, one: Callable[[], T]) -> tuple[T, ...]:
        """Take one or several things with a sign between them."""
        found = [one()]
        while self.has(between):
            found.append(one())
        return tuple(found)

    def fail(self, expected: str) -> NoReturn:
        """Say what was expected here."""
        found = "the end" if self.kind == "end" else repr(self._left[0][1])
        raise InputError(f"statistic {self._text!r}: expected {expected}, found {found}")


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            raise InputError(
                f"statistic {text!r}: {text[at:].strip()!r} cannot be read; put names with other "
                "characters in double quotes"
            )
        yield found.lastgroup, found.group(found.lastgroup)
        at = found.end()


@dataclass(frozen=True)
class ColumnScale:
    """What is public about a numeric column: range, whether of dates (days since 1970-01-01) or of whole numbers."""

    low: float
    high: float
    dates: bool = False
    whole: bool = False

    @property
    def centre(self) -> float:
        """Middle of the range, which stands for 0."""
        return self.low / 2 + self.high / 2

    @property
    def half(self) -> float:
        """Half the width of the range, which stands for 1."""
        return self.high / 2 - self.low / 2

    @property
    def farthest(self) -> float:
        """Distance from 0 of the farther end."""
        return max(abs(self.low), abs(self.high))

    def written(self, value: float) -> str:
        """Return a value of the column as people write it: a date, or a number of six digits."""
        return written(value, as_date=self.dates)

    def exactly(self) -> str:
        """Return the range in a text, as exactly as it was used."""
        return ", ".join(end if isinstance(end, str) else f"{end:.15g}" for end in self.ends)

    @property
    def ends(self) -> tuple[Any, Any]:
        """The range as people write it."""
        return (str(Day(self.low)), str(Day(self.high))) if self.dates else (self.low, self.high)
