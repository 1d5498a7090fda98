"""The options --schema and --ranges: public knowledge of columns, from a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable._check import InputError
from deniable._files import read_json

if TYPE_CHECKING:
    from deniable.tables import Schema

_EXAMPLE = '{"age": [0, 120], "sex": ["F", "M"]}'
RangesOption = Annotated[
    Path | None,
    typer.Option(
        "--ranges",
        help=f"JSON file with public scaling constants, {_EXAMPLE}; what is not given is read off the data, coarsely, "
        "and assumed public.",
    ),
]

SchemaOption = Annotated[
    Path | None,
    typer.Option(
        "--schema",
        help="TOML file that declares columns: kinds, formats, ranges, categories, target, person. What it declares is "
        "not queried. deniable check --schema-out drafts one.",
    ),
]


def read_schema(path: Path | None) -> Schema | None:
    """Return the schema that the file holds, or None if there is none."""
    from deniable.tables import Schema

    return None if path is None else Schema.read(path)


def read_ranges(path: Path | None) -> dict[str, Any] | None:
    """Return the content of the file, or None if there is none."""
    if path is None:
        return None
    try:
        content = read_json(path)
    except (OSError, ValueError) as error:
        raise InputError(f"--ranges {str(path)!r} could not be read as JSON: {error}") from None
    if not isinstance(content, dict) or not all(isinstance(value, list) for value in content.values()):
        raise InputError(f"--ranges {str(path)!r} must hold an object from column to [low, high] or categories")
    return content
