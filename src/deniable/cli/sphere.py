"""``deniable sphere``: how far leaving a record out can move a model, without solving for a single one."""

from __future__ import annotations

import sys
from typing import Annotated

import numpy as np
import typer

from deniable._check import InputError, integer
from deniable._files import to_json
from deniable._shown import shown
from deniable.cli._app import JsonFlag, app, examples, of_table, suggest
from deniable.cli._ranges import RangesOption, read_ranges
from deniable.cli._report import FirstRowOption


@app.command(
    epilog=examples(
        "deniable sphere breast-cancer --regularization 1e-2",
        "deniable sphere people.csv --target ill --regularization 1e-2 --removed 3 --removed 4 --first-row 2",
    )
)
def sphere(
    data: Annotated[
        str, typer.Argument(help="A .csv or .parquet file, or a built-in name: breast-cancer, digits-3-8.")
    ],
    target: Annotated[str | None, typer.Option(help="Column to predict; it has two values.")] = None,
    regularization: Annotated[float, typer.Option(help="Λ in mean loss + Λ/2‖f‖², above 0.")] = 1e-2,
    removed: Annotated[
        list[int] | None, typer.Option(help="Rows that leave together; may be repeated. Without it: each row alone.")
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(help="Column to leave out; may be repeated.")] = None,
    top: Annotated[int, typer.Option(help="How many of the records that could move the model farthest to print.")] = 10,
    ranges: RangesOption = None,
    first_row: FirstRowOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Bound how far a logistic regression moves when records leave (LeBlond et al., eqs. 14–22).

    The new optimum lies in a ball whose surface holds the old one. The distances are as sensitive as the data.
    """
    from deniable.records import changed_sphere, worst_case_sphere
    from deniable.tables import encode, read_table

    public = read_ranges(ranges)
    encoded = encode(read_table(data, target, drop=tuple(drop or ()), ranges=public), ranges=public)
    n = len(encoded.y)
    print_at_most = min(integer("--top", top, at_least=1), n)
    rows = [_row(row, first_row, n) for row in removed or ()]
    if rows:
        found = changed_sphere(encoded.X, encoded.y, regularization=regularization, removed=rows)
    else:
        found = worst_case_sphere(encoded.X, encoded.y, regularization=regularization)
    farthest = found.largest_distance
    order = np.argsort(-farthest, kind="stable")
    if as_json:
        print(
            to_json(
                {
                    "records": n,
                    "regularization": regularization,
                    "removed": [row + first_row for row in rows] if rows else None,
                    "radius": found.radius.tolist(),
                    "largest_distance": farthest.tolist(),
                    "first_row": first_row,
                }
            )
        )
        return
    print(f"{n:,} records, {encoded.X.shape[1]} parameters, Λ = {regularization:g}")
    if rows:
        names = ", ".join(str(row + first_row) for row in rows)
        print(f"without rows {names} the model is at most {shown(float(farthest[0]), 'number', 'upper')} away;")
        print(f"it lies in a ball of radius {shown(float(found.radius[0]), 'number', 'upper')} that the model touches")
        return
    print(f"no record moves the model by more than {shown(float(farthest.max()), 'number', 'upper')}; farthest first")
    for i in order[:print_at_most]:
        reach = shown(float(farthest[i]), "number", "upper")
        print(
            f"  row {i + first_row}: at most {reach}, ball of radius {shown(float(found.radius[i]), 'number', 'upper')}"
        )
    print("(the next command computes exact distances)", file=sys.stderr)
    table = of_table(data, target, drop, ranges)
    suggest("profile", *table, "--regularization", f"{regularization:g}", "--epsilon", "1")


def _row(row: int, first_row: int, n: int) -> int:
    if not first_row <= row < first_row + n:
        raise InputError(f"--removed must be rows from {first_row} to {first_row + n - 1}, got {row}")
    return row - first_row
