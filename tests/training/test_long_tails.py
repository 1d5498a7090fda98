"""Regression targets with a long tail: the clip widens where what it cuts off outweighs the noise."""

import warnings

import numpy as np
import pytest

from deniable import PrivateRegressor
from deniable.testing import insecure_noise
from deniable.training import TrainingWarning
from deniable.training.bins import NoisyCells
from deniable.training.regressor import _loss, _one_sided, _tails, wide_clip

EDGES = np.linspace(-40, 40, 801)
MEASURED = [(0.7, 2_000, -0.02, -0.05), (0.9, 2_000, -0.03, -0.08), (0.9, 10_000, -0.01, -0.02)]
MIDDLES = (EDGES[1:] + EDGES[:-1]) / 2


def clip(mass, strength, mu=1.0):
    cells = NoisyCells(-40.0, 40.0, EDGES[1:-1], 1e5 * mass / mass.sum())
    return _loss("squared", strength, _tails(cells, 0.0, 1.0, mu)).clip


@pytest.mark.parametrize("strength", [50, 800, 3e3, 1e6])
def test_a_normal_target_keeps_its_clip(strength):
    assert clip(np.exp(-(MIDDLES**2) / 2), strength) == 0.5 * min(max((strength / 800) ** 0.5, 1), 4)


def test_a_tail_widens_the_clip_by_what_the_noise_allows():
    tail = np.exp(-np.abs(MIDDLES) / 3)
    clips = [clip(tail, strength) for strength in (10, 300, 3e3, 3e4, 1e7)]
    assert clips == sorted(clips)
    assert clips[0] == 0.5
    assert clips[-1] == 16.0


def test_a_tail_that_may_be_noise_widens_nothing():
    assert clip(np.exp(-np.abs(MIDDLES) / 3), 1e6, mu=1e-4) == 2.0


def test_many_zeros_are_predicted_by_their_mean():
    """Seven targets in ten are 0: the median is, and without the wider clip R² was below 0 (−.015)."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 3))
    y = np.where(rng.random(30_000) < 0.7, 0.0, np.exp(X[:, 0] + X[:, 1] / 2))
    model = PrivateRegressor(advantage=0.2).fit(X[:25_000], y[:25_000])
    assert model.score(X[25_000:], y[25_000:]) > 0.05


def scores_of(zeros, n, **options):
    """R² of six noise seeds on 4,000 other records."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n + 4_000, 3))
    y = np.where(rng.random(n + 4_000) < zeros, 0.0, np.exp(6 + X[:, 0] + X[:, 1] / 2))
    out = []
    for seed in range(6):
        model = PrivateRegressor(advantage=0.1, **options)
        with insecure_noise(np.random.default_rng(seed)), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", TrainingWarning)
            model.fit(X[:n], y[:n])
        out.append((model.score(X[n:], y[n:]), any("target_range" in str(w.message) for w in caught)))
    assert model.tradeoff_.advantage() <= 0.1
    return np.array([score for score, _ in out]), [warned for _, warned in out]


@pytest.mark.parametrize(("zeros", "n", "mean", "least"), MEASURED)
def test_few_records_and_mostly_zeros(zeros, n, mean, least):
    """Mean and least R² of six noise seeds; 0 is the mean of the target, which few records only get near."""
    scores, warned = scores_of(zeros, n)
    assert scores.mean() > mean
    assert scores.min() > least
    assert all(warned) == any(warned) == (n == 2_000)


def test_a_public_range_helps():
    """For most noise seeds: where noise hides the median (about one in ten), R² is −.2."""
    scores, warned = scores_of(0.7, 2_000, target_range=(0.0, 5_000.0))
    assert not any(warned)
    assert np.median(scores) > 0


def test_targets_at_one_end_get_a_look_at_their_level_where_others_do_not():
    assert wide_clip(0.05, 1500, 0.5) is None
    assert wide_clip(0.05, 1500, 0.5, one_sided=True) == pytest.approx(0.05 * 1500 / 10)
    zeros = np.where(np.abs(MIDDLES - 0.05) < 0.06, 70.0, np.where(MIDDLES > 0, 0.1, 0.0))
    assert _one_sided(NoisyCells(-40.0, 40.0, EDGES[1:-1], zeros))
    assert not _one_sided(NoisyCells(-40.0, 40.0, EDGES[1:-1], np.exp(-np.abs(MIDDLES))))
