"""The --ranges option: public knowledge of columns, from a JSON file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from deniable._check import InputError

RangesOption = Annotated[
    Path | None,
    typer.Option(
        "--ranges",
        help='JSON file with public scaling constants, {"age": [0, 120], "sex": ["F", "M"]}; what is not given is read '
        "off the data, coarsely, and assumed public.",
    ),
]


def read_ranges(path: Path | None) -> dict[str, Any] | None:
    """Return the content of the file, or None if there is none."""
    if path is None:
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise InputError(f"--ranges {str(path)!r} is nested too deeply to be read") from None
    except (OSError, ValueError) as error:
        raise InputError(f"--ranges {str(path)!r} could not be read as JSON: {error}") from None
    if not isinstance(content, dict) or not all(isinstance(value, list) for value in content.values()):
        raise InputError(f"--ranges {str(path)!r} must hold an object from column to [low, high] or categories")
    return content
