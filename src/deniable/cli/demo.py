"""``deniable demo``: the main job on data that needs no network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deniable._files import check_writable
from deniable.cli._app import JsonFlag, app, examples, suggest


@app.command(epilog=examples("deniable demo", "deniable demo --out report.html", "deniable demo --json"))
def demo(
    out: Annotated[Path, typer.Option(help="Where to write the page.")] = Path("deniable-demo.html"),
    as_json: JsonFlag = False,
) -> None:
    """Fit a private model to scikit-learn's breast-cancer data and write the report."""
    check_writable("--out", out, suffixes=(".html", ".htm"))
    from deniable.cli.train import finish
    from deniable.workflows.training_run import train_table

    made = train_table(
        "breast-cancer",
        advantage=0.1,
        progress=True,
        command="deniable train breast-cancer --advantage 0.1 --report report.html",
    )
    finish(made, None, out, as_json)
    if not as_json:
        suggest("examples", "--out", "first-steps")
    typer.echo(f"Open this page in a browser: {out.resolve()}", err=True)
