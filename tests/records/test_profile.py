"""The profile's tables, subgroups, transition band and pictures; coverage of black-box samplers."""

import numpy as np
import pytest
from black_boxes import coverage
from ranked_losses import averaged_ranked_loss

import deniable as dn
from deniable import InputError


@pytest.fixture(scope="module")
def profile():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    X /= np.linalg.norm(X, axis=1).max()
    y = np.where(X @ [2.0, -1.0, 0.0] + 0.3 * rng.logistic(size=200) > 0, "rich", "poor")
    return dn.privacy_profile(X, y, regularization=1e-2, mechanism=dn.OutputPerturbation(epsilon=2.0), rng=1)


def test_every_number_has_its_shape_and_order(profile):
    n = len(profile)
    assert profile.distance.shape == (n,)
    for method in ("radius", "privacy_loss", "advantage", "mean_loss", "mean_size", "ranking"):
        assert getattr(profile, method)().shape == (n,)
    assert profile.leave_one_out().shape == (n, 3)
    assert profile.tpr(0.01).shape == (n,)
    assert profile.tpr([0.01, 0.1]).shape == (n, 2)
    assert np.all(profile.advantage("lower") <= profile.advantage())
    assert np.all(profile.mean_loss() <= profile.mean_size())
    assert np.all(profile.tpr(0.01, side="lower") <= profile.tpr(0.01))
    assert np.all(profile.epsilon(1e-6) <= 2.0)  # no record exceeds the mechanism's own promise
    assert np.all(np.diff(np.abs(profile.privacy_loss()[profile.ranking()])) <= 0)
    assert profile.tradeoff(7).advantage() == pytest.approx(profile.advantage()[7], rel=1e-12)
    assert profile.tradeoff(7).tpr(0.01) == pytest.approx(profile.tpr(0.01)[7], rel=1e-9)


@pytest.mark.parametrize("noise", [{"noise": "norm-laplace"}, {"noise": "gaussian", "delta": 1e-6}])
def test_means_grow_with_the_noise_rate_without_end(noise):
    """With hardly any noise E l is about ρ (norm-Laplace) or ρ²/2 (Gaussian), also beyond the computed law."""
    X, y = np.array([[0.5, 0.1], [-0.4, 0.3], [0.2, -0.6], [-0.1, -0.2]]), [1, 0, 1, 0]
    p = dn.privacy_profile(X, y, regularization=0.1, mechanism=dn.OutputPerturbation(epsilon=1e6, **noise))
    rho = p.rate * p.distance
    expected = rho if noise["noise"] == "norm-laplace" else rho**2 / 2
    np.testing.assert_allclose(p.mean_loss(), expected, rtol=1e-3)
    np.testing.assert_allclose(p.mean_size(), expected, rtol=1e-3)


def test_tables_carry_the_warning(profile):
    frame = profile.to_frame()
    assert list(frame["record"]) == list(profile.ranking())
    assert "never publish" in frame.attrs["warning"]
    assert len(profile.most_exposed(5)) == 5
    typical = profile.most_exposed(5, by="typical")
    assert list(typical["record"]) == list(profile.ranking("typical")[:5])
    assert np.all(np.diff(typical["advantage"]) <= 0)


def test_transition_brackets_the_worst_record(profile):
    X_rate = profile.rate / 2.0  # β per unit of ε
    band = profile.transition()
    assert band.record == int(np.argmax(profile.distance))
    law = profile.mechanism.law(3)
    at = [
        law.advantage(np.array([e * X_rate * profile.distance.max()]), "upper")[0]
        for e in (band.epsilon_low, band.epsilon_high)
    ]
    np.testing.assert_allclose(at, [0.05, 0.95], rtol=1e-6)
    middle = profile.transition(quantile=0.5)
    assert middle.epsilon_low > band.epsilon_low
    assert "less ε always" in band.reading
    assert np.all(np.diff(band.advantage) > 0)
    gaussian = dn.OutputPerturbation(epsilon=1.0, noise="gaussian", delta=1e-5)
    assert gaussian.epsilon_of(gaussian.guarantee().mu) == pytest.approx(1.0, rel=1e-6)


def test_averaged_ranked_loss_is_ranked_and_agrees_with_the_law(profile):
    ranked = averaged_ranked_loss(profile, 400, seed=0)
    assert np.all(np.diff(ranked) <= 0)
    assert ranked.mean() == pytest.approx(profile.mean_size().mean(), rel=0.1)  # the mean does not see the ranking


def test_coverage_of_a_black_box_agrees_with_the_density():
    """One dimension, Laplace noise: small balls have the density's ratio."""
    centres = [0.0, 1.0]
    samplers = [lambda g, c=c: c + g.laplace(scale=1.0, size=1) for c in centres]
    found = coverage(samplers[0], samplers[1:], [-0.5], 0.2, n_samples=4000, rng=0)
    low, high = found.privacy_loss_interval[0]
    assert low <= 1.0 <= high  # l = β(|M − A(y)| − |M − A(x)|) = 1.5 − 0.5
    assert high - low < 0.5
    assert low <= found.privacy_loss[0] <= high
    far = coverage(samplers[0], samplers[1:], [50.0], 0.1, n_samples=10, rng=0)
    assert far.neighbour_intervals[0][0] == 0
    assert far.neighbour_intervals[0][1] < 0.4
    assert np.all(np.isinf(far.privacy_loss_interval[0]))
    with pytest.raises(InputError, match="parameters that the sampler returns"):
        coverage(samplers[0], samplers[1:], [0.0, 0.0], 0.1, n_samples=1)


def test_models_without_some_records_are_those_of_all(profile):
    whole = profile.leave_one_out()
    np.testing.assert_allclose(profile.leave_one_out([5, -1, 5]), whole[[5, 199, 5]], rtol=1e-12)
    assert profile.leave_one_out(7).shape == (3,)
    np.testing.assert_allclose(np.linalg.norm(whole - profile.optimum, axis=1), profile.distance, rtol=1e-9)
    with pytest.raises(InputError, match="below 200"):
        profile.leave_one_out(200)
