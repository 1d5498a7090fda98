"""Classes, splits, merges and products: masses are kept, and what transforms round is charged."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from deniable.accounting.lattices import Law, product
from deniable.accounting.pld.compose import compose, cuttable
from deniable.accounting.steps.sampled_gaussian import SubsampledGaussianStep


def test_a_split_keeps_both_laws_and_a_merge_as_well():
    rng = np.random.default_rng(0)
    p = rng.random(50)
    law = Law.empty("upper", 2.0**-6, 64, False)
    start, rows = law.coarser(0, (-13, p[None]), 3)
    x, y = 2.0**-6 * np.arange(-13, 37), 2.0**-3 * (start + np.arange(rows.shape[1]))
    assert rows.sum() == pytest.approx(p.sum(), rel=1e-14)
    assert rows[0] @ np.exp(-y) == pytest.approx(p @ np.exp(-x), rel=1e-14)
    below = Law.empty("lower", 2.0**-6, 64, False)
    start, rows = below.coarser(0, (-13, np.stack([p, p])), 3)  # Q = P·e^{−label}
    y = 2.0**-3 * (start + np.arange(rows.shape[1]))
    assert rows[0].sum() == pytest.approx(p.sum(), rel=1e-14)
    assert rows[1] @ np.exp(-y) == pytest.approx(p @ np.exp(-x), rel=1e-14)


def test_products_add_up_over_classes_and_their_rounding_is_charged():
    """Against exact fractions: what differs in L1 is below what is charged, which is not much larger than doubles'."""
    rng = np.random.default_rng(2)
    law = Law.empty("upper", 1.0, 1 << 20, False)
    smooth = np.exp(-(((np.arange(300) - 150) / 40) ** 2))
    law.put(0, (0, (smooth / smooth.sum() / 2)[None]))
    law.put(3, (0, (rng.random(40) / 40)[None]))
    found = product(law, law, 0, 0.0, 3)
    fine, coarse = ([Fraction(float(m)) for m in law.parts[e][1][0]] for e in (0, 3))
    exact = [Fraction(0)] * 599
    for i, a in enumerate(fine):
        for j, b in enumerate(fine):
            exact[i + j] += a * b
    start, rows = found.parts[0]
    off = sum(abs(Fraction(float(m)) - exact[start + k]) for k, m in enumerate(rows[0]))
    assert float(off) <= found.error
    assert found.error < 1e-13
    whole = (sum(fine) + sum(coarse)) ** 2
    assert sum(rows.sum() for _, rows in found.parts.values()) == pytest.approx(float(whole), rel=1e-13)
    direct = replace(law, direct=True)
    found = product(direct, direct, 0, 0.0, 3)
    start, rows = found.parts[0]
    for k, mass in enumerate(rows[0]):  # however small
        assert abs(Fraction(float(mass)) - exact[start + k]) <= Fraction(found.relative) * exact[start + k]


@pytest.mark.parametrize("side", ["upper", "lower"])
@pytest.mark.parametrize(("sigma", "rate", "steps"), [(1.0, 0.01, 300), (0.1, 1e-3, 7), (0.3, 0.05, 5)])
def test_no_mass_is_lost_while_composing(sigma, rate, steps, side):
    for swapped in (False, True):
        law = compose([(cuttable(SubsampledGaussianStep(sigma, rate), swapped), steps)], side, 1 << 11).law
        total = sum(rows.sum(axis=1) for _, rows in law.parts.values())
        assert total[0] == pytest.approx(1, abs=1e-9)
        assert law.error < 1e-9
