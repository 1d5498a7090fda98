"""Cells of one step against 40 digits: masses, both integrals, and edges that no loss exceeds."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from deniable.accounting.pld.one import cuttable, lines_of
from deniable.accounting.steps.discrete import DiscreteGaussianStep, FinitePairStep, ResponseStep
from deniable.accounting.steps.gaussian_mixture import Case, GaussianMixtureStep
from deniable.accounting.steps.replaced_gaussian import ReplacedGaussianStep
from deniable.accounting.steps.subsampled_gaussian import SubsampledGaussianStep

PERSON = GaussianMixtureStep(0.8, (Case(1.0, (0.0, 1.0, 2.0), (0.25, 0.5, 0.25)),), 0.0)
STEPS = [
    SubsampledGaussianStep(1.0, 0.01),
    SubsampledGaussianStep(0.1, 1e-4),
    SubsampledGaussianStep(20.0, 0.9),
    SubsampledGaussianStep(2.0, 1e-8),
    SubsampledGaussianStep(0.7, 1.0),
    ReplacedGaussianStep(1.0, 0.01),
    ReplacedGaussianStep(0.3, 0.2),
    PERSON,
]


def laws(line):
    """(weight, mean) of P and of Q; of two weights, rounded to doubles, the first is what the second leaves."""
    for weights, means in (line.inside, line.outside):
        exact = [mp.mpf(w) for w in weights]
        if len(exact) == 2:
            exact[0] = 1 - exact[1]
        yield list(zip(exact, map(mp.mpf, means), strict=True))


def exact_loss(line, u):
    p, q = (sum(w * mp.exp(-((u - m) ** 2) / 2) for w, m in law) for law in laws(line))
    return mp.log(p / q)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("step", STEPS, ids=repr)
def test_cells_hold_what_they_say(step, swapped):
    """On three scales around losses that happen, and at both ends of the line."""
    (line,) = lines_of(step)
    line = line.swapped() if swapped else line
    rng = np.random.default_rng(5)
    low, high = line.ends
    sample = line.sample()
    near = rng.choice(sample[0], 4, p=sample[1] / sample[1].sum())
    widths = (high - low) * np.array([1e-9, 1e-5, 1e-2])
    edges = np.unique(np.concatenate([[low, high], *(x + w * np.arange(-1, 2) for x in near for w in widths)]))
    edges = edges[(edges >= low) & (edges <= high)]
    blur = 4e-16 * np.abs(edges)
    cut = line.cut(edges, blur)
    u, _, _ = line._placed(edges, blur)
    checked = 0
    with mp.workdps(40):
        for i in range(edges.size - 1):
            a, b, x = mp.mpf(u[i]), mp.mpf(u[i + 1]), mp.mpf(edges[i])
            if np.isfinite(u[i + 1]):
                assert exact_loss(line, b) <= mp.mpf(edges[i + 1])
            if not b > a:
                assert cut.most[i] == 0
                continue
            p, q = (sum(w * (mp.ncdf(b - m) - mp.ncdf(a - m)) for w, m in law) for law in laws(line))
            assert cut.least[i] <= p <= cut.most[i]
            assert cut.most[i] - cut.least[i] <= 1e-9 * p + mp.mpf("1e-16")
            assert cut.rest[i] >= q * mp.exp(x) * (1 - mp.mpf("1e-30"))
            assert cut.rise[i] >= min(p - q * mp.exp(x), p) - mp.mpf("1e-35")
            checked += p > mp.mpf("1e-30")
    assert checked >= 3


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("step", STEPS, ids=repr)
def test_masses_add_up(step, swapped):
    found = cuttable(step, swapped)
    edges = np.concatenate([[found.ends[0]], np.linspace(*found.ends, 1001)[1:-1], [found.ends[1]]])
    cut = found.cut(edges)
    assert cut.least.sum() <= 1 <= cut.most.sum() + found.lost + 1e-15
    assert cut.most.sum() - cut.least.sum() < 1e-11
    # Q's masses, known from P's, are those of the other order: together they are at most 1
    assert (cut.rest * np.exp(-edges[:-1])).sum() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(
    "step", [DiscreteGaussianStep(2.0, 1, 1.0), ResponseStep(1.0, 4), FinitePairStep((0.9, 0.1, 0.0), (0.9, 0.0, 0.1))]
)
def test_atoms_lie_below_the_edge_of_their_cell(step):
    for swapped in (False, True):
        found = cuttable(step, swapped)
        (atoms,) = found.pieces
        edges = np.linspace(*found.ends, 37)
        cut = found.cut(edges)
        assert cut.most.sum() + found.only + found.lost >= 1
        for x, p in zip(atoms.loss, atoms.p, strict=True):
            cell = np.searchsorted(edges, x) - 1  # or one above, if the atom may exceed its upper edge
            cell += int(np.flatnonzero(cut.most[cell:] >= p)[0])
            assert edges[cell] - 1e-12 <= x <= edges[cell + 1]
            assert cut.most[cell] >= p
            assert cut.rise[cell] >= p * -np.expm1(edges[cell] - x) - 1e-18
