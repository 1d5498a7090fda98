"""``deniable attack``: shadow models against a kind of model on a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import typer

from deniable._check import number
from deniable._files import check_writable
from deniable.cli._app import JsonFlag, SeedOption, app, command_line, examples, of_table
from deniable.cli._report import FullOption, MetaOption, PolicyOption, checked_policy, code, show
from deniable.cli._workers import ClusterOption, workers


@app.command(
    epilog=examples(
        'deniable attack data.csv --target y --model "sklearn:LogisticRegression(C=10)" --method lira --shadows 64 '
        "--out audit.html",
        'deniable attack breast-cancer --model "sklearn:RandomForestClassifier(n_estimators=50)" --jobs 2 --seed 0',
    )
)
def attack(
    data: Annotated[str, typer.Argument(help="A .csv or .parquet file, or a built-in name: breast-cancer.")],
    model: Annotated[str, typer.Option(help="What to train: sklearn:Name(option=value, …).")],
    target: Annotated[str | None, typer.Option(help="Column to predict.")] = None,
    method: Annotated[str, typer.Option(help="auto, loss, calibrated, lira, lira-offline or rmia.")] = "auto",
    shadows: Annotated[int, typer.Option(help="Number of models to train; must be even.")] = 64,
    drop: Annotated[list[str] | None, typer.Option(help="Column to leave out; may be repeated.")] = None,
    confidence: Annotated[float, typer.Option(help="Probability with which each interval holds.")] = 0.95,
    jobs: Annotated[int | None, typer.Option(help="Models trained in parallel (-1: one per core).")] = None,
    cluster: ClusterOption = None,
    save_scores: Annotated[Path | None, typer.Option(help="Also write the scores: .npz.")] = None,
    seed: SeedOption = None,
    out: Annotated[Path | None, typer.Option(help="Also write the report: .html, .json or .md.")] = None,
    policy: PolicyOption = None,
    meta: MetaOption = None,
    full: FullOption = False,
    as_json: JsonFlag = False,
) -> int:
    """Train shadow models on random halves of the data and measure how well they tell members from others."""
    if out is not None:
        check_writable("--out", out, suffixes=(".html", ".htm", ".json", ".md"))
    if save_scores is not None:
        check_writable("--save-scores", save_scores, suffixes=(".npz",))
    limits = checked_policy(policy)
    number("confidence", confidence, above=0.5, below=1.0, hint="0.95 is usual")  # before models are trained
    import deniable as dn
    from deniable.audit.scoring import Method
    from deniable.integrations.model_spec import attackable, parse_model

    pipeline, X, y = attackable(data, target, parse_model(model), drop=tuple(drop or ()))
    with workers(jobs, cluster):
        scores = dn.attack_estimator(
            pipeline, X, y, method=cast(Method, method), n_shadows=shadows, rng=seed, n_jobs=jobs
        )
    if save_scores is not None:
        scores.save(str(save_scores))
    found = scores.audit(confidence, command=command_line())
    made = dn.assess(
        found,
        title=f"{scores.method} against {model}",
        command=command_line(),
        policy=limits,
        meta=meta,
    )
    leaks = found.advantage().low > 0
    private = ("train", *of_table(data, target, drop), "--report", "private.html") if leaks else ()
    show(made, out, as_json, full=full, following=private)
    return code(made, limits)
