"""``deniable examples``: small programs to start from, written into a folder."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Annotated

import typer

from deniable._check import InputError
from deniable._files import to_json, write_atomically
from deniable.cli import _options as options
from deniable.cli._app import command, suggest

SCRIPTS = Path(__file__).with_name("scripts")


@command("deniable examples", "deniable examples --out my-first-steps", name="examples")
def write_examples(
    out: Annotated[Path | None, typer.Option(help="Folder to write them into; existing files are kept.")] = None,
    as_json: options.JsonFlag = False,
) -> None:
    """List small programs to start from, or write them."""
    scripts = sorted(SCRIPTS.glob("*.py"))
    if out is not None:
        taken = [script.name for script in scripts if (out / script.name).exists()]
        if taken:
            raise InputError(f"out: {', '.join(taken)} exists in {out} already; name another folder")
        out.mkdir(parents=True, exist_ok=True)
        for script in scripts:
            write_atomically(out / script.name, script.read_text())
    about = {script.name: (ast.get_docstring(ast.parse(script.read_text())) or "") for script in scripts}
    if as_json:
        print(to_json({"written_to": None if out is None else str(out), "examples": about}))
        return
    for name, text in about.items():
        print(f"{name:<20} {text}")
    if out is None:
        suggest("examples", "--out", "first-steps")
    else:
        print(f"\nwritten; start with: python {out / 'private_model.py'}")
