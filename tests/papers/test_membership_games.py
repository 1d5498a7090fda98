"""The games against full DP-SGD in small dimension, against their limits, and against the proved bound."""

import numpy as np
import pytest
from known_laws import ratio_advantage
from membership_games import final_model_limit, play_game
from scipy import stats

import deniable as dn
from oracles import dp_sgd

CLIP, RATE = 0.1, 0.001


def full_game(game, member, *, d, records, sigma, q, steps, rng):
    """One game, played with all weights: the models' coordinate of the target in units of RATE·CLIP, label-signed."""
    labels = rng.integers(2, size=d)  # the function f
    target = rng.integers(d)
    if game.startswith("Y"):
        data = rng.integers(d, size=records + 1)
        if member:
            target = data[0]
    else:
        others = np.array([i for i in range(d) if i != target])
        data = np.append(rng.choice(others, size=records), target if member else rng.choice(others))
    models = dp_sgd.train(data, labels[data], d, noise_multiplier=sigma, sample_rate=q, steps=steps, rng=rng)
    return (2 * labels[target] - 1) * models[:, target] / (RATE * CLIP)


@pytest.mark.parametrize("member", [True, False])
@pytest.mark.parametrize("game", ["OFM", "YFM"])
def test_one_coordinate_has_the_law_of_full_dp_sgd(game, member):
    d, records, sigma, q, steps = 6, 8, 0.7, 0.3, 6
    rng = np.random.default_rng(0)
    full = [
        full_game(game, member, d=d, records=records, sigma=sigma, q=q, steps=steps, rng=rng)[-1] for _ in range(2500)
    ]
    fast = play_game(
        game, "FMA", noise_multiplier=sigma, sample_rate=q, steps=steps, dimension=d, records=records, n=40_000, rng=1
    )
    background = q * records / d if game == "YFM" else 0.0
    shifted = np.array(full) - steps * (q / 2 + background)
    assert stats.ks_2samp(shifted, fast.member_scores if member else fast.nonmember_scores).pvalue > 1e-3


def test_majority_votes_have_the_law_of_full_dp_sgd():
    rng = np.random.default_rng(0)
    full = [full_game("OIG", True, d=5, records=5, sigma=1.0, q=0.3, steps=7, rng=rng) for _ in range(2000)]
    votes = np.mean(np.array(full) > np.arange(1, 8) * 0.15, axis=1) - 0.5
    fast = play_game("OIG", "IMA", noise_multiplier=1.0, sample_rate=0.3, steps=7, n=40_000, rng=1).member_scores
    counts = [np.array([np.isclose(x, (k / 7) - 0.5).sum() for k in range(8)]) for x in (votes, fast)]
    assert stats.chi2_contingency(np.array(counts)).pvalue > 1e-3


def test_negative_control_another_rate_is_noticed():
    rng = np.random.default_rng(0)
    full = [full_game("OFM", True, d=6, records=8, sigma=0.7, q=0.4, steps=6, rng=rng)[-1] for _ in range(2500)]
    fast = play_game("OFM", "FMA", noise_multiplier=0.7, sample_rate=0.3, steps=6, n=40_000, rng=1).member_scores
    assert stats.ks_2samp(np.array(full) - 6 * 0.15, fast).pvalue < 1e-6


@pytest.mark.parametrize(
    ("sigma", "share", "long"), [(0.5, 0.707, 0.570), (1.0, 0.850, 0.786), (2.0, 0.953, 0.940), (4.0, 0.988, 0.985)]
)
def test_final_model_attack_stops_short_of_the_bound_for_small_noise(sigma, share, long):
    # shares: design reference values, (T, q) = (50, 0.1) and (5000, 0.01)
    bound = dn.tradeoff(dn.SubsampledGaussian(sigma, 0.1, 50)).advantage()
    limit = final_model_limit(sigma, 0.1, 50)
    assert limit / bound == pytest.approx(share, abs=6e-4)
    bound_long = dn.tradeoff(dn.SubsampledGaussian(sigma, 0.01, 5000)).advantage()
    assert final_model_limit(sigma, 0.01, 5000) / bound_long == pytest.approx(long, abs=6e-4)
    for game in ("OFM", "YFM"):
        scores = play_game(game, "FMA", noise_multiplier=sigma, sample_rate=0.1, steps=50, n=200_000, rng=2)
        assert abs(scores.advantage_at() - limit) < 0.02


@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0, 4.0])
def test_whole_transcript_attains_the_bound_within_one_percent(sigma):
    bound = dn.tradeoff(dn.SubsampledGaussian(sigma, 0.1, 50)).advantage()
    scores = play_game("OIG", "LR", noise_multiplier=sigma, sample_rate=0.1, steps=50, n=200_000, rng=3)
    reached, error = ratio_advantage(scores)
    assert error < 0.0025 * bound  # so that four standard errors are 1 %
    assert reached == pytest.approx(bound, rel=0.01)
    assert reached - 4 * error <= bound
    # counting the accused says the same, less precisely
    assert scores.advantage_at() == pytest.approx(reached, abs=4 * np.sqrt(2 / 200_000))
    # and the scores are log-likelihood ratios: e^L has mean 1 without the record
    likelihood = np.exp(np.minimum(scores.nonmember_scores, 3.0))
    assert likelihood.mean() <= 1 + 4 * likelihood.std() / np.sqrt(200_000)


def test_negative_control_the_ratio_of_another_rate_falls_short():
    bound = dn.tradeoff(dn.SubsampledGaussian(2.0, 0.1, 50)).advantage()
    weaker = play_game("OIG", "LR", noise_multiplier=2.0, sample_rate=0.095, steps=50, n=200_000, rng=3)
    assert ratio_advantage(weaker)[0] < 0.99 * bound


def test_weaker_games_are_weaker():
    common = {"noise_multiplier": 0.5, "sample_rate": 0.1, "steps": 50, "dimension": 300, "n": 20_000, "rng": 4}
    advantage = {
        (game, attack): play_game(game, attack, **common).advantage_at()
        for game, attack in (("OIG", "LR"), ("OFM", "FMA"), ("YFM", "FMA"), ("OIG", "IMA"))
    }
    assert advantage["OIG", "LR"] > advantage["OFM", "FMA"] > advantage["YFM", "FMA"] + 0.05
    assert advantage["OIG", "LR"] > advantage["OIG", "IMA"]
    far = play_game("YFM", "FMA", **(common | {"dimension": 100_000})).advantage_at()
    assert far > advantage["YFM", "FMA"] + 0.05  # the gap closes as d grows
