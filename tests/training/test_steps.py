"""The length of the steps: it grows with what noisy gradients show, never oscillates, and depends on nothing else."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.metrics import log_loss

import deniable as dn
from deniable.training import fitting
from guarantees.replay import Tape

pytestmark = pytest.mark.filterwarnings("ignore::deniable.training.TrainingWarning")
N = 16_000
MUCH = dn.GaussianDP(20.0)


@pytest.fixture
def lengths(monkeypatch):
    """The length before each step but the first, in units of what is stable for any table."""
    seen, adapt = [], fitting.Path._adapt

    def noted(path, *asked):
        seen.append(path.length * path.loss.bend.largest * path.task.n / fitting.STABLE)
        adapt(path, *asked)

    monkeypatch.setattr(fitting.Path, "_adapt", noted)
    return seen


def flags(rng, chances, columns: int):
    return pd.DataFrame({f"x{j}": rng.random(N) < chances for j in range(columns)})


def fitted(X, y, **options):
    return dn.PrivateClassifier(**{"limit": MUCH, "interactions": 0} | options)._fit(X, y, Tape(1))


def test_steps_grow_where_columns_are_told_apart_and_stay_where_noise_hides_everything(lengths):
    rng = np.random.default_rng(0)
    X = flags(rng, 0.5, 6)
    y = rng.random(N) < expit(X @ [2, -2, 1, 1, 0, 0] - 1)
    fitted(X, y)
    ratio = np.divide(lengths[1:], lengths[:-1])
    assert lengths[0] == pytest.approx(1)
    assert max(lengths) > 2
    assert ratio.max() <= fitting._GROWTH * (1 + 1e-12)
    lengths.clear()
    fitted(X[:500], y[:500], limit=dn.GaussianDP(0.05))
    assert max(lengths) <= 1
    assert np.ptp(lengths) == 0


def oscillates(X, y, chances) -> bool:
    """Whether a fit predicts worse than it should: the loss of those who know the law, and a little."""
    return log_loss(y, fitted(X, y).predict_proba(X)[:, 1]) > log_loss(y, chances) + 0.02


def test_equal_columns_do_not_oscillate_and_would_without_a_look_at_the_curvature(lengths, monkeypatch):
    """All curvature lies in one direction: only there are the steps that any table allows the longest stable ones."""
    rng = np.random.default_rng(1)
    one = rng.random(N) < 0.5
    X = flags(rng, np.where(one, 0.999, 0.001), 12)
    chances = expit(3.0 * one - 1.5)
    y = rng.random(N) < chances
    assert not oscillates(X, y, chances)
    assert lengths[-1] < 2 * (1 + fitting.MOMENTUM) / fitting.STABLE  # longer ones oscillate
    monkeypatch.setattr(fitting, "_SAFE", math.inf)
    assert oscillates(X, y, chances)  # negative control


@pytest.mark.parametrize("secret", [False, True])
def test_steps_that_adapt_depend_on_released_numbers_only(lengths, secret, monkeypatch):
    """On a neighbour the noisy answers are replayed: the sums move by what was paid; not if a secret is looked at."""
    monkeypatch.setattr(fitting, "STEPS", 30)
    monkeypatch.setattr(fitting, "STABLE", 0.05)  # with so few records steps grow, too
    if secret:
        adapt = fitting.Path._adapt

        def adapts(path, *asked):
            adapt(path, *asked)
            path.length *= 1 + path.task.table.n_rows % 2

        monkeypatch.setattr(fitting.Path, "_adapt", adapts)
    rng = np.random.default_rng(2)
    X = flags(rng, 0.5, 3)[:60]
    y = rng.random(60) < expit(2.0 * X["x0"] - 1)
    model, tape = dn.PrivateClassifier(limit=MUCH), Tape(3)
    model._fit(X, y, tape)
    assert lengths[-1] > 1.2 * lengths[0]
    paid = {use.name: use.mu**2 for use in model.certificate_.uses}
    shares = []
    for i in range(0, 60, 7):
        keep, replay = np.arange(60) != i, tape.replay()
        dn.PrivateClassifier(limit=MUCH)._fit(X[keep], y[keep], replay)
        shares.append(replay.moved["coefficients"] / paid["coefficients"])
    assert (max(shares) > 1) == secret
