"""What is known about a column of a table, without a single value of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from deniable.tables.cells import Form

ColumnKind = Literal["number", "category", "yes/no", "date", "dropped"]

PUBLIC = (
    "The names and kinds of the columns, how their cells are read and which columns were dropped were decided by "
    "looking at the data; these decisions are taken as public."
)


@dataclass(frozen=True)
class Column:
    """What was understood of one column.

    Attributes
    ----------
    name
        As in the header.
    kind
        "number", "category", "yes/no" or "date" (days since 1970-01-01); "dropped" columns are not used.
    missing
        Share of the cells that hold nothing.
    notes
        What was read differently from how it is written: words taken as missing, separators, dates, signs.
    reason
        Why the column was dropped and what to do if it should not be; empty for the others.

    Notes
    -----
    No category, minimum, maximum or other value of the column is kept here.
    """

    name: str
    kind: ColumnKind
    missing: float = 0.0
    notes: tuple[str, ...] = ()
    reason: str = ""
    form: Form = Form()  # noqa: RUF009  (a frozen dataclass)

    @property
    def line(self) -> str:
        """The column in one line, for people."""
        words: list[str] = [f"dropped: {self.reason}" if self.kind == "dropped" else self.kind]
        if self.missing:
            words.append(f"{100 * self.missing:.2g}\u00a0% missing")
        return f"{self.name!r}: {'; '.join([*words, *self.notes])}"
