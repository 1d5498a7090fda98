"""Many different releases: their transforms are one product, also where none of them decays."""

import numpy as np
import pytest

import deniable as dn
from deniable.accounting.engines.inverted import InvertedTradeoff
from deniable.accounting.steps.discrete import DiscreteGaussianStep
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.accounting.transform.laws import law_of


@pytest.mark.parametrize("seed", range(6))
def test_responses_whose_transforms_never_decay_against_all_their_outcomes(seed):
    rng = np.random.default_rng(seed)
    eps = np.exp(rng.uniform(np.log(0.05), 0.0, 17))
    loss, mass = np.zeros(1), np.ones(1)
    for x in eps:
        loss, mass = np.concatenate([loss + x, loss - x]), np.concatenate([mass, mass * np.exp(-x)]) / (1 + np.exp(-x))
    of = PrivacyLoss.of(
        [*(dn.PureDP(x) for x in eps[:9].tolist()), *(dn.RandomizedResponse(x, 2) for x in eps[9:].tolist())]
    )
    assert not of.decays
    at = np.array([-2.0, 0.0, 0.5, 1.0, 3.0, 5.0])
    truth = [float(mass @ -np.expm1(np.minimum(x - loss, 0.0))) for x in at]
    for direction in ("remove", "add"):
        low, high = InvertedTradeoff(of, 1 << 13, 1e-3).hockey_stick_bracket(at, direction)
        assert np.all(low <= np.array(truth) * (1 + 1e-12))
        assert np.all(high >= np.array(truth) * (1 - 1e-12))
        assert np.all(high - low < 1e-3)


@pytest.mark.parametrize("seed", range(12))
def test_discrete_gaussian_noise_from_few_integers_is_right_up_to_its_errors(seed):
    rng = np.random.default_rng(seed)
    sigma, moved = float(np.exp(rng.uniform(np.log(2.1), np.log(50)))), int(rng.integers(1, 5))
    c = float(rng.choice([rng.uniform(-20, 0), rng.uniform(0, 1), rng.uniform(1, 20)]))
    t = np.array([float(np.exp(rng.uniform(-2, np.log(3 * sigma**2))))])
    terms = law_of(DiscreteGaussianStep(sigma, moved, 1.0)).terms(c, c, float(t[0]), np.inf)
    ends = 15 * sigma + moved * np.array([min(c, 0.0), max(c, 1.0)]) * [-1, 1]
    k = np.arange(-int(ends[0]), int(ends[1]) + 1, dtype=np.float64)
    loss, log_q = moved * (2 * k - moved) / (2 * sigma**2), -(k**2) / (2 * sigma**2)
    weight = np.exp(c * loss + log_q - np.max(c * loss + log_q))
    truth = (np.exp(1j * t[0] * loss) @ weight) / weight.sum()
    error = float(terms.step_errors(0, np.hypot(c, t))[0]) + 1e-15 * t[0] * np.abs(loss).max() + 1e-13
    assert abs(np.exp(terms.log_ratio_of(0, t)[0]) - truth) <= error
    total = np.log(weight.sum()) + np.max(c * loss + log_q) - np.log(np.sqrt(2 * np.pi) * sigma)
    assert terms.log_mgf[0] == pytest.approx(total, abs=1e-11)


def test_wide_discrete_noise_has_a_transform_of_few_terms():
    law = law_of(DiscreteGaussianStep(5000.0, 3, 1.0))
    assert law is not None
    assert law.terms(0.5, 0.5, 30.0, np.inf).loss.size < 100


def kinds(k):
    yield dn.Laplace(5 + k)
    yield dn.DiscreteGaussian(5.5 + k)
    yield dn.mechanisms.DiscreteLaplace(6 + 2.0 * k)


def test_counts_alone_are_narrow():
    curve = dn.tradeoff(dn.mechanisms.Composition([one for k in range(12) for one in kinds(k)]))
    assert curve.epsilon(1e-5) - curve.epsilon(1e-5, side="lower") < 1e-4
    assert curve.advantage() - curve.advantage(side="lower") < 1e-4


def test_a_run_beside_many_wide_counts_is_exact():
    parts = [dn.SubsampledGaussian(1.0, 0.01, 500), *(one for k in (1, 90) for one in kinds(k))]
    curve = dn.tradeoff(dn.mechanisms.Composition(parts))
    for low, high in (
        (curve.tpr(1e-2, side="lower"), curve.tpr(1e-2)),
        (curve.delta(1.0, side="lower"), curve.delta(1.0)),
    ):
        assert 0 <= high - low < 1e-8
