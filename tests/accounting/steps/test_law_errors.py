"""Errors of the law of a sum: what they are in both worlds, against enumeration."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from deniable.accounting.steps.law_errors import LawErrors, square_error


def law(rng, size, mean):
    mass, point = rng.exponential(1, size), rng.exponential(1, size) ** 2
    return mass / mass.sum(), point * mean / (point @ mass * (1 / mass.sum()))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_a_placed_error_is_no_larger_in_either_world_than_charged(seed, whole):
    rng = np.random.default_rng(seed)
    terms = 12
    part, x = law(rng, 7, float(terms if whole else 5))
    rest, r = ([1.0], [0.0]) if whole else law(rng, 6, 7.0)
    total = np.add.outer(x, r).ravel() / terms
    wrong = 1e-6 * rng.uniform(0, 1, x.size) * part
    errors = LawErrors().placed(np.sort(x), wrong[np.argsort(x)], float(terms if whole else 5))
    if not whole:
        errors = errors.of_sum(1, float(terms))
    hit, out = errors.in_worlds(terms)
    assert wrong.sum() <= out * (1 + 1e-12)
    assert float(np.outer(wrong, rest).ravel() @ total) <= hit * (1 + 1e-12)


def test_nothing_is_claimed_where_little_is_left():
    errors = LawErrors().placed(np.array([1.0, 50.0]), np.array([0.0, 0.1]), 1.0)
    assert max(errors.in_worlds(10)) == math.inf


def test_half_a_lattice_has_at_most_its_root_of_an_error_in_l2():
    errors = LawErrors().spread(np.arange(50.0), 1e-10, 100, 0.0)
    assert errors.mass.sum() >= 1e-10 * math.sqrt(0.5)
    assert errors.total == pytest.approx(errors.mass.sum())


@pytest.mark.parametrize(("n", "kappa", "centred"), [(6, 0.05, 1), (8, 0.02, 1), (6, 0.05, 0), (1, 0.1, 0)])
def test_mean_squares_of_errors_of_all_terms(n, kappa, centred):
    """Three values a term, all sequences: E(Π(1 + δ) − 1)², in one sum or of sums of halves."""
    rng = np.random.default_rng(n)
    for _ in range(20):
        mass = rng.dirichlet(np.ones(3))
        delta = rng.uniform(-kappa, kappa, size=3)
        if centred:
            delta = delta - mass @ delta
            delta *= kappa / np.abs(delta).max()
        every = np.array(list(itertools.product(range(3), repeat=n)))
        share, wrong = mass[every].prod(axis=1), (1 + delta[every]).prod(axis=1) - 1
        bound = square_error(n, float(mass @ delta**2), abs(float(mass @ delta)))
        assert share @ wrong**2 <= bound * (1 + 1e-12)
        one = LawErrors(kappa, square=float(mass @ delta**2), bias=abs(float(mass @ delta)))
        halves = one.of_sum(n // 2, 1.0).of_sum(2, 1.0) if n > 1 else one
        assert share @ wrong**2 <= halves.square * (1 + 1e-12)
        assert abs(share @ wrong) <= halves.bias + 1e-15
        if centred and n > 1:
            assert math.sqrt(bound) < 0.75 * n * kappa


@pytest.mark.parametrize("c", [-7.0, -1.0, 0.0, 0.5, 1.0, 4.0, 30.0])
def test_relative_errors_under_a_tilt(c):
    """A law of 400 points, its masses wrong by up to 1e-4 but by 1e-6 in the mean square."""
    rng = np.random.default_rng(3)
    loss = np.sort(rng.normal(0, 0.4, 400))
    mass = rng.dirichlet(np.ones(400))
    for place in (slice(0, 3), slice(180, 220), slice(395, 400)):
        delta = np.zeros(400)
        delta[place] = 1e-4
        errors = LawErrors(1e-4, square=float(mass @ delta**2))
        weight = mass * np.exp(c * loss)
        size = math.log(weight.sum())
        truth = float(weight @ np.abs(delta)) / weight.sum()
        found = errors.rounded(np.log(mass * (1 + delta)) + c * loss - size, c * loss - size, 0.0)
        assert truth <= found * (1 + 1e-3)
        assert found <= 1e-4
        if abs(c) <= 1:
            assert found <= 3 * math.sqrt(errors.square)


def test_errors_one_after_the_other_add_up_in_norm():
    first, second = LawErrors(1e-6, square=1e-16, bias=1e-9), LawErrors(2e-6, square=4e-16, bias=2e-9)
    both = first + second
    assert both.square == pytest.approx(9e-16)
    assert both.bias >= 3e-9
