"""``deniable predict``: what a trained model says of the rows of a table."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from deniable._check import InputError
from deniable._files import to_json
from deniable._optional import require
from deniable.cli import _options as options
from deniable.cli._app import command, write

_KNOWN = ("deniable.", "scipy.sparse.")  # whose types a trained model is made of


@command(
    "deniable predict model.skops new.csv --out predictions.csv",
    "deniable predict model.skops new.parquet --json",
)
def predict(
    model: Annotated[Path, typer.Argument(help="A model that train wrote: .skops.")],
    data: Annotated[Path, typer.Argument(help="A file (.csv, .parquet, .xlsx, .ods, .dta, …) with its columns.")],
    out: Annotated[Path | None, options.file("--out", "Write a row for each record here", ".csv")] = None,
    *,
    reading: Annotated[options.Reading, "decimal", "sheet"],
    as_json: options.JsonFlag = False,
) -> None:
    """Predict the target of each row with a trained model.

    A line of a text file that has other than the header's cells gets an empty row.

    A classifier also gives the probability of each class.

    A prediction reveals no more about the training data than the model does.
    """
    fitted = _load_model(model)
    from deniable.noise import only_our_words
    from deniable.tables import Schema, open_table

    with only_our_words():
        steps = [step for _, step in getattr(fitted, "steps", [("", fitted)])]
        told = getattr(steps[-1], "schema_", Schema())
        if reading.decimal is not None:
            steps[-1].schema_ = told = replace(told, decimal=reading.decimal)
        names = getattr(steps[0], "columns", ())
        opened = open_table(data, told, sheet=reading.sheet, columns=names).checked()
        found = _predictions(fitted, opened.frame)
    if opened.odd:
        lines = range(1, len(found) + len(opened.odd) + 1)
        found = found.astype(object).set_axis(sorted({*lines} - {*opened.odd})).reindex(lines)
        print(f"warning: no prediction for lines that are no records: {len(opened.odd)}", file=sys.stderr)
    if out is not None:
        write({out: found.to_csv(index=False)})
    if as_json:
        print(to_json(found.to_dict("records")))
    elif out is None:
        print(found.to_csv(index=False), end="")


def _load_model(path: Path) -> Any:
    """Return the model of a file whose types are those that skops or deniable knows: nothing else is run."""
    skops: Any = require("skops.io", purpose="reading a .skops model")
    if path.suffix.lower() != ".skops" or not path.is_file():
        raise InputError(f"model must be the .skops file that deniable train wrote with --out, got {str(path)!r}")
    try:
        own = [kind for kind in skops.get_untrusted_types(file=path) if kind.startswith(_KNOWN)]
        found = skops.load(path, trusted=own)
    except Exception as error:  # zip files, JSON and types, each with errors of its own
        raise InputError(f"model {str(path)!r} could not be read: {error}") from None
    if not hasattr(found, "predict"):
        raise InputError(f"model {str(path)!r} holds no model, but {type(found).__name__}")
    return found


def _predictions(model: Any, rows: Any) -> Any:
    import pandas as pd

    found = pd.DataFrame({"prediction": model.predict(rows)})
    if hasattr(model, "predict_proba"):
        chances = model.predict_proba(rows)
        found = found.assign(**{f"probability_{one}": chances[:, at] for at, one in enumerate(model.classes_)})
    return found
