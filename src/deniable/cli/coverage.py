"""``deniable coverage``: the privacy loss of one model from samples of a black box alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from deniable._check import FloatArray, InputError
from deniable._files import to_json
from deniable._shown import shown
from deniable.cli._app import JsonFlag, app, examples


@app.command(
    epilog=examples("deniable coverage models.npz --radius 0.1", "deniable coverage models.npz --radius 0.1 --json")
)
def coverage(
    models: Annotated[
        Path,
        typer.Argument(
            help="A .npz file: base (samples, d), neighbours (records, samples, d) and the released model (d)."
        ),
    ],
    radius: Annotated[float, typer.Option(help="Cutoff: how near to the released model counts.")],
    confidence: Annotated[float, typer.Option(help="Probability with which each interval holds.")] = 0.95,
    as_json: JsonFlag = False,
) -> None:
    """Bound each record's privacy loss by how often models land near the released one (LeBlond et al., eqs. 5–6)."""
    from deniable.records import coverage as measured

    try:
        with np.load(models, allow_pickle=False) as content:
            arrays = {name: np.asarray(content[name], dtype=np.float64) for name in ("base", "neighbours", "model")}
    except (OSError, KeyError, ValueError) as error:
        raise InputError(
            f"models {str(models)!r} must be a .npz file with base, neighbours and model, but: {error}"
        ) from None
    base, others, model = arrays["base"], arrays["neighbours"], arrays["model"]
    if base.ndim != 2 or others.ndim != 3 or others.shape[1:] != base.shape or model.shape != base.shape[1:]:
        raise InputError(
            f"models must have base (samples, d), neighbours (records, samples, d) and model (d), got shapes "
            f"{base.shape}, {others.shape} and {model.shape}"
        )
    found = measured(
        _replay(base), [_replay(cloud) for cloud in others], model,
        radius=radius, n_samples=len(base), confidence=confidence,
    )  # fmt: skip
    if as_json:
        print(to_json(found))
        return
    share = shown(found.base, "rate", "nearest")
    print(f"{len(base):,} samples in each world, {share} of the base ones within {radius:g}")
    for record, (low, high) in enumerate(found.privacy_loss_interval):
        print(f"  record {record}: privacy loss between {low:.3g} and {high:.3g}")


def _replay(cloud: FloatArray) -> Callable[[np.random.Generator], FloatArray]:
    """Return a sampler that gives the rows one after the other."""
    rows = iter(cloud)
    return lambda _: np.asarray(next(rows))
