"""Losses: derivatives agree with differences, changes of slope keep their digits, facts for certificates hold."""

import mpmath as mp
import numpy as np
import pytest

from deniable.records.losses import LOSSES, Logistic, Softmax

SCALAR = [loss for loss in LOSSES.values() if loss.name != "softmax"]


def target(loss, rng, n):
    return {"poisson": rng.poisson(2.0, n).astype(float), "logistic": rng.choice([-1.0, 1.0], n)}.get(
        loss.name, rng.choice([-1.0, 1.0], n)
    )


@pytest.mark.parametrize("loss", SCALAR, ids=lambda loss: loss.name)
def test_derivatives_and_changes_agree_with_differences(loss):
    rng = np.random.default_rng(0)
    t, y = rng.normal(scale=2.0, size=(500, 1)), target(loss, rng, 500)
    h = 1e-6
    numeric = (loss.value(t + h, y) - loss.value(t - h, y)) / (2 * h)
    np.testing.assert_allclose(loss.slope(t, y)[:, 0], numeric, atol=1e-6 * (1 + np.abs(numeric).max()))
    smooth = loss.kink(t, y) > 1e-3
    bent = (loss.slope(t + h, y) - loss.slope(t - h, y))[:, 0] / (2 * h)
    np.testing.assert_allclose(loss.curvature(t, y)[smooth, 0, 0], bent[smooth], atol=1e-5 * (1 + bent.max()))
    for scale in (1e-3, 1.0, 30.0):
        step = rng.normal(scale=scale, size=(500, 1))
        np.testing.assert_allclose(
            loss.change(t, step, y), loss.slope(t + step, y) - loss.slope(t, y), rtol=1e-9, atol=1e-11
        )


@pytest.mark.parametrize("loss", [loss for loss in SCALAR if loss.self_concordance is not None], ids=lambda x: x.name)
def test_self_concordance_bounds_how_fast_the_curvature_changes(loss):
    rng = np.random.default_rng(1)
    t, u = rng.normal(scale=5.0, size=(2000, 1)), rng.normal(scale=3.0, size=(2000, 1))
    y = target(loss, rng, 2000)
    ratio = np.log(loss.curvature(t + u, y) / loss.curvature(t, y))[:, 0, 0]
    assert np.all(np.abs(ratio) <= loss.self_concordance * np.abs(u[:, 0]) + 1e-12)


def test_softmax_curvature_changes_by_at_most_the_stated_factor():
    rng = np.random.default_rng(2)
    loss, y = Softmax(), np.zeros(300)
    t, u = rng.normal(scale=3.0, size=(300, 4)), rng.normal(size=(300, 4))
    for A, B, step in zip(loss.curvature(t, y), loss.curvature(t + u, y), u, strict=True):
        bound = np.exp(loss.self_concordance * np.linalg.norm(step))
        assert np.linalg.eigvalsh(bound * A - B).min() >= -1e-12
        assert np.linalg.eigvalsh(bound * B - A).min() >= -1e-12
    far = loss.change(t, 800 * u, y)
    assert np.all(np.isfinite(far))
    assert np.all(np.abs(far) <= 1)


def test_logistic_change_is_accurate_to_rounding():
    rng = np.random.default_rng(3)
    with mp.workdps(200):
        for _ in range(300):
            t, s = rng.normal() * 10 ** rng.uniform(-3, 2), rng.normal() * 10 ** rng.uniform(-12, 2.5)
            exact = 1 / (1 + mp.exp(-mp.mpf(t) - mp.mpf(s))) - 1 / (1 + mp.exp(-mp.mpf(t)))
            found = Logistic().change(np.array([[t]]), np.array([[s]]), np.ones(1))[0, 0]
            assert abs(found - exact) <= 1e-15 * (1 + abs(t)) * abs(exact) + mp.mpf(10) ** -300
