"""Privacy promises as tests: ``pytest -p pytest_deniable examples/check_promises.py --deniable-trials 500``.

(Where deniable is installed the plugin is found by itself.) Each function returns one release, with the last person
of the table or without; a broken promise fails like any other test. ``test_forgotten_sensitivity`` is expected to.
"""

import numpy as np
import pytest

import deniable

INCOMES = np.array([21_000.0, 35_500.0, 48_000.0, 27_250.0, 100_000.0])
LARGEST = 100_000.0  # incomes are clipped to [0, LARGEST]


@pytest.fixture
def rng():
    """Fresh randomness: a test of a promise must not reuse its noise."""
    return np.random.default_rng()


@deniable.audit.promise(deniable.PureDP(1.0))
def test_noisy_total(inside, rng):
    """Laplace noise of scale LARGEST/ε, as one person moves the total by at most LARGEST."""
    rows = INCOMES if inside else INCOMES[:-1]
    return np.clip(rows, 0, LARGEST).sum() + rng.laplace(scale=LARGEST / 1.0)


@deniable.audit.promise(deniable.GaussianDP(0.5))
def test_two_noisy_answers(inside, rng):
    """A total and a count, together 0.5-GDP: half of μ² for each."""
    rows = INCOMES if inside else INCOMES[:-1]
    sd = np.sqrt(2) / 0.5
    return rows.sum() / LARGEST + rng.normal(scale=sd), len(rows) + rng.normal(scale=sd)


@pytest.mark.xfail(raises=deniable.audit.PromiseBroken, strict=True)
@deniable.audit.promise(deniable.PureDP(1.0))
def test_forgotten_sensitivity(inside, rng):
    """A tenth of the noise that the promise needs."""
    rows = INCOMES if inside else INCOMES[:-1]
    return rows.sum() + rng.laplace(scale=LARGEST / 10.0)
