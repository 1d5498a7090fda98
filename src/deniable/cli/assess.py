"""``deniable assess``: from a training run to one report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from deniable._check import InputError
from deniable._files import check_writable
from deniable.cli._app import RUN_PANEL, JsonFlag, PriorOption, again, app, command_line, examples
from deniable.cli._mechanism import MECHANISM, MechanismOption, TrialsOption
from deniable.cli._report import (
    EarlierOption,
    FullOption,
    MetaOption,
    PolicyOption,
    checked_policy,
    code,
    show,
)
from deniable.cli._run import PersonOption, RunOptions, is_given, of_persons, run_options, typed
from deniable.cli._sampler import (
    NOISE,
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

OUTPUT = "Output"


@app.command(
    epilog=examples(
        "deniable assess --noise-multiplier 1.0 --sample-rate 0.01 --steps 5000 --out report.html",
        "deniable assess --mechanism matrix,8,strategy=strategy.csv,participations=4,separation=16",
        "deniable assess --noise-multiplier 2.0 --sample-rate 0.01 --steps 500 --trials 10",
        "deniable assess --history history.json --max-advantage 0.2 --json",
        "deniable assess --opacus accountant.pt --policy policy.toml --meta meta.toml --out report.html",
    )
)
def assess(
    noise_multiplier: Annotated[
        float | None, typer.Option(help="Noise standard deviation over clipping norm.", rich_help_panel=RUN_PANEL)
    ] = None,
    sample_rate: Annotated[
        float | None, typer.Option(help="Probability that a record enters a step.", rich_help_panel=RUN_PANEL)
    ] = None,
    steps: Annotated[float | None, typer.Option(help="Number of steps.", rich_help_panel=RUN_PANEL)] = None,
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
    opacus: Annotated[
        Path | None,
        typer.Option(help="File of an Opacus accountant's state_dict or of a checkpoint.", rich_help_panel=RUN_PANEL),
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option(help="JSON list of [noise_multiplier, sample_rate, steps].", rich_help_panel=RUN_PANEL),
    ] = None,
    prior: PriorOption = 0.5,
    fpr: Annotated[
        list[float] | None,
        typer.Option(help="False positive rate to report, as a fraction; may be repeated [default: 0.1 0.01 0.001]."),
    ] = None,
    delta: Annotated[float, typer.Option(help="δ at which the corresponding ε is stated.")] = 1e-5,
    max_advantage: Annotated[
        float | None,
        typer.Option(help="Exit with code 1 if the provable advantage exceeds this: a fraction, 0.2 means 20 %."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the page (.html), or .json or .md, to this file.", rich_help_panel=OUTPUT)
    ] = None,
    policy: PolicyOption = None,
    meta: MetaOption = None,
    earlier: EarlierOption = None,
    full: FullOption = False,
    as_json: JsonFlag = False,
) -> int:
    """Assess a run: what every attacker can reach, and whether that meets the policy, as one report.

    Give its parameters, a --mechanism, its history or its Opacus accountant.
    """
    import deniable as dn

    if out is not None:
        check_writable("--out", out, suffixes=(".html", ".htm", ".json", ".md"))
    limits = checked_policy(policy)
    before = [dn.Assessment.from_json(path) for path in earlier or ()]
    run = run_options(
        noise_multiplier, sample_rate, steps, records_per_person, sampler=sampler, batches=batches, epochs=epochs,
        batches_per_record=batches_per_record, batch_size=batch_size, max_batch=max_batch, n_records=n_records,
        mechanism=mechanism, trials=trials,
    )  # fmt: skip
    sources = {"--opacus": opacus, "--history": history, **run}
    given = [name for name, value in sources.items() if value is not None and name != PERSON]
    if len([name for name in given if name not in run]) + bool(set(given) & set(run)) != 1:
        raise InputError(
            "give exactly one thing to assess: --noise-multiplier, --sample-rate and --steps; or --mechanism; or "
            f"--history; or --opacus (got: {', '.join(given) or 'nothing'})"
        )
    from deniable.report import with_limit

    made = dn.assess(
        _mechanism(opacus, history, run), prior=prior, delta=delta, fpr=tuple(fpr) if fpr else (0.1, 0.01, 0.001),
        command=command_line(), policy=limits, meta=meta,
    )  # fmt: skip
    if max_advantage is not None:
        made = with_limit(made, max_advantage)
    if before:
        made = made.with_history(*before)
    missed = out is None and is_given(run) and made.decision is not None and not made.decision.met
    following = _enough(run, made.decision, max_advantage) if missed else ()
    if not following and out is None:
        following = again("--out", "report.html")
    show(made, out, as_json, full=full, following=following)
    return code(made, limits)


def _enough(run: RunOptions, decision: Any, most: float | None) -> tuple[str, ...]:
    """Return the command that finds the noise for the rule that was missed, if it is one that noise can meet."""
    policy, rule = decision.policy, decision.decided_by
    if run[MECHANISM] is not None:
        return ()
    asked: dict[str, RunOptions] = {
        "advantage": {"--advantage": policy.advantage if most is None else most},
        "tpr": {"--limit": f"tpr={policy.tpr:g},fpr={policy.fpr:g}"},
        "reconstruction": {"--limit": f"reconstruction={policy.reconstruction},baseline={policy.baseline:g}"},
    }
    return ("calibrate", *typed({**run, NOISE: None} | asked[rule])) if rule in asked else ()


def _mechanism(opacus: Path | None, history: Path | None, run: RunOptions) -> Any:
    from deniable.integrations.run_files import read_history, read_opacus

    if opacus is not None:
        return of_persons(read_opacus(opacus), run[PERSON])
    if history is not None:
        return of_persons(read_history(history), run[PERSON])
    return described(run)
