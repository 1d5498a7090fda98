"""``deniable calibrate``: the smallest noise that meets a target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from deniable._check import InputError
from deniable._files import to_json
from deniable._progress import stage
from deniable._shown import shown
from deniable.cli import _options as options
from deniable.cli._app import command, suggest
from deniable.cli.run import UNKNOWN, RunArgument, read_run, unknown

if TYPE_CHECKING:
    from deniable.curves import Tradeoff
    from deniable.limits import Limit
    from deniable.planning import AsTellingAs


@command(
    "deniable calibrate 'dpsgd,?,0.01,5000' --advantage 0.1",
    "deniable calibrate 'dpsgd,1.1,0.01,?' --limit tpr=1e-4,fpr=1e-5 --json",
    "deniable calibrate 'laplace,?,steps=100 + gaussian,0.05' --limit reconstruction=0.01,baseline=0.001",
    "deniable calibrate 'epsilon,?,1e-5' --limit attribute=0.75,prior=[0.7,0.2,0.1]",
    "deniable calibrate 'person,?: dpsgd,2,0.1,9' --advantage 0.5",
    "deniable calibrate 'tuned,?: gradient-descent,100,100,0.05,1,0.5' --advantage 0.2",
)
def calibrate(
    run: RunArgument,
    *,
    asked: options.AskedLimit,
    replace: Annotated[
        bool, options.more("--replace", help="Protect against replacing a record, not adding or removing it.")
    ] = False,
    as_json: options.JsonFlag = False,
) -> None:
    """Find the number written ? with which a run keeps a limit.

    It is rounded to the safe side: the least noise, the largest rate, the most steps, records of a person or trials.
    """
    import deniable as dn
    from deniable.planning import as_limit, domain, search

    name, whole = unknown(run)
    limit = as_limit(None, asked.one())

    def make(value: float) -> Any:
        return read_run(run, value)

    low, start, high = domain(make, whole, _USUAL.get(name))
    adjacency = "replace" if replace else make(start).adjacency
    with stage(f"looking for {name}"):
        point = search(limit, make, (low, high), adjacency=adjacency, integer=whole, near=start)
        found, words = point.parameter, name.replace("_", " ")
        facts = _what_is_reached(dn.tradeoff(make(found), adjacency=adjacency), limit)
    if point.score > 0:
        raise InputError(
            f"run must keep {limit.name} at most {limit.most:g} with some {words}, but the best from {low:g} to "
            f"{high:g}, {found:g}, gives {limit.leakage(point.curve):.6g}"
        )
    if as_json:
        answer = {name: found, "advantage": facts[-1][-1], "limit": limit.arguments}
        answer |= {"searched": (low, high), "limit_decides": point.decided}
        print(to_json(answer | {"reached": {kind: value for kind, _, value in facts}, "adjacency": adjacency}))
        return
    enough = f"{found:.0f}" if whole else shown(found, "number", "upper", 7)
    if not whole and not limit.is_met(dn.tradeoff(make(float(enough)), adjacency=adjacency)):
        enough = shown(found, "number", "lower", 7)  # less of it is more private
    leaks = [
        f"{said} at most {shown(value, 'number' if kind in _NO_RATES else 'rate', 'upper')}"
        for kind, said, value in facts
    ]
    print(f"{words} {enough}: {'; '.join(leaks)}")
    if not point.decided:
        print(f"The limit does not decide: all that was tried from {low:g} to {high:g} keeps it.")
    if not replace and limit.group_size == 1:
        suggest("assess", run.replace(UNKNOWN, enough), "--report", "report.html")


# where the search for the number written ? begins, if not at 1
_USUAL: dict[str, float] = {"sample_rate": 0.01, "delta": 1e-6, "steps": 1000, "batches": 100}
_NO_RATES = ("epsilon", "delta", "mechanism")


def _what_is_reached(curve: Tradeoff, limit: Limit | AsTellingAs) -> list[tuple[str, str, float]]:
    """What is limited as it was reached, with its name and words, and the advantage at even odds."""
    even = ("advantage", "advantage at a prior of 50\u00a0%", curve.group(limit.group_size).advantage())
    return [even] if limit.name == "advantage" else [(limit.kind, limit.name, limit.leakage(curve)), even]
