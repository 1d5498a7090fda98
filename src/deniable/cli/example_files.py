"""``deniable examples``: small programs to start from, written into a folder."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Annotated

import typer

from deniable._check import InputError
from deniable._files import to_json
from deniable.cli import _options as options
from deniable.cli._app import command, suggest, write

SCRIPTS = Path(__file__).with_name("scripts")


@command("deniable examples", "deniable examples --out my-first-steps", name="examples")
def write_examples(
    out: Annotated[Path | None, typer.Option(help="Folder to write them into; existing files are kept.")] = None,
    as_json: options.JsonFlag = False,
) -> None:
    """List small programs to start from, or write them."""
    scripts = {script.name: script.read_text() for script in sorted(SCRIPTS.glob("*.py"))}
    if out is not None:
        if taken := [name for name in scripts if (out / name).exists()]:
            raise InputError(f"out: {', '.join(taken)} exists in {out} already; name another folder")
        out.mkdir(parents=True, exist_ok=True)
        write({out / name: text for name, text in scripts.items()})
    about = {name: ast.get_docstring(ast.parse(text)) for name, text in scripts.items()}
    if as_json:
        print(to_json({"written_to": None if out is None else str(out), "examples": about}))
        return
    for name, words in about.items():
        print(f"{name:<20} {words}")
    suggest(*(("examples", "--out", "first-steps") if out is None else ()))
