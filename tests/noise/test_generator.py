"""The Gaussian generator: what it draws, what it promises, and what it refuses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from deniable import InputError
from deniable.noise import Covariance, release_generator
from deniable.noise.generator import projected

COVARIANCE = np.array([[2.0, 0.9, 0.0], [0.9, 1.0, -0.3], [0.0, -0.3, 0.5]])
MEAN = np.array([1.0, -2.0, 10.0])


def records(n, seed=0):
    return MEAN + np.random.default_rng(seed).standard_normal((n, 3)) @ np.linalg.cholesky(COVARIANCE).T


def seeded(seed):
    return {"rng": seed}


def test_it_draws_from_the_released_mean_and_covariance():
    made = release_generator(records(20_000), eta=0.2, **seeded(1))
    np.testing.assert_allclose(made.weights @ made.weights.T, made.covariance, atol=1e-12)
    assert np.linalg.norm(made.covariance - COVARIANCE) / np.linalg.norm(COVARIANCE) < 0.1
    np.testing.assert_allclose(made.mean, MEAN, atol=0.1)
    drawn = made.sample(200_000, rng=2)
    np.testing.assert_allclose(np.cov(drawn.T), made.covariance, atol=0.05)
    np.testing.assert_allclose(drawn.mean(axis=0), made.mean, atol=0.02)
    assert not np.array_equal(made.sample(5), made.sample(5))
    assert made.certificate.eta <= 0.2


def test_its_certificate_is_that_of_the_mean_and_the_covariance_together():
    """The likelihood ratio attack on one record's presence, played on the generator's own parameters."""
    from deniable import release

    data = records(60, seed=3)
    data[0] = MEAN + 8  # stands out
    made = release_generator(data, eta=0.1, **seeded(4))
    again = release(Covariance(with_mean=True), data, eta=0.1, bound="swap", **seeded(4))
    assert made.certificate.eta == again.certificate.eta <= 0.1
    assert 0 < made.certificate.tradeoff.tpr(0.01) <= 0.01 + 2 * 0.1 + 1e-9
    scale = np.asarray(again.noise_scale).ravel()

    def accuracy(less):
        """A record far up raises the means and the variances."""
        rng, seen = np.random.default_rng(5), []
        for _ in range(2_000):
            train = rng.permutation(60)[:30]
            value = Covariance(with_mean=True)(data[train]).ravel() + scale / less * rng.standard_normal(scale.shape)
            seen.append((0 in train, np.sum(value / scale)))
        member, score = map(np.array, zip(*seen, strict=True))
        return max(np.mean((score > t) == member) for t in np.quantile(score, np.linspace(0.05, 0.95, 19)))

    assert 0.53 < accuracy(1) <= 0.5 + 0.1 + 3 * 0.5 / np.sqrt(2_000)
    assert accuracy(10) > 0.7  # negative control: a tenth of the noise


def test_a_table_gives_a_table():
    frame = pd.DataFrame(records(200), columns=["a", "b", "c"])
    made = release_generator(frame, eta=0.3, **seeded(6))
    assert list(made.sample(4).columns) == ["a", "b", "c"]
    assert len(made.sample(4)) == 4


def test_projection_moves_towards_every_covariance():
    rng = np.random.default_rng(7)
    for _ in range(50):
        noisy = COVARIANCE + rng.standard_normal((3, 3))
        found = projected(noisy)
        assert np.linalg.eigvalsh(found)[0] > -1e-9
        np.testing.assert_allclose(found, found.T)
    np.testing.assert_allclose(projected(COVARIANCE), COVARIANCE, atol=1e-12)
    assert projected(np.diag([-1.0, 2.0])).tolist() == [[0.0, 0.0], [0.0, 2.0]]


def test_what_is_refused():
    with pytest.raises(InputError, match="two columns"):
        release_generator(np.arange(20.0)[:, None], eta=0.1)
    with pytest.raises(InputError, match="finite"):
        release_generator(np.full((20, 2), np.inf), eta=0.1)
    with pytest.raises(InputError, match="bound is fixed"):
        release_generator(records(20), eta=0.1, bound="centre")
    with pytest.raises(InputError, match="n must be"):
        release_generator(records(200), eta=0.3, **seeded(8)).sample(0)
