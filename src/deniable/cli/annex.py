"""``deniable annex``: a report in the fields of the documents that others ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from deniable._files import check_writable, to_json
from deniable.cli import _options as options
from deniable.cli._app import command, write

AnnexKind = Literal["dpia", "edpb", "cnil", "ico", "nist-800-226", "sacro", "model-card", "dp-registry"]


@command(
    "deniable annex report.json --kind edpb --out dpia.md",
    "deniable annex report.json --kind dp-registry --meta meta.toml",
)
def annex(
    report: Annotated[Path, typer.Argument(help="A report as .json, written with --out or --report.")],
    kind: Annotated[AnnexKind, typer.Option(help="Kind of document to fill in.")],
    meta: options.MetaOption = None,
    owner: Annotated[bool, typer.Option("--owner", help="Also of a report with what no noise protects.")] = False,
    out: Annotated[Path | None, options.file("--out", "Write it here", ".md", ".yaml", ".yml")] = None,
    as_json: options.JsonFlag = False,
) -> None:
    """Fill the fields of a document from a report's numbers.

    The rest is marked "to be filled by you".

    Documents: a data protection impact assessment by GDPR article 35, by the EDPB's parts, by the CNIL's or the ICO's
    steps, an evaluation along NIST SP 800-226, a check for output checkers, a model card, an entry of a registry.
    """
    if out is not None:
        check_writable("--out", out, suffixes=(".yaml", ".yml") if kind == "dp-registry" else (".md",))
    from dataclasses import replace

    from deniable.report import read_meta

    made = options.saved_report(report)
    if meta is not None:
        made = replace(made, meta={**made.meta, **read_meta(meta)})
    text = made.annex(kind, owner=owner)
    if out is not None:
        write({out: text})
    if as_json:
        print(to_json({"kind": kind, "text": text, "written_to": None if out is None else str(out)}))
    elif out is None:
        print(text, end="" if text.endswith("\n") else "\n")
