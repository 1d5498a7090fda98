import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from deniable.noise.laws import GaussianNoise, NormLaplaceNoise
from deniable.releases import evidence
from deniable.releases.evidence import ExactRows, ReleaseError, SampledPairs, concave_leakage, dominating_law

GAUSS = GaussianNoise(1.0, np.ones(1))
LAWS = [GAUSS, NormLaplaceNoise(1.0, np.ones(1)), NormLaplaceNoise(1.0, np.ones(4))]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("log_gamma", [0.0, 0.4, 3.0])
def test_exact_rows_reach_the_level_at_the_least_scale(law, log_gamma):
    rows = ExactRows(np.array([[0.1, 2.0, 3.0], [1.0, 1.5, 1.2]]))
    scale = rows.least_scale(law, 0.15, log_gamma)
    by_hand = max(law.leakage(log_gamma, row / scale).mean() for row in rows.distances)
    assert by_hand <= 0.15
    tabulated = isinstance(law, NormLaplaceNoise) and law.dimension > 1  # rounded up, by 0.1 % of ρ at most
    assert by_hand == pytest.approx(0.15, rel=5e-3 if tabulated else 1e-9)
    assert rows.worst(law.with_scale(scale * 0.997), log_gamma) > 0.15


def test_bounded_rest_counts_like_a_record():
    rows = ExactRows(np.zeros((1, 2)), rest=2.0)
    scale = rows.least_scale(GAUSS, 0.2, 0.0)
    assert GAUSS.leakage(0.0, np.array(2.0 / scale)) == pytest.approx(0.2)


@pytest.mark.parametrize("law", LAWS)
@settings(max_examples=20)
@given(log_gamma=st.floats(0, 12), seed=st.integers(0, 1000))
def test_concave_leakage_bounds_the_mean_by_the_mean_distance(law, log_gamma, seed):
    rho = np.random.default_rng(seed).lognormal(0, 2, size=50)
    mean = law.leakage(log_gamma, rho).mean()
    assert concave_leakage(law, log_gamma, np.array(rho.mean())) >= mean * (1 - 1e-12)


def test_long_rows_are_rounded_up_for_the_curve():
    row = np.random.default_rng(0).gamma(2.0, size=(2, 10_007))
    log_gammas = np.array([0.0, 1.0, 4.0])
    exact = np.array([ExactRows(row).worst(GAUSS, g) for g in log_gammas])
    curve = ExactRows(row).curve(GAUSS, log_gammas)
    assert np.all(curve >= exact)
    np.testing.assert_allclose(curve, exact, rtol=0.03)


@pytest.mark.parametrize("log_gamma", [0.0, 1.0])
def test_looking_at_few_records_first_changes_nothing(log_gamma):
    """Many rows whose worst one is not the one with the largest mean, against bisection over all rows."""
    rng = np.random.default_rng(1)
    distances = rng.gamma(rng.uniform(0.1, 3, size=(200, 1)), size=(200, 300)) * rng.lognormal(size=(200, 1))
    distances[0, :3] = 1e5  # the largest mean, and nearly nothing to see
    rows = ExactRows(distances, rest=0.3)
    scale = rows.least_scale(GAUSS, 0.1, log_gamma)
    assert rows.worst(GAUSS.with_scale(scale), log_gamma) <= 0.1
    assert rows.worst(GAUSS.with_scale(scale * (1 - 1e-9)), log_gamma) > 0.1
    log_gammas = np.array([0.0, 0.5, 2.0, 6.0])
    every = np.array([rows.worst(GAUSS.with_scale(scale), g) for g in log_gammas])
    np.testing.assert_allclose(rows.curve(GAUSS.with_scale(scale), log_gammas), every, rtol=1e-12)


def test_dominating_law_is_larger_with_its_confidence():
    """Coverage of the simultaneous statement E h ≤ bound for many h, and a control that must fail."""
    rng, n, failure = np.random.default_rng(1), 100, 0.1
    cuts = np.quantile(rng.exponential(size=1_000_000), np.linspace(0.01, 0.999, 200))
    true_cdf = 1 - np.exp(-cuts)
    missed = naive_missed = 0
    for _ in range(600):
        draws = rng.exponential(size=n)
        points, weights = dominating_law(draws, failure)
        assert weights.sum() == pytest.approx(1.0)
        assert np.all(weights >= 0)
        cdf = np.array([weights[points <= cut].sum() for cut in cuts])
        missed += bool(np.any(cdf > true_cdf))
        naive_missed += bool(np.any((draws[:, None] <= cuts).mean(axis=0) > true_cdf))
    assert missed <= 600 * failure  # expected well below: the union bound is not tight
    assert naive_missed > 300  # negative control: the empirical law


def draws_of_distance(rng, repetitions, n):
    """A law with rare huge distances: the hard case for a certificate."""
    size = (repetitions, n)
    return np.where(rng.random(size) < 0.03, 20.0, rng.gamma(2.0, 0.5, size=size))


def test_betting_scale_is_too_small_as_rarely_as_promised():
    """A scale is wrong if the true E TV at it exceeds the level; tuning it on the certifying draws must not matter."""
    rng, level, failure, repetitions = np.random.default_rng(2), 0.2, 0.2, 400
    truth = draws_of_distance(rng, 1, 200_000)[0]
    right = ExactRows(truth[None]).least_scale(GAUSS, level, 0.0)
    selection, certification = draws_of_distance(rng, repetitions, 48), draws_of_distance(rng, repetitions, 144)
    wrong = naive_wrong = 0
    for chosen, certifying in zip(selection, certification, strict=True):
        scale = SampledPairs(chosen, certifying, failure).least_scale(GAUSS, level, 0.0)
        wrong += scale < right * (1 - 1e-3)
        naive_wrong += ExactRows(certifying[None]).least_scale(GAUSS, level, 0.0) < right
    assert wrong <= repetitions * failure / 2  # η spends half of the failure probability
    assert naive_wrong > repetitions / 4  # negative control: the plain mean, without an upper bound


def test_sampled_curve_is_above_the_mean():
    rng = np.random.default_rng(4)
    distances = rng.gamma(2.0, 0.5, size=256)
    rows = SampledPairs(distances[:64], distances[64:], 0.01)
    log_gammas = np.array([0.0, 1.0, 3.0])
    mean = np.array([GAUSS.leakage(g, distances).mean() for g in log_gammas])
    assert np.all(rows.curve(GAUSS, log_gammas) > mean)


def test_too_few_resamples_are_refused():
    with pytest.raises(ReleaseError, match="no finite noise"):
        SampledPairs(np.ones(4), np.ones(10), 0.01).least_scale(GAUSS, 0.05, 0.0)


def test_infinite_distances_cannot_be_certified():
    with pytest.raises(ReleaseError, match="infinitely far apart"):
        ExactRows(np.full((1, 3), np.inf)).least_scale(GAUSS, 0.2, 0.0)


def test_distances_that_are_not_numbers_certify_nothing():
    distances = np.ones(64)
    distances[40] = np.nan
    with pytest.raises(ReleaseError, match="not numbers"):
        SampledPairs(distances[:16], distances[16:], 0.01)
    with pytest.raises(ReleaseError, match="not numbers"):
        ExactRows(distances[None])
    with pytest.raises(ReleaseError, match="not numbers"):
        ExactRows(np.ones((1, 1)), rest=np.nan)


@pytest.mark.parametrize("order", ["right", "wrong"])
def test_the_scale_of_all_serves_each_record_however_late_it_is_looked_at(order):
    needs = np.random.default_rng(0).lognormal(0, 2, size=5_000)
    asked = []

    def excess(scale, records):
        asked.append(len(records))
        return needs[records] / scale - 1

    records = np.argsort(-needs if order == "right" else needs)
    assert max(needs) <= evidence.least_for_all(excess, records, 1.0) <= max(needs) * (1 + 1e-9)
    assert sum(size > 100 for size in asked) <= 2  # whoever was safe with less noise is not asked again
    assert evidence.least_for_all(excess, records[:3], 1.0) == pytest.approx(max(needs[records[:3]]))
