"""Poisson samples and random allocation of any step, against enumeration of all that can be released."""

import itertools
import math

import numpy as np
import pytest

import deniable as dn
from deniable.accounting import allocated, sampled
from deniable.accounting.steps import OutcomeLine, Step

PAIRS = {
    "three outcomes": ((0.5, 0.3, 0.2), (0.2, 0.3, 0.5)),
    "only in": ((0.3, 0.6, 0.1, 0.0), (0.1, 0.2, 0.7, 0.0)),
    "either world alone": ((0.5, 0.3, 0.1, 0.1, 0.0), (0.2, 0.3, 0.4, 0.0, 0.1)),
    "far apart": ((0.2, 0.0035, 0.7965), (1e-10, 1 - 1e-10, 0.0)),
}
pairs = pytest.mark.parametrize("name", PAIRS)


def products(law, count):
    """Probabilities of all sequences of so many outcomes."""
    return np.array([math.prod(one) for one in itertools.product(law, repeat=count)])


def assert_brackets(t, p, q):
    assert (math.fsum(p), math.fsum(q)) == pytest.approx((1, 1))
    for epsilon in (-1.0, 0.0, 0.3, 1.0, 3.0):
        for direction, a, b in (("remove", p, q), ("add", q, p)):
            truth = math.fsum(np.maximum(a - math.exp(epsilon) * b, 0))
            low, high = t.delta(epsilon, direction, side="lower"), t.delta(epsilon, direction)
            assert low <= truth * (1 + 1e-13) + 1e-15
            assert truth <= high * (1 + 1e-13) + 1e-15
            assert high - low < 1e-4


@pairs
@pytest.mark.parametrize("rate", [0.01, 0.5, 1.0])
def test_samples_of_any_pair_are_mixtures(name, rate):
    p, q = map(np.array, PAIRS[name])
    t = dn.tradeoff(sampled(dn.mechanisms.FinitePair(p, q, 3), rate))
    assert_brackets(t, products(rate * p + (1 - rate) * q, 3), products(q, 3))


def of_guarantee(epsilon, delta):
    right = (1 - delta) / (1 + math.exp(-epsilon))
    p = np.array([delta, right, 1 - delta - right, 0])
    return p, p[::-1]


@pytest.mark.parametrize(("epsilon", "delta", "rate"), [(1.0, 1e-6, 0.01), (0.3, 0.01, 0.5), (1.0, 0.2, 1.0)])
def test_samples_of_a_guarantee_are_its_worst_pair_sampled(epsilon, delta, rate):
    p, q = of_guarantee(epsilon, delta)
    once = sampled(dn.ApproximateDP(epsilon, delta), rate)
    t = dn.tradeoff(dn.Composition([once, once]))
    assert_brackets(t, products(rate * p + (1 - rate) * q, 2), products(q, 2))
    alone = np.maximum(rate * p + (1 - rate) * q - math.exp(0.1) * q, 0).sum()
    assert dn.tradeoff(once).delta(0.1, "remove") == pytest.approx(alone, rel=1e-5)
    assert rate == 1 or alone < 0.9 * dn.tradeoff(dn.ApproximateDP(epsilon, delta)).delta(0.1)


def in_one_batch(p, q, batches):
    return np.mean(
        [
            [math.prod((p if k == own else q)[o] for k, o in enumerate(one)) for one in outcomes(q, batches)]
            for own in range(batches)
        ],
        axis=0,
    )


def outcomes(law, batches):
    return itertools.product(range(len(law)), repeat=batches)


@pairs
@pytest.mark.parametrize("batches", [2, 4])
def test_an_epoch_of_any_pair_is_the_mean_over_batches(name, batches):
    p, q = map(np.array, PAIRS[name])
    t = dn.tradeoff(allocated(dn.mechanisms.FinitePair(p, q), batches))
    assert_brackets(t, in_one_batch(p, q, batches), products(q, batches))


def test_an_epoch_of_a_guarantee():
    p, q = of_guarantee(0.5, 0.01)
    assert_brackets(dn.tradeoff(allocated(dn.ApproximateDP(0.5, 0.01), 3)), in_one_batch(p, q, 3), products(q, 3))


@pytest.mark.parametrize(
    ("found", "known"),
    [
        (sampled(dn.Laplace(1.0, steps=20), 0.1), dn.Laplace(1.0, steps=20, sample_rate=0.1)),
        (sampled(dn.GaussianDP(1.0), 0.1), dn.SubsampledGaussian(1.0, 0.1, 1)),
        (sampled(dn.SubsampledGaussian(1.0, 0.5, 20), 0.1), dn.SubsampledGaussian(1.0, 0.05, 20)),
        (allocated(dn.GaussianDP(1.0), 10), dn.RandomAllocation(1.0, 10)),
    ],
    ids=["Laplace", "Gaussian", "twice sampled", "allocated"],
)
def test_what_is_known_in_another_way_is_met(found, known):
    t, u = dn.tradeoff(found), dn.tradeoff(known)
    for ask in (lambda t, side: t.advantage(side=side), lambda t, side: t.delta(0.5, side=side)):
        assert ask(t, "lower") <= ask(u, "upper")
        assert ask(u, "lower") <= ask(t, "upper")
        assert ask(t, "upper") - ask(t, "lower") < 1e-5 * ask(t, "upper")


def test_what_has_no_world_without_the_record_is_refused():
    replaced = dn.accounting.ReplacedGaussianStep(1.0, 0.1)
    for change in (sampled, allocated):
        with pytest.raises(dn.InputError, match="adjacency 'replace'"):
            change(replaced, 2 if change is allocated else 0.5)
        with pytest.raises(dn.InputError, match="whose law is known"):
            change(dn.RenyiDP([2.0], [0.1]), 2 if change is allocated else 0.5)
    with pytest.raises(dn.InputError, match="at most 1"):
        sampled(dn.PureDP(1.0), 1.5)
    with pytest.raises(dn.InputError, match="add more noise"):
        dn.tradeoff(allocated(dn.PureDP(500.0), 2)).advantage()


def test_a_line_of_ones_own_says_how_it_is_sampled():
    class Line(OutcomeLine):
        def cut(self, edges, blur): ...
        def _density(self, u): ...

    class OwnStep(Step):
        def pieces(self):
            return (Line(loss=lambda u: u, wrong=np.abs, low=-1.0, high=1.0),)

    with pytest.raises(dn.InputError, match=r"Line must have a method sampled\(rate\)"):
        OwnStep().sampled(0.5).pieces()
