"""Membership games against DP-SGD on a problem simple enough to simulate: Mahloujifar et al., Appendices H and I.

The data are H_d^f: a record is a unit vector e_i, i uniform among d, labelled by a fixed function f. The model is a
logistic regression without intercept, trained by DP-SGD with clipping norm c.

Only coordinate i carries information about the record e_i. Its gradient is (sigmoid(θ_i) − y)·e_i, of size near ½ while
θ is small, so it is clipped to ±c at every step, whatever else is trained. With K records on coordinate i, that
coordinate moves in units of (learning rate × c), signed by the label, by Binomial(K, q) + N(0, σ²) per step: three
numbers simulate a model of any dimension. K is 0 or 1 where the attacker chose the other records, and binomial where
they were drawn.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import bdtr, ndtr

from deniable._check import FloatArray, InputError, IntArray, Seed, choice, integer, number, seeded
from deniable.audit import AttackScores

Game = Literal["OIG", "OFM", "YIG", "YFM"]
GameAttack = Literal["FMA", "IMA", "LR"]

_CHUNK = 1 << 21  # gradients drawn at a time


def play_game(
    game: Game,
    attack: GameAttack,
    *,
    noise_multiplier: float,
    sample_rate: float,
    steps: int,
    dimension: int = 100_000,
    records: int = 1_000,
    n: int = 10_000,
    rng: Seed = None,
) -> AttackScores:
    """Play a game ``n`` times on each side and return the attack's scores; the attack accuses above 0.

    Parameters
    ----------
    game
        "OIG" and "OFM": the attacker picks the other records (none on the target's coordinate) and sees all
        intermediate gradients, or the final model. "YIG" and "YFM": records are drawn from H_d^f, and a nonmember is a
        fresh draw, which may equal a record (Yeom et al.).
    attack
        "FMA": the final coordinate against T·q/2, plus what other records contribute on average. "IMA": FMA on every
        intermediate model, majority vote. "LR": likelihood ratio of all gradients of the coordinate, which attains
        the bound where the attacker picks the records. The last two need the intermediate models.
    noise_multiplier, sample_rate, steps
        σ (noise std / clipping norm), Poisson rate q and number of steps T.
    dimension, records
        d, and the number of records other than the target.
    """
    choice("game", game, ("OIG", "OFM", "YIG", "YFM"))
    choice("attack", attack, ("FMA", "IMA", "LR"))
    if game.endswith("FM") and attack != "FMA":
        raise InputError(f"attack {attack!r} needs the intermediate models, which game {game!r} hides; use 'FMA'")
    sigma = number("noise_multiplier", noise_multiplier, above=0.0)
    q = number("sample_rate", sample_rate, above=0.0, at_most=1.0)
    steps, n = integer("steps", steps, at_least=1), integer("n", n, at_least=1)
    dimension, records = integer("dimension", dimension, at_least=2), integer("records", records, at_least=0)
    generator = seeded(rng)
    drawn = game.startswith("Y")
    background = q * records / dimension if drawn else 0.0  # what other records add to a step on average

    def scores(member: bool) -> FloatArray:
        others = generator.binomial(records + (not member), 1 / dimension, size=n) if drawn else np.zeros(n, dtype=int)
        present = np.asarray(others + member, dtype=np.int64)
        if attack == "FMA":
            final = generator.binomial(steps * present, q) + sigma * np.sqrt(steps) * generator.standard_normal(n)
            return np.asarray(final - steps * (q / 2 + background))
        rows = max(1, _CHUNK // steps)
        parts = [
            _intermediate(attack, _gradients(present[i : i + rows], steps, sigma, q, generator), sigma, q, background)
            for i in range(0, n, rows)
        ]
        return np.concatenate(parts)

    target = f"{game} on H_d^f, d = {dimension}, DP-SGD with sigma = {sigma:g}, q = {q:g}, T = {steps}"
    return AttackScores(scores(True), scores(False), attack, target, {"exact_ratio": attack == "LR" and not drawn})


def final_model_limit(noise_multiplier: float, sample_rate: float, steps: int) -> float:
    """Return the advantage of FMA as d → ∞: Σ_k Bin(k; T, q)·Φ((k − Tq/2)/(σ√T)) − Φ(−√T·q/(2σ)).

    A member's coordinate is a binomial number of hits plus noise, a nonmember's is noise alone. It stays below the
    bound on all attacks by a factor that goes to 1 only as σ grows: the paper's "gap shrinks to almost 0" as d grows
    holds only for large σ.
    """
    sigma = number("noise_multiplier", noise_multiplier, above=0.0)
    q = number("sample_rate", sample_rate, above=0.0, at_most=1.0)
    steps = integer("steps", steps, at_least=1)
    k = np.arange(steps + 1)
    below = np.concatenate([[0.0], bdtr(k, steps, q)])
    spread = sigma * np.sqrt(steps)
    return float(np.diff(below) @ ndtr((k - steps * q / 2) / spread) - ndtr(-steps * q / (2 * spread)))


def _gradients(present: IntArray, steps: int, sigma: float, q: float, rng: np.random.Generator) -> FloatArray:
    """Draw the noisy gradient sums of the coordinate, shape (games, steps)."""
    hits = rng.binomial(present[:, None], q, size=(len(present), steps))
    return np.asarray(hits + sigma * rng.standard_normal((len(present), steps)))


def _intermediate(attack: GameAttack, gradients: FloatArray, sigma: float, q: float, background: float) -> FloatArray:
    if attack == "IMA":
        models = np.cumsum(gradients, axis=1)
        votes = models > np.arange(1, models.shape[1] + 1) * (q / 2 + background)
        return np.asarray(votes.mean(axis=1) - 0.5)
    shift = (2 * (gradients - background) - 1) / (2 * sigma**2)
    return np.asarray(np.log1p(q * np.expm1(shift)).sum(axis=1))
