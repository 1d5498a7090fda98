"""What a person adds to a report: date, author, version, the data, who signs."""

from __future__ import annotations

import datetime
import hashlib
from pathlib import Path
from typing import Any

from deniable._check import InputError, refuse_unknown
from deniable._files import read_toml

FIELDS = {
    "date": "Date",
    "author": "Author",
    "organisation": "Organisation",
    "version": "Version of the model or release",
    "data": "Data",
    "model_sha256": "SHA-256 of the model",
    "row_numbering": "How rows are numbered",
    "purpose": "Purpose",
    "signed_by": "Signed by",
    "review_date": "To be reviewed on",
    "contact": "Contact",
    "region": "Region",
    "product_type": "Type of data product",
}


def read_meta(source: str | Path | dict[str, Any]) -> dict[str, str]:
    """Return the fields of a ``meta.toml`` (or of a dictionary) as texts, in the order of ``FIELDS``.

    ``model_file = "model.skops"`` fills ``model_sha256`` with the hash of that file (a path relative to the TOML file).
    A hash of the training data would tell exactly who was in them.

    Raises
    ------
    InputError
        For a key that is not known, or a model file that cannot be read.
    """
    if isinstance(source, dict):
        table, where, folder = dict(source), "meta", Path(".")
    else:
        table, where, folder = _table(source), f"meta {str(source)!r}", Path(source).parent
    refuse_unknown(where, table, [*FIELDS, "model_file"])
    file = table.pop("model_file", None)
    if file is not None:
        try:
            with (folder / str(file)).open("rb") as stream:
                table["model_sha256"] = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError:
            raise InputError(f"model_file {str(folder / str(file))!r} cannot be read") from None
    for key, value in table.items():
        if not isinstance(value, str | int | float | datetime.date):
            raise InputError(f"{where}: {key} must be a text, a number or a date, got {value!r}")
    return {key: str(table[key]) for key in FIELDS if key in table}


def hashed_file(path: str | Path) -> list[Path]:
    """Return the ``model_file`` of a ``meta.toml``, if it has one: nothing that is written may replace it.

    Examples
    --------
    >>> import deniable as dn, tempfile
    >>> from pathlib import Path
    >>> meta = Path(tempfile.mkdtemp(), "meta.toml")
    >>> meta.write_text('model_file = "m.skops"') > 0 and [one.name for one in dn.report.hashed_file(meta)]
    ['m.skops']
    """
    table = _table(path)
    return [Path(path).parent / str(table["model_file"])] if "model_file" in table else []


def _table(path: str | Path) -> dict[str, Any]:
    table = read_toml("meta", path)[0]
    own = table.get("meta")
    return own if isinstance(own, dict) else table
