"""The option --schema: public knowledge of columns, from a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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


def read_schema(path: Path | None) -> Schema | None:
    """Return the schema that the file holds, or None if there is none."""
    from deniable.tables import Schema

    return None if path is None else Schema.read(path)
