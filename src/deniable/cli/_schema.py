"""The option --schema: public knowledge of columns, from a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable.cli._app import more

if TYPE_CHECKING:
    from deniable.tables import Schema

SchemaOption = Annotated[
    Path | None,
    typer.Option(
        "--schema",
        help="TOML file that declares columns: kinds, formats, ranges, categories, target, person. What it declares is "
        "not read off the data. deniable check --schema-out drafts one.",
    ),
]


DecimalOption = Annotated[
    str | None, more("--decimal", help="Decimal mark of all columns, . or , (of a file, also a line in the schema).")
]
SheetOption = Annotated[str | None, more("--sheet", help="Sheet of a workbook to read, if not the first.")]


def read_schema(path: Path | None, decimal: str | None = None) -> Schema | None:
    """Return the schema that the file holds, with the decimal mark if one is given, or None if there is neither."""
    from deniable.tables import Schema

    found = None if path is None else Schema.read(path)
    return found if decimal is None else replace(found or Schema(), decimal=decimal)


def opened(
    data: str | Path, path: Path | None, decimal: str | None, sheet: str | None = None
) -> tuple[Any, Schema | None]:
    """Return a table that was opened, and what is declared of it."""
    from deniable.noise import only_our_words
    from deniable.tables import open_table

    told = read_schema(path, decimal)
    with only_our_words():
        return open_table(data, told, sheet=sheet), told
