"""The clip of a regression follows its residuals: narrow where columns explain the target, wide where they cannot."""

import numpy as np
import pytest

import deniable as dn
from deniable.noise import Queries, QueryBudget
from deniable.testing import insecure_noise
from deniable.training import clipping, fitting
from deniable.training.clipping import CLIP_SHARE, reclip, tells
from deniable.training.losses import RESIDUAL, ClippedSquared
from guarantees.replay import Tape

pytestmark = pytest.mark.filterwarnings("ignore::deniable.training.TrainingWarning")


def clip_for(residuals, mu=1.0, clip=1.0, columns=6):
    look = Queries(QueryBudget(mu))
    with insecure_noise(np.random.default_rng(0)):
        found = reclip(look, ClippedSquared(clip), np.trunc(residuals * RESIDUAL), residuals.size, mu, columns)
    assert [use.mu**2 for use in look.ledger.uses] == [pytest.approx(CLIP_SHARE * mu**2)]
    return found


def test_what_is_explained_gets_a_narrow_clip_and_what_is_cut_off_a_wide_one():
    rng = np.random.default_rng(1)
    narrow = clip_for(rng.normal(0, 0.2, 40_000))
    zeros = clip_for(np.where(rng.random(40_000) < 0.3, -rng.exponential(3, 40_000), 0.3), clip=1.0)
    assert narrow.clip <= 0.5
    assert zeros.clip >= 4
    assert narrow.first == zeros.first == 1.0
    assert zeros.bend.reach < narrow.bend.reach  # more noise: a larger ridge


def test_a_tail_to_both_sides_alike_biases_nothing():
    assert clip_for(np.random.default_rng(2).standard_t(2, 40_000) / 3).clip <= 1


def test_noise_alone_widens_nothing():
    """A cell far out that holds a few records of noise would have the weight of thousands."""
    clips = [clip_for(np.random.default_rng(seed).normal(0, 0.3, 12_000), mu=0.25).clip for seed in range(20)]
    assert max(clips) <= 1


def test_the_clip_keeps_sums_exact():
    look = Queries(QueryBudget(1.0))
    with insecure_noise(np.random.default_rng(0)):
        loss = reclip(look, ClippedSquared(1.0), np.trunc(-20.0 * RESIDUAL * (np.arange(9000) % 2)), 2.0**34, 1.0, 3)
    assert loss.clip * 2.0**34 * RESIDUAL < 2**53


def test_few_records_are_not_asked():
    assert not tells(Queries(QueryBudget(0.25)), 3000)
    assert tells(Queries(QueryBudget(0.25)), 5000)


def test_the_histogram_is_in_the_account(monkeypatch):
    monkeypatch.setattr(clipping, "INFORMATIVE", 0.0)
    monkeypatch.setattr(fitting, "STEPS", 30)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = X[:, 0] + rng.standard_t(2, 80)
    recorded, estimator = Tape(1), dn.PrivateRegressor(advantage=0.5)
    estimator._fit(X, y, recorded)
    paid = {use.name: use.mu**2 for use in estimator.certificate_.uses}
    assert "residuals" in paid
    for i in range(0, 80, 8):
        replay, keep = recorded.replay(), np.arange(80) != i
        dn.PrivateRegressor(advantage=0.5)._fit(X[keep], y[keep], replay)
        shift = replay.moved
        assert set(shift) == set(paid)
        assert all(shift[name] <= price * (1 + 1e-12) for name, price in paid.items())
        assert np.sqrt(sum(shift.values())) <= estimator.record_tradeoffs_.mu[i] * (1 + 1e-9)


def test_a_target_with_a_tail_that_columns_explain_is_fitted_with_little_noise():
    """The tail of the target alone made the clip wide and the noise large: R² was .971 to .974."""
    rng = np.random.default_rng(0)
    size, grade = rng.gamma(2, 1, 30_000), rng.normal(size=(30_000, 3))
    y = 3000 * size * np.exp(0.1 * grade[:, 0]) + 200 * grade[:, 1]
    X = np.column_stack([size, 1.1 * size + 0.05 * grade[:, 2], size**0.5, grade])
    scores = []
    for seed in range(4):
        with insecure_noise(np.random.default_rng(seed)):
            scores.append(dn.PrivateRegressor(advantage=0.1).fit(X[:24_000], y[:24_000]).score(X[24_000:], y[24_000:]))
    assert min(scores) > 0.978


def test_most_targets_at_zero_are_predicted_by_what_the_others_are():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 3))
    y = np.where(rng.random(30_000) < 0.7, 0.0, np.exp(X[:, 0] + X[:, 1] / 2))
    with insecure_noise(rng):
        model = dn.PrivateRegressor(advantage=0.2).fit(X[:25_000], y[:25_000])
    assert model.score(X[25_000:], y[25_000:]) > 0.1
