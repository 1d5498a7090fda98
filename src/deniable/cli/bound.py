"""``deniable bound``: what any attacker can reach against a run; with ``--proof``, bounds proven a second time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable import testing
from deniable._check import InputError
from deniable._files import to_json
from deniable._notebook import sentences
from deniable._shown import Unit, percent, shown
from deniable.cli import _options as options
from deniable.cli._app import FINE, MISSED, again, command, suggest
from deniable.cli.run import RunArgument, read_run, with_unknown

if TYPE_CHECKING:
    from deniable.curves import Tradeoff


@command(
    "deniable bound dpsgd,1,0.01,5000",
    "deniable bound epsilon,2,1e-5 --prior 0.01 --fpr 0.001",
    "deniable bound 'laplace,2,steps=10 + gaussian,0.1' --json",
    "deniable bound 'person,3: dpsgd,1,0.01,5000' --explain",
    "deniable bound dpsgd,1,0.01,5000 --proof --fpr 1e-5",
)
def bound(
    run: RunArgument,
    prior: options.PriorOption = 0.5,
    fpr: options.FprOption = 0.001,
    delta: Annotated[float, typer.Option(help="δ at which the run's ε is stated.")] = 1e-5,
    baseline: Annotated[
        float, typer.Option(help="Chance of guessing a record's secret blindly: 0.001 for one of 1,000 values.")
    ] = 0.001,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Print advantage, TPR and δ with both bounds, the engine that supplied them, and what it charged for "
            "aliasing, truncation and rounding.",
        ),
    ] = False,
    proof: Annotated[
        bool,
        typer.Option(
            "--proof",
            help="Enclose advantage, TPR and ε rigorously by ball arithmetic and print them with the fast bounds; "
            "needs pip install 'deniable[proof]'. Exit code 1 if the two do not intersect.",
        ),
    ] = False,
    plot: options.PlotOption = None,
    as_json: options.JsonFlag = False,
) -> int:
    """Say what any attacker of a run can reach.

    Advantage, accuracy, members found, right accusations, secrets guessed, ε: provable upper bounds.
    """
    import deniable as dn
    from deniable.limits import DEFAULT_ADVANTAGE

    mechanism = read_run(run)
    if proof and explain:
        raise InputError("--explain and --proof print different things; leave one of them out")
    options.refuse("does not go with --explain or --proof", baseline=(explain or proof) and baseline != 0.001)
    options.refuse("does not go with --explain, which answers at even priors", prior=explain and prior != 0.5)
    curve = dn.tradeoff(mechanism)
    asked = {"prior": prior, "fpr": fpr, "delta": delta}
    stated = {name: getattr(curve.assumptions, name) for name in ("adjacency", "unit", "batches")}
    stated |= {"notes": mechanism.notes} if mechanism.notes else {}
    following: tuple[str, ...] = ()
    answers: Any
    agrees = True
    if proof:
        from deniable.proof import prove

        found = prove(mechanism, **asked)
        agrees, lines = found.agrees, found.lines()
        answers = {"agrees": agrees, "proof": found, **asked, **stated}
    elif explain:
        at = mechanism.epsilon if isinstance(mechanism, dn.PureDP | dn.ApproximateDP) else curve.epsilon(delta)
        answers = [curve.explain(), curve.explain(fpr=fpr), *([curve.explain(epsilon=at)] * math.isfinite(at))]
        lines = [line for answer in answers for line in answer.lines()]
        if isinstance(mechanism, dn.SubsampledGaussian) and mechanism.records_per_person == 1:
            following = tuple("--proof" if word == "--explain" else word for word in again())
    else:
        rows = _rows(curve, baseline=baseline, **asked)
        answers = {key: value for key, _, value in rows} | asked | {"baseline": baseline} | stated
        lines = [line for _, line, _ in rows]
        question = with_unknown(run)
        if question and answers["advantage"] > DEFAULT_ADVANTAGE:
            following = ("calibrate", question, "--advantage", f"{DEFAULT_ADVANTAGE:g}")
    told = testing.marked((*lines, f"Unit: {curve.assumptions.line}", *sentences(mechanism.notes)), curve.insecure)
    print(to_json(answers) if as_json else "\n".join(told))
    options.draw(curve, plot)
    if not as_json:
        suggest(*following)
    return FINE if agrees else MISSED


def _rows(curve: Tradeoff, prior: float, fpr: float, delta: float, baseline: float) -> list[tuple[str, str, Any]]:
    """What a curve says, each with its name and its line: upper bounds."""

    def at_most(key: str, claim: str, value: float, unit: Unit = "rate", more: str = "") -> tuple[str, str, float]:
        return key, f"{claim:<29} at most {shown(value, unit, 'upper')}{more}".replace("\u00a0", " "), value

    more = f", at FPR {percent(fpr)}, prior {percent(prior)}"
    rows = [
        at_most("advantage", "advantage at even odds", curve.advantage()),
        at_most("accuracy", f"accuracy at prior {percent(prior)}", curve.accuracy(prior)),
    ]
    for rate in dict.fromkeys((0.1, 0.01, fpr)):
        rows.append(at_most(f"tpr@fpr={rate:g}", f"TPR at FPR {percent(rate)}", curve.tpr(rate)))
    rows.append(at_most("precision", "right when it says 'in'", curve.precision(fpr, prior), more=more))
    rows.append(at_most("epsilon", f"ε at δ = {delta:g}", curve.epsilon(delta), "number"))
    if curve.universal:
        secret = f"secret guessed, {percent(baseline)} blindly"
        rows.append(at_most("reconstruction", secret, curve.reconstruction(baseline)))
    return rows
