"""Shrinkage of shape functions: what the noise alone explains goes, what it cannot stays."""

import numpy as np
import pytest

import deniable as dn
from deniable.testing import insecure_noise
from deniable.training import fitting
from deniable.training.descent import MOMENTUM
from deniable.training.shrinkage import Response, Seen, kept_shares

pytestmark = pytest.mark.filterwarnings("ignore::deniable.training.TrainingWarning")


def averaged(length: float, curvature: float, forces: np.ndarray) -> float:
    """The descent itself, in one dimension, on a parabola that is pushed by ``forces``: slow oracle."""
    w = velocity = mean = 0.0
    for step, force in enumerate(forces):
        velocity = MOMENTUM * velocity + curvature * w - force
        w -= length * velocity
        mean += w * (step >= len(forces) // 2)
    return mean / (len(forces) - len(forces) // 2)


@pytest.mark.parametrize(("steps", "length"), [(40, 0.02), (7, 0.1), (400, 1e-4)])
def test_responses_are_those_of_the_descent(steps, length):
    curvature, sizes = np.array([0.0, 0.3, 5.0]), np.linspace(1, 2, steps)
    for born in (0, steps // 3):
        response = Response(length, MOMENTUM, steps // 2, sizes)
        gain, noise = response.to(curvature, np.full(3, born))
        pushes = np.eye(steps)[born:]
        for k, one in enumerate(curvature):
            weights = [averaged(length, one, push) for push in pushes]
            assert gain[k] == pytest.approx(averaged(length, one, pushes.sum(axis=0)), rel=1e-10)
            assert noise[k] == pytest.approx(np.square(np.multiply(weights, sizes[born:])).sum(), rel=1e-10)


@pytest.mark.parametrize("columns", [1, 6])
def test_kept_is_the_posterior_mean_that_it_claims(columns):
    """Signals drawn from the law beforehand: the kept share estimates the truth better than all or nothing."""
    rng = np.random.default_rng(0)
    gain, variance, relative = np.full(30, 0.9), np.full(30, 0.04), np.ones(30)
    for spread in (0.01, 0.2, 5.0):
        errors = np.zeros(3)
        for _ in range(100 // columns):
            truth = rng.normal(0, spread, (columns, 30, 1))
            seen = [Seen(0.9 * one + rng.normal(0, 0.2, (30, 1)), gain, variance, relative) for one in truth]
            best = np.minimum(gain * spread**2 / (gain**2 * spread**2 + variance), 1)
            for kept, one, column in zip(kept_shares(seen), truth, seen, strict=True):
                assert ((kept >= 0) & (kept <= 1)).all()
                errors += [np.square(c * column.values[:, 0] - one[:, 0]).sum() for c in (kept, np.ones(30), best)]
        assert errors[0] <= errors[1] * 1.001
        assert errors[0] <= errors[2] * 1.1 + 0.03 * errors[1]  # nearly as good as knowing the spread


def fitted(y, X, **options):
    with insecure_noise(np.random.default_rng(1)):
        return dn.PrivateClassifier(**options, interactions=0).fit(X, y)


def shape(model, column: int) -> np.ndarray:
    start = model.model_.basis.starts[column]
    return model.model_.cell_scores()[start : start + 32, 0]


def test_a_column_that_tells_nothing_goes_and_one_that_does_stays(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (10_000, 3))
    y = rng.random(10_000) < 1 / (1 + np.exp(-2 * np.sin(3 * X[:, 0]) - 0.3))
    now = fitted(y, X, advantage=0.2)
    with monkeypatch.context() as patch:
        patch.setattr(fitting, "shrunk_coefficients", lambda found, *rest: found)
        raw = fitted(y, X, advantage=0.2)
    assert np.ptp(shape(now, 0)) > 0.9 * np.ptp(shape(raw, 0))
    for column in (1, 2):
        assert np.ptp(shape(now, column)) < 0.5 * np.ptp(shape(raw, column))  # a third on average
    assert now.predict_proba(X)[:, 1].mean() == pytest.approx(raw.predict_proba(X)[:, 1].mean(), abs=0.01)
    assert now.certificate_.uses == raw.certificate_.uses  # costs nothing
    truth = 2 * np.sin(3 * X[:, 0]) + 0.3
    errors = [np.mean((model.decision_function(X) - truth) ** 2) for model in (now, raw)]
    assert errors[0] < errors[1]
