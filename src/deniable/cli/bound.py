"""``deniable bound``: what ε and δ mean for a membership attacker; with ``--proof``, bounds proven a second time."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import typer

from deniable._check import InputError
from deniable._files import to_json
from deniable._limits import MOST_ADVANTAGE
from deniable._shown import shown
from deniable.cli._app import FINE, MISSED, RUN_PANEL, JsonFlag, PlotOption, PriorOption, again, app, examples, suggest
from deniable.cli._mechanism import MECHANISM, TRIALS, MechanismOption, TrialsOption
from deniable.cli._picture import checked_picture, draw
from deniable.cli._run import PersonOption, RunOptions, is_given, run_options
from deniable.cli._sampler import (
    PERSON,
    BatchesOption,
    BatchSizeOption,
    EpochsOption,
    MaxBatchOption,
    PerRecordOption,
    RecordsOption,
    SamplerOption,
    described,
)

Inverted = Literal["advantage", "accuracy", "precision", "eta", "reconstruction", "singling-out"]
_PROOF_FPR, _PROOF_DELTA = 1e-3, 1e-5
_MOST = 700.0  # e^700 is close to the largest double: such an ε bounds no more than ∞ does


@app.command(
    epilog=examples(
        "deniable bound --epsilon 2 --delta 1e-5 --prior 0.01 --fpr 0.001",
        "deniable bound --epsilon 1 --json",
        "deniable bound --largest-for eta --at-most 0.1 --delta 1e-5",
        "deniable bound --largest-for reconstruction --at-most 0.01 --baseline 0.001",
        "deniable bound --epsilon 1 --plot precision.svg",
        "deniable bound --explain --noise-multiplier 1 --sample-rate 0.01 --steps 5000 --fpr 1e-5",
        "deniable bound --explain --mechanism gradient-descent,20,100,0.05,1,0.5",
        "deniable bound --explain --mechanism renyi,orders=2:4:8:16,epsilons=0.02:0.04:0.09:0.2 --delta 1e-6",
        "deniable bound --proof --noise-multiplier 1 --sample-rate 0.01 --steps 5000 --fpr 1e-5",
    )
)
def bound(
    epsilon: Annotated[float | None, typer.Option(help="ε of the differential privacy guarantee.")] = None,
    target: Annotated[
        Inverted | None,
        typer.Option(
            "--largest-for",
            help="Instead of --epsilon: find the largest ε that keeps --at-most of this (eta: Izzo's η-MIP; "
            "reconstruction: of a secret, see --baseline; singling-out: see --n, --weight).",
        ),
    ] = None,
    at_most: Annotated[float | None, typer.Option(help="With --largest-for: 0.1 means 10 %.")] = None,
    delta: Annotated[
        float | None, typer.Option(help="δ of the guarantee (default 0); with a DP-SGD run, δ of its ε (default 1e-5).")
    ] = None,
    prior: PriorOption = 0.5,
    fpr: Annotated[
        float | None,
        typer.Option(help="False positive rate (0.001 means 0.1 %) at which to bound precision; needed if δ > 0."),
    ] = None,
    baseline: Annotated[
        float, typer.Option(help="Chance of guessing a record's secret blindly: 0.001 for one of 1,000 values.")
    ] = 0.001,
    n: Annotated[
        int | None,
        typer.Option("--n", help="With --largest-for singling-out: number of persons."),
    ] = None,
    weight: Annotated[
        float | None, typer.Option(help="With --largest-for singling-out: share of the population that is matched.")
    ] = None,
    proof: Annotated[
        bool,
        typer.Option(
            "--proof",
            help="Enclose advantage, TPR and ε rigorously by ball arithmetic and print them beside the fast bounds; "
            "needs pip install 'deniable[proof]'. Exit code 1 if the two do not intersect.",
        ),
    ] = False,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Print advantage, TPR and δ with both bounds, the engine that supplied them, and what it charged for "
            "aliasing, truncation and rounding.",
        ),
    ] = False,
    noise_multiplier: Annotated[
        float | None,
        typer.Option(
            help="With --explain or --proof: noise standard deviation / clipping norm.", rich_help_panel=RUN_PANEL
        ),
    ] = None,
    sample_rate: Annotated[
        float | None,
        typer.Option(help="With --explain or --proof: expected batch size / records.", rich_help_panel=RUN_PANEL),
    ] = None,
    steps: Annotated[
        float | None, typer.Option(help="With --explain or --proof: number of steps.", rich_help_panel=RUN_PANEL)
    ] = None,
    mechanism: MechanismOption = None,
    trials: TrialsOption = None,
    records_per_person: PersonOption = None,
    sampler: SamplerOption = None,
    batches: BatchesOption = None,
    epochs: EpochsOption = None,
    batches_per_record: PerRecordOption = None,
    batch_size: BatchSizeOption = None,
    max_batch: MaxBatchOption = None,
    n_records: RecordsOption = None,
    as_json: JsonFlag = False,
    plot: PlotOption = None,
) -> int:
    """Say what an (ε, δ) guarantee means: advantage, accuracy, right accusations, secrets guessed, records replaced."""
    run = run_options(
        noise_multiplier, sample_rate, steps, records_per_person, sampler=sampler, batches=batches, epochs=epochs,
        batches_per_record=batches_per_record, batch_size=batch_size, max_batch=max_batch, n_records=n_records,
        mechanism=mechanism, trials=trials,
    )  # fmt: skip
    if proof or explain:
        if proof and explain:
            raise InputError("--explain and --proof print different things; leave one of them out")
        name = "--proof" if proof else "--explain"
        if plot is not None:
            raise InputError(f"--plot does not go with {name}; leave out one of them")
        if is_given(run) == (epsilon is not None):
            raise InputError(
                f"{name} needs either --epsilon (and --delta) or --noise-multiplier, --sample-rate and --steps, or "
                "--mechanism"
            )
        return (_prove if proof else _explain)(epsilon, delta, prior, fpr, run, as_json)
    if is_given(run):
        raise InputError("the options of a run need --explain or --proof; for its bounds alone use deniable assess")
    if target is not None or at_most is not None:
        risk = {"baseline": baseline} if target == "reconstruction" else {"n": n, "weight": weight}
        epsilon = _largest(epsilon, target, at_most, delta or 0.0, prior, fpr, risk)
    elif n is not None or weight is not None:
        raise InputError("--n and --weight belong to --largest-for singling-out; leave them out")
    if epsilon is None:
        raise InputError(
            "Missing option '--epsilon': the ε of the guarantee (or --largest-for and --at-most, or --proof and a "
            "DP-SGD run)"
        )
    from deniable import bounds

    picture = checked_picture(plot)
    found = bounds.summary(epsilon, delta=delta or 0.0, prior=prior, fpr=fpr, baseline=baseline)
    if target is not None and not as_json:
        print(f"{'largest ε':<29} {shown(epsilon, 'number', 'lower', 7)}")
    print(to_json(found) if as_json else "\n".join(found.lines()))
    draw(found, picture)
    if not as_json and target is None and bounds.advantage(epsilon, delta=delta or 0.0) > MOST_ADVANTAGE:
        words = () if delta is None else ("--delta", f"{delta:g}")
        suggest("bound", "--largest-for", "advantage", "--at-most", f"{MOST_ADVANTAGE:g}", *words)
    return FINE


def _largest(
    epsilon: float | None,
    target: Inverted | None,
    at_most: float | None,
    delta: float,
    prior: float,
    fpr: float | None,
    risk: dict[str, Any],
) -> float:
    """The largest ε that keeps the target; ``risk`` holds the parameters of targets other than membership attacks."""
    import deniable as dn
    from deniable import bounds

    if epsilon is not None or target is None or at_most is None:
        raise InputError("--largest-for and --at-most go together, and without --epsilon, which they find")
    finders = {
        "advantage": lambda: bounds.epsilon_for_advantage(at_most, delta=delta),
        "accuracy": lambda: bounds.epsilon_for_accuracy(at_most, delta=delta, prior=prior),
        "precision": lambda: bounds.epsilon_for_positive_accuracy(at_most, prior=prior, delta=delta, fpr=fpr),
        "eta": lambda: bounds.epsilon_for_mip(at_most, delta=delta),
    }
    if target in finders:
        return float(finders[target]())
    limit = dn.Limit(**{target.replace("-", "_"): at_most, **risk})
    found = dn.calibrate(lambda e: dn.ApproximateDP(e, delta), (0.0, _MOST), tolerance=1e-12, limit=limit)
    return found if found < _MOST else math.inf


def _prove(
    epsilon: float | None, delta: float | None, prior: float, fpr: float | None, run: RunOptions, as_json: bool
) -> int:
    import deniable as dn
    from deniable.planning import prove

    what: Any = described(run) if epsilon is None else dn.mechanisms.ApproximateDP(epsilon, delta or 0.0)
    at = _PROOF_DELTA if delta is None else delta
    found = prove(what, prior=prior, fpr=_PROOF_FPR if fpr is None else fpr, delta=at)
    print(to_json({"agrees": found.agrees, "proof": found}) if as_json else "\n".join(found.lines()))
    return FINE if found.agrees else MISSED


def _explain(
    epsilon: float | None, delta: float | None, prior: float, fpr: float | None, run: RunOptions, as_json: bool
) -> int:
    import deniable as dn

    if prior != 0.5:
        raise InputError(f"--explain answers at even priors, got --prior {prior:g}; leave it out")
    if epsilon is None:
        curve = dn.tradeoff(described(run))
        at = curve.epsilon(_PROOF_DELTA if delta is None else delta)
    else:
        curve, at = dn.tradeoff(dn.ApproximateDP(epsilon, delta or 0.0)), epsilon
    answers = [curve.explain(), curve.explain(fpr=_PROOF_FPR if fpr is None else fpr)]
    answers += [curve.explain(epsilon=at)] if math.isfinite(at) else []
    print(to_json(answers) if as_json else "\n".join(line for answer in answers for line in answer.lines()))
    if not as_json and all(run[option] is None for option in ("--sampler", PERSON, MECHANISM, TRIALS)):
        suggest(*("--proof" if word == "--explain" else word for word in again()))
    return FINE
