"""Mechanisms as plain types: what is read back is the same, and nothing else is read."""

import copy
import json
import math
import pickle

import numpy as np
import pytest

import deniable as dn
from deniable import mechanisms as m

EVERY = [
    m.PureDP(1.0), m.ApproximateDP(1.0, 1e-6), m.GaussianDP(0.3), m.SubsampledGaussian(1.0, 0.01, 100, 3),
    m.Laplace(1.0), m.DiscreteGaussian(3.0), m.RandomizedResponse(1.0), m.RenyiDP([2.0, math.inf], [0.1, 0.3]),
    m.ZeroConcentratedDP(0.1), m.RandomAllocation(1.0, 10), m.TruncatedPoisson(1.0, 0.01, 10, 50, 1000),
    m.WithoutReplacement(1.0, 10, 100), m.ShuffledBatches(1.0, 10, 2), m.NoisyGradientDescent(1.0, 10, 0.1, 1.0, 0.5),
    m.MatrixMechanism(1.0, np.tril(np.ones((4, 4)))), m.MatrixMechanism(1.0, sensitivity=2.0),
    m.FinitePair([0.5, 0.5], [0.4, 0.6]), m.BoundedRange(1.0), m.DiscreteLaplace(2.0),
    m.Tuned(m.SubsampledGaussian(1.0, 0.01, 10), 5.0), m.Grouped(m.GaussianDP(1.0) + m.PureDP(0.1), 3),
]  # fmt: skip


@pytest.mark.parametrize("mechanism", EVERY, ids=lambda one: type(one).__name__)
def test_what_is_written_is_read_back(mechanism):
    text = json.dumps(m.to_plain(mechanism), allow_nan=False)
    again = m.from_plain(json.loads(text))
    assert type(again) is type(mechanism)
    assert json.dumps(m.to_plain(again)) == text
    assert again == mechanism
    assert hash(again) == hash(mechanism)
    assert copy.deepcopy(mechanism) == pickle.loads(pickle.dumps(mechanism)) == mechanism


def test_others_are_other_mechanisms():
    assert len({*EVERY, m.Composition(EVERY[:3])}) == len(EVERY) + 1
    strategy = np.tril(np.ones((4, 4)))
    near = [m.MatrixMechanism(1.0, np.where(strategy == 0, 1e-9, strategy)), m.MatrixMechanism(1.0, strategy[:, :3])]
    for other in (*near, m.MatrixMechanism(2.0, strategy), m.MatrixMechanism(1.0, strategy, participations=2)):
        assert other != m.MatrixMechanism(1.0, strategy)
    assert all(one != 1 and one != "GaussianDP" for one in EVERY)


def test_a_subclass_is_another_kind():
    class Own(m.MatrixMechanism):
        """As its base."""

    strategy = np.tril(np.ones((4, 4)))
    assert Own(1.0, strategy) == Own(1.0, strategy)
    assert Own(1.0, strategy) not in EVERY


@pytest.mark.parametrize("bad", [
    {}, {"kind": "Mechanism"}, {"kind": "os"}, {"kind": "GaussianDP"}, {"kind": "GaussianDP", "mu": -1},
    {"kind": "GaussianDP", "mu": 1, "sigma": 2}, {"kind": "GaussianDP", "mu": "nan"}, [], None, "GaussianDP",
])  # fmt: skip
def test_nothing_else_is_read(bad):
    with pytest.raises(dn.InputError):
        m.from_plain(bad)
