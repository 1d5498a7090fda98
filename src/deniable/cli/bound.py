"""``deniable bound``: what any attacker can reach against a run; with ``--proof``, bounds proven a second time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable._check import InputError
from deniable._files import to_json
from deniable._shown import Unit, shown
from deniable.cli import _options as options
from deniable.cli._app import FINE, MISSED, again, command, suggest
from deniable.cli.run import RunArgument, read_run, with_unknown

if TYPE_CHECKING:
    from deniable.curves import Assumptions, Tradeoff

_FPR, _DELTA = 1e-3, 1e-5
_RATES = (0.1, 0.01)


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
    fpr: Annotated[
        float | None, typer.Option(help="False positive rate at which to bound precision: 0.001 means 0.1 %.")
    ] = None,
    delta: Annotated[float, typer.Option(help="δ at which the run's ε is stated.")] = _DELTA,
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

    mechanism = read_run(run)
    if proof and explain:
        raise InputError("--explain and --proof print different things; leave one of them out")
    if (proof or explain) and plot is not None:
        raise InputError(f"--plot does not go with --{'proof' if proof else 'explain'}; leave out one of them")
    if proof:
        return _prove(mechanism, prior, _FPR if fpr is None else fpr, delta, as_json)
    if explain:
        if prior != 0.5:
            raise InputError(f"--explain answers at even priors, got --prior {prior:g}; leave it out")
        return _explain(mechanism, _FPR if fpr is None else fpr, delta, as_json)
    found = dn.tradeoff(mechanism)
    rows = _rows(found, prior, _FPR if fpr is None else fpr, delta, baseline)
    answers, lines = {key: value for key, _, value in rows}, [line for _, line, _ in rows]
    advantage, assumptions = answers["advantage"], found.assumptions
    answers |= {"prior": prior, "fpr": _FPR if fpr is None else fpr, "delta": delta, "baseline": baseline}
    print(to_json(answers | _for_whom(assumptions)) if as_json else "\n".join([*lines, assumptions.line]))
    options.draw(found, plot)
    from deniable.limits import DEFAULT_ADVANTAGE

    if not as_json and advantage > DEFAULT_ADVANTAGE and (asked := with_unknown(run)):
        suggest("calibrate", asked, "--advantage", f"{DEFAULT_ADVANTAGE:g}")
    return FINE


def _for_whom(stated: Assumptions) -> dict[str, str]:
    return {"adjacency": stated.adjacency, "unit": stated.unit, "batches": stated.batches}


def _rows(curve: Tradeoff, prior: float, fpr: float, delta: float, baseline: float) -> list[tuple[str, str, Any]]:
    """What a curve says, each with its name and its line: upper bounds."""

    def at_most(key: str, claim: str, value: float, unit: Unit = "rate", more: str = "") -> tuple[str, str, float]:
        return key, f"{claim:<29} at most {shown(value, unit, 'upper')}{more}".replace("\u00a0", " "), value

    def percent(value: float) -> str:
        return shown(value, "rate", "nearest")

    at = f"{percent(fpr)}, prior {percent(prior)}"
    rows = [
        at_most("advantage", "advantage at even odds", curve.advantage()),
        at_most("accuracy", f"accuracy at prior {percent(prior)}", curve.accuracy(prior)),
        *(
            at_most(f"tpr@fpr={rate:g}", f"TPR at FPR {percent(rate)}", curve.tpr(rate))
            for rate in dict.fromkeys((*_RATES, fpr))
        ),
        at_most("precision", "right when it says 'in'", curve.precision(fpr, prior), more=f", at FPR {at}"),
        at_most("epsilon", f"ε at δ = {delta:g}", curve.epsilon(delta), "number"),
    ]
    if curve.universal:
        secret = f"secret, blind guess {percent(baseline)}"
        key, line, value = at_most("reconstruction", secret, curve.reconstruction(baseline))
        rows.append((key, line.replace("at most", "guessed at most"), value))
    return rows


def _prove(mechanism: Any, prior: float, fpr: float, delta: float, as_json: bool) -> int:
    from deniable.accounting import tradeoff
    from deniable.proof import prove

    found = prove(mechanism, prior=prior, fpr=fpr, delta=delta)
    stated = tradeoff(mechanism).assumptions
    answers = {"agrees": found.agrees, "proof": found, "prior": prior, "fpr": fpr, "delta": delta} | _for_whom(stated)
    print(to_json(answers) if as_json else "\n".join([*found.lines(), stated.line]))
    return FINE if found.agrees else MISSED


def _explain(mechanism: Any, fpr: float, delta: float, as_json: bool) -> int:
    import deniable as dn

    curve = dn.tradeoff(mechanism)
    stated = isinstance(mechanism, dn.PureDP | dn.ApproximateDP)
    at = mechanism.epsilon if stated else curve.epsilon(delta)
    answers = [curve.explain(), curve.explain(fpr=fpr)]
    answers += [curve.explain(epsilon=at)] if math.isfinite(at) else []
    lines = [line for answer in answers for line in answer.lines()]
    print(to_json(answers) if as_json else "\n".join([*lines, curve.assumptions.line]))
    if not as_json and isinstance(mechanism, dn.SubsampledGaussian) and mechanism.records_per_person == 1:
        suggest(*("--proof" if word == "--explain" else word for word in again()))
    return FINE
