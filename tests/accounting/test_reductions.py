"""The last iterate and matrix mechanisms: exact propagation, enumeration of patterns, attacks that are played out."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import deniable as dn
from deniable.accounting.reductions import last_iterate_mu, matrix_sensitivity


def propagated(descent):
    """μ between two quadratics with curvature m or M whose gradients differ by s everywhere, in 40 digits."""
    mp.mp.dps = 40
    found = []
    for curvature in (descent.strong_convexity, descent.smoothness):
        c = 1 - mp.mpf(descent.step_size) * mp.mpf(curvature)
        powers = [abs(c) ** k for k in range(descent.steps)]  # the sign of s alternates where c < 0
        found.append(sum(powers) / mp.sqrt(sum(p**2 for p in powers)) / mp.mpf(descent.noise_multiplier))
    return max(found)


@settings(max_examples=20, deadline=None)
@given(
    steps=st.integers(1, 60),
    m=st.floats(1e-6, 1.0),
    condition=st.floats(1.0, 50.0),
    share=st.floats(0.001, 0.999),
    sigma=st.floats(0.1, 50.0),
)
def test_the_last_iterate_is_exact_on_quadratics(steps, m, condition, share, sigma):
    descent = dn.NoisyGradientDescent(sigma, steps, m, m * condition, share * 2 / (m * condition))
    truth = propagated(descent)
    assert truth <= last_iterate_mu(descent) <= truth * (1 + 1e-9)


def test_without_strong_convexity_the_bound_would_be_wrong():
    """Negative control: along a flat direction the last iterate tells √t times as much."""
    flat = math.sqrt(1000) / 10  # sum of 1000 equal shifts over √1000 deviations
    assert flat > 2 * last_iterate_mu(dn.NoisyGradientDescent(10.0, 1000, 0.1, 2.0, 0.5))


def largest(strategy, participations, separation):
    """The largest ‖Σ ±C_i‖ over all patterns and signs, by enumeration: what scalar contributions reach."""
    steps, best = len(strategy), 0.0
    for count in range(1, participations + 1):
        for pattern in itertools.combinations(range(steps), count):
            if all(b - a >= separation for a, b in itertools.pairwise(pattern)):
                for signs in itertools.product((1, -1), repeat=count):
                    best = max(best, float(np.linalg.norm(strategy[:, pattern] @ np.array(signs))))
    return best


@pytest.mark.parametrize(("participations", "separation"), [(1, 1), (2, 3), (3, 2), (7, 1)])
def test_sensitivity_is_never_below_what_a_record_can_do(participations, separation):
    rng = np.random.default_rng(participations)
    for positive in (True, False):
        for _ in range(6):
            strategy = np.tril(rng.normal(size=(7, 7)))
            strategy = np.abs(strategy) if positive else strategy
            truth, bound = (
                largest(strategy, participations, separation),
                matrix_sensitivity(strategy, participations, separation),
            )
            assert truth <= bound <= 1.8 * truth
            if participations == 1 or (positive and participations == 7):
                assert bound == pytest.approx(truth, rel=1e-12)
    falling = np.tril(np.power(0.5, np.subtract.outer(np.arange(7), np.arange(7)).clip(0)))
    assert matrix_sensitivity(falling, participations, separation) <= 1.05 * largest(
        falling, participations, separation
    )


def tree(steps, restart=None):
    """A row for each node of binary trees over ``restart`` steps: the sum of the node's leaves."""
    size = steps if restart is None else restart
    nodes = [
        (start, start + width) for width in 2 ** np.arange(int(math.log2(size)) + 1) for start in range(0, steps, width)
    ]
    return np.array([[float(low <= t < high) for t in range(steps)] for low, high in nodes])


def test_an_adaptive_attack_on_a_tree_reaches_its_curve():
    """The first leaf released decides in which steps the record takes part, the second one with which sign."""
    rng, n, sigma, nodes = np.random.default_rng(7), 40_000, 3.0, tree(8)
    ends = [int(np.flatnonzero(row)[-1]) for row in nodes]
    order = sorted(range(len(nodes)), key=lambda row: ends[row])
    advantage = []
    for early, late in (([2], [4]), ([2, 3], [4, 5])):
        promised = dn.tradeoff(dn.MatrixMechanism(sigma, nodes, participations=len(early))).advantage()
        tests = []
        for member in (1, 0):
            contribution, ratio = np.zeros((n, 8)), np.zeros(n)
            for k, row in enumerate(order):
                shift = contribution @ nodes[row]
                seen = member * shift + rng.normal(0, sigma, n)
                ratio += (2 * seen * shift - shift**2) / (2 * sigma**2)
                if k == 0:
                    for steps, chosen in ((early, seen > 0), (late, seen <= 0)):
                        contribution[:, steps] = chosen[:, None]
                elif k == 1:
                    contribution *= np.where(seen > 0, 1.0, -1.0)[:, None]
            tests.append(float(np.mean(ratio > 0)))
        advantage.append(tests[0] - tests[1])
        assert advantage[-1] == pytest.approx(promised, abs=0.012)
    # negative control: the curve of one participation does not hold for two
    assert advantage[1] > dn.tradeoff(dn.MatrixMechanism(sigma, nodes)).advantage() + 0.05


def test_a_tree_that_restarts_with_cyclic_sampling_is_attacked_as_promised():
    """Four steps, trees of two: the record's group samples steps 0 and 2, each seen by its leaf and one node above."""
    rng, n, sigma, rate, nodes = np.random.default_rng(3), 60_000, 1.0, 0.3, tree(4, restart=2)
    mechanism = dn.MatrixMechanism(sigma, nodes, sample_rate=rate)
    t = dn.tradeoff(mechanism)
    same = dn.tradeoff(dn.SubsampledGaussian(sigma / math.sqrt(2), rate, 2))
    assert same.advantage() <= t.advantage() <= same.advantage() * (1 + 1e-9)

    def reached(strategy, mine):
        """The advantage of the best test for a record that is drawn in the steps ``mine``, by all patterns of draws."""
        chance = {
            drawn: np.prod([rate if hit else 1 - rate for hit in drawn])
            for drawn in itertools.product((0, 1), repeat=len(mine))
        }
        means = {drawn: strategy[:, mine] @ np.array(drawn, float) for drawn in chance}
        hits = []
        for member in (1, 0):
            picked = rng.choice(len(chance), n, p=list(chance.values()))
            seen = member * np.array(list(means.values()))[picked] + rng.normal(0, sigma, (n, len(strategy)))
            ratio = sum(p * np.exp((seen @ means[d] - means[d] @ means[d] / 2) / sigma**2) for d, p in chance.items())
            hits.append(float(np.mean(ratio > 1)))
        return hits[0] - hits[1]

    assert reached(nodes, [0, 2]) == pytest.approx(t.advantage(), abs=0.01)
    # negative control: a root over all steps joins the two draws, and the curve of separate blocks no longer holds
    joined = np.vstack([nodes, 2 * np.ones((1, 4))])
    separate = dn.tradeoff(dn.SubsampledGaussian(sigma / math.sqrt(2), rate, 2)).advantage()
    assert reached(joined, [0, 2]) > separate + 0.05
    with pytest.raises(dn.InputError, match="fewer bands"):
        dn.MatrixMechanism(sigma, joined, sample_rate=rate)


def test_matrix_without_sampling_is_gaussian():
    prefix = np.tril(np.ones((8, 8)))
    identity = dn.MatrixMechanism(2.0, np.eye(8))
    assert dn.tradeoff(identity).advantage() == pytest.approx(dn.tradeoff(dn.GaussianDP(0.5)).advantage(), rel=1e-12)
    every = dn.MatrixMechanism(2.0, np.eye(8), participations=8)
    assert dn.tradeoff(every).advantage() == pytest.approx(
        dn.tradeoff(dn.GaussianDP(math.sqrt(8) / 2)).advantage(), rel=1e-12
    )
    given_ = dn.MatrixMechanism(2.0, sensitivity=math.sqrt(8))
    found = dn.tradeoff(dn.MatrixMechanism(2.0, prefix))
    assert found.advantage() == pytest.approx(dn.tradeoff(given_).advantage(), rel=1e-12)
    assert found.assumptions.adjacency.startswith("the contribution of one record")
    swapped = dn.tradeoff(given_, adjacency="replace").advantage()
    assert swapped == pytest.approx(dn.tradeoff(dn.GaussianDP(math.sqrt(8))).advantage())


def test_banded_noise_with_cyclic_sampling_is_attacked_as_promised():
    """The likelihood ratio attack on the real matrix reaches the curve, and no more."""
    rng, n, sigma, rate, steps, width = np.random.default_rng(2), 20_000, 0.8, 0.1, 30, 3
    strategy = np.tril(np.triu(rng.uniform(0.2, 1, (steps, steps)), -(width - 1)).T[::-1, ::-1])
    strategy = np.tril(strategy) * (np.subtract.outer(np.arange(steps), np.arange(steps)) < width)
    strategy /= np.linalg.norm(strategy, axis=0)
    mechanism = dn.MatrixMechanism(sigma, strategy, sample_rate=rate)
    t = dn.tradeoff(mechanism)
    same = dn.tradeoff(dn.SubsampledGaussian(sigma, rate, steps // width))
    assert t.advantage() == pytest.approx(same.advantage(), rel=1e-9)
    assert t.assumptions.adjacency == "add or remove one record"
    mine = np.arange(0, steps, width)  # the steps of the record's group

    def ratios(member, sampled):
        taken = np.zeros((n, steps))
        taken[:, sampled] = member * (rng.random((n, len(sampled))) < rate)
        seen = taken @ strategy.T + rng.normal(0, sigma, (n, steps))
        along = seen @ strategy[:, sampled]
        return np.log1p(rate * np.expm1((2 * along - 1) / (2 * sigma**2))).sum(axis=1)

    advantage = [
        np.mean(np.maximum(-np.expm1(-ratios(1, mine)), 0)),
        np.mean(np.maximum(-np.expm1(ratios(0, mine)), 0)),
    ]
    assert np.mean(advantage) == pytest.approx(t.advantage(), abs=0.01)
    # negative control: sampled afresh in every step, not only in those of one group, the same matrix leaks more
    every = np.arange(steps)
    hits, false = (float(np.mean(ratios(member, every) > 0)) for member in (1, 0))
    assert hits - false > t.advantage() + 0.02


def test_what_must_stay_secret_is_named_with_the_curve():
    last = dn.NoisyGradientDescent(20.0, 100, 0.05, 1.0, 0.5)
    shown = "intermediate steps included"
    for adjacency in ("add-remove", "replace"):
        curve = dn.tradeoff(last, adjacency=adjacency)
        for t in (curve, curve.inverse()):
            assert "secret must stay every iterate before the last one" in t.assumptions.access
            assert shown not in t.assumptions.access
    assert dn.tradeoff(last).group(2).assumptions.access == dn.tradeoff(last).assumptions.access
    assert "every iterate before" in dn.assess(last).to_text()
    both = dn.tradeoff(dn.mechanisms.tuned(last, trials=3)).assumptions.access
    assert "outputs and scores of all but the best one; and every iterate before the last one" in both
    assert "every iterate before" in dn.tradeoff(last + dn.GaussianDP(0.1)).assumptions.access
    assert shown in dn.tradeoff(dn.SubsampledGaussian(1.0, 0.1, 10)).assumptions.access
    # negative control: with all iterates shown an attack on a quadratic passes the curve of the last one
    assert dn.tradeoff(dn.GaussianDP(math.sqrt(100) / 20)).advantage(side="lower") > 1.2 * dn.tradeoff(last).advantage()
