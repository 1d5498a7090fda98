"""``deniable unlearn``: how many deletion requests deniability covers."""

from __future__ import annotations

from typing import Annotated

import typer

from deniable._check import integer
from deniable._files import to_json
from deniable.cli._app import JsonFlag, PlotOption, again, app, examples, suggest
from deniable.cli._picture import checked_picture, draw


@app.command(
    epilog=examples(
        "deniable unlearn --epsilon 1 --pool-size 10000 --training-size 100 --confidence 0.8",
        "deniable unlearn --epsilon 1 --pool-size 10000 --confidence 0.8 --plot capacity.svg",
    )
)
def unlearn(
    epsilon: Annotated[float, typer.Option(help="ε of the training, for adding or removing a record.")],
    pool_size: Annotated[float, typer.Option(help="Number of records from which the training set was drawn.")],
    confidence: Annotated[float, typer.Option(help="Probability with which no deleted record was used, in (0, 1).")],
    training_size: Annotated[
        list[float] | None,
        typer.Option(help="Expected training size; may be repeated [default: a range up to 90 % of the pool]."),
    ] = None,
    as_json: JsonFlag = False,
    plot: PlotOption = None,
) -> None:
    """Count the deletion requests that need no retraining: with given confidence, none of the records was used."""
    import deniable as dn

    picture = checked_picture(plot)
    found = dn.unlearning.plan(epsilon, integer("pool_size", pool_size, at_least=1), confidence, training_size)
    if as_json:
        print(to_json(found))
    else:
        print(found.to_frame().to_string(index=False, float_format="%.6g"))
    draw(found, picture)
    if picture is None and not as_json:
        suggest(*again("--plot", "capacity.svg"))
