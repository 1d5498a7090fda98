"""``deniable ledger``: one account for everything that is released about the same people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from deniable._check import InputError
from deniable._shown import shown
from deniable.cli import _options as options
from deniable.cli._app import FINE, MISSED, app, command, write
from deniable.cli.run import RunArgument, read_run

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The ledger.")]
UnitOption = Annotated[str | None, typer.Option(help="Whom a release hides: record, or the column of persons.")]
PersonOption = Annotated[int | None, typer.Option(help="Records of a person, for a release that hides records.")]
PurposeOption = Annotated[str, typer.Option(help="What the release is for, as it may be published.")]
LedgerOption = Annotated[
    Path | None, options.more("--ledger", help="Enter the release in this ledger first; refused if it does not fit.")
]

ledger = typer.Typer(name="ledger", rich_markup_mode=None)
app.add_typer(ledger, help="Add up everything that is released about the same people.")


def there(path: Path | None, name: str = "") -> Any:
    """Return the ledger of ``--ledger``, with the name of its next entry; it is never made on the way."""
    if path is None:
        return None
    if not path.exists():
        raise InputError(f"ledger {str(path)!r} does not exist; make it: deniable ledger new {path}")
    from deniable.ledger import Ledger

    return Ledger(path).named(name)


@command("deniable ledger new people.ledger --advantage 0.2 --unit patient", of=ledger)
def new(
    file: FileArgument,
    unit: UnitOption = None,
    *,
    asked: options.AskedLimit,
    reserve: Annotated[
        str | None, typer.Option(help="Runs that are not Gaussian and may be entered later, as 'dpsgd,1,0.01,5000'.")
    ] = None,
) -> None:
    """Make a ledger; with a limit it refuses what would pass it."""
    from deniable.ledger import Ledger

    if file.exists():
        kind = "is a folder" if file.is_dir() else "exists"
        raise InputError(f"{str(file)!r} {kind}; a ledger is never replaced: name another file")
    limit: Any = None if asked == options.AskedLimit() else asked.one()
    print(*Ledger(file, unit, limit, None if reserve is None else read_run(reserve)).lines(), sep="\n")


@command("deniable ledger show people.ledger", of=ledger)
def show(file: FileArgument, as_json: options.JsonFlag = False) -> None:
    """Show all entries, what they add up to, and what remains."""
    book = there(file)
    print(book.to_json() if as_json else "\n".join(book.lines()))


@command("deniable ledger add people.ledger dpsgd,1,0.01,5000 --name 'risk model'", of=ledger)
def add(
    file: FileArgument,
    run: RunArgument,
    name: Annotated[str, typer.Option(help="What the release is called.")] = "",
    purpose: PurposeOption = "",
    source: Annotated[str, typer.Option(help="From which data, in its owner's words.")] = "",
    unit: UnitOption = None,
    records_per_person: PersonOption = None,
) -> None:
    """Enter a release: before it is made, or made elsewhere."""
    found = there(file).add(
        read_run(run), name=name, purpose=purpose, source=source, unit=unit, records_per_person=records_per_person
    )
    print(f"entry {found.number}, head of the chain {found.head}")


@command("deniable ledger remaining people.ledger --advantage 0.05", of=ledger)
def remaining(file: FileArgument, asked: options.AskedLimit) -> None:
    """Say how many more releases fit.

    Each with --advantage or --limit, 0.1 if neither is given.
    """
    from deniable.limits import Limit

    book, limit = there(file), asked.one(0.1)
    if not isinstance(limit, Limit):
        raise InputError("--limit must be numbers by name here, as tpr=0.01,fpr=0.001")
    each = limit.words("record" if book.unit == "record" else "person")
    left = shown(book.remaining(), "number", "lower", 6)
    print(f"{book.remaining(limit=limit)} more releases, each of them: {each}; μ left: {left}")


@command("deniable ledger plan people.ledger gaussian,0.1", of=ledger)
def plan(
    file: FileArgument, run: RunArgument, unit: UnitOption = None, records_per_person: PersonOption = None
) -> None:
    """Show the curve of all and a planned release, only show it."""
    curve = there(file).plan(read_run(run), unit=unit, records_per_person=records_per_person)
    print(curve, f"Condition: {curve.assumptions.notes[0]}.", sep="\n")


@command("deniable ledger verify people.ledger --head 3f2a9c0d11e7", of=ledger)
def verify(
    file: FileArgument,
    head: Annotated[
        str | None, typer.Option(help="The head on a page or certificate, 12 digits or more, to be found in the chain.")
    ] = None,
) -> int:
    """Compute chain and limit anew.

    Exit code 1 if one does not follow.
    """
    found = there(file).verify(head)
    print(*(found.faults or ("no fault was found",)), sep="\n")
    print(f"{found.entries} entries, head {found.head}")
    if head is None:
        print("entries cut off at the end, and a chain computed anew, show only against a page: --head")
    return FINE if found.holds else MISSED


@command("deniable ledger export people.ledger year.html", of=ledger)
def export(
    file: FileArgument, out: Annotated[Path, options.file("OUT", "Where they go", ".csv", ".json", ".html")]
) -> None:
    """Write all entries as CSV, JSON or a page with the total curve."""
    import deniable as dn

    book = there(file)
    alone: Any = {"measured": None, "utility_loss": None, "name": "the limit of the ledger"}
    own = None if book.limit is None else dn.Policy(limits=(book.limit,), **alone)
    kinds = {".csv": book.to_csv, ".json": book.to_json, ".html": lambda: dn.assess(book, policy=own).to_html()}
    write({out: kinds[out.suffix.lower()]()})
