import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import integrate, stats

from deniable.noise.laws import GaussianNoise, NormLaplaceNoise

ONE = np.ones(1)


def numeric_hockey_stick(law, shift, gamma):
    """∫ (p − γq)₊ on a fine grid: the definition, for d = 1."""
    x = np.linspace(-60, 60, 400_001)[:, None]
    p, q = np.exp(law.log_density(x - shift)), np.exp(law.log_density(x))
    return integrate.trapezoid(np.maximum(p - gamma * q, 0.0), x[:, 0])


@pytest.mark.parametrize("law", [GaussianNoise(1.7, ONE * 2), NormLaplaceNoise(1.3, ONE * 2)])
@pytest.mark.parametrize("shift", [0.1, 1.0, 6.0])
@pytest.mark.parametrize("gamma", [1.0, 1.5, 4.0])
def test_hockey_stick_is_the_integral_in_one_dimension(law, shift, gamma):
    expected = numeric_hockey_stick(law, shift, gamma)
    assert law.leakage(np.log(gamma), law.distance(np.array([shift]))) == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize("gamma", [1.0, 1.3])
def test_norm_laplace_bound_is_what_monte_carlo_finds_in_three_dimensions(gamma):
    law, shift = NormLaplaceNoise(1.0, np.array([1.0, 2.0, 0.5])), np.array([0.7, 0.0, 0.2])
    x = shift + law.sample(200_000, np.random.default_rng(0))
    ratio = np.exp(law.log_density(x) - law.log_density(x - shift))  # q/p under P
    gains = np.maximum(1 - gamma * ratio, 0.0)
    error = 4 * gains.std() / np.sqrt(gains.size)
    assert gains.mean() > 0.02
    bound = float(law.leakage(np.log(gamma), law.distance(shift)))
    assert gains.mean() - error <= bound <= gains.mean() + error  # the exact law, not the worst ρ-DP pair's


def test_density_integrates_to_one_in_the_plane():
    law = NormLaplaceNoise(1.3, np.array([1.0, 2.0]))
    r, angle = np.geomspace(1e-7, 200, 4001), (np.arange(720) + 0.5) * np.pi / 360
    x = r[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    radial = np.exp(law.log_density(x)).mean(axis=1) * 2 * np.pi * r
    assert integrate.trapezoid(radial * r, np.log(r)) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("cls", [GaussianNoise, NormLaplaceNoise])
@pytest.mark.parametrize("factor", [ONE, np.array([0.5, 1.0, 3.0])])
def test_standard_deviation_and_samples_agree(cls, factor):
    law = cls(0.7, factor)
    draws = law.sample(200_000, np.random.default_rng(2))
    np.testing.assert_allclose(draws.std(axis=0), law.standard_deviation, rtol=0.02)
    np.testing.assert_allclose(draws.mean(axis=0), 0.0, atol=0.02 * law.standard_deviation.max())


def test_norm_laplace_radius_is_gamma():
    law = NormLaplaceNoise(2.0, np.array([1.0, 4.0, 0.2, 1.0, 1.0]))
    radius = law.distance(law.sample(20_000, np.random.default_rng(4)))
    assert stats.kstest(radius, stats.gamma(5).cdf).pvalue > 1e-3
    assert stats.kstest(radius, "expon").pvalue < 1e-6  # negative control: the published radius


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        (GaussianNoise(2.0, ONE * 1.5), stats.norm(scale=3.0)),
        (NormLaplaceNoise(2.0, ONE * 1.5), stats.laplace(scale=3.0)),
    ],
)
def test_fresh_entropy_sampler_follows_its_law(law, expected):
    draws = np.array([law.perturb(np.array([10.0]))[0] for _ in range(2000)]) - 10
    assert stats.kstest(draws, expected.cdf).pvalue > 1e-6  # fresh entropy: fails once in a million runs
    assert stats.kstest(draws * 1.6, expected.cdf).pvalue < 1e-6


def test_fresh_entropy_norm_laplace_has_the_gamma_radius_and_uniform_direction():
    law = NormLaplaceNoise(0.5, np.array([1.0, 2.0, 3.0]))
    draws = law.whiten([law.perturb(np.zeros(3)) for _ in range(1500)])
    radius = np.linalg.norm(draws, axis=1)
    assert stats.kstest(radius, stats.gamma(3, scale=0.5).cdf).pvalue > 1e-6
    assert stats.kstest(draws[:, 1] / radius, stats.uniform(-1, 2).cdf).pvalue > 1e-6  # Archimedes: uniform in 3-d


@pytest.mark.parametrize("scale", [1.0, 0.7, 1e-300, 1e300])
def test_norm_laplace_comes_out_on_a_grid_that_does_not_depend_on_the_value(scale):
    law = NormLaplaceNoise(scale, np.ones(3))
    step = 2.0 ** (np.floor(np.log2(scale)) - 40)
    for value in (np.zeros(3), np.array([np.pi, -1e5, 1e-9]) * scale):
        steps = law.perturb(value) / step
        np.testing.assert_array_equal(steps, np.round(steps))
    far = law.perturb(np.full(3, 1e8) * scale)
    np.testing.assert_allclose(far, 1e8 * scale, rtol=1e-6)


def test_rounding_to_the_grid_is_charged():
    """Two values closer than a step may be rounded to neighbours: the bound must cover that they are a step apart."""
    law = NormLaplaceNoise(1.0, np.ones(4))
    apart = np.full(4, 2.0**-40)
    almost_nothing = law.leakage(0.0, law.distance(apart * 1e-3))
    assert almost_nothing >= np.tanh(np.linalg.norm(apart) / 2)
    assert almost_nothing <= np.tanh(np.linalg.norm(apart) * 1.01 / 2)
    assert law.leakage(0.0, law.distance(np.zeros(4))) == 0.0


@given(
    st.floats(0, 50),
    st.floats(0, 50),
    st.floats(0, 20),
    st.sampled_from([GaussianNoise, NormLaplaceNoise]),
    st.integers(1, 3),
)
def test_leakage_grows_with_distance_and_falls_with_gamma(a, b, log_gamma, cls, d):
    law = cls(1.0, np.ones(d))
    near, far = sorted((a, b))
    at = law.leakage(log_gamma, np.array([near, far, np.inf]))
    assert 0 <= at[0] <= at[1] * (1 + 1e-9) + 1e-15
    assert at[1] <= at[2] == 1.0
    assert law.leakage(log_gamma + 0.5, np.array([far]))[0] <= at[1] * (1 + 1e-9) + 1e-15
