"""Regression targets with a long tail: where most are at one end, and what a last look at the level adds."""

import numpy as np
import pytest

from deniable import PrivateRegressor
from deniable.training.bins import NoisyCells
from deniable.training.regressor import _loss, _one_sided, wide_clip

EDGES = np.linspace(-40, 40, 801)
MIDDLES = (EDGES[1:] + EDGES[:-1]) / 2


@pytest.mark.parametrize("strength", [50, 800, 3e3, 1e6])
def test_the_first_clip_grows_with_the_records(strength):
    assert _loss("squared", strength).clip == 0.5 * min(max((strength / 800) ** 0.5, 1), 4)


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
