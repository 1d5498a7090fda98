"""``deniable sequential``: judge a promise by scores as they come, and stop as soon as it is broken."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from deniable._check import InputError
from deniable._files import check_writable, to_json
from deniable.cli._app import MISSED, JsonFlag, PlotOption, app, command_line, examples
from deniable.cli._mechanism import MechanismOption, TrialsOption
from deniable.cli._picture import checked_picture, draw
from deniable.cli._report import write
from deniable.cli._run import PersonOption, run_options
from deniable.cli._sampler import (
    BatchesOption,
    BatchSizeOption,
    EpochsOption,
    MaxBatchOption,
    PerRecordOption,
    RecordsOption,
    SamplerOption,
)
from deniable.cli.audit import PROMISE, PromisedNoiseOption, PromisedRateOption, PromisedStepsOption, promised


@app.command(
    epilog=examples(
        "deniable sequential scores.csv --epsilon 2 --plot wealth.svg --out audit.html",
        "deniable sequential - --mu 0.5 --json",
        "python train_and_attack.py | deniable sequential - --noise-multiplier 1 --sample-rate 0.01 --steps 5000",
    )
)
def sequential(
    scores: Annotated[Path, typer.Argument(help="A .csv file with columns score and member, or - to read a stream.")],
    confidence: Annotated[float, typer.Option(help="1 − the chance of ever calling a true promise violated.")] = 0.95,
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
    plot: PlotOption = None,
    out: Annotated[Path | None, typer.Option(help="Also write a report: .html, .json or .md.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Read scores line by line and stop at the first line that contradicts the promise, with exit code 1.

    The first line names the columns; each further one is a score of a fresh training with the record or without it.
    However often one looks, a true promise is called violated with probability at most 1 − confidence.
    """
    picture = checked_picture(plot)
    if out is not None:
        check_writable("--out", out, suffixes=(".html", ".htm", ".json", ".md"))
    run = run_options(
        noise_multiplier, sample_rate, steps, records_per_person, sampler=sampler, batches=batches, epochs=epochs,
        batches_per_record=batches_per_record, batch_size=batch_size, max_batch=max_batch, n_records=n_records,
        mechanism=mechanism, trials=trials,
    )  # fmt: skip
    promise = promised(epsilon, delta, mu, run)
    if promise is None:
        raise InputError("a sequential audit judges a promise: give --epsilon, --mu, a DP-SGD run or --mechanism")
    import deniable as dn
    from deniable.audit.readers import each_score

    if str(scores) != "-" and not scores.is_file():
        raise InputError(f"score file {str(scores)!r} does not exist; give a .csv file, or - for standard input")
    audit = dn.SequentialAudit(promise, confidence)
    with nullcontext(sys.stdin) if str(scores) == "-" else scores.open(newline="") as lines:
        for score, inside in each_score(lines):
            audit.update([score] if inside else [], [] if inside else [score])
            if audit.violated:
                break
    verdict, shown = audit.verdict(), audit.epsilon()
    draw(audit, picture)
    if out is not None:
        write(dn.assess(audit, command=command_line()), out)
    if as_json:
        print(to_json({**vars(verdict), "epsilon": shown.low}))
    else:
        print(verdict)
        print(f"shown so far: {shown}")
    if verdict.violated:
        raise typer.Exit(MISSED)
