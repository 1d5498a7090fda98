"""The papers' closed forms, against brute force over the worst pair, printed numbers and each other."""

import itertools

import mpmath
import numpy as np
import pytest
from counterexamples import SubsetIndicator, TwoRecordResponse
from hypothesis import given, settings, strategies as st
from scipy.integrate import trapezoid
from scipy.special import expit
from scipy.stats import norm

import deniable as dn
from deniable import bounds
from deniable.curves import ApproximateTradeoff, GaussianTradeoff

EPSILONS = st.one_of(st.floats(0, 5), st.floats(0, 800), st.just(0.0), st.just(float("inf")))
DELTAS = st.one_of(st.just(0.0), st.floats(0, 1), st.floats(0, 1e-3))
PRIORS = st.one_of(st.floats(1e-12, 1, exclude_max=True), st.floats(0.01, 0.99))
RATES = st.one_of(st.just(0.0), st.just(1.0), st.floats(0, 1), st.floats(0, 1e-6))


def worst_pair(epsilon: float, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """In and out laws of randomised response that fails with probability δ, written out."""
    law = np.array([delta, (1 - delta) * expit(epsilon), (1 - delta) * expit(-epsilon), 0.0])
    return law, law[::-1]


def deterministic_tests(epsilon: float, delta: float) -> list[tuple[float, float]]:
    """(FPR, TPR) of all sixteen tests on the four outcomes."""
    inside, outside = worst_pair(epsilon, delta)
    return [(float(outside[list(s)].sum()), float(inside[list(s)].sum())) for s in _subsets(4)]


def _subsets(n: int) -> list[tuple[int, ...]]:
    return [s for size in range(n + 1) for s in itertools.combinations(range(n), size)]


# --- printed numbers --------------------------------------------------------------------------------------------


def test_numbers_printed_by_thudi_et_al():
    assert bounds.positive_accuracy(1, prior=0.5)[1] == pytest.approx(0.731, abs=5e-4)  # §5.1: 73.1 %
    assert bounds.erlingsson(1) == pytest.approx(0.816, abs=5e-4)  # 81.6 %
    assert bounds.sablayrolles(1, prior=0.5) == pytest.approx(0.75)  # 75 %
    assert bounds.positive_accuracy(2, prior=0.5)[1] == pytest.approx(0.88, abs=5e-3)  # 88 %
    assert bounds.sablayrolles(2, prior=0.5) == pytest.approx(1.0)  # 100 %
    assert bounds.positive_accuracy(2, prior=0.01)[1] == pytest.approx(0.0695, abs=5e-5)  # §4.1 cuts it to 6.9 %
    # §5.1 also prints 95 % for Erlingsson's bound at ε = 2; 1 − e^{−2}/2 is 93.2 %
    assert bounds.erlingsson(2) == pytest.approx(1 - np.exp(-2) / 2)
    assert bounds.erlingsson(2) < 0.933


def test_the_gaussian_step_of_thudi_et_al():
    """§5.2: noise 4.0412 gives (1, 1e-5)-DP by the classical analysis; accuracy 54.9 %, precision without a bound."""
    noise = 4.0412
    out, inside = norm(0, noise), norm(-1, noise)

    def precision(threshold: float) -> float:
        return inside.cdf(threshold) / (inside.cdf(threshold) + out.cdf(threshold))

    def accuracy(threshold: float) -> float:
        return (1 - out.cdf(threshold) + inside.cdf(threshold)) / 2

    assert accuracy(-0.5) == pytest.approx(0.549, abs=5e-4)
    assert max(map(accuracy, np.linspace(-10, 10, 2001))) == pytest.approx(accuracy(-0.5), abs=1e-9)
    t = dn.tradeoff(dn.GaussianDP(1 / noise))
    assert t.accuracy() == pytest.approx(accuracy(-0.5), abs=1e-12)
    assert t.delta(1.0) < 1e-5  # their noise is more than exact accounting needs
    assert precision(-100.0) > 0.997
    assert (
        bounds.accuracy(1, delta=1e-5) > 0.731
    )  # the closed form for any mechanism is far looser than this one's curve
    # at a stated false positive rate it is bounded, and the attack stays below
    for threshold in (-1.0, -5.0, -10.0):
        fpr = out.cdf(threshold)
        assert (
            precision(threshold) <= t.precision(fpr) <= bounds.positive_accuracy(1, prior=0.5, delta=1e-5, fpr=fpr)[1]
        )


def test_noise_4_0412_is_what_a_renyi_accountant_asks_for_and_more_than_needed():
    delta, sigma = 1e-5, 4.0412
    orders = np.linspace(1.5, 200, 20_000)
    renyi = np.min(  # the Rényi curve α/(2σ²) with the conversion of Balle et al. 2020
        orders / (2 * sigma**2) + np.log1p(-1 / orders) - (np.log(delta) + np.log(orders)) / (orders - 1)
    )
    assert renyi == pytest.approx(1.0, abs=2e-3)
    exact = GaussianTradeoff(1 / sigma).epsilon(delta)
    assert exact == pytest.approx(0.916, abs=1e-3)  # so their 4.0412 is safe; 3.7307 would do
    assert GaussianTradeoff(1 / 3.7307).epsilon(delta) < 1 < GaussianTradeoff(1 / 3.7305).epsilon(delta)


# --- closed forms against brute force ---------------------------------------------------------------------------


@given(EPSILONS, DELTAS, PRIORS)
def test_accuracy_is_the_bayes_accuracy_of_the_worst_pair(epsilon, delta, prior):
    inside, outside = worst_pair(epsilon, delta)
    brute = np.maximum(prior * inside, (1 - prior) * outside).sum()
    assert bounds.accuracy(epsilon, delta=delta, prior=prior) == pytest.approx(brute, abs=1e-12)
    brute_advantage = 2 * (brute - max(prior, 1 - prior))
    assert bounds.advantage(epsilon, delta=delta, prior=prior) == pytest.approx(brute_advantage, abs=1e-12)


@given(st.floats(0, 30), DELTAS)
def test_advantage_is_the_formula_of_humphries(epsilon, delta):
    formula = (np.exp(epsilon) - 1 + 2 * delta) / (np.exp(epsilon) + 1)
    assert bounds.advantage(epsilon, delta=delta) == pytest.approx(formula, abs=1e-14)
    assert bounds.humphries(epsilon, delta=delta) == bounds.advantage(epsilon, delta=delta)
    assert (
        bounds.advantage(epsilon, delta=delta)
        >= max(tpr - fpr for fpr, tpr in deterministic_tests(epsilon, delta)) - 1e-16
    )


@given(st.floats(0, 30), PRIORS)
def test_pure_bounds_are_those_of_theorem_1_and_corollary_1(epsilon, prior):
    odds = (1 - prior) / prior
    lower, upper = bounds.positive_accuracy(epsilon, prior=prior)
    assert upper == pytest.approx(1 / (1 + np.exp(-epsilon) * odds), rel=1e-9)
    assert lower == pytest.approx(1 / (1 + np.exp(epsilon) * odds), rel=1e-9)
    lower, upper = bounds.negative_accuracy(epsilon, prior=prior)
    assert upper == pytest.approx(1 / (1 + np.exp(-epsilon) / odds), rel=1e-9)
    assert lower == pytest.approx(1 / (1 + np.exp(epsilon) / odds), rel=1e-9)


@given(st.floats(0, 6), st.one_of(st.just(0.0), st.floats(1e-9, 0.5)), st.floats(1e-6, 1 - 1e-6))
def test_no_test_on_the_worst_pair_beats_the_precision_bounds(epsilon, delta, prior):
    """All sixteen tests and mixtures of any two of them, at the FPR and at the recall that they have."""
    corners = np.array(deterministic_tests(epsilon, delta))
    weight = np.linspace(0, 1, 5)[:, None, None, None]
    rates = (weight * corners[:, None] + (1 - weight) * corners[None, :]).reshape(-1, 2)
    fpr, tpr = rates[(rates > 1e-12).all(axis=1) & (rates <= 1).all(axis=1)].T
    precision = prior * tpr / (prior * tpr + (1 - prior) * fpr)
    for stated in ({"fpr": fpr}, {"recall": tpr}):
        lower, upper = bounds.positive_accuracy(epsilon, prior=prior, delta=delta, **stated)
        # a rate known to 1e-16 moves a bound by about e^{2ε} times that
        assert np.all(lower <= precision + 1e-9)
        assert np.all(precision <= upper + 1e-9)
        assert np.max(precision - upper) > -1e-9  # and the best of them attains it
    right = (fpr < 1 - 1e-12) & (tpr < 1 - 1e-12)
    fpr, tpr = fpr[right], tpr[right]
    npv = (1 - prior) * (1 - fpr) / ((1 - prior) * (1 - fpr) + prior * (1 - tpr))
    for stated in ({"fpr": fpr}, {"recall": tpr}):
        lower, upper = bounds.negative_accuracy(epsilon, prior=prior, delta=delta, **stated)
        assert np.all(lower <= npv + 1e-9)
        assert np.all(npv <= upper + 1e-9)


@given(st.floats(0, 700), DELTAS, PRIORS, RATES)
def test_agreement_with_the_tradeoff_of_the_same_guarantee(epsilon, delta, prior, fpr):
    t = ApproximateTradeoff(epsilon, delta)
    assert bounds.advantage(epsilon, delta=delta) == pytest.approx(t.advantage(), abs=1e-12)
    assert bounds.accuracy(epsilon, delta=delta, prior=prior) == pytest.approx(t.accuracy(prior), abs=1e-12)
    assert bounds.mip_eta(t, prior=prior) == pytest.approx(
        bounds.mip_from_dp(epsilon, delta=delta, prior=prior), abs=1e-12
    )
    fpr = fpr if fpr > 1e-299 else 0.0  # the curve charges 1e-300 where rates come close to underflow
    upper = bounds.positive_accuracy(epsilon, prior=prior, delta=delta, fpr=fpr)[1]
    assert upper == pytest.approx(t.precision(fpr, prior), rel=1e-9)
    assert bounds.jayaraman(epsilon, fpr=fpr, prior=prior, delta=delta) == upper


LOGS = st.floats(-40, -1e-9)


@given(
    st.one_of(st.floats(0, 40), st.floats(0, 1e-6), st.just(0.0)),
    st.one_of(st.just(-np.inf), LOGS),
    st.floats(-30, 30),
    st.one_of(LOGS, st.just(-np.inf)),
    st.booleans(),
)
@settings(max_examples=150)
def test_every_end_is_on_its_safe_side_of_sixty_digits(epsilon, log_delta, log_odds, log_rate, complement):
    """Rates down to e^{−40} and up to 1 − e^{−40}, priors as uneven: upper ends ≥ and lower ends ≤ the exact number."""
    delta, prior = float(np.exp(log_delta)), float(expit(log_odds))
    rate = float(-np.expm1(log_rate)) if complement else float(np.exp(log_rate))
    if not 0 < prior < 1 or delta >= 1:
        return
    ulp_more = 1 + mpmath.mpf(2) ** -52  # where the bound is the prior itself, 1 − π is rounded to nearest
    with mpmath.workdps(60):
        e, d, p, a = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(delta), mpmath.mpf(prior), mpmath.mpf(rate)

        def most(x):
            return min(d + e * x, 1 - max(1 - d - x, 0) / e, mpmath.mpf(1))

        def least(x):
            return max((x - d) / e, 1 - d - e * (1 - x), mpmath.mpf(0))

        def check(found, weight, true, false):
            """``found`` encloses weight·t/(weight·t + (1 − weight)·f) from the worst (t, f) to the best one."""
            (t_low, f_high), (t_high, f_low) = (true[0], false[1]), (true[1], false[0])
            if t_low + f_high > 0:
                assert found[0] <= ulp_more * weight * t_low / (weight * t_low + (1 - weight) * f_high)
            if t_high + f_low > 0:
                exact = weight * t_high / (weight * t_high + (1 - weight) * f_low)
                assert ulp_more * found[1] >= exact
                f_less = max(f_low - mpmath.mpf(1e-12), 0)  # a difference of numbers near 1 is known no better
                assert found[1] <= weight * t_high / (weight * t_high + (1 - weight) * f_less) * (1 + mpmath.mpf(1e-9))

        check(bounds.positive_accuracy(epsilon, prior=prior, delta=delta, fpr=rate), p, (least(a), most(a)), (a, a))
        check(bounds.positive_accuracy(epsilon, prior=prior, delta=delta, recall=rate), p, (a, a), (least(a), most(a)))
        check(
            bounds.negative_accuracy(epsilon, prior=prior, delta=delta, fpr=rate),
            1 - p,
            (1 - a, 1 - a),
            (1 - most(a), 1 - least(a)),
        )
        check(
            bounds.negative_accuracy(epsilon, prior=prior, delta=delta, recall=rate),
            1 - p,
            (1 - most(a), 1 - least(a)),
            (1 - a, 1 - a),
        )
        rare = min(p, 1 - p)
        exact = 2 * rare * d + (1 - d) * max((e - 1) / (e + 1) - (1 - 2 * rare), 0)
        assert bounds.advantage(epsilon, delta=delta, prior=prior) >= exact * (1 - mpmath.mpf(2) ** -52) - mpmath.mpf(
            1e-16
        )
        assert bounds.accuracy(epsilon, delta=delta, prior=prior) >= (1 - rare + exact / 2) * (1 - mpmath.mpf(2) ** -52)


# --- properties -------------------------------------------------------------------------------------------------


@given(EPSILONS, DELTAS, PRIORS)
def test_older_bounds_are_never_below_ours(epsilon, delta, prior):
    assert bounds.yeom(epsilon) >= bounds.accuracy(epsilon) - 1e-15
    assert bounds.erlingsson(epsilon, delta=delta) >= bounds.accuracy(epsilon, delta=delta) - 1e-15
    assert bounds.sablayrolles(epsilon, prior=prior) >= bounds.positive_accuracy(epsilon, prior=prior)[1] * (1 - 1e-12)
    assert bounds.humphries(epsilon, delta=delta) >= bounds.advantage(epsilon, delta=delta)


@given(st.floats(1e-100, 800))
def test_pinsker_bounds_the_advantage_of_randomised_response(epsilon):
    kl = epsilon * np.tanh(epsilon / 2)  # of {p, 1 − p} against its mirror image, log-likelihood ratios ±ε
    assert bounds.pinsker(kl) >= bounds.advantage(epsilon) * (1 - 1e-12)


@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 0.01), (2.0, 0.05), (0.6, 1e-3)])
def test_pinsker_from_renyi_divergences_of_orders_near_one(sigma, rate):
    """Against the KL divergence of a step by quadrature, straight from the definition; those of steps add."""
    curve = dn.tradeoff(dn.SubsampledGaussian(sigma, rate, 1000))
    with mpmath.workdps(25):

        def ratio(x):
            return mpmath.log(1 - rate + rate * mpmath.exp((2 * x - 1) / (2 * mpmath.mpf(sigma) ** 2)))

        places = [-12 * sigma, -3 * sigma, 0, 0.5, 1, 1 + 3 * sigma, 2 + 12 * sigma]
        remove, add = (
            1000 * mpmath.quad(integrand, places)
            for integrand in (
                lambda x: mpmath.npdf(x, 0, sigma) * mpmath.exp(ratio(x)) * ratio(x),
                lambda x: -mpmath.npdf(x, 0, sigma) * ratio(x),
            )
        )
    for direction, divergence in (("remove", remove), ("add", add)):
        near = [curve.renyi(order, direction) for order in (1.1, 1.01, 1.0001)]
        assert divergence <= near[2] <= near[1] <= near[0]
        assert near[2] == pytest.approx(float(divergence), rel=1e-3)
        assert bounds.pinsker(near[2]) >= curve.advantage()


def test_positive_advantage_is_the_printed_difference_and_peaks_where_said():
    prior = np.linspace(0.001, 0.999, 999)
    for epsilon in (0.1, 1.0, 3.0, 5.0):
        value = bounds.positive_advantage(epsilon, prior=prior)
        assert value == pytest.approx(2 * (bounds.positive_accuracy(epsilon, prior=prior)[1] - prior), abs=1e-13)
        assert prior[np.argmax(value)] == pytest.approx(1 / (1 + np.exp(epsilon / 2)), abs=1e-3)
        assert np.max(value) == pytest.approx(2 * np.tanh(epsilon / 4), rel=1e-5)


# --- inverses ---------------------------------------------------------------------------------------------------


@given(st.floats(0, 1), st.floats(0, 1), PRIORS)
def test_inverses_are_safe_and_not_wasteful(share, delta, prior):
    def check(bound, inverse, least):
        target = least + share * (1 - least)
        epsilon = inverse(target)
        assert bound(epsilon) <= target
        if np.isfinite(epsilon):
            assert bound(epsilon * (1 + 1e-6) + 1e-7) >= target - 1e-12

    check(
        lambda e: bounds.advantage(e, delta=delta, prior=prior),
        lambda t: bounds.epsilon_for_advantage(t, delta=delta, prior=prior),
        bounds.advantage(0, delta=delta, prior=prior),
    )
    check(
        lambda e: bounds.accuracy(e, delta=delta, prior=prior),
        lambda t: bounds.epsilon_for_accuracy(t, delta=delta, prior=prior),
        bounds.accuracy(0, delta=delta, prior=prior),
    )
    check(
        lambda e: bounds.positive_accuracy(e, prior=prior)[1],
        lambda t: bounds.epsilon_for_positive_accuracy(t, prior=prior),
        prior,
    )
    check(
        lambda e: bounds.positive_accuracy(e, prior=prior, delta=delta, fpr=0.01)[1],
        lambda t: bounds.epsilon_for_positive_accuracy(t, prior=prior, delta=delta, fpr=0.01),
        bounds.positive_accuracy(0, prior=prior, delta=delta, fpr=0.01)[1],
    )


def test_inverses_in_closed_form():
    assert bounds.epsilon_for_advantage(0.5) == pytest.approx(2 * np.arctanh(0.5), rel=1e-12)
    assert bounds.epsilon_for_positive_accuracy(0.5, prior=0.01) == pytest.approx(np.log(99), rel=1e-12)
    assert bounds.epsilon_for_mip(0.1) == pytest.approx(np.log(1.2 / 0.8), rel=1e-12)  # Izzo et al. §5.1
    assert bounds.epsilon_for_advantage(1.0) == np.inf
    assert bounds.epsilon_for_advantage(0.0) < 1e-300


# --- edges, shapes and bad input --------------------------------------------------------------------------------


def test_extremes_neither_overflow_nor_lose_their_order():
    """Warnings are errors here, so an overflow fails."""
    for epsilon in (0.0, 5e-324, 1e-300, 1e-15, 1e-8, 700.0, 710.0, 1500.0, 1e300, np.inf):
        assert 0 <= bounds.advantage(epsilon, delta=1e-5) <= 1
        assert 0.5 <= bounds.yeom(epsilon) <= 1
        assert 0.5 <= bounds.erlingsson(epsilon, delta=1e-5) <= 1
        if epsilon < 1e-7:  # first order, without cancellation
            assert bounds.advantage(epsilon) == pytest.approx(epsilon / 2, rel=1e-9)
            assert bounds.positive_advantage(epsilon, prior=0.5) == pytest.approx(epsilon / 2, rel=1e-6, abs=5e-324)
        for prior in (5e-324, 1e-300, 1e-9, 0.5, 1 - 1e-16):
            assert prior <= bounds.sablayrolles(epsilon, prior=prior) <= 1
            for delta, options in ((0.0, {}), (1e-5, {"fpr": 1e-12}), (1e-5, {"recall": 0.5}), (0.0, {"fpr": 0.0})):
                low, high = bounds.positive_accuracy(epsilon, prior=prior, delta=delta, **options)
                assert 0 <= low <= prior <= high <= 1
                low, high = bounds.negative_accuracy(epsilon, prior=prior, delta=delta, **options)
                assert 0 <= low <= high <= 1


# --- membership inference privacy -------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0.0), (1.0, 0.01), (3.0, 0.2), (0.0, 0.1)])
def test_theorem_4_is_attained_by_running_its_construction(epsilon, delta):
    mechanism = TwoRecordResponse(epsilon, delta)
    laws = [mechanism.law(0), mechanism.law(1)]
    tests = [list(s) for s in _subsets(4)]
    excess = max(laws[i][s].sum() - np.exp(epsilon) * laws[1 - i][s].sum() for s in tests for i in (0, 1))
    assert excess == pytest.approx(delta, abs=1e-12)  # (ε, δ)-DP, and for no smaller δ

    rng = np.random.default_rng(7)
    record = rng.integers(0, 2, 200_000)
    guess = mechanism.sample(record, rng=rng) // 2
    promised = 0.5 + bounds.mip_from_dp(epsilon, delta=delta)
    assert np.mean(guess == record) == pytest.approx(promised, abs=5 * 0.5 / np.sqrt(record.size))
    assert promised == pytest.approx(delta + (1 - delta) / (1 + np.exp(-epsilon)), abs=1e-12)


@pytest.mark.parametrize(("n", "k"), [(4, 2), (5, 2), (5, 4), (6, 3)])
def test_theorem_4_holds_for_subsets_of_any_size(n, k):
    """Random algorithms on size-k subsets with ε measured over replacements; mixtures over thousands of pairs."""
    rng = np.random.default_rng(n * 10 + k)
    subsets = [frozenset(s) for s in itertools.combinations(range(n), k)]
    neighbours = [(i, j) for i, a in enumerate(subsets) for j, b in enumerate(subsets) if len(a & b) == k - 1]
    closest = np.inf
    for _ in range(100):
        # outputs that lean towards "record 0 is in", blurred: close to the worst pair for record 0
        lean = np.array([[1.0, -1.0] if 0 in s else [-1.0, 1.0] for s in subsets])
        law = np.exp(rng.uniform(0.1, 2) * (lean + rng.uniform(0, 0.3) * rng.normal(size=lean.shape)))
        law /= law.sum(axis=1, keepdims=True)
        epsilon = max(np.max(np.abs(np.log(law[i] / law[j]))) for i, j in neighbours)
        for record in range(n):
            member = np.array([record in s for s in subsets])
            bayes = np.maximum(law[member].sum(axis=0), law[~member].sum(axis=0)).sum() / len(subsets)
            gap = bounds.mip_from_dp(epsilon, delta=0.0, prior=k / n) - (bayes - max(k / n, 1 - k / n))
            assert gap >= -1e-12
            closest = min(closest, gap)
    assert closest < 0.02


def test_an_add_or_remove_guarantee_counts_twice_in_the_game_of_fixed_size():
    """A mechanism that is ε-DP for adding or removing a record, against the two one-record training sets."""
    epsilon = 1.0
    given_none = np.array([0.5, 0.5])
    given_0 = np.array([1 - np.exp(-epsilon) / 2, np.exp(-epsilon) / 2])
    given_1 = given_0[::-1]
    assert np.max(np.abs(np.log(given_0 / given_none))) <= epsilon + 1e-12  # neighbours: {} and {0}, {} and {1}
    eta = np.maximum(given_0, given_1).sum() / 2 - 0.5
    assert eta > bounds.mip_from_dp(epsilon)  # negative control: reading ε as a replacement guarantee is unsafe
    assert eta <= bounds.mip_from_dp(epsilon, adjacency="add-remove") + 1e-15
    assert bounds.mip_from_dp(0.5, delta=1e-6, adjacency="add-remove") > bounds.mip_from_dp(1.0)


def test_mip_eta_of_a_gaussian_release():
    t = GaussianTradeoff(1.0)
    assert bounds.mip_eta(t) == pytest.approx((2 * norm.cdf(0.5) - 1) / 2, abs=1e-12)
    x = np.linspace(-12, 12, 400_001)
    for prior in (0.1, 0.3, 0.8):
        bayes = trapezoid(np.maximum(prior * norm.pdf(x - 1), (1 - prior) * norm.pdf(x)), x)
        assert bounds.mip_eta(t, prior=prior) == pytest.approx(bayes - max(prior, 1 - prior), abs=1e-9)
    assert bounds.mip_eta(t, prior=[0.1, 0.5]).shape == (2,)


@pytest.mark.parametrize("n", [2, 4, 8])
def test_the_separating_example_is_mip_but_not_dp(n):
    algorithm = SubsetIndicator(n)
    halves = list(itertools.combinations(range(n), n // 2))
    answers = np.array([algorithm(half) for half in halves])
    for record in range(n):
        member = np.array([record in half for half in halves])
        accuracy = sum(max(np.sum(member & (answers == a)), np.sum(~member & (answers == a))) for a in (0, 1))
        assert accuracy / len(halves) - 0.5 == pytest.approx(algorithm.eta, abs=1e-12)
    # neighbours with certainly different answers: H_γ = 1 for every γ, so δ = 1 whatever ε
    chosen, neighbour = set(range(n // 2)), {*range(1, n // 2), n - 1}
    assert (algorithm(chosen), algorithm(neighbour)) == (1.0, 0.0)


def test_the_separating_example_exists_for_every_eta():
    for eta in (0.5, 0.1, 1e-3, 1e-12):
        example = SubsetIndicator.for_eta(eta)
        assert example.eta <= eta
        assert example.n == 2 or SubsetIndicator(example.n - 2).eta > eta


@pytest.mark.parametrize("epsilon", [0.5, 1.0001, 2.0, 5.0, 30.0, 700.0, 701.0, 800.0])
def test_subsampled_epsilon_keeps_its_digits_at_small_rates(epsilon):
    """log(t + (1 − t)e^{−ε}) + ε cancelled: 0 at ε = 2 and a rate of 1e-17, and 1e-9 of itself low at 1e-8."""
    for rate in (1e-300, 1e-17, 1e-8, 1e-3, 0.5, 1 - 2.0**-53):
        with mpmath.workdps(60):
            truth = mpmath.log1p(mpmath.mpf(rate) * mpmath.expm1(mpmath.mpf(epsilon)))
            found = mpmath.mpf(bounds.subsampled_epsilon(epsilon, rate=rate))
            assert truth <= found <= truth * (1 + mpmath.mpf(10) ** -11)


@pytest.mark.parametrize("prior", [0.1, 0.25, 0.3, 1 / 3, 0.7, 0.8132702392002724, 0.999, 1 - 2.0**-53])
def test_accuracy_and_advantage_are_rounded_up_where_hardly_anything_is_gained(prior):
    """1 − π, 2·min(π, 1 − π)·δ and ties between tanh(ε/2) and 1 − 2π were rounded to nearest."""
    rare = min(prior, 1 - prior)
    with mpmath.workdps(60):
        tie = float(2 * mpmath.atanh(1 - 2 * mpmath.mpf(rare)))
        for epsilon in (0.0, 1e-17, 0.1, tie, float(np.nextafter(tie, 9)), float(np.nextafter(tie, 0))):
            for delta in (0.0, 1e-12, 0.1):
                pi, e = mpmath.mpf(prior), mpmath.exp(mpmath.mpf(epsilon))
                gamma = (1 - pi) / pi
                spread = (max(e - gamma, 0) + max(1 - gamma * e, 0)) / (1 + e)
                accuracy = (1 - pi) + pi * (delta + (1 - mpmath.mpf(delta)) * spread)
                assert bounds.accuracy(epsilon, delta=delta, prior=prior) >= accuracy - mpmath.mpf(10) ** -50
                gained = 2 * (accuracy - max(pi, 1 - pi)) - mpmath.mpf(10) ** -50
                assert bounds.advantage(epsilon, delta=delta, prior=prior) >= gained


@pytest.mark.parametrize("scale", [np.inf, -np.inf, np.nan, [1.0, np.inf]])
def test_an_infinite_scale_is_refused(scale):
    """There ∞ − ∞ is no bound."""
    with pytest.raises(dn.InputError, match="scale must be above -inf and below inf"):
        bounds.scaled_total_variation(GaussianTradeoff(0.5), scale)


def test_scaled_total_variations_are_rounded_upwards():
    """TV_a next to a = 1, and eq. 26 next to prior ½, where their terms cancel."""
    rng = np.random.default_rng(0)
    for mu, away in zip(10 ** rng.uniform(-6, 1, 60), 10 ** rng.uniform(-12, -0.1, 60), strict=True):
        for a in (float(1 - away), float(1 + away)):
            with mpmath.workdps(40):
                m, scale = mpmath.mpf(float(mu)), mpmath.mpf(a)
                lg = mpmath.log(scale) / m
                truth = mpmath.ncdf(m / 2 - lg) - scale * mpmath.ncdf(-m / 2 - lg) - (1 - scale) / 2
                assert bounds.scaled_total_variation(GaussianTradeoff(float(mu)), a) >= truth
    for away, tv in zip(10 ** rng.uniform(-16, -0.4, 200), rng.random(200), strict=True):
        p = float(0.5 - away)
        with mpmath.workdps(40):
            prior = mpmath.mpf(p)
            truth = min(max(2 * (1 - prior) * mpmath.mpf(float(tv)) - (1 - 2 * prior), 0), 2 * prior)
            assert bounds.advantage_from_scaled_variation(float(tv), prior=p) >= truth
