"""The exact law of the privacy loss: against 25-digit integrals, simulation and closed forms."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.integrate import quad

from deniable import GaussianDP, tradeoff
from deniable.laws.gaussian import GaussianLaw
from deniable.laws.norm_laplace import NormLaplaceLaw, NormLaplaceTradeoff, hockey_stick_at_most
from deniable.records.typical import BracketTradeoff, ExactTypical
from oracles.norm_laplace import losses, tail

# (d, ρ) → TV, KL: design reference values, from 10⁶ draws
REFERENCE = {
    (2, 3.0): (0.68365, 1.55040),
    (3, 1.0): (0.24184, 0.16060),
    (5, 2.0): (0.35621, 0.38338),
    (10, 0.7): (0.09031, 0.02447),
    (100, 5.0): (0.19787, 0.12492),
}


@pytest.mark.parametrize(("pair", "values"), REFERENCE.items())
def test_design_reference_values(pair, values):
    dimension, rho = pair
    assert NormLaplaceTradeoff(rho, dimension).advantage() == pytest.approx(values[0], abs=6e-6)
    assert NormLaplaceLaw(dimension).mean_loss(np.array([rho]))[0] == pytest.approx(values[1], abs=6e-6)


@pytest.mark.parametrize("dimension", [1, 2, 10, 100])
def test_against_a_million_draws(dimension):
    rho, count = 2.0, 1_000_000
    sample = np.concatenate([losses(rho, dimension, count // 20, rng) for rng in range(20)])
    law, curve = NormLaplaceLaw(dimension), NormLaplaceTradeoff(rho, dimension)
    simulated = np.mean(np.maximum(-np.expm1(-sample), 0.0))  # TV = E_P(1 − Q/P)₊
    assert curve.advantage() == pytest.approx(simulated, abs=5 * 0.5 / np.sqrt(count))
    assert law.mean_loss(np.array([rho]))[0] == pytest.approx(sample.mean(), abs=5 * sample.std() / 1000)
    assert law.mean_size(np.array([rho]))[0] == pytest.approx(np.abs(sample).mean(), abs=5 * sample.std() / 1000)
    if dimension == 1:
        return  # atoms: the closed form has its own test
    threshold = np.quantile(-sample, 1 - 1e-3)  # by symmetry −l is the loss in the out-world
    assert curve.tpr(1e-3) == pytest.approx(np.mean(sample > threshold), rel=0.12)


@pytest.mark.parametrize(
    ("dimension", "rho"),
    [
        (2, 0.1),
        (2, 3e3),
        (3, 1e-2),
        (3, 1e4),
        (4, 20.0),
        (7, 300.0),
        (108, 1.0),
        (108, 300.0),
        (1000, 20.0),
        (10_000, 20.0),
    ],
)
def test_agrees_with_25_digit_integrals(dimension, rho):
    """The quadrature error that is charged, 2e-11, is not exceeded."""
    law, width = NormLaplaceLaw(dimension), rho / np.sqrt(dimension + rho)
    for s in np.array([0.3, 3.0]) * width:
        if s >= rho:
            continue
        inside, outside = tail(rho, dimension, s), tail(rho, dimension, s, world="out")
        exact = inside - np.exp(min(s, 700)) * outside
        lost = 4e-16 * (inside + np.exp(min(s, 700)) * outside) * (1 + s)  # the oracle's difference, in doubles
        given = np.array([rho]), np.array([s])
        low, high = law.hockey_stick(*given, "lower")[0], law.hockey_stick(*given, "upper")[0]
        assert low <= exact + lost
        assert exact - lost <= high
        assert high - low <= 2e-10 * high + lost


@pytest.mark.parametrize("dimension", [2, 3, 50])
def test_small_distances_keep_their_digits(dimension):
    """TV/ρ tends to a constant: the mean of |cos θ|/2 under sin^{d−2}(1 − 0)·uniform directions."""
    law = NormLaplaceLaw(dimension)
    ratio = [law.advantage(np.array([rho]), "upper")[0] / rho for rho in (1e-12, 1e-9, 1e-7)]
    weight = quad(lambda t: np.cos(t) * np.sin(t) ** (dimension - 2), 0, np.pi / 2)[0]
    total = quad(lambda t: np.sin(t) ** (dimension - 2), 0, np.pi / 2)[0]
    np.testing.assert_allclose(ratio, weight / total / 2, rtol=1e-5)


def test_one_dimension_is_the_laplace_mechanism():
    rho = 1.5
    curve = NormLaplaceTradeoff(rho, 1)
    fpr = np.array([1e-6, 1e-3, np.exp(-rho) / 2, 0.3, 0.5, 0.8])

    def attack(threshold):  # M below the threshold, centres at 0 (in) and ρ (out)
        below = lambda x: np.exp(x) / 2 if x < 0 else 1 - np.exp(-x) / 2  # noqa: E731
        return below(threshold - rho), below(threshold)

    for a in fpr:
        threshold = rho + (np.log(2 * a) if a <= 0.5 else -np.log(2 * (1 - a)))
        false, true = attack(threshold)
        assert false == pytest.approx(a)
        assert curve.tpr(a) == pytest.approx(true, rel=1e-9)
        assert curve.tpr(a, side="lower") <= true <= curve.tpr(a)
    assert curve.advantage() == pytest.approx(1 - np.exp(-rho / 2), rel=1e-10)
    assert curve.epsilon(0.0) == rho


def test_gaussian_law_is_gaussian_dp():
    rho = np.array([1e-3, 0.3, 2.0])
    law = GaussianLaw()
    for i, r in enumerate(rho):
        curve = tradeoff(GaussianDP(float(r)))
        assert law.advantage(rho, "upper")[i] == pytest.approx(curve.advantage(), rel=1e-12)
        assert law.tpr(rho, np.full(3, 0.01), "upper")[i] == pytest.approx(curve.tpr(0.01), rel=1e-12)
        assert law.epsilon(rho, 1e-5, "upper")[i] == pytest.approx(max(curve.epsilon(1e-5), 0), rel=1e-9)
    draws = np.random.default_rng(0).normal(2.0, 2.0, 400_000)  # N(ρ²/2, ρ²) at ρ = 2
    assert law.mean_size(rho)[2] == pytest.approx(np.abs(draws).mean(), abs=0.02)


@given(rho=st.floats(1e-6, 300), dimension=st.integers(1, 300), fpr=st.floats(1e-9, 1), more=st.floats(1, 3))
def test_roc_is_bracketed_concave_and_grows_with_distance(rho, dimension, fpr, more):
    near, far = NormLaplaceTradeoff(rho, dimension), NormLaplaceTradeoff(rho * more, dimension)
    low, high = near.tpr(fpr, side="lower"), near.tpr(fpr)
    assert fpr <= low <= high <= 1
    assert high - low <= 1e-6 * high + 1e-9
    assert low <= far.tpr(fpr)
    assert high <= min(1.0, near.hockey_stick(1.0) + fpr) + 1e-9
    assert high <= np.exp(min(rho, 700.0)) * fpr * (1 + 1e-9)


@settings(max_examples=8)
@given(rho=st.floats(1e-3, 50), dimension=st.integers(1, 100), delta=st.floats(1e-12, 0.5))
def test_epsilon_inverts_delta(rho, dimension, delta):
    law, r = NormLaplaceLaw(dimension), np.array([rho])
    eps = law.epsilon(r, delta, "upper")
    assert law.hockey_stick(r, eps, "upper")[0] <= delta
    assert 0 <= law.epsilon(r, delta, "lower")[0] <= eps[0] <= rho


def test_many_records_share_thresholds_soundly():
    rho = np.random.default_rng(0).lognormal(-3, 2, 3000)
    law = NormLaplaceLaw(20)
    fpr = np.full(rho.shape, 1e-3)
    few = slice(0, 3000, 250)
    np.testing.assert_array_less(law.tpr(rho, fpr, "lower")[few], law.tpr(rho[few], fpr[few], "upper"))
    np.testing.assert_array_less(law.tpr(rho[few], fpr[few], "lower"), law.tpr(rho, fpr, "upper")[few])
    np.testing.assert_allclose(law.tpr(rho, fpr, "upper"), law.tpr(rho, fpr, "lower"), rtol=2e-3)
    shared, alone = law.epsilon(rho, 1e-6, "upper"), law.epsilon(rho[few], 1e-6, "upper")
    assert np.all(alone <= shared[few] * (1 + 1e-9))
    np.testing.assert_allclose(shared[few], alone, rtol=0.02, atol=1e-9)


def test_bracket_takes_each_side_from_its_own():
    curve = BracketTradeoff(NormLaplaceTradeoff(2.0, 3), NormLaplaceTradeoff(1.0, 3))
    assert curve.advantage() == NormLaplaceTradeoff(2.0, 3).advantage()
    assert curve.tpr(0.1, side="lower") == NormLaplaceTradeoff(1.0, 3).tpr(0.1, side="lower")


@pytest.mark.parametrize("law", [NormLaplaceLaw(1), NormLaplaceLaw(5), GaussianLaw()], ids=["d=1", "d=5", "Gaussian"])
def test_without_a_certificate_the_upper_side_knows_nothing(law):
    """An infinite radius, or a distance beyond all noise, is exposed: never NaN, never small."""
    typical = ExactTypical(law, 1.0, np.array([1.0, 1e6, 0.5]), np.array([np.inf, 0.0, 0.0]))
    for values, worst in [
        (typical.advantage("upper"), 1.0),
        (typical.tpr(1e-3, "upper"), 1.0),
        (typical.epsilon(1e-6, "upper"), 1e5),
    ]:
        assert np.all(values[:2] >= worst)
        assert values[2] < min(worst, 3.0)
    assert typical.advantage("lower")[0] == 0
    assert typical.advantage("lower")[1] > 0.9
    assert typical.tradeoff(0).advantage() == 1
    assert typical.tradeoff(1).tpr(1e-3) == 1
    assert np.all(np.isfinite(typical.mean_loss()))


def test_gaussian_noise_has_no_epsilon_at_delta_zero():
    law, rho = GaussianLaw(), np.array([0.0, 0.1, 5.0])
    np.testing.assert_array_equal(law.epsilon(rho, 0.0, "upper"), [0.0, np.inf, np.inf])
    for delta in (1e-300, 1e-20):  # and elsewhere it is the closed form's
        expected = [tradeoff(GaussianDP(r)).epsilon(delta) for r in rho[1:]]
        np.testing.assert_allclose(law.epsilon(rho, delta, "upper")[1:], expected, rtol=1e-9)


@given(
    dimension=st.sampled_from([2, 3, 10, 400]),
    log_gamma=st.sampled_from([0.0, 0.3, 2.0, 9.0]),
    log_rho=st.floats(-16, 8),
)
def test_tabulated_hockey_sticks_are_rounded_up_a_little(dimension, log_gamma, log_rho):
    rho, law = np.exp([log_rho, log_rho + 1e-3]), NormLaplaceLaw(dimension)
    exact = law.hockey_stick(rho, np.full(2, log_gamma), "lower")
    table = hockey_stick_at_most(dimension, log_gamma, rho)
    assert exact[0] <= table[0] <= table[1]
    assert table[0] <= max(exact[1] * (1 + 1e-8), np.tanh(5e-6 * np.sqrt(dimension + 1)))


@pytest.mark.parametrize("dimension", [1, 3, 20_000])
def test_tabulated_hockey_sticks_at_the_ends(dimension):
    rho = np.array([0.0, 1e-300, 1e9, np.inf])
    assert hockey_stick_at_most(dimension, 0.0, rho).tolist() == [0.0, pytest.approx(0.0, abs=1e-299), 1.0, 1.0]
    assert np.all(hockey_stick_at_most(dimension, 0.7, rho[:2]) == 0)


def test_true_positive_rates_of_gaussian_noise_next_to_1_are_rounded_outwards():
    """Φ rounds to nearest, and near 1 its argument has no say: 1.0 was the lower bound of 1 − 9e-18."""
    for rho, fpr in ((0.3, 1 - 2.0**-53), (1e-8, 1 - 1e-9), (1.0, 1 - 1e-9), (3.0, 0.9)):
        with mp.workdps(60):
            missed = 1 - mp.mpf(fpr)
            start = mp.sqrt(-2 * mp.log(missed)) * mp.mpf("0.9")
            quantile = mp.findroot(lambda x, missed=missed: mp.log(mp.ncdf(-x)) - mp.log(missed), start)
            truth = 1 - mp.ncdf(-(quantile + mp.mpf(rho)))
            low, high = (float(GaussianLaw().tpr(rho, fpr, side)) for side in ("lower", "upper"))
            assert low <= truth <= high


def test_true_positive_rates_at_denormal_false_positive_rates_are_safe():
    """5e-324 was the bound at 5e-324, where a digit of the truth is no double."""
    assert GaussianLaw().tpr(0.3, 5e-324, "upper") > 1e-300
    assert GaussianLaw().tpr(0.3, 5e-324, "lower") == 5e-324


@pytest.mark.parametrize("dimension", [2, 3, 10])
def test_hockey_sticks_next_to_the_largest_loss_are_rounded_outwards(dimension):
    """The loss is ρ·cos θ: next to ρ neither the last angle nor ρ·cos θ − log γ may be formed by subtraction."""
    for rho in (0.3, 1.0, 20.0):
        for share in (1e-13, 1e-10, 1e-6):
            at = rho * (1 - share)
            law = NormLaplaceLaw(dimension)
            high, low = (
                float(law.hockey_sticks(np.array([rho]), np.array([at]), side)[0]) for side in ("upper", "lower")
            )
            with mp.workdps(30):
                a, last = mp.mpf(rho) / 2, mp.acos(mp.mpf(at) / rho)
                order = mp.mpf(dimension) / 2
                bend = a / (dimension - 1) * mp.besselk(order - 1, a) / mp.besselk(order, a)

                def density(angle, a=a, bend=bend):
                    return (
                        mp.exp(a * mp.cos(angle)) * mp.sin(angle) ** (dimension - 2) * (1 + bend * mp.sin(angle) ** 2)
                    )

                size = last ** (dimension - 1) * (rho - mp.mpf(at))  # quad's tolerance is absolute
                excess = mp.quad(
                    lambda x, last=last, at=at, rho=rho, size=size: (
                        density(last * x) * -mp.expm1(at - rho * mp.cos(last * x)) * last / size
                    ),
                    [0, 1],
                )
                truth = excess * size / mp.quad(density, [0, mp.pi / 2, mp.pi])
                assert low <= truth <= high, (rho, share)
            assert high - low <= 1e-10 * high
