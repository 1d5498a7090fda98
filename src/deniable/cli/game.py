"""``deniable game``: play a membership game against DP-SGD and set the attack beside the bound."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from deniable._files import to_json
from deniable._shown import shown
from deniable.cli._app import FINE, MISSED, JsonFlag, SeedOption, app, examples, suggest
from deniable.cli._run import run_options, typed

GameOption = Literal["OIG", "OFM", "YIG", "YFM"]
AttackOption = Literal["FMA", "IMA", "LR"]


@app.command(
    epilog=examples(
        "deniable game --noise-multiplier 1 --sample-rate 0.1 --steps 50",
        "deniable game --game YFM --attack FMA --noise-multiplier 1 --sample-rate 0.1 --steps 50 --dimension 2000",
    )
)
def game(
    noise_multiplier: Annotated[float, typer.Option(help="Noise standard deviation / clipping norm.")],
    sample_rate: Annotated[float, typer.Option(help="Expected batch size / records.")],
    steps: Annotated[int, typer.Option(help="Number of steps.")],
    game: Annotated[
        GameOption,
        typer.Option(help="Data picked by the attacker (O) or drawn (Y); all gradients (IG) or final model (FM)."),
    ] = "OIG",
    attack: Annotated[
        AttackOption, typer.Option(help="Final model, majority of all models, or likelihood ratio.")
    ] = "LR",
    dimension: Annotated[int, typer.Option(help="Dimension d of the data H_d^f.")] = 100_000,
    games: Annotated[int, typer.Option(help="Games on each side.")] = 10_000,
    confidence: Annotated[float, typer.Option(help="Probability with which the interval holds.")] = 0.99,
    seed: SeedOption = None,
    as_json: JsonFlag = False,
) -> int:
    """Play a game of Mahloujifar et al. (Appendix H) and compare. Exit code 1 if the attack beats the bound.

    The bound is Theorem 6's, for adding a record to data that the attacker picks; the other games are weaker.
    """
    import deniable as dn
    from deniable.audit import final_model_limit, play_game

    run = dn.SubsampledGaussian(noise_multiplier, sample_rate, steps)
    scores = play_game(
        game, attack, noise_multiplier=noise_multiplier, sample_rate=sample_rate, steps=steps,
        dimension=dimension, n=games, rng=seed,
    )  # fmt: skip
    seen = dn.audit_scores(scores.member_scores, scores.nonmember_scores, confidence).advantage()
    bound = dn.tradeoff(run).advantage()
    limit = final_model_limit(noise_multiplier, sample_rate, steps)
    beaten = seen.low > bound
    if as_json:
        facts = {"attack": seen, "bound": bound, "final_model_limit": limit, "beaten": beaten}
        print(to_json({"game": game, "attack_name": attack, "games": games, **facts}))
    else:
        low, high = shown(seen.low, "rate", "lower"), shown(seen.high, "rate", "upper")
        print(f"attack {attack} in game {game}       advantage between {low} and {high} ({confidence:.0%})")
        print(f"bound on every attack        {shown(bound, 'rate', 'upper')}")
        print(f"final model, d → ∞           {shown(limit, 'rate', 'nearest')}")
        suggest("assess", *typed(run_options(noise_multiplier, sample_rate, steps, None)), "--out", "report.html")
    return MISSED if beaten else FINE
