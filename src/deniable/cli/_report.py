"""What every command that makes a report has in common: --policy, --meta, --full, and how it is shown."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable._files import check_writable, write_atomically
from deniable.cli._app import FINE, MISSED, command_line, more, suggest

if TYPE_CHECKING:
    from deniable.report import Assessment

PolicyOption = Annotated[
    str | None,
    typer.Option(
        "--policy",
        help="TOML file with the limits that decide (or: default). Exit code 1 unless the report meets them.",
    ),
]
MetaOption = Annotated[Path | None, more("--meta", help="TOML file with date, author, data, who signs, review date.")]
FullOption = Annotated[bool, typer.Option("--full", help="Print every number, not only the decision.")]
ReportOption = Annotated[
    Path | None,
    typer.Option("--report", help="Write a report that may be published here: .html or .json."),
]
OwnerReportOption = Annotated[
    Path | None,
    typer.Option("--owner-report", help="Write a report with what no noise protects here: it stays with the data."),
]


def prepared(
    policy: str | None, meta: Path | None = None, report: Path | None = None, owner_report: Path | None = None
) -> dict[str, Any]:
    """Refuse pages that cannot be written and read --policy and --meta, before any work; return options of assess.

    The date is that of today unless --meta names one.
    """
    for option, page in (("--report", report), ("--owner-report", owner_report)):
        if page is not None:
            check_writable(option, page, suffixes=(".html", ".htm", ".json"))
    from deniable.report import Policy
    from deniable.report.meta import read_meta

    return {
        "command": command_line(),
        "policy": None if policy is None else Policy.from_toml(policy),
        "meta": {"date": date.today(), **({} if meta is None else read_meta(meta))},
    }


def show(
    assessment: Assessment,
    out: Path | None,
    as_json: bool,
    policy: str | None,
    *,
    full: bool = False,
    following: Sequence[str] = (),
) -> int:
    """Print an assessment, write it to ``out`` in the form that its suffix asks for, and suggest what follows.

    Return the exit code.
    """
    if out is not None:
        write_atomically(out, written(assessment, out))
    if as_json:
        print(assessment.to_json())
        return code(assessment, policy)
    from rich.console import Console

    from deniable.report.text import renderable

    Console(soft_wrap=False).print(renderable(assessment, full=full))
    if not full:
        print("every number: --full", file=sys.stderr)
    if out is not None:
        print(f"report written to {out}", file=sys.stderr)
    suggest(*(annex_of(out) or following))
    return code(assessment, policy)


def annex_of(out: Path | None) -> tuple[str, ...]:
    """Return the command that makes an annex of a report that was written as JSON; nothing of another."""
    return ("annex", str(out), "--kind", "dpia") if out is not None and out.suffix.lower() == ".json" else ()


def written(assessment: Assessment, out: Path) -> str:
    """Return the content of the file ``out``, by its ending."""
    return assessment.to_json() if out.suffix.lower() == ".json" else assessment.to_html()


def code(assessment: Assessment, policy: str | None) -> int:
    """Return the exit code: 1 for a violated bound, or a given policy that is not shown to be met."""
    if assessment.status == "violated":
        return MISSED
    decision = assessment.decision
    return MISSED if policy is not None and (decision is None or not decision.met) else FINE
