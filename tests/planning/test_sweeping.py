"""Many mechanisms at once give the numbers of each alone."""

from __future__ import annotations

import numpy as np
import pytest

import deniable as dn
from deniable import InputError

RUNS = [dn.SubsampledGaussian(1.0 + i / 20, 0.01, 100 + i) for i in range(34)]
RUNS[3] = dn.GaussianDP(1.0) + dn.PureDP(0.2)


def test_each_number_is_that_of_the_mechanism_alone():
    found = dn.sweep(iter(RUNS[:6]), prior=0.3, fpr=[1e-3, 0.1], delta=1e-5)
    for i, mechanism in enumerate(RUNS[:6]):
        curve = dn.tradeoff(mechanism)
        assert found.advantage[i] == curve.advantage(0.3)
        np.testing.assert_array_equal(found.tpr[i], curve.tpr([1e-3, 0.1]))
        assert found.epsilon[i] == [curve.epsilon(1e-5)]


def test_any_number_of_workers_gives_the_same_bits():
    alone, two = dn.sweep(RUNS, n_jobs=1), dn.sweep(RUNS, n_jobs=2)
    np.testing.assert_array_equal(alone.advantage, two.advantage)
    assert alone.tpr.shape == (34, 0)
    assert dn.sweep([]).advantage.shape == (0,)


@pytest.mark.parametrize(
    ("mechanisms", "options", "words"),
    [
        ([RUNS[0], 1.0], {}, r"mechanisms\[1\] must be a mechanism, got 1.0"),
        (RUNS[:1], {"prior": 1.0}, "prior must be"),
        (RUNS[:1], {"fpr": [0.0]}, "fpr must be"),
        (RUNS[:1], {"delta": np.nan}, "delta must be"),
    ],
)
def test_bad_input(mechanisms, options, words):
    with pytest.raises(InputError, match=words):
        dn.sweep(mechanisms, **options)
