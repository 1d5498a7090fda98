"""``deniable synthetic``: what a released table reveals about the records it was made from."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from deniable._check import InputError
from deniable._files import check_writable
from deniable.cli._app import JsonFlag, SeedOption, again, app, command_line, examples
from deniable.cli._report import FullOption, show

if TYPE_CHECKING:
    import pandas as pd


@app.command(
    epilog=examples(
        "deniable synthetic synthetic.csv --members train.csv --nonmembers holdout.csv --reference survey.csv",
        "deniable synthetic synthetic.parquet --members train.parquet --nonmembers holdout.parquet --out audit.html",
    )
)
def synthetic(
    table: Annotated[Path, typer.Argument(help="The released table: .csv, .tsv, .parquet, .feather or .xlsx.")],
    members: Annotated[Path, typer.Option(help="Records that it was made from.")],
    nonmembers: Annotated[Path, typer.Option(help="Records like them that it was not made from.")],
    reference: Annotated[Path | None, typer.Option(help="Further records that the attacker has.")] = None,
    method: Annotated[str, typer.Option(help="auto, nearest, density or marginals.")] = "auto",
    confidence: Annotated[float, typer.Option(help="Probability with which each interval holds.")] = 0.95,
    seed: SeedOption = None,
    out: Annotated[Path | None, typer.Option(help="Also write the report: .html, .json or .md.")] = None,
    full: FullOption = False,
    as_json: JsonFlag = False,
) -> None:
    """Attack a synthetic table: nearest neighbours, densities and marginals, with exact intervals."""
    if out is not None:
        check_writable("--out", out, suffixes=(".html", ".htm", ".json", ".md"))
    import deniable as dn
    from deniable.audit.synthetic import SyntheticMethod

    released, *others = (_frame(path) for path in (table, members, nonmembers, reference) if path is not None)
    absent = [name for other in others for name in released.columns if name not in other]
    if absent:
        raise InputError(f"every table must have the released table's columns; missing: {', '.join(sorted({*absent}))}")
    released, inside, outside, *known = _read_alike([released, *(other[released.columns] for other in others)])
    found = dn.attack_synthetic(
        released, inside, outside, known[0] if known else None, method=cast(SyntheticMethod, method), rng=seed
    )
    made = dn.assess(
        found.audit(confidence, command=command_line()),
        title=f"{found.method}: {table.name}",
        command=command_line(),
    )
    following = again("--out", "audit.html") if out is None else ()
    show(made, out, as_json, full=full, following=following)


def _frame(path: Path) -> pd.DataFrame:
    from deniable.tables.files import open_file

    opened = open_file(path)
    if opened.problems:
        raise InputError(f"{str(path)!r}: {opened.problems[0]}")
    frame: pd.DataFrame = opened.frame
    return frame


def _read_alike(frames: list[pd.DataFrame]) -> list[pd.DataFrame]:
    """Turn the texts of a column into numbers where those of every table are numbers (or missing)."""
    import pandas as pd

    together = pd.concat(frames, ignore_index=True)
    for name in together.columns:
        numbers = pd.to_numeric(together[name], errors="coerce")
        if not (numbers.isna() & together[name].notna() & (together[name].astype(str).str.strip() != "")).any():
            together[name] = numbers.astype(float)
    ends = [0, *itertools.accumulate(map(len, frames))]
    return [together.iloc[a:b] for a, b in itertools.pairwise(ends)]
