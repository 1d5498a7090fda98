"""Options that several commands share: single ones, and groups that a command takes as one object.

A file that a command is to write is checked where it is parsed, before any work.
"""

from __future__ import annotations

import ast
import io
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable._check import InputError
from deniable._files import check_writable
from deniable.cli._app import FINE, MISSED, command_line, keep, suggest, write
from deniable.cli.run import is_run, read_run

if TYPE_CHECKING:
    from deniable.limits import Limit
    from deniable.mechanisms import Mechanism
    from deniable.report import Assessment, Policy
    from deniable.tables import Schema

more = partial(typer.Option, hidden=True)  # an option for --help-all


def file(option: str, what: str, *endings: str) -> Any:
    """Return an option for a file to write, which is refused if none with one of ``endings`` can be written there.

    A name without dashes is an argument.
    """

    def writable(path: Path | None) -> Path | None:
        return None if path is None else check_writable(option, path, suffixes=endings)

    usual = [ending for ending in endings if ending not in (".htm", ".yml")]
    words: Any = {"help": f"{what}: {' or '.join(usual)}.", "callback": writable}
    return typer.Option(option, **words) if option.startswith("-") else typer.Argument(metavar=option, **words)


def refuse(why: str, **given: Any) -> None:
    """Refuse the first of these options that is given: it would be ignored."""
    for name, value in given.items():
        if value:
            raise InputError(f"--{name.replace('_', '-')} {why}")


JsonFlag = Annotated[bool, typer.Option("--json", help="Print machine-readable JSON to stdout and nothing else.")]
PriorOption = Annotated[float, typer.Option("--prior", help="The attacker's prior: P(the record was in), in (0, 1).")]
FprOption = Annotated[float, typer.Option("--fpr", help="False positive rate as a fraction: 0.001 means 0.1 %.")]
PlotOption = Annotated[Path | None, file("--plot", "Also draw a picture", ".svg", ".png")]
SeedOption = Annotated[
    int | None, more("--seed", min=0, help="Seed of splits and simulations (never of released noise).")
]
DataArgument = Annotated[
    str, typer.Argument(help="A file (.csv, .parquet, .xlsx, .ods, .dta, …), or a built-in name: breast-cancer.")
]
TargetOption = Annotated[str | None, typer.Option("--target", help="Column to predict.")]
DropOption = Annotated[list[str] | None, typer.Option("--drop", help="Column to leave out; may be repeated.")]
GroupOption = Annotated[
    str | None,
    typer.Option("--group", help="Column that names the person: the guarantee then covers all records of a person."),
]
MetaOption = Annotated[Path | None, more("--meta", help="TOML file with date, author, data, who signs, review date.")]
PolicyOption = Annotated[
    str | None,
    typer.Option(
        "--policy",
        help="TOML file with the limits that decide (or: default, none); exit code 1 unless they are met "
        "[default: that of the project].",
    ),
]


def draw(result: Any, path: Path | None) -> None:
    """Write ``result.plot()`` to ``path``, if there is one; no window is opened."""
    if path is None:
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    result.plot(ax=figure.subplots())
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix[1:].lower(), dpi=150)
    write({path: buffer.getvalue()})


@dataclass(frozen=True)
class Reading:
    """How a table is read, as far as it is public knowledge."""

    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema",
            help="TOML file that declares columns: kinds, formats, ranges, categories, target, person. What it "
            "declares is not read off the data. deniable check --schema-out drafts one.",
        ),
    ] = None
    decimal: Annotated[
        str | None,
        more("--decimal", help="Decimal mark of all columns, . or , (of a file, also a line in the schema)."),
    ] = None
    sheet: Annotated[str | None, more("--sheet", help="Sheet of a workbook to read, if not the first.")] = None

    def declared(self) -> Schema | None:
        """Return the schema that the file holds, with the decimal mark if one is given, or None if there is neither."""
        from deniable.tables import Schema

        found = None if self.schema is None else Schema.read(self.schema)
        return found if self.decimal is None else replace(found or Schema(), decimal=self.decimal)

    def opened(self, data: str | Path, *, say: bool = True) -> tuple[Any, Schema | None]:
        """Return a table that was opened, and what is declared of it; ``say`` what was left of the file."""
        from deniable.noise import only_our_words
        from deniable.tables import open_table

        told = self.declared()
        with only_our_words():
            found = open_table(data, told, sheet=self.sheet)
        for note in found.notes if say else ():
            print(f"note: {data}: {note}", file=sys.stderr)
        return found, told


@dataclass(frozen=True)
class AskedLimit:
    """What an attacker may reach."""

    advantage: Annotated[
        float | None,
        typer.Option(
            "--advantage",
            help="Membership advantage; 0.1: at even odds, nobody is right more than 55 % of the time.",
        ),
    ] = None
    limit: Annotated[
        str | None,
        typer.Option(
            "--limit",
            help="In place of --advantage: tpr=0.01,fpr=0.001; epsilon=1,delta=1e-6; accuracy=0.6,prior=0.5; "
            "reconstruction=0.01,baseline=0.001 (blind guessing); singling_out=0.1,n=1000,weight=1e-6; "
            "attribute=0.75,prior=[0.7,0.2,0.1] (of its values). With group_size=3 it holds for three records in or "
            "out together. Or a run, as gaussian,0.25: at most as telling as this one.",
        ),
    ] = None

    def one(self, default: float | None = None) -> Limit | Mechanism:
        """Return the one limit that is asked for; without any that of the ``default`` advantage."""
        from deniable.limits import Limit

        given = default if self.advantage is None and self.limit is None else self.advantage
        if (given is None) == (self.limit is None):
            got = "neither" if self.limit is None else "both"
            raise InputError(f"give --advantage 0.1 or another limit, as --limit tpr=0.01,fpr=0.001; got {got}")
        return Limit(advantage=given) if self.limit is None else read_limit(self.limit)


def read_limit(text: str) -> Limit | Mechanism:
    """Return what ``--limit`` says."""
    from deniable.limits import limit_from

    if is_run(text):
        return read_run(text)
    try:
        call = ast.parse(f"Limit({text})", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            raise ValueError
        given = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
        if len(given) < len(call.keywords):
            raise ValueError
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise InputError(
            f"--limit must be numbers by name, as tpr=0.01,fpr=0.001, or a run, as gaussian,0.25; got {text!r}"
        ) from None
    return limit_from("--limit", given)


@dataclass(frozen=True)
class Pages:
    """What a report is held against, the files that show it, and how it is printed. A command names those it has."""

    report: Annotated[
        Path | None, file("--report", "Write a report that may be published here", ".html", ".json", ".htm")
    ] = None
    owner_report: Annotated[
        Path | None, file("--owner-report", "Write a report for the owner of the data alone", ".html", ".json", ".htm")
    ] = None
    policy: PolicyOption = None
    junit: Annotated[
        Path | None, file("--junit", "Write the rules of the policy as test cases here, for CI", ".xml")
    ] = None
    sarif: Annotated[Path | None, file("--sarif", "Write what misses the policy here, for code scanning", ".sarif")] = (
        None
    )
    meta: MetaOption = None
    full: Annotated[bool, typer.Option("--full", help="Print every number, not only the decision.")] = False
    as_json: JsonFlag = False

    @cached_property
    def decisive(self) -> tuple[Policy | None, Path]:
        """The policy that decides the exit code, and its file: it is read once, and no output may replace it."""
        from deniable.report import Policy

        if self.policy is not None:
            return None if self.policy == "none" else Policy.from_toml(self.policy), Path(self.policy)
        found = Policy.set_once() or (None, Path("pyproject.toml"))
        keep("the project's policy", found[1])
        return found

    def prepared(self) -> dict[str, Any]:
        """Read --policy and --meta, before any work; return options of assess. The date is today's unless it is given.

        The policy is None unless one is given or set for the project.
        """
        from deniable.report import read_meta

        meta = {"date": date.today(), **({} if self.meta is None else read_meta(self.meta))}
        return {"command": command_line(), "policy": self.decisive[0], "meta": meta}

    def files(self, made: Assessment, public: Assessment | None = None) -> dict[Path, str]:
        """Return the content of each file that was asked for; ``public`` is what may be published of ``made``."""
        from deniable.report import Assessment

        sarif = partial(Assessment.to_sarif, where=Path(os.path.relpath(self.decisive[1])).as_posix())
        forms: Any = {".json": Assessment.to_json, ".xml": Assessment.to_junit, ".sarif": sarif}
        of = {self.report: public or made, self.owner_report: made, self.junit: made, self.sarif: made}
        return {path: forms.get(path.suffix.lower(), Assessment.to_html)(one) for path, one in of.items() if path}

    def show(self, made: Assessment, following: Sequence[str] = (), lines: Sequence[str] = ()) -> int:
        """Print an assessment and ``lines`` below it, suggest what follows, and return the exit code."""
        found = code(made, self.decisive[0])
        if self.as_json:
            print(made.to_json())
            return found
        from rich.console import Console

        from deniable.report import renderable

        Console(soft_wrap=False).print(renderable(made, full=self.full))
        if not self.full:
            print("every number: --full", file=sys.stderr)
        print(*lines, sep="\n", end="\n" * bool(lines))
        suggest(*(self.annex() or following))
        return found

    def annex(self) -> tuple[str, ...]:
        """Return the command that makes an annex of a report that was written as JSON; nothing of another."""
        page = self.report or self.owner_report
        if page is None or page.suffix.lower() != ".json":
            return ()
        return ("annex", str(page), "--kind", "edpb", *["--owner"] * (self.report is None))


def saved_report(path: str | Path) -> Assessment:
    """Return a saved report; refuses one that does not follow from its mechanism (of other versions: its numbers)."""
    from deniable import __version__
    from deniable.report import Assessment
    from deniable.workflows import verify

    report = Assessment.from_json(path)
    found, same = verify(report), report.reproduction.get("deniable") == __version__
    faults = [fault for fault in found.faults if same or fault.endswith((" follows.", "it does not follow."))]
    if found.source and faults:
        raise InputError(
            f"report {str(path)!r} must follow from the mechanism that it states: {faults[0]} Write it again; "
            f"deniable verify {path} names all"
        )
    return report


def code(made: Assessment, policy: Policy | None) -> int:
    """Return the exit code: 1 for a violated bound, or a policy that decides and is not shown to be met."""
    met = policy is None or (made.decision is not None and made.decision.met)
    return FINE if met and made.status != "violated" else MISSED


@dataclass(frozen=True)
class Workers:
    """Where long work runs; its processes leave Ctrl-C to the command that started them."""

    jobs: Annotated[int | None, more("--jobs", help="Number of parallel workers (-1: one per core).")] = None
    cluster: Annotated[
        str | None, more("--cluster", help="Work on a Dask cluster: the address of its scheduler, tcp://HOST:PORT.")
    ] = None

    def start(self) -> AbstractContextManager[Any]:
        """Return what to run the work in: a cluster, or processes of this machine, which are started here."""
        if self.cluster is None:
            _start_processes(self.jobs)
            return nullcontext()
        refuse("goes with processes of this machine and not with --cluster", jobs=self.jobs is not None)
        from deniable._parallel import cluster

        return cluster(self.cluster)


def _start_processes(jobs: int | None) -> None:
    """Start joblib's processes while Ctrl-C is ignored, which they inherit: the command ends them, in silence.

    joblib keeps them for the work that follows. Nothing is done for one job.
    """

    from joblib import Parallel, delayed, effective_n_jobs

    if jobs == 0:
        raise InputError("--jobs must be a number of workers, or -1 for all processors, got 0")
    if jobs is None or effective_n_jobs(jobs) == 1:
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        Parallel(n_jobs=jobs)(delayed(int)() for _ in range(effective_n_jobs(jobs)))
    finally:
        signal.signal(signal.SIGINT, before)
