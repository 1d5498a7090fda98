"""``deniable synthesize``: synthetic records from a generator that was released with a membership guarantee."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from deniable._check import InputError
from deniable._files import check_writable, to_json, write_atomically
from deniable._shown import shown
from deniable.cli._app import JsonFlag, SeedOption, app, examples


@app.command(
    epilog=examples(
        "deniable synthesize data.csv --eta 0.1 --rows 1000 --out synthetic.csv",
        "deniable synthesize breast-cancer --eta 0.05 --rows 500 --drop target --out synthetic.csv --json",
    )
)
def synthesize(
    data: Annotated[str, typer.Argument(help="A table whose columns are numbers, or a built-in name: breast-cancer.")],
    out: Annotated[Path, typer.Option(help="Where the synthetic table goes: a .csv file.")],
    eta: Annotated[float, typer.Option(help="Largest gain of any membership attack over guessing.")] = 0.1,
    rows: Annotated[int, typer.Option(help="Number of synthetic records; any number costs the same privacy.")] = 1000,
    fraction: Annotated[float, typer.Option(help="Share of the records that the generator is made from.")] = 0.5,
    drop: Annotated[list[str] | None, typer.Option(help="Column to leave out; may be repeated.")] = None,
    certificate: Annotated[Path | None, typer.Option(help="Where the certificate goes, as JSON.")] = None,
    seed: SeedOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Release the mean and covariance of a secret half of a table, and draw synthetic records from them.

    The records have the table's averages, spreads and correlations, and nothing else of it: no tails, no gaps.
    """
    check_writable("--out", out, suffixes=(".csv",))
    if certificate is not None:
        check_writable("--certificate", certificate, suffixes=(".json",))
    from deniable.noise import release_generator
    from deniable.tables.reading import understand_any

    found = understand_any(data, drop=tuple(drop or ()), strict=False)
    frame = found.frame
    numeric = [name for name in frame.columns if frame[name].dtype.kind in "iuf"]
    others = [str(name) for name in frame.columns if name not in numeric]
    if others:
        raise InputError(f"columns must be numbers, but these are not: {', '.join(others)}; leave them out with --drop")
    for column in found.columns:
        if column.reason:
            print(f"left out: {column.name} ({column.reason})", file=sys.stderr)
    made = release_generator(frame.astype("float64"), eta=eta, fraction=fraction, rng=seed)
    write_atomically(out, made.sample(rows).to_csv(index=False))
    if certificate is not None:
        write_atomically(certificate, to_json(made.certificate.to_dict()))
    if as_json:
        print(to_json({"rows": rows, "columns": len(numeric), "certificate": made.certificate.to_dict()}))
    else:
        stated = shown(made.certificate.eta, "rate", "upper")
        print(f"{rows:,} synthetic records of {len(numeric)} columns in {out}")
        print(f"any membership attack gains at most {stated} over guessing")
