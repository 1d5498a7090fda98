"""``deniable demo``: the main job on data that needs no network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deniable._files import check_writable
from deniable.cli._app import JsonFlag, app, examples


@app.command(epilog=examples("deniable demo", "deniable demo --out report.html", "deniable demo --json"))
def demo(
    out: Annotated[Path, typer.Option(help="Where to write the page.")] = Path("deniable-demo.html"),
    as_json: JsonFlag = False,
) -> None:
    """Assess a logistic regression on scikit-learn's breast-cancer data and write the report."""
    check_writable("--out", out, suffixes=(".html", ".htm"))
    import deniable as dn
    from deniable.cli.assess import show

    made = dn.assess(
        "breast-cancer",
        epsilon=2.0,
        regularization=0.02,
        prior=0.1,
        rng=0,
        progress=True,
        command="deniable assess breast-cancer --epsilon 2 --regularization 0.02 --prior 0.1 --seed 0",
    )
    show(made, out, as_json)
    typer.echo(f"Open this page in a browser: {out.resolve()}", err=True)
