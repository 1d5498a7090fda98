"""Powers of sums of complex numbers against exact fractions, and laws of sums against moments that are known."""

import math
from fractions import Fraction

import numpy as np
import pytest

from deniable.accounting.steps import allocation
from deniable.accounting.steps.allocation import Allocation, _stages
from deniable.accounting.steps.binomial import LONG_EPS
from deniable.accounting.steps.sums import _Power


def exact(z):
    """A complex number of long doubles as a pair of fractions."""
    parts = []
    for x in (z.real, z.imag):
        high = float(x)
        parts.append(Fraction(high) + Fraction(float(x - np.longdouble(high))))
    return tuple(parts)


def times(a, b):
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def powered(z, count):
    found = (Fraction(1), Fraction(0))
    for _ in range(count):
        found = times(found, z)
    return found


@pytest.mark.parametrize(("count", "rest"), [(1, 0), (7, 0), (12, 5), (30, 1)])
@pytest.mark.parametrize("size", [1.0, 1e-3, 1e-18])
def test_differences_of_powers_are_as_wrong_as_stated(count, rest, size):
    rng = np.random.default_rng(count)
    numbers = (rng.uniform(-0.6, 0.6, (4, 8)) + 1j * rng.uniform(-0.6, 0.6, (4, 8))).astype(np.clongdouble)
    fewer, own, other_fewer, other_own = numbers * np.array([1, size, 1, size])[:, None]
    found = _Power.of(own, fewer).to(count)
    found = found.times(_Power.of(other_own, other_fewer).to(rest)) if rest else found
    for k in range(8):
        f, g, f2, g2 = (exact(z[k]) for z in (fewer, own, other_fewer, other_own))
        whole = times(powered((f[0] + g[0], f[1] + g[1]), count), powered((f2[0] + g2[0], f2[1] + g2[1]), rest))
        base = times(powered(f, count), powered(f2, rest))
        truth, ours = (whole[0] - base[0], whole[1] - base[1]), exact(found.difference[k])
        wrong = math.hypot(*(float(x - y) for x, y in zip(truth, ours, strict=True)))
        assert wrong <= 4 * (count + rest) * float(LONG_EPS) * found.bound[k]
    assert np.all(found.bound <= (1 + 1e-12) * (count + rest) * size * 2 ** (count + rest))


def test_powers_of_nothing_but_own_terms():
    own = np.array([0.5 + 0.25j, -0.9 + 0.1j]).astype(np.clongdouble)
    found = _Power.of(own, None).to(9)
    assert found.base is None
    np.testing.assert_allclose(found.difference.astype(complex), own.astype(complex) ** 9, rtol=1e-13)


@pytest.mark.parametrize("batches", [1, 2, 23, 24, 100, 997, 12_345, 100_000])
def test_stages_add_up_to_all_batches(batches):
    (size, rest), *stages = _stages(batches)
    assert rest == 0
    for count, rest in stages:
        size = size * count + rest
        assert 0 <= rest < count < 24
    assert size == batches


@pytest.mark.parametrize(("sigma", "batches"), [(0.5, 150), (1.0, 2000)])
def test_second_and_third_moments_lie_between_those_of_either_law(sigma, batches, monkeypatch):
    """E Y² = e^{1/σ²} and E Y³ = e^{3/σ²}: those of sums follow, and convex functions keep the order."""
    monkeypatch.setattr(allocation, "_POINTS", 1 << 13)
    step = Allocation(sigma, batches)
    second, third = math.expm1(1 / sigma**2), math.exp(3 / sigma**2) - 3 * math.exp(1 / sigma**2) + 2
    truth = batches * second, batches * third + 3 * batches**2 * second + batches**3
    found = []
    for law in (step.below, step.above):
        atoms = law.up_to(len(law.classes))
        found.append((float(atoms.mass @ (atoms.point - batches) ** 2), float(atoms.mass @ atoms.point**3)))
    for low, middle, high in zip(found[0], truth, found[1], strict=True):
        assert low < middle < high
        assert high - low < 5e-3 * middle
