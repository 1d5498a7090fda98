"""The rounded Gaussian: its law against mpmath, its exact path, its bits, and what it refuses."""

import os
import threading
from fractions import Fraction
from math import ceil, floor, inf

import mpmath
import numpy as np
import pytest
from scipy import stats

from deniable.noise import rounding as module
from deniable.noise.rounding import rounded_gaussian
from deniable.testing import insecure_noise


def oracle(scale, low, high):
    """P(low ≤ round(scale·Z) ≤ high) to 30 digits."""
    with mpmath.workdps(40):
        cut = [mpmath.ninf if e == -inf else mpmath.inf if e == inf else mpmath.mpf(e) for e in (low, high)]
        below, above = (cut[0] - 0.5) / mpmath.mpf(scale), (cut[1] + 0.5) / mpmath.mpf(scale)
        if below > 0:
            below, above = -above, -below
        return mpmath.ncdf(above) - mpmath.ncdf(below)


def cells(scale, parts=60):
    """Ranges of whole numbers with comparable probabilities that cover everything."""
    quantiles = stats.norm.ppf(np.linspace(0, 1, parts + 1)[1:-1]) * scale
    ends = np.unique(np.floor(quantiles).astype(np.int64))
    lows = [-inf, *(int(e) + 1 for e in ends)]
    highs = [*(int(e) for e in ends), inf]
    return lows, highs


def p_value(draws, scale):
    lows, highs = cells(scale)
    expected = np.array([float(oracle(scale, a, b)) for a, b in zip(lows, highs, strict=True)]) * draws.size
    assert expected.sum() == pytest.approx(draws.size, rel=1e-12)
    edges = np.array([-(2**62), *lows[1:], 2**62], dtype=np.int64)
    observed = np.histogram(draws, edges)[0]
    keep = expected > 5
    if not keep.all():  # merge rare cells into one
        expected = np.append(expected[keep], max(expected[~keep].sum(), 1e-300))
        observed = np.append(observed[keep], observed[~keep].sum())
    return stats.chisquare(observed, expected).pvalue


@pytest.mark.parametrize("scale", [0.4, 1.0, 2.75, 31.3, 12345.678, 2.0**20 + 1 / 3, 3.3 * 2.0**35, 2.0**40])
def test_the_law_is_the_rounded_gaussian(scale):
    with insecure_noise(np.random.default_rng(5)):
        draws = rounded_gaussian(scale, 400_000)
    assert p_value(draws, scale) > 1e-4
    assert p_value(draws, scale * 1.01) < 1e-6  # the test would see one percent
    assert p_value(np.where(draws > 0, draws - 1, draws), scale) < 1e-6 or scale > 1000  # and a shift by one


def test_low_bits_and_signs_are_even():
    with insecure_noise(np.random.default_rng(1)):
        draws = rounded_gaussian(2.0**30 / 3, 500_000)
    for bit in (0, 1, 7, 15, 20):
        ones = ((draws >> bit) & 1).sum()
        assert stats.binomtest(int(ones), draws.size).pvalue > 1e-5
    assert stats.binomtest(int((draws > 0).sum()), int((draws != 0).sum())).pvalue > 1e-5
    residues = np.bincount(draws % 61, minlength=61)
    assert stats.chisquare(residues).pvalue > 1e-5


def test_tails_have_the_right_mass():
    with insecure_noise(np.random.default_rng(11)):
        draws = np.abs(rounded_gaussian(1000.0, 4_000_000))
    for z in (3.0, 4.0, 4.75):
        chance = 2 * float(oracle(1000.0, 1000 * z, inf))
        assert stats.binomtest(int((draws >= 1000 * z).sum()), draws.size, chance).pvalue > 1e-4
        assert stats.binomtest(int((draws >= 1000 * z * 0.9).sum()), draws.size, chance).pvalue < 1e-4


@pytest.mark.parametrize(("bits", "columns", "count"), [(6, 64, 10_000), (4, 8, 5_000)])
def test_the_endless_tail(bits, columns, count):
    """A table that ends within the bulk leaves up to 70 % of the mass to the tail; the law must not change."""
    table = module._table(bits, columns)
    draws = module._fill(table, np.array([40.0]), count, np.random.default_rng(3).bytes)
    assert p_value(draws, 40.0) > 1e-4
    assert (np.abs(draws) > 40.0 * 2.2).sum() > 100  # several steps into the tail


@pytest.mark.parametrize(("bits", "columns"), [(6, 512), (6, 64), (4, 8)])
def test_the_table_is_exact(bits, columns):
    """Alias columns reproduce the whole weights, steps are above the density, sure acceptances are sure."""
    table = module._table(bits, columns)
    capacity = 2**63 // columns
    mass = [0] * columns
    for i in range(columns):
        mass[i] += int(table.threshold[i])
        mass[table.alias[i]] += capacity - int(table.threshold[i])
    assert tuple(mass) == table.weights
    assert sum(table.weights) == 2**63
    assert min(table.weights) >= 0
    assert 4 * table.cells >= 2**bits  # from there on the density falls by half a step at least
    with mpmath.workdps(50):
        width = mpmath.mpf(2) ** -bits
        for j in range(table.cells):
            top, bottom = (table.unit * mpmath.exp(-((k * width) ** 2) / 2) for k in (j, j + 1))
            assert top <= table.weights[j] < top + 2
            sure = mpmath.mpf(int(table.sure[j])) / 2**64
            assert bottom / table.weights[j] - mpmath.mpf(2) ** -60 < sure <= bottom / table.weights[j]
            assert abs(table.largest_ratio[j] * table.weights[j] / top - 1) < 1e-15
            assert j >= 8 * columns or (2 * j + 1) * width**2 / 2 <= 0.125  # where the polynomial is proven
        for m in range(40):
            step = mpmath.mpf(table.weights[-2]) / 2 ** (m + 1 + bits)
            assert table.unit * mpmath.exp(-((table.cells * width + m) ** 2) / 2) <= step


def test_the_polynomial_stays_within_its_stated_error():
    x = np.linspace(0, 0.125, 20_001)
    with mpmath.workdps(40):
        worst = max(abs(mpmath.exp(-mpmath.mpf(a)) - mpmath.mpf(b)) for a, b in zip(x, module._ratio(x), strict=True))
    assert worst < 2.0**-48


def test_the_exact_path_agrees_with_the_fast_one():
    """With margins of 0.2 about every decision is made in rational arithmetic, from the same bits."""
    table = module._table()
    for scale in (1.0, 777.25, 3.0 * 2**33):
        fast, slow = (
            module._fill(table, np.array([scale]), 4_000, np.random.default_rng(8).bytes, extra) for extra in (0.0, 0.2)
        )
        assert np.array_equal(fast, slow)


def constant(byte):
    return lambda count: bytes([byte]) * count


def test_more_bits_decide_a_border_between_two_whole_numbers():
    table, scale, cell = module._table(), 3.0 * 2**38, 5
    step = Fraction(scale) / 64
    k = 1001  # (k + 1/2)/step is no dyadic fraction: no word ends on the border
    u = floor((k + Fraction(1, 2)) / step * 2**64)  # the border lies within the interval of this word
    base = cell * step
    assert base == int(base)
    assert module._settle(table, cell, u, 0, scale, constant(0x00)) == base + k
    assert module._settle(table, cell, u, 0, scale, constant(0xFF)) == base + k + 1


def test_more_bits_decide_a_border_of_acceptance():
    table, cell = module._table(), 64
    with mpmath.workdps(60):
        ratio = table.unit * mpmath.exp(-((mpmath.mpf(cell) / 64) ** 2) / 2) / table.weights[cell]
        v = int(mpmath.floor(ratio * 2**64))
    assert module._settle(table, cell, 0, v - 1, 100.0, constant(0x77)) == 100
    assert module._settle(table, cell, 0, v, 100.0, constant(0x00)) == 100
    assert module._settle(table, cell, 0, v, 100.0, constant(0xFF)) is None
    assert module._settle(table, cell, 0, v + 1, 100.0, constant(0x77)) is None


def test_exponentials_are_bracketed():
    for y in (Fraction(0), Fraction(1, 3), Fraction(10**6, 7), Fraction(5000)):
        low, high = module._exponential(y, 30)
        with mpmath.workdps(80):
            true = mpmath.exp(-mpmath.mpf(y.numerator) / y.denominator)
            assert mpmath.mpf(low.numerator) / low.denominator <= true <= mpmath.mpf(high.numerator) / high.denominator
            assert (high - low) <= high * Fraction(3, 10**30)


def test_fair_coins_of_the_tail():
    assert module._failures(constant(0xFF)) == 0
    words = iter([b"\0" * 8, (8).to_bytes(8, "little")])
    assert module._failures(lambda count: next(words)) == 64 + 3


def test_bits_come_from_the_operating_system(monkeypatch):
    asked = []

    def counting(count):
        asked.append(count)
        return np.random.default_rng(len(asked)).bytes(count)

    monkeypatch.setattr(os, "urandom", counting)
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - the global state must not move
    rounded_gaussian(50.0, 10_000)
    assert asked[0] == 24 * 10_000
    assert 24 * 10_000 < sum(asked) < 24 * 10_300  # about one percent is rejected and drawn again
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_testing_rng_repeats_and_os_entropy_does_not():
    with insecure_noise(np.random.default_rng(4)):
        one = rounded_gaussian(1e6, 1000)
    with insecure_noise(np.random.default_rng(4)):
        two = rounded_gaussian(1e6, 1000)
    assert np.array_equal(one, two)
    assert not np.array_equal(rounded_gaussian(1e6, 1000), rounded_gaussian(1e6, 1000))


def test_threads_draw_different_noise():
    drawn = []
    threads = [threading.Thread(target=lambda: drawn.append(rounded_gaussian(1e9, 50_000))) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(np.unique(np.concatenate(drawn))) > 199_900  # 200,000 values among about 4e9: some 8 repeat


def test_one_scale_a_coordinate():
    scales = np.array([1.0, 100.0, 1e4, 1e8])
    with insecure_noise(np.random.default_rng(0)):
        draws = rounded_gaussian(scales, (100_000, 4))
    assert draws.shape == (100_000, 4)
    assert draws.dtype == np.int64
    for j, scale in enumerate(scales):
        assert p_value(draws[:, j], scale) > 1e-4
    assert np.abs(np.corrcoef(draws.T.astype(float)) - np.eye(4)).max() < 0.02


def test_ceil_of_the_upper_end_is_what_the_exact_path_needs():
    """The interval of continuations is half open: an upper end that is a whole number belongs to the number below."""
    table = module._table()
    # scale 64, cell 0: x = u; the word of u just below 1/2 gives x + 1/2 in [1 − 2⁻⁶⁴, 1)
    assert module._settle(table, 0, 2**63 - 1, 0, 64.0, constant(0xFF)) == 0
    assert module._settle(table, 0, 2**63, 0, 64.0, constant(0x00)) == 1
    assert ceil(Fraction(1)) - 1 == 0
