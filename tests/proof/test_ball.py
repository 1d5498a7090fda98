"""Ball arithmetic against closed forms, 50-digit sums, enumeration: every digit must agree."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from scipy.special import ndtri

import deniable as dn
from deniable import InputError
from oracles import composed_losses as oracle

pytest.importorskip("flint", reason="python-flint is in the extra 'proof'")
from flint import arb, ctx

from deniable.proof.hockey_sticks import InvertedHockeySticks
from deniable.proof.transform import BallStep

S = dn.SubsampledGaussian


def ball(mechanism):
    return dn.proof.enclosure(mechanism)


def encloses(low, truth, high, width=1e-13):
    """The bracket holds the truth, and is narrow enough to say something."""
    assert mp.mpf(float(low)) <= truth <= mp.mpf(float(high))
    assert high - low <= width * max(abs(float(truth)), 1e-294)  # what underflows is the least normal number


@pytest.mark.parametrize("mu", [0.01, 0.5, 6.0])
def test_gaussian_closed_form(mu):
    t = ball(dn.GaussianDP(mu))
    with mp.workdps(40):
        m = mp.mpf(mu)
        encloses(t.advantage(side="lower"), 2 * mp.ncdf(m / 2) - 1, t.advantage())
        for eps in (-1.0, 0.3, 2.0):
            truth = mp.ncdf(m / 2 - eps / m) - mp.exp(eps) * mp.ncdf(-m / 2 - eps / m)
            encloses(t.delta(eps, "remove", "lower"), truth, t.delta(eps, "remove"))
        for alpha in (0.5, 1e-3, 1e-12):
            place = mp.findroot(lambda x, a=alpha: mp.log(mp.ncdf(-x)) - mp.log(mp.mpf(a)), float(-ndtri(alpha)))
            encloses(t.tpr(alpha, "lower"), mp.ncdf(m - place), t.tpr(alpha))


@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 0.01), (0.3, 0.5), (20.0, 1e-4)])
def test_one_step_closed_form(sigma, rate):
    t = ball(S(sigma, rate, 1))
    for eps in (-0.5, 0.0, 1e-5, 0.7):
        truth = oracle.one_step(sigma, rate, eps).hockey_stick
        found = t.delta(eps, "remove", "lower"), t.delta(eps, "remove")
        assert mp.mpf(found[0]) <= truth * (1 + mp.mpf(10) ** -40) + mp.mpf(10) ** -45
        assert truth <= mp.mpf(found[1]) * (1 + mp.mpf(10) ** -40)
        assert found[1] - found[0] <= 2e-15 * found[1] + 1e-40


def test_the_inversion_gives_the_closed_forms():
    # the general engine, forced on laws that have a closed form
    with ctx.workprec(220):
        gaussian = InvertedHockeySticks((), arb(0.7) ** 2, ())
        for x in (-2.0, 0.0, 1.5):
            low, high = gaussian.hockey_sticks(arb(x), "remove")
            one = ball(dn.GaussianDP(0.7))
            assert one.delta(x, "remove", "lower") <= float(high)
            assert float(low) <= one.delta(x, "remove")
            assert float(high - low) < 1e-30


@pytest.mark.parametrize(
    ("phases", "threshold"),
    [(((1.0, 0.1, 40),), 0.3), (((0.8, 0.02, 300), (2.0, 0.3, 20)), -0.4), (((1.5, 0.05, 100),), 2.0)],
)
def test_fifty_digit_sums(phases, threshold):
    truth = oracle.inversion(phases, threshold, digits=22).hockey_stick
    t = ball(dn.Composition([S(*phase) for phase in phases]))
    low, high = t.delta(threshold, "remove", "lower"), t.delta(threshold, "remove")
    assert abs(float(truth) - low) <= 1e-15
    assert high - low <= 1e-15


def test_composed_pure_dp_is_enumerated():
    epsilons = (0.7, 0.7, 0.2)
    t = ball(dn.Composition([dn.PureDP(e) for e in epsilons]))
    with mp.workdps(40):
        law = []
        for signs in itertools.product((1, -1), repeat=3):
            loss = mp.fsum(s * mp.mpf(e) for s, e in zip(signs, epsilons, strict=True))
            inside = mp.fprod(1 / (1 + mp.exp(-s * mp.mpf(e))) for s, e in zip(signs, epsilons, strict=True))
            law.append((loss, inside, inside * mp.exp(-loss)))
        for eps in (-0.6, 0.0, 0.9):
            truth = mp.fsum(max(p - mp.exp(eps) * q, 0) for _, p, q in law)
            encloses(t.delta(eps, "remove", "lower"), truth, t.delta(eps, "remove"))
        for alpha in (0.0, 1e-6, 0.2, 0.9):
            left, truth = mp.mpf(alpha), mp.mpf(0)
            for _, p, q in sorted(law, key=lambda row: -row[0]):
                share = min(left / q, 1)
                truth, left = truth + share * p, left - share * q
            if alpha > 0:
                encloses(t.tpr(alpha, "lower"), truth, t.tpr(alpha))
    assert t.tpr(0.0) == 0
    assert t.epsilon(0.0) == pytest.approx(1.6)
    assert t.epsilon(0.0) >= 1.6 - 1e-16


def test_failures_and_mixtures_with_randomised_response():
    plain, failing = ball(dn.GaussianDP(0.4) + dn.PureDP(0.3)), ball(dn.GaussianDP(0.4) + dn.ApproximateDP(0.3, 1e-3))
    assert failing.advantage() == pytest.approx(1e-3 + (1 - 1e-3) * plain.advantage(), rel=1e-14)
    assert failing.tpr(0.0) == pytest.approx(1e-3)
    # conditioning on the answer: H of the mixture from the Gaussian's closed form
    with mp.workdps(40):
        mu, eps = mp.mpf(0.4), mp.mpf(0.3)

        def hockey_stick(x):
            return mp.ncdf(mu / 2 - x / mu) - mp.exp(x) * mp.ncdf(-mu / 2 - x / mu)

        right = 1 / (1 + mp.exp(-eps))
        truth = right * hockey_stick(mp.mpf(0.2) - eps) + (1 - right) * hockey_stick(mp.mpf(0.2) + eps)
        encloses(plain.delta(0.2, "remove", "lower"), truth, plain.delta(0.2, "remove"))


def test_epsilon_is_enclosed():
    t = ball(S(1.0, 0.01, 5000))
    for way, known in (("remove", 4.201839), ("add", 3.697774)):
        low, high = t.epsilon(1e-5, way, "lower"), t.epsilon(1e-5, way)
        assert low <= high <= low + 1e-9
        assert high == pytest.approx(known, abs=2e-6)
        assert t.delta(high, way) <= 1e-5 < t.delta(low, way)
    assert t.epsilon(0.99) == t.epsilon(1.0) == 0.0
    failing = ball(dn.ApproximateDP(0.1, 0.01))
    assert failing.epsilon(1e-3, side="lower") == failing.epsilon(1e-3) == math.inf


def test_transform_of_one_step_in_thirty_digits():
    sigma, rate = 0.6, 0.03
    with ctx.workprec(220), mp.workdps(35):
        found = BallStep(sigma, rate).transform(arb(0.75), 30, 110.0)
        for k in (0, 1, 13, 29):
            s, q, w = mp.mpf(sigma), mp.mpf(rate), mp.mpc(0.5, 0.75 * k)

            def f(u, s=s, q=q, w=w):
                return mp.npdf(u) * mp.power(1 - q + q * mp.exp(u / s - 1 / (2 * s**2)), w)

            truth = mp.quad(f, [-16, -8, -4, -2, 0, 1, 2, 3, 4, 6, 8, 12, 20])
            assert abs(truth.real - mp.mpf(found[k].real.mid().str(45, radius=False))) < mp.mpf(10) ** -25
            assert abs(truth.imag - mp.mpf(found[k].imag.mid().str(45, radius=False))) < mp.mpf(10) ** -25
            assert found[k].real.rad() < 1e-35


@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 0.01), (0.4, 0.3), (30.0, 1e-3)])
def test_moments_and_decay_are_bounds(sigma, rate):
    step = BallStep(sigma, rate)
    u = np.linspace(-40, 60, 2_000_001)
    loss = np.log1p(rate * np.expm1(u / sigma - 0.5 / sigma**2))
    with ctx.workprec(128):
        for c in (-30.0, -1.0, 1.0, 2.0, 5.0):
            size = c * loss - u**2 / 2
            truth = math.log(np.exp(size - size.max()).sum() * (u[1] - u[0]) / math.sqrt(2 * math.pi)) + size.max()
            assert truth - 1e-9 <= float(step.log_moment(c)) <= truth + 1e-8 * (1 + abs(truth))
        for t in (0.5, 20.0, 300.0):
            bound = step.decay(step.decay_guess(t)[0], arb(t))
            for later in (t, 1.1 * t, 3 * t):
                weight = np.exp(0.5 * loss - u**2 / 2)
                truth = abs(np.sum(weight * np.exp(1j * later * loss))) * (u[1] - u[0]) / math.sqrt(2 * math.pi)
                assert truth <= float(bound) + 1e-9


def test_what_is_refused_says_why():
    with pytest.raises(InputError, match="does not decay"):
        ball(S(0.3, 1e-6, 20)).advantage()
    with pytest.raises(InputError, match="131072 outcomes"):
        ball(dn.Composition([dn.PureDP(0.1 + 0.01 * k) for k in range(20)]))


def test_epsilon_has_an_end_where_delta_is_less_than_transforms_enclose():
    """Two steps with little noise: their transform decays slowly, and Chernoff's bound is all that is known far out."""
    t, known = ball(S(0.5, 0.01, 2)), dn.tradeoff(S(0.5, 0.01, 2))
    low, high = (t.epsilon(1e-9, side=side) for side in ("lower", "upper"))
    assert low <= known.epsilon(1e-9, side="lower") <= known.epsilon(1e-9) <= high < 12
