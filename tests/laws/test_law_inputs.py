"""A law answers the same whatever the arrays that it is given are made of."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable.laws.gaussian import GaussianLaw
from deniable.laws.norm_laplace import NormLaplaceLaw

LAWS = [GaussianLaw(), NormLaplaceLaw(1), NormLaplaceLaw(3)]
WAYS = {
    "epsilon": lambda law, rho: law.epsilon(rho, 1e-3, "upper"),
    "advantage": lambda law, rho: law.advantage(rho, "upper"),
    "tpr": lambda law, rho: law.tpr(rho, 0.01, "lower"),
    "hockey_stick": lambda law, rho: law.hockey_stick(rho, 1, "upper"),
    "mean_loss": lambda law, rho: law.mean_loss(rho),
    "mean_size": lambda law, rho: law.mean_size(rho),
}
SHAPES = {
    "int64": lambda x: x.astype(np.int64),
    "int8": lambda x: x.astype(np.int8),
    "uint64": lambda x: x.astype(np.uint64),
    "float32": lambda x: x.astype(np.float32),
    "list": lambda x: [int(v) for v in x],
    "series": pd.Series,
    "pandas Int64": lambda x: pd.Series(x.astype(int), dtype="Int64"),
    "column": lambda x: x[:, None],
    "read-only": lambda x: np.frombuffer(x.tobytes()),
    "strided": lambda x: np.repeat(x, 2)[::2],
}


@pytest.mark.parametrize("law", LAWS, ids=repr)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", SHAPES)
def test_as_float64(law, way, shape):
    rho = np.array([0.0, 1.0, 2.0, 5.0])
    expected = WAYS[way](law, rho)
    given = SHAPES[shape](rho)
    found = WAYS[way](law, given)
    assert found.dtype == np.float64
    assert found.shape == np.shape(given)
    np.testing.assert_array_equal(found.ravel(), expected)
    assert WAYS[way](law, 2).shape == ()
    assert WAYS[way](law, 2) == pytest.approx(expected[2], rel=1e-13)
    assert WAYS[way](law, np.empty(0, dtype=int)).shape == (0,)


@pytest.mark.parametrize("bad", [-1, [1, np.nan], "x", np.ma.masked_equal([1.0, 2.0], 2.0), 1j, pd.Series([1, None])])
@pytest.mark.parametrize("way", WAYS)
def test_what_is_no_distance_is_refused(way, bad):
    with pytest.raises(dn.InputError, match="rho must be"):
        WAYS[way](NormLaplaceLaw(2), bad)


def test_an_integer_rho_once_gave_no_epsilon_at_all():
    law = dn.OutputPerturbation(epsilon=1, delta=1e-5, noise="gaussian").law(2)
    assert law.epsilon(np.array([1]), 1e-3, "upper") == law.epsilon(np.array([1.0]), 1e-3, "upper") > 3
    assert dn.OutputPerturbation(epsilon=1).law(1).mean_loss(np.array([1]))[0] == pytest.approx(np.exp(-1))
