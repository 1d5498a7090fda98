"""ε at δ = 0 is the largest log-likelihood ratio: a sum of logarithms, to which the truth is known to 50 digits."""

import numpy as np
import pytest
from mpmath import log, mp, mpf

import deniable as dn

SAMPLED = [(1.0, 0.3, 1), (0.7, 1e-6, 3), (1.0, 0.37, 4999), (1.0, 0.013, 1234), (0.05, 0.2, 40), (0.09, 1e-3, 7)]


def removed(runs, answers=()):
    """−Σ T·log(1 − q) + Σ ε."""
    with mp.workdps(50):
        return sum((-steps * log(1 - mpf(rate)) for _, rate, steps in runs), start=mpf(0)) + sum(map(mpf, answers))


def sampled_laplace(scale, rate, way):
    with mp.workdps(50):
        found = log(1 - mpf(rate) + mpf(rate) * mp.exp((1 if way == "remove" else -1) / mpf(scale)))
        return found if way == "remove" else -found


def cases():
    rng = np.random.default_rng(7)
    for run in SAMPLED:
        yield f"steps {run}", dn.SubsampledGaussian(*run), "add", removed([run])
    yield "phases", dn.Composition([dn.SubsampledGaussian(*run) for run in SAMPLED[:4]]), "add", removed(SAMPLED[:4])
    beside = dn.SubsampledGaussian(*SAMPLED[3]) + dn.PureDP(0.1) + dn.PureDP(0.37)
    yield "answers beside", beside, "add", removed([SAMPLED[3]], [0.1, 0.37])
    for scale, rate in ((0.3, 0.01), (7.0, 0.2), (2.0, 0.9)):
        for way in ("remove", "add"):
            mechanism = dn.Laplace(scale, sample_rate=rate)
            yield f"Laplace {scale}, {rate}, {way}", mechanism, way, sampled_laplace(scale, rate, way)
    for k in range(6):
        scales, steps = rng.uniform(0.3, 9, 3), rng.integers(1, 8, 3)
        parts = [dn.Laplace(s, steps=int(t)) for s, t in zip(scales, steps, strict=True)]
        with mp.workdps(50):
            truth = sum(int(t) / mpf(s) for s, t in zip(scales, steps, strict=True))
            yield f"Laplace {k}", dn.Composition(parts), "both", truth
            yield f"Laplace {k}, once", dn.Laplace(scales[0]), "both", 1 / mpf(scales[0])


CASES = {name: rest for name, *rest in cases()}


@pytest.mark.parametrize("name", CASES)
def test_pure_epsilon_lies_between_its_sides(name):
    mechanism, way, truth = CASES[name]
    t = dn.tradeoff(mechanism)
    low, high = t.epsilon(0.0, way, "lower"), t.epsilon(0.0, way)
    with mp.workdps(50):
        assert mpf(low) <= truth <= mpf(high)
    assert high <= float(truth) * (1 + 1e-12)
    assert t.inverse().epsilon(0.0, {"remove": "add", "add": "remove"}.get(way, way)) == (high)


def test_what_doubles_hold_is_exact():
    assert dn.tradeoff(dn.Laplace(0.5)).epsilon(0.0) == 2.0
    assert dn.tradeoff(dn.PureDP(0.1)).epsilon(0.0) == 0.1


def test_hockey_sticks_are_positive_up_to_the_true_end_of_the_loss():
    """The end that inversion computes is rounded: between it and the true one a hockey stick is small but not 0."""
    rng, between = np.random.default_rng(3), 0
    for _ in range(12):
        run = (rng.uniform(0.5, 1.0), 10 ** rng.uniform(-6, -4), int(rng.integers(2, 6)))
        inverted, truth = dn.tradeoff(dn.SubsampledGaussian(*run)).inverted, removed([run])
        epsilon = -inverted.loss.lowest
        for _ in range(4):
            epsilon = np.nextafter(epsilon, 0)
        for _ in range(8):
            if mpf(epsilon) < truth:
                between += epsilon >= -inverted.loss.lowest
                assert inverted.delta(epsilon, "add") > 0
            epsilon = np.nextafter(epsilon, np.inf)
        assert inverted.delta(epsilon * (1 + 1e-13), "add") == 0
    assert between > 2


def test_two_categories_are_two_worlds_already():
    """Randomised response is about one record's content: replacing it is no second step."""
    response = dn.mechanisms.RandomizedResponse(1.0, 3)
    for adjacency in (None, "replace"):
        assert dn.tradeoff(response, adjacency=adjacency).epsilon(0.0) == pytest.approx(1.0, rel=1e-12)


def test_epsilon_of_few_laplace_steps_at_a_tiny_delta():
    t = dn.tradeoff(dn.Laplace(1.0, steps=5))  # each loss is 1 with probability ½ if the record is in
    low, high = t.epsilon(1e-14, side="lower"), t.epsilon(1e-14)
    assert 5 + np.log1p(-(2.0**5) * 1e-14) - 1e-9 <= high <= 5 * (1 + 1e-12)
    assert 0 <= high - low < 1e-4 * high
