"""``deniable exact``: the best attack on one noisy number of a small data set, computed and not estimated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
import typer

from deniable._check import InputError, number
from deniable._files import to_json
from deniable._shown import shown
from deniable.cli._app import JsonFlag, app, examples

ExactStatistic = Literal["mean", "median", "sum", "min", "max", "std"]
ExactNoise = Literal["gaussian", "laplace", "none"]


@app.command(
    epilog=examples(
        "deniable exact 1.2 0.4 -- -0.3 2.1 0 -1 0.7 5",
        "deniable exact 1 2 3 4 5 60 --statistic median --noise laplace --scale 3 --train 3",
    )
)
def exact(
    values: Annotated[list[float], typer.Argument(help="One number per person, 16 at most (after -- if negative).")],
    statistic: Annotated[ExactStatistic, typer.Option(help="Statistic computed on the training set.")] = "mean",
    noise: Annotated[ExactNoise, typer.Option(help="Noise added to the statistic.")] = "gaussian",
    scale: Annotated[float, typer.Option(help="Standard deviation, or the scale b of the Laplace law.")] = 1.0,
    train: Annotated[int | None, typer.Option(help="Size of the training set (default: half).")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Compute for each person what the best attack on statistic + noise gains over guessing (Izzo et al., Prop. 2)."""
    import deniable as dn
    from deniable.noise import GaussianNoise, NormLaplaceNoise

    if len(values) < 2:
        raise InputError(f"values must be at least two numbers, got {len(values)}")
    width = number("scale", scale, above=0.0, below=float("inf"))
    laws = {"gaussian": GaussianNoise, "laplace": NormLaplaceNoise}
    law = None if noise == "none" else laws[noise](width, np.ones(1))
    functions: dict[str, Callable[[Any], Any]] = {
        "mean": np.mean,
        "median": np.median,
        "sum": np.sum,
        "min": np.min,
        "max": np.max,
        "std": np.std,
    }
    found = dn.exact_membership(functions[statistic], np.array(values), law, train)
    if as_json:
        print(to_json(found))
        return
    print(f"{len(values)} people, a share of {shown(found.prior, 'rate', 'nearest')} trains; {found.method}")
    print(
        f"guessing is right with {shown(max(found.prior, 1 - found.prior), 'rate', 'nearest')}; the best attack gains"
    )
    for value, eta in zip(values, found.eta, strict=True):
        print(f"  {value:>12g}  {shown(float(eta + found.error), 'rate', 'upper')}")
