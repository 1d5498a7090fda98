"""Tables of laws: sound at every ρ, a little wider than the law, and the same whoever else is asked for."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from deniable.laws.norm_laplace import NormLaplaceLaw
from deniable.laws.tabulated import TabulatedBound
from oracles.norm_laplace import tail


def _many(dimension: int, least: float = 0.02) -> np.ndarray:
    rng = np.random.default_rng(dimension)
    rho = np.exp(rng.uniform(np.log(least), np.log(6.0), 2500)) * np.sqrt(dimension)
    return np.concatenate([[0.0, 1e-13, 1e4], rho])


@pytest.mark.parametrize(("dimension", "fpr"), [(2, None), (20, None), (3, 1e-3), (60, 0.4)])
def test_a_table_brackets_the_law_and_stays_close_to_it(dimension, fpr):
    law, rho = NormLaplaceLaw(dimension), _many(dimension)
    shown = np.arange(0, len(rho), 31)  # few enough at a time for the law's own exact quantiles

    def table(side):
        return law.advantages(rho, side) if fpr is None else law.rates(rho, fpr, side)

    def exact(side):
        return law.advantage(rho[shown], side) if fpr is None else law.tpr(rho[shown], fpr, side)

    upper, lower = table("upper"), table("lower")
    assert np.all(upper[shown] >= exact("lower"))
    assert np.all(lower[shown] <= exact("upper"))
    assert np.all(upper[shown] - exact("upper") <= 2e-5)
    assert np.all(exact("lower") - lower[shown] <= 5e-5)
    small = (rho[shown] > 1e-6) & (rho[shown] < 0.3 * np.sqrt(dimension))
    assert np.all(upper[shown][small] <= exact("upper")[small] * (1 + 1e-4))


def test_against_integrals_of_twenty_five_digits():
    law, rho = NormLaplaceLaw(7), _many(7, least=1.0)
    upper, lower = law.advantages(rho, "upper"), law.advantages(rho, "lower")
    for i in range(10, 14):
        truth = tail(rho[i], 7, 0.0) - tail(rho[i], 7, 0.0, world="out")
        assert lower[i] <= truth <= upper[i]


@pytest.mark.parametrize("side", ["upper", "lower"])
def test_one_record_is_read_the_same_whoever_else_is_asked_for(side):
    law, rho = NormLaplaceLaw(5), np.tile(_many(5, least=1.0), 2)
    whole = law.rates(rho, 0.01, side)
    halves = np.concatenate([law.rates(part, 0.01, side) for part in (rho[:2300], rho[2300:])])
    np.testing.assert_array_equal(whole, halves)
    moved = law.rates(rho * (1 + 1e-12), 0.01, "upper")
    np.testing.assert_allclose(moved, law.rates(rho, 0.01, "upper"), rtol=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32))
def test_any_maximum_of_functions_that_bend_no_more_than_stated(seed):
    """Here shifted logistic curves, whose second derivative is at least −1/(6√3); without the bend the bound fails."""
    rng = np.random.default_rng(seed)
    starts, heights = rng.uniform(-1.0, 2.0, 6), rng.uniform(0.3, 1.0, 6)

    def truth(rho, side="upper"):
        return np.max(heights / (1 + np.exp(starts - rho[:, None])), axis=1)

    def certified(rho, side):
        return truth(rho) + (1e-4 if side == "upper" else -1e-4)

    rho = rng.uniform(3.0, 6.0, 1000)
    exact = truth(rho)
    table = TabulatedBound(certified, 1 / (6 * np.sqrt(3)), 10.0)
    assert np.all(table(rho, "upper") >= exact)
    assert np.all(table(rho, "lower") <= exact)
    assert np.ptp(table(rho, "upper") - table(rho, "lower")) <= 2e-4
    straight = TabulatedBound(truth, 0.0, 10.0)
    assert np.any(straight(rho, "upper") < exact)
    assert np.any(straight(rho, "lower") > exact)
