"""One step in closed form against quadrature-free 50-digit arithmetic."""

import math

import mpmath as mp
import pytest

import deniable as dn


def test_roc_is_the_threshold_attack():
    trade = dn.tradeoff(dn.SubsampledGaussian(0.8, 0.1, 1))
    for u in (-1.0, 0.0, 2.5, 5.0):
        out = 0.5 * math.erfc(u / math.sqrt(2))
        inside = 0.9 * out + 0.1 * 0.5 * math.erfc((u - 1 / 0.8) / math.sqrt(2))
        assert trade.tpr(out) == pytest.approx(inside, rel=1e-12)


@pytest.mark.parametrize("noise", [0.02, 0.1, 1.0])
@pytest.mark.parametrize("rate", [0.5, 0.3, 1e-3, 1e-8])
def test_nothing_is_0_within_a_rounding_of_the_least_loss(noise, rate):
    """log 2 as a double lies below log 2, so that δ there is 2.3e-17 (σ = 0.02): it was stated as 0."""
    t = dn.tradeoff(dn.SubsampledGaussian(noise, rate, 1))
    end = -math.log1p(-rate)
    for epsilon in (end, math.nextafter(end, 0.0), math.nextafter(end, 9.0)):
        with mp.workdps(60):
            q, shift = mp.mpf(rate), 1 / mp.mpf(noise)
            factor = mp.exp(-mp.mpf(epsilon)) - (1 - q)  # γ − (1 − q) at γ = e^−ε
            if factor <= 0:
                truth = mp.mpf(0)
            else:
                u = shift / 2 + mp.log(factor / q) / shift  # the threshold in units of the noise
                truth = (factor * mp.ncdf(u) - q * mp.ncdf(u - shift)) * mp.exp(mp.mpf(epsilon))
            assert t.delta(epsilon, "add", "lower") <= truth <= t.delta(epsilon, "add")
    assert t.delta(end * (1 + 1e-14), "add") == 0


@pytest.mark.parametrize(("noise", "rate"), [(0.02, 0.9999), (0.02, 1e-9), (0.03, 0.1)])
def test_hockey_sticks_at_ratios_beyond_all_doubles(noise, rate):
    """At γ = e^1462 both sides were 9 % above the truth: the term γ·Q(S) was lost."""
    t = dn.tradeoff(dn.SubsampledGaussian(noise, rate, 1))
    for epsilon in (690.0, 710.0, 1462.2849):
        with mp.workdps(60):
            shift, level = 1 / mp.mpf(noise), mp.log(1 + mp.expm1(mp.mpf(epsilon)) / mp.mpf(rate))
            beyond = mp.ncdf(shift / 2 - level / shift) - mp.exp(level) * mp.ncdf(-shift / 2 - level / shift)
            truth = mp.mpf(rate) * beyond
        low, high = t.delta(epsilon, "remove", "lower"), t.delta(epsilon, "remove")
        assert low <= truth <= high <= low * (1 + 1e-9)


@pytest.mark.parametrize("rate", [1e-9, 0.1, 0.9999])
def test_accusations_of_absence_with_next_to_no_noise(rate):
    """A test that is hardly ever wrong under P: of rate α = (1 − q)·TPR, though its mass under P is no double."""
    t = dn.tradeoff(dn.SubsampledGaussian(0.02, rate, 1)).inverse()
    for fpr in (1e-9, 1e-3 * (1 - rate), 0.7 * (1 - rate)):
        assert t.tpr(fpr, "lower") <= fpr / (1 - rate) * (1 + 1e-15)
        assert t.tpr(fpr) == pytest.approx(fpr / (1 - rate), rel=1e-11)
        assert t.tpr(fpr, "lower") == pytest.approx(fpr / (1 - rate), rel=1e-11)
