"""Other risks from one curve: all attackers of finite mechanisms, Gaussian attacks, and the curves that must refuse."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.integrate import quad
from scipy.stats import norm

import deniable as dn
from deniable import risks
from deniable.curves import EVERY_CASE, EnvelopeTradeoff, Tradeoff
from deniable.curves.chains import ChainTradeoff

SEEDS = st.integers(0, 2**32 - 1)


def laws(rng, count, outcomes, spread):
    """Random laws near one another: rows of positive probabilities."""
    centre = rng.dirichlet(np.ones(outcomes))
    raw = centre * np.exp(spread * rng.standard_normal((count, outcomes)))
    return raw / raw.sum(axis=1, keepdims=True)


def hockey_sticks(p, q, gammas):
    return np.maximum(p - gammas[:, None] * q, 0.0).sum(axis=1)


@dataclass(frozen=True)
class Enumerated(Tradeoff):
    """The exact worst curve over a list of finite (out, in) pairs: all tests of all pairs, then the concave hull."""

    pairs: tuple = ()

    def _hockey_stick(self, log_gamma, direction, side):
        order = 1 if direction == "remove" else -1
        gammas = np.exp(log_gamma)
        worst = [
            hockey_sticks(*pair[::-order], gammas) if order == 1 else hockey_sticks(*pair, gammas)
            for pair in self.pairs
        ]
        return np.clip(np.max(worst, axis=0) + (1e-14 if side == "upper" else -1e-14), 0.0, 1.0)

    def _roc(self, fpr, direction, side):
        points = [(0.0, 0.0), (1.0, 1.0)]
        for out, inside in self.pairs:
            null, other = (out, inside) if direction == "remove" else (inside, out)
            order = np.argsort(-other / null)
            points += zip(np.cumsum(null[order]), np.cumsum(other[order]), strict=True)
        x, y = np.array(sorted(points)).T
        hull = [0]
        for i in range(1, x.size):  # upper concave hull
            while len(hull) > 1 and (y[hull[-1]] - y[hull[-2]]) * (x[i] - x[hull[-1]]) <= (y[i] - y[hull[-1]]) * (
                x[hull[-1]] - x[hull[-2]]
            ):
                hull.pop()
            hull.append(i)
        slack = 1e-12 if side == "upper" else -1e-12
        return np.clip(np.interp(fpr, x[hull], y[hull]) + slack, 0.0, 1.0)


def enumerated(pairs):
    return Enumerated(pairs=tuple(pairs), holds_for=EVERY_CASE)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.floats(0.1, 2.0))
def test_reconstruction_bounds_every_attacker_with_correlated_priors(seed, spread):
    rng = np.random.default_rng(seed)
    contents, outcomes, situations, guesses = 3, 3, 2, 3
    out = laws(rng, situations, outcomes, spread)
    inside = np.array([laws(rng, contents, outcomes, spread) for _ in range(situations)])
    curve = enumerated((out[x], inside[x, z]) for x in range(situations) for z in range(contents))
    joint = rng.dirichlet(np.full(situations * contents, 0.4)).reshape(situations, contents)  # correlated
    right = rng.random((contents, guesses)) < 0.5  # any relation between content and guess
    right[np.arange(contents), np.arange(contents)] = True
    baseline = sum((joint[x][:, None] * right).sum(axis=0).max() for x in range(situations))
    best = sum(  # for each situation the best of all attackers
        max(
            sum(joint[x, z] * inside[x, z, o] * right[z, strategy[o]] for z in range(contents) for o in range(outcomes))
            for strategy in product(range(guesses), repeat=outcomes)
        )
        for x in range(situations)
    )
    assert best <= curve.reconstruction(min(baseline, 1.0)) + 1e-12


def test_the_largest_prior_alone_is_unsafe_where_attributes_correlate():
    # the attribute follows from what the attacker knows: he needs no output
    prior = np.array([[1.0, 0.0], [0.0, 1.0]])
    curve = dn.tradeoff(dn.PureDP(0.1))
    assert curve.attribute(prior) == 1.0
    assert curve.reconstruction(0.5) < 0.6  # what the marginal prior would have claimed
    assert curve.attribute([0.5, 0.5]) == pytest.approx(curve.reconstruction(0.5), abs=1e-12)
    weighted = curve.attribute([[0.9, 0.1], [0.5, 0.5]], weights=[1, 3])
    assert weighted == pytest.approx(curve.reconstruction(0.6), abs=1e-12)


@pytest.mark.parametrize("shift", [1, 2, 3])
def test_reconstruction_is_attained_on_a_circle(shift):
    # out: uniform on m points; in: the law of any decreasing density, turned by the record; guess: the output
    m = 8
    density = np.sort(np.random.default_rng(shift).dirichlet(np.ones(m)))[::-1]
    curve = enumerated((np.full(m, 1 / m), np.roll(density, z)) for z in range(m))
    reached = density[:shift].sum()  # right if the output lies less than ``shift`` after z
    assert reached == pytest.approx(curve.reconstruction(shift / m), abs=1e-11)
    assert curve.reconstruction(shift / m, side="lower") <= reached


@pytest.mark.parametrize(("candidates", "mu", "factor"), [(2, 1.0, 0.85), (10, 1.0, 0.75), (1000, 3.0, 0.3)])
def test_gaussian_attacker_comes_near_the_bound(candidates, mu, factor):
    # candidates at orthogonal vectors of length mu; the likeliest is named
    success = quad(lambda x: norm.pdf(x - mu) * norm.cdf(x) ** (candidates - 1), -10, 12 + mu)[0]
    bound = dn.tradeoff(dn.GaussianDP(mu)).reconstruction(1 / candidates)
    assert factor * bound <= success <= bound


@settings(max_examples=15, deadline=None)
@given(SEEDS, st.floats(0.1, 1.5), st.integers(1, 3))
def test_singling_out_bounds_every_attacker(seed, spread, n):
    rng = np.random.default_rng(seed)
    people, outcomes = 3, 3
    population = rng.dirichlet(np.ones(people))
    inputs = list(product(range(people), repeat=n))
    law = dict(zip(inputs, laws(rng, len(inputs), outcomes, spread), strict=True))
    # record i is replaced: all pairs, whichever is the null
    pairs = [
        (law[a], law[b])
        for a in inputs
        for b in inputs
        if a != b and sum(x != y for x, y in zip(a, b, strict=True)) == 1
    ]
    curve = enumerated(pairs)
    weight = rng.uniform(population.min(), 1.0)
    predicates = [s for s in product([False, True], repeat=people) if population[np.array(s)].sum() <= weight]
    best = 0.0
    for strategy in product(predicates, repeat=outcomes):
        best = max(
            best,
            sum(
                np.prod(population[list(a)]) * law[a][o]
                for a in inputs
                for o in range(outcomes)
                if sum(strategy[o][person] for person in a) == 1
            ),
        )
    assert best <= curve.singling_out(n, weight) + 1e-12


def test_singling_out_lower_side_is_what_a_fixed_predicate_reaches():
    curve = dn.tradeoff(dn.PureDP(0.0))
    n, weight = np.array([1, 10, 1000, 10**6]), np.array([0.3, 0.02, 1e-3, 1e-9])
    v = np.minimum(weight, 1 / n)
    exact = n * v * (1 - v) ** (n - 1)
    lower, upper = curve.singling_out(n, weight, side="lower"), curve.singling_out(n, weight)
    assert np.all(lower <= exact)
    assert lower == pytest.approx(exact, rel=1e-9)
    assert np.all(exact <= upper)
    assert curve.singling_out(5, 0.0) == 0.0
    assert dn.tradeoff(dn.PureDP(3.0)).singling_out(1000, 0.5) == 1.0


@settings(max_examples=15, deadline=None)
@given(SEEDS, st.floats(0.1, 1.5), st.sampled_from([2, 3]))
def test_groups_bound_every_test(seed, spread, k):
    rng = np.random.default_rng(seed)
    outcomes = 4
    law = dict(zip(range(2**k), laws(rng, 2**k, outcomes, spread), strict=True))
    curve = enumerated((law[s & ~(1 << i)], law[s | (1 << i)]) for s in law for i in range(k))
    check_all_tests(curve.group(k), law[0], law[2**k - 1])


@settings(max_examples=12, deadline=None)
@given(SEEDS, st.floats(0.1, 1.5))
def test_replacing_bounds_every_test(seed, spread):
    rng = np.random.default_rng(seed)
    out, *inside = laws(rng, 4, 4, spread)
    curve = risks.replaced(enumerated((out, p) for p in inside))
    for one in inside:
        for other in inside:
            check_all_tests(curve, one, other)


def check_all_tests(curve, null, other):
    """No test of the pair is above the ROC, and no hockey stick above the bound, in either direction."""
    tests = np.array(list(product([0.0, 1.0], repeat=null.size)))
    assert np.all(tests @ other <= curve.tpr(np.minimum(tests @ null, 1.0)) + 1e-12)
    assert np.all(tests @ null <= curve.inverse().tpr(np.minimum(tests @ other, 1.0)) + 1e-12)
    gammas = np.array([0.0, 0.1, 0.7, 1.0, 1.3, 4.0, 50.0])
    assert np.all(hockey_sticks(other, null, gammas) <= curve.hockey_stick(gammas) + 1e-12)
    assert np.all(hockey_sticks(null, other, gammas) <= curve.hockey_stick(gammas, "add") + 1e-12)


def test_gaussian_groups_and_replacing_are_exact():
    curve = dn.tradeoff(dn.SubsampledGaussian(4.0, 1.0, 9))  # mu = 3/4
    assert curve.group(4).advantage() == pytest.approx(dn.tradeoff(dn.GaussianDP(3.0)).advantage(), abs=1e-14)
    replacing = dn.tradeoff(dn.SubsampledGaussian(4.0, 1.0, 9), adjacency="replace")
    assert replacing.advantage() == pytest.approx(dn.tradeoff(dn.GaussianDP(1.5)).advantage(), abs=1e-14)
    assert replacing.assumptions.adjacency == "replace one record"
    assert curve.group(4).assumptions.adjacency == "add or remove a group of 4 records"
    # the chain itself, without the closed form, gives the same
    chain = ChainTradeoff(((curve, "remove"),) * 4, holds_for=EVERY_CASE)
    fpr, gammas = np.array([1e-9, 1e-3, 0.3]), np.array([0.05, 0.8, 1.0, 3.0, 100.0])
    assert np.all(chain.tpr(fpr) >= curve.group(4).tpr(fpr, side="lower"))
    assert chain.tpr(fpr) == pytest.approx(curve.group(4).tpr(fpr), rel=1e-10)
    assert np.all(chain.hockey_stick(gammas) >= curve.group(4).hockey_stick(gammas, side="lower"))
    assert chain.hockey_stick(gammas) == pytest.approx(curve.group(4).hockey_stick(gammas), rel=1e-5)


def test_replacing_is_the_same_in_either_order():
    one = dn.tradeoff(dn.SubsampledGaussian(1.0, 0.1, 2))
    t, fpr = risks.replaced(one), np.array([1e-3, 0.3])
    assert t.symmetric
    assert t.walk("remove") == t.walk("add")
    by = one.inverse().tpr(fpr), one.tpr(fpr)  # a removal, an addition
    both, exchanged = one.tpr(by[0]), one.inverse().tpr(by[1])
    assert t.tpr(fpr) == pytest.approx(both, rel=1e-12)
    assert t.inverse().tpr(fpr) == pytest.approx(both, rel=1e-12)
    assert np.all(np.abs(both / exchanged - 1) > 1e-6)  # another order would have been seen


@pytest.mark.parametrize(
    ("mechanism", "k"), [(dn.PureDP(0.01), 10), (dn.ApproximateDP(0.3, 1e-6), 6), (dn.Laplace(2.0), 3)]
)
def test_hockey_sticks_of_groups_are_those_of_their_best_tests(mechanism, k):
    curve = dn.tradeoff(mechanism).group(k)
    x = np.concatenate([[0.0], np.geomspace(1e-9, 0.1, 20_000), np.linspace(0.1, 1.0, 20_000)])
    log_gamma = np.linspace(-1.0, 1.0, 9) * min(1.0, 0.9 * curve.epsilon(1e-5))
    best = np.array([np.max(curve.tpr(x) - gamma * x) for gamma in np.exp(log_gamma)])
    assert np.all(curve.hockey_stick(np.exp(log_gamma)) >= best * (1 - 1e-9))
    assert curve.hockey_stick(np.exp(log_gamma)) == pytest.approx(best, rel=1e-4)
    assert curve.advantage() == pytest.approx(np.max(curve.tpr(x) - x), rel=1e-4)


@pytest.mark.parametrize("steps", [1, 20])
def test_group_of_a_laplace_sum_bounds_that_of_a_larger_sensitivity(steps):
    group, exact = dn.tradeoff(dn.Laplace(5.0, steps=steps)).group(4), dn.tradeoff(dn.Laplace(1.25, steps=steps))
    epsilon, delta = np.array([0.0, 0.1, 0.3, 0.7]), np.array([1e-2, 1e-5, 1e-12])
    assert np.all(group.delta(epsilon) >= exact.delta(epsilon, side="lower"))
    assert np.all(group.epsilon(delta) >= exact.epsilon(delta, side="lower"))
    if steps == 1:  # where shifts of one number compose to their sum
        assert group.delta(epsilon) == pytest.approx(exact.delta(epsilon), rel=2e-5)
        assert group.epsilon(delta) == pytest.approx(exact.epsilon(delta), rel=5e-6)


@pytest.mark.parametrize(
    "mechanism", [dn.PureDP(1.0), dn.ApproximateDP(0.5, 1e-10), dn.GaussianDP(1.0), dn.Laplace(1.0)]
)
def test_chains_bound_whatever_their_ladder_says(mechanism):
    """Slopes that are far from those of the best test give a wider bound, never a wrong one."""
    curve = dn.tradeoff(mechanism)
    links = ((curve, "remove"), (curve, "remove"))
    epsilon = np.array([-2.5, -1.0, 0.0, 0.5, 1.0, 2.0, 3.5])
    good, bad = ChainTradeoff(links).delta(epsilon), ChainTradeoff(links)
    rng = np.random.default_rng(1)
    slopes = rng.uniform(-3, 3, size=(2, 40))
    order = np.argsort(slopes.sum(axis=0))
    for way in ("remove", "add"):
        for part in (True, False):
            bad._ladders((way, part), lambda: (slopes[:, order], np.ones(40), np.ones(40)))
    assert np.all(bad.delta(epsilon) >= good * (1 - 1e-6) - 1e-300)


def test_advantages_of_groups_and_replaced_records_need_the_middle_of_a_ladder_only(monkeypatch):
    """Of many kinds of releases, one of which fails: rare tests would need a law on lattices, which takes long."""
    monkeypatch.setattr("deniable.accounting.pld.curve.compose", lambda *_: pytest.fail("a law was composed"))
    kinds = dn.SubsampledGaussian(1.5, 1e-3, 5000), dn.DiscreteGaussian(20.0), dn.RandomizedResponse(0.05)
    t = dn.tradeoff(dn.Composition([*kinds, dn.ApproximateDP(0.05, 1e-8)]))
    assert t.advantage() < t.group(2).advantage() < 2 * t.advantage()
    assert t.advantage() < dn.risks.replaced(t).advantage() < 2 * t.advantage()


@pytest.mark.parametrize("mechanism", [dn.ApproximateDP(0.5, 1e-3), dn.Laplace(1.0)])
def test_a_bound_of_a_chain_does_not_depend_on_what_else_is_asked(mechanism):
    log_gamma = np.array([0.0, 0.1, -0.3, 2.0, 40.0, -7.0])
    alone = [dn.tradeoff(mechanism).group(2).hockey_sticks(log_gamma[[k]], "remove", "upper")[0] for k in range(6)]
    assert dn.tradeoff(mechanism).group(2).hockey_sticks(log_gamma, "remove", "upper").tolist() == alone


def test_a_curve_made_of_curves_has_a_sketch_of_their_sketches_and_prints():
    run = dn.SubsampledGaussian(1.0, 0.01, 100) + dn.ApproximateDP(0.0, 1e-6)
    assert dn.tradeoff(run).sketch().of.rough
    chain = dn.tradeoff(dn.PureDP(1.0)).group(2)
    assert chain.sketch() is chain
    assert "Advantage" in str(chain)


@pytest.mark.parametrize("mu", [20.0, 60.0])
def test_chains_of_curves_that_reveal_everything_are_bounds(mu):
    chain, exact = ChainTradeoff(((dn.tradeoff(dn.GaussianDP(mu)), "remove"),) * 2), dn.tradeoff(dn.GaussianDP(2 * mu))
    assert np.all(chain.delta([0.0, 900.0]) >= exact.delta([0.0, 900.0], side="lower"))
    assert exact.epsilon(1e-5) <= chain.epsilon(1e-5)
    if mu == 20:  # whose best test is rarer than any double
        assert chain.epsilon(1e-5) == pytest.approx(exact.epsilon(1e-5), rel=1e-3)
    assert ChainTradeoff(((dn.tradeoff(dn.ApproximateDP(1.0, 1.0)), "remove"),) * 2).delta(3.0) == 1.0


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.0, 5.0])
def test_replacing_under_pure_dp_is_the_three_piece_curve(epsilon):
    curve = dn.tradeoff(dn.PureDP(epsilon), adjacency="replace")
    x = np.concatenate([np.linspace(0, 1, 101), np.geomspace(1e-12, 1e-2, 20)])
    e = np.exp(epsilon)
    exact = np.min([e * e * x, x + 1 - 1 / e, 1 - (1 - x) / e**2, np.ones_like(x)], axis=0)
    assert curve.tpr(x) == pytest.approx(exact, abs=1e-12)
    assert np.all(curve.tpr(x, side="lower") <= exact + 1e-15)
    assert curve.advantage() == pytest.approx(1 - np.exp(-epsilon), abs=1e-12)  # tanh(ε) for 2ε-DP
    assert curve.epsilon(0.0) == pytest.approx(2 * epsilon)
    gammas = np.exp(epsilon * np.array([-2.5, -1.5, -0.5, 0.0, 0.5, 1.0, 1.5, 1.9, 2.5]))
    exact_hockey_stick = (exact[:, None] - x[:, None] * gammas).max(axis=0)
    assert np.all(curve.hockey_stick(gammas) >= exact_hockey_stick - 1e-15)
    gap = curve.hockey_stick(gammas) - curve.hockey_stick(gammas, side="lower")
    assert np.all((gap >= 0) & (gap <= 1e-8))


def test_the_three_piece_curve_is_reached_by_an_epsilon_dp_mechanism():
    epsilon, m = 1.0, 4000
    u = (np.arange(m) + 0.5) / m
    split = 1 / (1 + np.e)
    p, dual = np.where(u < split, np.e, 1 / np.e) / m, np.where(u < 1 - split, 1 / np.e, np.e) / m
    assert np.abs(np.log(p * m)).max() <= epsilon + 1e-12
    assert np.abs(np.log(dual * m)).max() <= epsilon + 1e-12
    curve = dn.tradeoff(dn.PureDP(epsilon), adjacency="replace")
    assert np.maximum(p - dual, 0).sum() == pytest.approx(curve.advantage(), abs=2 / m)


def test_dp_sgd_replacing_lies_between_one_direction_and_two():
    mechanism = dn.SubsampledGaussian(1.0, 0.01, 500)
    one, both = dn.tradeoff(mechanism), dn.tradeoff(mechanism, adjacency="replace")
    fpr = np.array([1e-4, 1e-2, 0.2])
    assert np.all(both.tpr(fpr) > one.tpr(fpr))
    assert both.tpr(fpr, side="lower") == pytest.approx(both.tpr(fpr), rel=1e-3)
    assert both.advantage() <= 2 * one.advantage() + 1e-12
    assert one.advantage() <= both.advantage(side="lower") + 1e-12
    epsilon = both.epsilon(1e-5)
    assert both.delta(epsilon) <= 1e-5
    # an attack that is played out: gradients +1 and −1 against each other, exact for one step
    grid = np.linspace(-12, 13, 200_001)
    step = grid[1] - grid[0]
    q, sigma = 0.3, 1.0
    laws_ = [(1 - q) * norm.pdf(grid, 0, sigma) + q * norm.pdf(grid, sign, sigma) for sign in (1, -1)]
    reached = np.maximum(laws_[0] - laws_[1], 0).sum() * step
    bound = dn.tradeoff(dn.SubsampledGaussian(sigma, q, 1), adjacency="replace").advantage()
    assert (1 - 1e-4) * bound <= reached <= bound * (1 + 1e-9)


def test_curves_of_one_data_set_refuse_other_risks():
    release = dn.release(dn.releases.Mean(), np.full(40, 0.3), advantage=0.2, rng=0)
    norms = dn.accounting.individual_tradeoffs(np.full((3, 4), 0.5), 1.0, dn.SubsampledGaussian(1.0, 0.1, 4))
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.5, 0.5, (40, 3)), rng.integers(0, 2, 40)
    profile = dn.privacy_profile(X, y, regularization=0.1, mechanism=dn.OutputPerturbation(epsilon=1.0))
    outside = EnvelopeTradeoff(np.array([0.0]), np.array([0.1]), np.array([0.1]))
    exchanged = dn.tradeoff(dn.PureDP(1.0)).inverse()
    for curve in (release.certificate.tradeoff, norms[0], profile.tradeoff(0), outside, exchanged):
        assert not curve.universal
        for ask in (
            lambda t: t.reconstruction(0.1),
            lambda t: t.attribute([0.5, 0.5]),
            lambda t: t.singling_out(10, 0.1),
            lambda t: t.group(2),
            risks.replaced,
        ):
            with pytest.raises(dn.InputError, match="every content of a record"):
                ask(curve)


def test_shapes_and_extremes():
    for mechanism in (
        dn.PureDP(0.0),
        dn.PureDP(50.0),
        dn.ApproximateDP(1.0, 0.5),
        dn.PureDP(np.inf),
        dn.ApproximateDP(1.0, 1.0),
        dn.GaussianDP(0.0),
    ):
        curve = dn.tradeoff(mechanism)
        assert curve.reconstruction([[0.0, 0.5], [1.0, 1e-300]]).shape == (2, 2)
        assert isinstance(curve.reconstruction(0.5), float)
        for derived in (curve.group(2), dn.tradeoff(mechanism, adjacency="replace")):
            values = derived.hockey_stick(np.array([0.0, 1e-300, 0.5, 1.0, 2.0, 1e300]))
            assert np.all((values >= 0) & (values <= 1))
            assert np.all(np.diff(values) <= 1e-12)
            assert np.all(derived.tpr([0.0, 1e-300, 0.5, 1.0]) >= [0.0, 1e-300, 0.5, 1.0])
            assert derived.advantage() >= curve.advantage() - 1e-12
    assert dn.tradeoff(dn.PureDP(1.0)).group(1).universal
