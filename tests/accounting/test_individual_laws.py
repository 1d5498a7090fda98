"""A record's own curve for every law: enumerated, or attacked as promised, and never below what its own norms show."""

import itertools

import numpy as np
import pytest
from scipy.special import ndtr

import deniable as dn
from deniable.accounting.individual import individual_tradeoffs


def advantage_of_lattice(weights, shifts):
    """Total variation between independent noises on the integers, and the same moved by whole numbers."""
    reach = np.arange(-80, 81)
    mass = weights(reach)
    mass = mass / mass.sum()
    tables = [(mass, np.interp(reach - shift, reach, mass, left=0.0, right=0.0)) for shift in shifts]
    absent = present = np.ones(1)
    for out, inside in tables:
        absent, present = np.outer(absent, out).ravel(), np.outer(present, inside).ravel()
    return 0.5 * float(np.abs(absent - present).sum())


@pytest.mark.parametrize(
    ("run", "weights"),
    [
        (dn.DiscreteGaussian(3.0, 4, steps=2), lambda x: np.exp(-(x**2) / 18)),
        (dn.mechanisms.DiscreteLaplace(3.0, 4, steps=2), lambda x: np.exp(-np.abs(x) / 3)),
    ],
)
def test_discrete_noise_by_enumeration(run, weights):
    own = individual_tradeoffs([[1.0, 3.0], [0.0, 2.0], [0.0, 0.0], [np.nan, 4.0]], 4.0, run).advantage()
    truth = [advantage_of_lattice(weights, shifts) for shifts in ([1, 3], [0, 2], [0, 0], [4, 4])]
    assert np.all(truth <= own + 1e-12)
    assert own == pytest.approx(truth, abs=3e-3)
    assert truth[3] > own[0] + 0.1  # negative control: what the worst record shows is above the curve of a weaker one


def test_laplace_noise_is_attacked_as_promised():
    run, norms, n = dn.Laplace(1.5, sensitivity=2.0, steps=3), np.array([0.5, 2.0, 0.0]), 100_000
    own = individual_tradeoffs([norms], 2.0, run)[0].advantage()
    rng = np.random.default_rng(4)

    def reached(moved):
        seen = rng.laplace(0, 1.5, (2, n, 3)) + np.array([0, 1])[:, None, None] * moved
        ratio = (np.abs(seen) - np.abs(seen - moved)).sum(axis=2) / 1.5
        absent, present = np.mean(ratio > 0, axis=1)
        return present - absent

    assert reached(norms) == pytest.approx(own, abs=0.01)
    assert reached(np.array([2.0, 2.0, 2.0])) > own + 0.05  # negative control


def test_mechanisms_of_bounded_range_by_enumeration():
    """The exponential mechanism with every pattern of scores that one record can move by its own share."""
    epsilon, share = 1.2, 0.5
    own = individual_tradeoffs([[share]], 1.0, dn.mechanisms.BoundedRange(epsilon))[0].advantage()
    reached = []
    for moved in itertools.product((-share, 0.0, share), repeat=3):
        for scores in itertools.product((0.0, 1.0, 3.0), repeat=3):
            laws = [np.exp(epsilon / 2 * np.array(u)) for u in (scores, np.add(scores, moved))]
            absent, present = (law / law.sum() for law in laws)
            reached.append(0.5 * np.abs(absent - present).sum())
    assert 0.8 * own < max(reached) <= own
    whole = [np.exp(epsilon / 2 * np.array(u)) for u in ((0.0, 0.0), (1.0, -1.0))]
    assert 0.5 * np.abs(whole[0] / 2 - whole[1] / whole[1].sum()).sum() > own  # negative control: a whole share


def test_parts_of_different_kinds_are_composed_step_by_step():
    run = dn.Laplace(2.0, steps=2) + dn.SubsampledGaussian(1.0, 0.2, 2) + dn.DiscreteGaussian(3.0, 2)
    own = individual_tradeoffs([[0.5, 1.0, 0.25, 0.25, 0.5]], 1.0, run)[0]
    alone = dn.Laplace(2.0, 0.5) + dn.Laplace(2.0) + dn.SubsampledGaussian(4.0, 0.2, 2) + dn.DiscreteGaussian(3.0, 1)
    truth = dn.tradeoff(alone)
    assert truth.advantage(side="lower") <= own.advantage() <= truth.advantage() + 3e-3
    assert own.advantage() < dn.tradeoff(run).advantage()


def test_norms_of_many_records_are_rounded_up_and_never_down():
    rng = np.random.default_rng(5)
    run, norms = dn.mechanisms.DiscreteLaplace(9.0, 8, steps=2), rng.integers(1, 9, (60, 2))
    own = individual_tradeoffs(norms, 8.0, run).advantage()
    for k in range(0, 60, 15):
        exact = dn.Composition([dn.mechanisms.DiscreteLaplace(9.0, int(moved)) for moved in norms[k]])
        least = dn.tradeoff(exact).advantage(side="lower")
        assert least <= own[k] + 1e-12
    assert len(np.unique(own)) > 2
    assert own.max() <= dn.tradeoff(run).advantage() + 3e-3
    several = dn.Composition([dn.Laplace(2.0)] * 6)  # 64 patterns of 0 and 1: all records count as the largest
    assert len(np.unique(individual_tradeoffs(rng.random((90, 6)).round(), 1.0, several).advantage())) == 1


@pytest.mark.parametrize("positive", [True, False])
def test_every_norm_of_a_matrix_without_sampling_counts_by_itself(positive):
    rng = np.random.default_rng(6)
    strategy = rng.normal(size=(7, 4))
    strategy = np.abs(strategy) if positive else strategy
    norms = np.array([[1.0, 0.2, 0.0, 0.5], [0.0, 0.0, 0.1, 0.0], [0.0, 0.0, 0.0, 0.0]])
    own = individual_tradeoffs(norms, 1.0, dn.MatrixMechanism(3.0, strategy, participations=4)).advantage()
    signs = np.array(list(itertools.product((-1, 1), repeat=4)))
    truth = [max(2 * ndtr(np.linalg.norm(strategy @ (row * sign)) / 6) - 1 for sign in signs) for row in norms]
    assert np.all(truth <= own + 1e-12)
    assert own[:2] == pytest.approx(truth[:2], abs=3e-3 if positive else 0.2)
    single = dn.MatrixMechanism(3.0, strategy)  # in one step at most: no more than the largest norm times its column
    assert individual_tradeoffs(np.full((1, 4), np.nan), 1.0, single).advantage()[0] <= (
        dn.tradeoff(single).advantage() + 3e-3
    )


def test_a_sampler_is_composed_with_other_parts():
    run = dn.RandomAllocation(2.0, 3) + dn.Laplace(4.0)
    own = individual_tradeoffs([[0.5, 0.1, 0.1, 1.0]], 1.0, run)[0]
    truth = dn.tradeoff(dn.RandomAllocation(4.0, 3) + dn.Laplace(4.0))
    assert truth.advantage(side="lower") <= own.advantage() <= truth.advantage() + 3e-3
