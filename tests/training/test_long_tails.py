"""Regression targets with a long tail: the clip widens where what it cuts off outweighs the noise."""

import numpy as np
import pytest

from deniable import PrivateRegressor
from deniable.training.bins import NoisyCells
from deniable.training.regressor import _loss, _one_sided, _tails, wide_clip

EDGES = np.linspace(-40, 40, 801)
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


def test_targets_at_one_end_get_a_look_at_their_level_where_others_do_not():
    assert wide_clip(0.05, 1500, 0.5) is None
    assert wide_clip(0.05, 1500, 0.5, one_sided=True) == pytest.approx(0.05 * 1500 / 10)
    zeros = np.where(np.abs(MIDDLES - 0.05) < 0.06, 70.0, np.where(MIDDLES > 0, 0.1, 0.0))
    assert _one_sided(NoisyCells(-40.0, 40.0, EDGES[1:-1], zeros))
    assert not _one_sided(NoisyCells(-40.0, 40.0, EDGES[1:-1], np.exp(-np.abs(MIDDLES))))
