"""``deniable audit``: what the scores of any attack show, and whether they contradict a promise."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from deniable._check import InputError
from deniable._files import check_writable
from deniable._progress import stage
from deniable.cli._app import JsonFlag, again, app, command_line, examples
from deniable.cli._mechanism import MechanismOption, TrialsOption
from deniable.cli._report import FullOption, MetaOption, PolicyOption, checked_policy, code, show
from deniable.cli._run import PersonOption, RunOptions, is_given, of_persons, run_options
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

PROMISE = "Promise to compare with"
PromisedNoiseOption = Annotated[
    float | None,
    typer.Option(help="Promised DP-SGD run: noise standard deviation / clipping norm.", rich_help_panel=PROMISE),
]
PromisedRateOption = Annotated[
    float | None,
    typer.Option(help="Promised DP-SGD run: probability that a record enters a step.", rich_help_panel=PROMISE),
]
PromisedStepsOption = Annotated[
    float | None, typer.Option(help="Promised DP-SGD run: number of steps.", rich_help_panel=PROMISE)
]


@app.command(
    epilog=examples(
        "deniable audit scores.csv",
        "deniable audit scores.npz --epsilon 2 --out audit.html",
        "deniable audit scores.csv --score llr --member is_member --noise-multiplier 1 --sample-rate 0.01 --steps 5000",
        "deniable audit scores.csv --sampler shuffled --noise-multiplier 2 --batches 100 --epochs 5",
        "deniable audit scores.csv --mechanism zero-concentrated,0.1",
    )
)
def audit(
    scores: Annotated[Path, typer.Argument(help="Scores: a .csv, .parquet or .npz file.")],
    score: Annotated[str | None, typer.Option(help="Column of scores.")] = None,
    member: Annotated[str | None, typer.Option(help="Column that says which are members.")] = None,
    confidence: Annotated[float, typer.Option(help="Probability with which each interval holds.")] = 0.95,
    reverse: Annotated[bool, typer.Option("--reverse", help="A small score means member.")] = False,
    fpr: Annotated[list[float] | None, typer.Option(help="False positive rate to report; may be repeated.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Promised ε.", rich_help_panel=PROMISE)] = None,
    delta: Annotated[float, typer.Option(help="δ of the promised ε.", rich_help_panel=PROMISE)] = 0.0,
    mu: Annotated[float | None, typer.Option(help="Promised μ (Gaussian DP).", rich_help_panel=PROMISE)] = None,
    noise_multiplier: PromisedNoiseOption = None,
    sample_rate: PromisedRateOption = None,
    steps: PromisedStepsOption = None,
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
    out: Annotated[Path | None, typer.Option(help="Also write the report: .html, .json or .md.")] = None,
    policy: PolicyOption = None,
    meta: MetaOption = None,
    full: FullOption = False,
    as_json: JsonFlag = False,
) -> int:
    """Measure an attack from its scores, with exact intervals. Exit code 1 if a promise is violated."""
    if out is not None:
        check_writable("--out", out, suffixes=(".html", ".htm", ".json", ".md"))
    limits = checked_policy(policy)
    import deniable as dn
    from deniable.audit import read_scores

    run = run_options(
        noise_multiplier, sample_rate, steps, records_per_person, sampler=sampler, batches=batches, epochs=epochs,
        batches_per_record=batches_per_record, batch_size=batch_size, max_batch=max_batch, n_records=n_records,
        mechanism=mechanism, trials=trials,
    )  # fmt: skip
    promise = promised(epsilon, delta, mu, run)
    inside, outside = read_scores(scores, score=score, member=member)
    sign = -1.0 if reverse else 1.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = dn.audit_scores(sign * inside, sign * outside, confidence, command=command_line())
    for warning in caught:
        print(f"warning: {warning.message} (--reverse does that)", file=sys.stderr)
    options: dict[str, Any] = {"fpr": tuple(fpr)} if fpr else {}
    bound = None if promise is None else dn.tradeoff(promise)
    with stage(f"comparing {inside.size + outside.size:,} scores"):
        made = dn.assess(found, bound=bound, command=command_line(), policy=limits, meta=meta, **options)
    following = again("--out", "audit.html") if out is None else ()
    show(made, out, as_json, full=full, following=following)
    return code(made, limits)


def promised(epsilon: float | None, delta: float, mu: float | None, run: RunOptions) -> Any:
    """Return the promised mechanism, or None if nothing was promised."""
    import deniable as dn

    stated: list[Any] = [] if epsilon is None else [dn.ApproximateDP(epsilon, delta)]
    stated += [] if mu is None else [dn.GaussianDP(mu)]
    if len(stated) + is_given(run | {PERSON: None}) > 1:
        raise InputError("give one promise: --epsilon with --delta, or --mu, or a DP-SGD run, or --mechanism")
    if stated:
        return of_persons(stated[0], run[PERSON])
    return described(run) if is_given(run) else None
