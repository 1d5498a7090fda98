"""Closed-form trade-offs: reference values, an mpmath oracle, and the identities that tie the methods together."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st

import deniable as dn
from deniable.curves import EnvelopeTradeoff, GaussianTradeoff, Tradeoff, gaussian_hockey_stick
from deniable.curves.safe import sane_hockey_sticks
from faults import faults_shown

mpmath.mp.dps = 40

EPSILONS = st.floats(0.0, 30.0)
MUS = st.floats(1e-6, 20.0)
PRIORS = st.floats(1e-9, 1 - 1e-9)
MECHANISMS = st.one_of(
    st.builds(dn.PureDP, EPSILONS),
    st.builds(dn.ApproximateDP, EPSILONS, st.floats(0.0, 1.0)),
    st.builds(dn.GaussianDP, MUS),
)


def worst_pair(epsilon, delta):
    """The four-point pair of an (ε, δ)-DP mechanism that no other exceeds, in 40 digits."""
    e, d = mpmath.e ** mpmath.mpf(epsilon), mpmath.mpf(delta)
    p = [d, (1 - d) * e / (1 + e), (1 - d) / (1 + e), mpmath.mpf(0)]
    return p, p[::-1]


def oracle_hockey_stick(mechanism, gamma):
    g = mpmath.mpf(gamma)
    if isinstance(mechanism, dn.GaussianDP):
        mu, lg = mpmath.mpf(mechanism.mu), mpmath.log(g)
        return mpmath.ncdf(mu / 2 - lg / mu) - g * mpmath.ncdf(-mu / 2 - lg / mu)
    p, q = worst_pair(mechanism.epsilon, getattr(mechanism, "delta", 0.0))
    return sum(max(a - g * b, 0) for a, b in zip(p, q, strict=True))


@given(MECHANISMS, st.floats(1e-12, 1e12))
def test_hockey_stick_brackets_the_oracle(mechanism, gamma):
    t, truth = dn.tradeoff(mechanism), oracle_hockey_stick(mechanism, gamma)
    upper, lower = t.hockey_stick(gamma), t.hockey_stick(gamma, side="lower")
    assert lower <= truth <= upper or truth < 1e-300
    assert upper - lower <= 1e-9


@given(MUS, st.floats(1e-300, 1.0))
def test_gaussian_roc_brackets_the_oracle(mu, fpr):
    t = dn.tradeoff(dn.GaussianDP(mu))
    x = mpmath.findroot(lambda z: mpmath.log(mpmath.ncdf(z)) - mpmath.log(fpr), float(_ndtri(fpr))) if fpr < 1 else 99
    truth = mpmath.ncdf(x + mpmath.mpf(mu))
    assert t.tpr(fpr, side="lower") <= truth * (1 + mpmath.mpf(10) ** -25)
    assert truth <= t.tpr(fpr) * (1 + mpmath.mpf(10) ** -25)
    assert t.tpr(fpr) <= float(truth) * (1 + 1e-10)


def _ndtri(p):
    from scipy.special import ndtri

    return ndtri(p)


def test_reference_values_of_pure_dp():
    # e/(1+e), e²/(1+e²) and 1/(1+99e^{-2}): Thudi et al. Theorem 1 for ε = 1 and 2
    assert dn.tradeoff(dn.PureDP(1.0)).accuracy() == pytest.approx(0.731, abs=5e-4)
    assert dn.tradeoff(dn.PureDP(2.0)).accuracy() == pytest.approx(0.881, abs=5e-4)
    assert dn.tradeoff(dn.PureDP(2.0)).precision(0.0, 0.01) == pytest.approx(0.0695, abs=5e-5)


@pytest.mark.parametrize(("mu", "epsilon"), [(45.0, 720.0), (45.0, 787.0), (60.0, 1500.0), (200.0, 1e4)])
def test_gaussian_delta_where_e_to_the_epsilon_is_no_double(mu, epsilon):
    t, truth = dn.tradeoff(dn.GaussianDP(mu)), oracle_hockey_stick(dn.GaussianDP(mu), mpmath.e**epsilon)
    assert t.delta(epsilon, side="lower") <= truth <= t.delta(epsilon)
    assert t.delta(epsilon) - t.delta(epsilon, side="lower") < 1e-10


@given(MECHANISMS, PRIORS)
def test_bayes_accuracy_is_the_maximum_over_the_roc(mechanism, prior):
    t = dn.tradeoff(mechanism)
    fpr = np.concatenate([[0.0], np.geomspace(1e-14, 1.0, 4000)])
    best = np.max(prior * t.tpr(fpr, side="lower") + (1 - prior) * (1 - fpr))
    assert best <= t.accuracy(prior) * (1 + 1e-9)
    assert t.accuracy(prior) <= best + 0.02
    assert t.accuracy(prior) == pytest.approx(max(prior, 1 - prior) + t.advantage(prior) / 2, abs=1e-14)


@given(MECHANISMS, st.floats(0, 1))
def test_epsilon_inverts_delta_on_the_safe_side(mechanism, delta):
    t = dn.tradeoff(mechanism)
    for direction in ("remove", "add", "both"):
        upper, lower = t.epsilon(delta, direction), t.epsilon(delta, direction, side="lower")
        assert lower <= upper
        if np.isfinite(upper) and delta > 0:
            assert t.delta(upper, direction) <= delta
        if lower > 0 and np.isfinite(upper) and delta > 0:
            assert t.delta(lower - 1e-6 * (1 + abs(lower)), direction, side="lower") >= delta * (1 - 1e-3) - 1e-12


def test_epsilon_is_never_below_zero_and_may_be_infinite():
    t = dn.tradeoff(dn.GaussianDP(0.1))
    assert t.delta(-0.1) < 0.5  # a negative number would do
    assert t.epsilon(0.5) == t.epsilon(0.5, side="lower") == t.epsilon(1.0) == 0.0
    assert t.epsilon(0.0) == np.inf
    guarantee = dn.tradeoff(dn.ApproximateDP(2.0, 1e-5))
    assert guarantee.epsilon(1e-5) == pytest.approx(2.0, abs=1e-12)
    assert guarantee.epsilon(1e-6) == np.inf
    assert dn.tradeoff(dn.PureDP(800.0)).epsilon(0.0) == 800.0


def test_envelope_is_never_below_the_curve_it_was_made_from():
    t = dn.tradeoff(dn.GaussianDP(1.3))
    grid = np.linspace(-6, 6, 61)
    envelope = EnvelopeTradeoff(grid, t.delta(grid, "remove"), t.delta(grid, "add"))
    fpr = np.concatenate([[0.0], np.geomspace(1e-9, 1, 200)])
    assert np.all(envelope.tpr(fpr) >= t.tpr(fpr, side="lower"))
    assert np.all(envelope.tpr(fpr) <= t.tpr(fpr) + 0.02)
    eps = np.linspace(-7, 7, 301)
    assert np.all(envelope.delta(eps) >= t.delta(eps, side="lower"))
    assert envelope.advantage() == pytest.approx(t.advantage(), abs=1e-12)
    np.testing.assert_array_equal(envelope.tpr(fpr, side="lower"), fpr)


@pytest.mark.parametrize("mechanism", [dn.GaussianDP(0.01), dn.GaussianDP(1.0), dn.GaussianDP(20.0), dn.PureDP(3.0)])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.3])
def test_epsilon_is_the_smallest_number_that_keeps_delta_and_is_found_in_few_looks(mechanism, delta, monkeypatch):
    t, looks = dn.tradeoff(mechanism), []
    look = dn.Tradeoff.deltas
    monkeypatch.setattr(dn.Tradeoff, "deltas", lambda *a: looks.append(a) or look(*a))
    epsilon = t.epsilon(delta)
    assert len(looks) < 65  # bisection from ±5000 down to neighbouring numbers needs 70 and more
    assert t.delta(epsilon) <= delta
    assert epsilon == 0 or delta < t.delta(np.nextafter(epsilon, -np.inf))


class _Unwell(Tradeoff):
    """A subclass whose engine returns ``value`` everywhere, or raises it."""

    def __init__(self, value, largest=math.nan):
        super().__init__()
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "largest", largest)

    def _hockey_stick(self, log_gamma, direction, side):
        if isinstance(self.value, Exception):
            raise self.value
        return np.full_like(log_gamma, self.value)

    def _roc(self, fpr, direction, side):
        return self._hockey_stick(fpr, direction, side)

    def _log_ratio(self, direction, side):
        return self.largest

    def epsilon_near(self, delta, direction):
        if isinstance(self.value, Exception):
            raise self.value
        return np.full_like(delta, self.value), np.full_like(delta, self.value)


FAILURES = [
    MemoryError(),
    OverflowError(),
    FloatingPointError(),
    IndexError("index -1 is out of bounds"),
    ValueError("cannot convert float NaN to integer"),
]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, *FAILURES])
def test_whatever_an_engine_does_the_bound_is_trivial_and_not_wrong(value):
    for t in (_Unwell(value), _Unwell(value).inverse()):
        assert np.array_equal(t.hockey_stick([0.0, 0.5, 1.0, 7.0]), [1.0, 1.0, 1.0, 1.0])
        np.testing.assert_allclose(t.hockey_stick([0.0, 0.5, 1.0, 7.0], side="lower"), [1.0, 0.5, 0.0, 0.0], rtol=1e-14)
        assert np.array_equal(t.tpr([0.0, 0.2, 1.0]), [1.0, 1.0, 1.0])
        assert np.array_equal(t.tpr([0.0, 0.2, 1.0], side="lower"), [0.0, 0.2, 1.0])
        assert (t.advantage(), t.advantage(side="lower")) == (1.0, 0.0)
        assert t.advantage(0.1) == pytest.approx(0.2, rel=1e-14)
        assert (t.accuracy(0.1), t.accuracy(0.1, side="lower")) == (1.0, pytest.approx(0.9, rel=2e-16))
        assert t.precision(0.1, 0.3) == pytest.approx(0.3 / (0.3 + 0.7 * 0.1), rel=1e-14)  # TPR 1
        assert t.precision(0.1, 0.3, side="lower") >= 0.3
        assert (t.precision(0.0), t.precision(0.0, side="lower")) == (1.0, 0.5)
        assert (t.delta(1.0), t.delta(1.0, side="lower")) == (1.0, 0.0)
        assert t.epsilon([0.0, 1e-5, 0.5]).tolist() == [math.inf] * 3
        assert t.epsilon([0.0, 1e-5, 0.5], side="lower").tolist() == [0.0] * 3
        assert t.epsilon(1.0) == 0.0


@pytest.mark.parametrize("value", [0.3, -5.0, 2.0])
def test_bounds_stay_between_the_trivial_ones(value):
    t = _Unwell(value, largest=-1.0)
    for side in ("upper", "lower"):
        assert np.all(t.hockey_stick(np.linspace(0, 3, 50), side=side) <= 1)
        assert np.all(t.hockey_stick(np.linspace(0, 1, 50), side=side) >= (1 - np.linspace(0, 1, 50)) * (1 - 1e-13))
        assert np.all(t.tpr(np.linspace(0, 1, 50), side) >= np.linspace(0, 1, 50))
        assert np.all(t.tpr(np.linspace(0, 1, 50), side) <= 1)
        assert t.epsilon(0.0, side=side) == 0.0


def test_what_the_caller_did_wrong_is_still_said():
    class Refusing(_Unwell):
        def _hockey_stick(self, log_gamma, direction, side):
            raise dn.InputError("no")

    with pytest.raises(dn.InputError, match="no"):
        Refusing(0.0).advantage()


def test_certificates_known_from_above_only_say_nothing_from_below():
    grid = np.linspace(-1, 1, 5)
    envelope = EnvelopeTradeoff(grid, np.zeros(5), np.full(5, 0.1))
    assert (envelope.epsilon(0.0), envelope.epsilon(0.0, side="lower")) == (math.inf, 0.0)
    assert (envelope.epsilon(0.0, "remove"), envelope.epsilon(0.0, "remove", side="lower")) == (0.0, 0.0)  # H_1 is 0
    assert envelope.precision(0.0, 0.2, side="lower") == 0.2


@given(st.floats(1e-9, 1 - 1e-9), MUS)
def test_advantage_at_a_prior_is_bracketed(prior, mu):
    t = dn.tradeoff(dn.GaussianDP(mu))
    with mpmath.workdps(60):
        rare = min(mpmath.mpf(prior), 1 - mpmath.mpf(prior))
        truth = 2 * rare * oracle_hockey_stick(dn.GaussianDP(mu), (1 - rare) / rare)
    assert t.advantage(prior, side="lower") <= truth <= t.advantage(prior) or truth < 1e-300


@pytest.mark.parametrize(
    ("mechanism", "with_epsilon"),
    [
        (dn.GaussianDP(3000) + dn.SubsampledGaussian(0.5, 0.01, 10), True),
        (dn.SubsampledGaussian(0.05, 1e-10, 3_000_000_000), True),
        (dn.SubsampledGaussian(1.0, 1e-6, 10**12), True),
        (dn.SubsampledGaussian(2.0, 1e-8, 10**14), False),  # a search takes half a minute
    ],
)
def test_no_mechanism_gets_nan(mechanism, with_epsilon):
    t = dn.tradeoff(mechanism)
    for side in ("upper", "lower"):
        assert 0 <= t.advantage(side=side) <= 1
        assert 0 <= t.tpr(1e-3, side) <= 1
        assert 0 <= t.precision(1e-6, 0.01, side) <= 1
    assert t.advantage(side="lower") <= t.advantage()
    assert t.tpr(1e-3, "lower") <= t.tpr(1e-3)
    if with_epsilon:
        assert t.epsilon(1e-5, side="lower") <= t.epsilon(1e-5)  # fails for NaN


def test_denormal_false_positive_rates_are_bounded_too():
    t = dn.tradeoff(dn.GaussianDP(math.sqrt(5098) / 795.9))
    assert t.tpr(3.31345e-319) >= 3.4773e-319  # the truth in 50 digits
    assert t.tpr(3.31345e-319, side="lower") <= 3.4773e-319


def test_composed_curves_say_that_parameters_were_fixed_beforehand():
    composed = [
        dn.SubsampledGaussian(1.0, 0.1, 10),
        dn.SubsampledGaussian(0.05, 0.1, 10),
        dn.PureDP(1.0) + dn.PureDP(1.0),
        dn.GaussianDP(1.0) + dn.ApproximateDP(1.0, 1e-5),
    ]
    for mechanism in composed:
        assert any("fixed beforehand" in note for note in dn.tradeoff(mechanism).assumptions.notes)
    for mechanism in (dn.PureDP(1.0), dn.GaussianDP(1.0), dn.SubsampledGaussian(1.0, 0.1, 1)):
        assert not dn.tradeoff(mechanism).assumptions.notes


def test_engines_that_fail_are_shown_to_those_who_ask():
    class Failing(Tradeoff):
        def _hockey_stick(self, log_gamma, direction, side):
            raise ZeroDivisionError

        def _roc(self, fpr, direction, side):
            raise MemoryError

    t = Failing()
    assert t.delta(0.5) == 1
    with faults_shown():
        assert t.tpr(0.1) == 1  # what does not fit is no fault
        with pytest.raises(ZeroDivisionError):
            t.delta(0.5)
    assert t.delta(0.5, side="lower") == t.epsilon(0.0, side="lower") == 0


_PRIORS = (0.5, 0.3, 0.1, 1e-3, 1e-17, 0.123456, 0.7, 1 - 1e-12)


@pytest.mark.parametrize("mu", [1e-17, 1e-8, 0.3])
def test_accuracy_and_precision_are_rounded_outwards_near_certainty(mu):
    """1 − π and the sum with what is gained were rounded to nearest, and so was a precision close to 1."""
    t = GaussianTradeoff(mu)
    with mpmath.workdps(60):
        for prior in _PRIORS:
            pi = mpmath.mpf(prior)
            log_gamma = mpmath.log((1 - pi) / pi)
            shift = log_gamma / mu
            hockey_stick = mpmath.ncdf(mu / mpmath.mpf(2) - shift) - mpmath.exp(log_gamma) * mpmath.ncdf(
                -mu / mpmath.mpf(2) - shift
            )
            truth, dust = (1 - pi) + pi * hockey_stick, mpmath.mpf(10) ** -40
            assert t.accuracy(prior, "lower") <= truth + dust
            assert truth - dust <= t.accuracy(prior)
            for fpr in (1e-5, 0.5):
                rate = mpmath.ncdf(
                    mpmath.findroot(lambda x, fpr=fpr: mpmath.ncdf(x) - fpr, -4 if fpr < 0.1 else 0) + mu
                )
                precision = 1 / (1 + (1 - pi) / pi * fpr / rate)
                assert t.precision(fpr, prior, "lower") <= precision <= t.precision(fpr, prior)


@pytest.mark.parametrize("epsilon", [-1e-17, -0.8e-16, -1e-16, -0.3])
def test_bounds_known_at_points_hold_where_gamma_rounds_to_a_point(epsilon):
    """γ = 1 − 8e-17 rounds to 1 − 1.1e-16 or to 1, and so did 1 − γ, and what is known at 1 does not hold below."""
    values = np.array([1e-17, 1e-18])
    t = EnvelopeTradeoff(np.array([0.0, 1.0]), values, values)
    with mpmath.workdps(60):
        trivial = -mpmath.expm1(mpmath.mpf(epsilon))
        assert t.delta(epsilon, "remove", "lower") <= trivial
        assert t.delta(epsilon, "remove") >= trivial + mpmath.exp(mpmath.mpf(epsilon)) * mpmath.mpf(1e-17)


def test_gaussian_hockey_sticks_next_to_gamma_1_are_rounded_outwards():
    rng = np.random.default_rng(1)
    for mu, lg in zip(10 ** rng.uniform(-6, 1, 150), 10 ** rng.uniform(-18, -3, 150), strict=True):
        for log_gamma in (float(lg), -float(lg)):
            high, low = (
                float(gaussian_hockey_stick(np.array(mu), np.array(log_gamma), side)) for side in ("upper", "lower")
            )
            with mpmath.workdps(60):
                m, threshold = mpmath.mpf(float(mu)), mpmath.mpf(log_gamma)
                apart = threshold / m
                truth = mpmath.ncdf(m / 2 - apart) - mpmath.exp(threshold) * mpmath.ncdf(-m / 2 - apart)
                assert low <= truth
                assert truth <= high or truth < 1e-300


@pytest.mark.parametrize(("mu", "count"), [(0.1, 1000), (0.013, 30_000)])
def test_rounding_does_not_grow_with_the_number_of_gaussian_parts(mu, count):
    curve = dn.tradeoff(dn.Composition([dn.GaussianDP(mu)] * count))
    with mpmath.workdps(40):
        total = mpmath.mpf(mu) * mpmath.sqrt(count)
        advantage = mpmath.erf(total / mpmath.sqrt(8))
        assert curve.advantage(side="lower") <= advantage <= curve.advantage()
        for side, sign in (("upper", 1), ("lower", -1)):
            epsilon = mpmath.mpf(curve.epsilon(1e-5, side=side))
            hit, false = total / 2 - epsilon / total, -total / 2 - epsilon / total
            assert sign * (mpmath.ncdf(hit) - mpmath.exp(epsilon) * mpmath.ncdf(false) - mpmath.mpf(1e-5)) <= 0
    assert curve.advantage() - curve.advantage(side="lower") < 1e-14


def test_what_underflows_is_not_nothing():
    least, below = float(np.finfo(np.float64).tiny), dn.tradeoff(dn.GaussianDP(1e-300))
    assert below.delta(0.0, side="lower") == 0
    assert below.delta(0.0) > 3.9e-301  # the square of 1e-300 is no double
    assert below.tpr(0.1) > 0.1
    far, none, pure = (dn.tradeoff(m) for m in (dn.GaussianDP(1e-3), dn.GaussianDP(0.0), dn.PureDP(1.0)))
    assert (far.delta(0.1, side="lower"), far.delta(0.1)) == (0.0, least)  # it is 1.4e-2179
    assert far.epsilon(1e-310) == math.inf
    assert far.epsilon(1e-300) < 0.1
    assert dn.tradeoff(dn.ApproximateDP(1e-300, 0.9)).delta(9e-301) > 0.9
    assert pure.delta(1.0) == pure.delta(2.0) == none.delta(0.0) == 0
    assert none.delta(-1e-310, side="lower") < 1e-310 < none.delta(-1e-310)


def test_failures_of_several_parts_are_bounded_on_both_sides():
    curve = dn.tradeoff(dn.Composition([dn.ApproximateDP(1.0, 0.1), dn.ApproximateDP(0.0, 0.1)]))
    nearly = dn.tradeoff(dn.Composition([dn.ApproximateDP(1.0, 1 - 1e-9)] * 2))
    certain = dn.tradeoff(dn.Composition([dn.ApproximateDP(1.0, 1.0)] * 2))
    with mpmath.workdps(40):
        for bracket, delta in ((curve, 0.1), (nearly, 1 - 1e-9)):
            failure = 1 - (1 - mpmath.mpf(delta)) ** 2
            assert bracket.delta(2.0, side="lower") <= failure <= bracket.delta(2.0)
    assert certain.delta(2.0, side="lower") == 1


def test_one_minus_gamma_is_no_lower_bound_where_it_was_rounded_up():
    """The grid's hockey stick at γ = 1e-12 was the double nearest to 1 − γ, 2e-17 above the truth."""
    log_gamma = np.log(np.concatenate([10.0 ** -np.arange(1, 17), 1 - 10.0 ** -np.arange(1, 16), [0.3, 0.7]]))
    with np.errstate(divide="ignore"):
        found = sane_hockey_sticks(lambda at: -np.expm1(at), lambda: math.inf, log_gamma, "lower")
    for at, value in zip(log_gamma, found, strict=True):
        assert value <= -mpmath.expm1(mpmath.mpf(float(at))) <= value * (1 + 2e-15)
