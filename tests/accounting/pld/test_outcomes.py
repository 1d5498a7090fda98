"""Cells of one step against 40 digits: masses, both integrals, and edges that no loss exceeds."""

import mpmath as mp
import numpy as np
import pytest

from deniable.accounting.pld.compose import cuttable
from deniable.accounting.steps.discrete import DiscreteGaussianStep, FinitePairStep, ResponseStep
from deniable.accounting.steps.gaussian_mixture import Case, GaussianMixtureStep
from deniable.accounting.steps.laplace import BoundedRangeStep, FlatOutcomes, LaplaceStep
from deniable.accounting.steps.outcomes import OutcomeLine
from deniable.accounting.steps.sampled_gaussian import ReplacedGaussianStep, ReplacedStep, SubsampledGaussianStep

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
    LaplaceStep(1.5, 1.0),
    LaplaceStep(0.3, 0.1),
    LaplaceStep(3.0, 1e-6),
    BoundedRangeStep(0.2),
    ReplacedStep(1.0, 0.01),
    ReplacedStep(0.2, 0.3),
]


def exact(line):
    """L(u), and the masses of P and of Q between two outcomes, at the precision of the moment."""
    if isinstance(line, FlatOutcomes):
        sign, eps, rate = (-1 if line.mirrored else 1), mp.mpf(line.epsilon), mp.mpf(line.rate)

        def flat(a, b):
            a, b = sorted((sign * a, sign * b))
            out = mp.mpf(line.scale) / 2 * mp.exp(-eps / 2) * (mp.exp(-a / 2) - mp.exp(-b / 2))
            taken = mp.mpf(line.scale) / 2 * mp.exp(-eps / 2) * (mp.exp(b / 2) - mp.exp(a / 2))
            return ((1 - rate) * out + rate * taken, out)[::sign]

        return (lambda u: sign * mp.log(1 - rate + rate * mp.exp(sign * u))), flat
    both = []
    for law, means in (line.inside, line.outside):
        weights = [mp.mpf(w) for w in law]
        if len(weights) == 2:  # of two, rounded to doubles, the first is what the second leaves
            weights[0] = 1 - weights[1]
        both.append(list(zip(weights, map(mp.mpf, means), strict=True)))

    def loss(u):
        p, q = (sum(w * mp.exp(-((u - m) ** 2) / 2) for w, m in law) for law in both)
        return mp.log(p / q)

    def masses(a, b):
        if a + b < 0:
            return [sum(w * (mp.ncdf(b - m) - mp.ncdf(a - m)) for w, m in law) for law in both]
        return [sum(w * (mp.ncdf(m - a) - mp.ncdf(m - b)) for w, m in law) for law in both]

    return loss, masses


def lines_of(step, swapped):
    return [p.swapped() if swapped else p for p in step.pieces() if isinstance(p, OutcomeLine)]


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("step", STEPS, ids=repr)
def test_cells_hold_what_they_say(step, swapped):
    """On three scales around losses that happen, and at both ends of the line."""
    for line in lines_of(step, swapped):
        assert checked_cells(line) >= 3


def checked_cells(line):
    rng = np.random.default_rng(5)
    low, high = line.ends
    sample = line.sample()
    near = rng.choice(sample[0], 4, p=sample[1] / sample[1].sum())
    widths = (high - low) * np.array([1e-9, 1e-5, 1e-2])
    edges = np.unique(np.concatenate([[low, high], *(x + w * np.arange(-1, 2) for x in near for w in widths)]))
    edges = edges[(edges >= low) & (edges <= high)]
    blur = 4e-16 * np.abs(edges)
    cut = line.cut(edges, blur)
    u, _, _ = line._outcomes_below(edges, blur)
    checked = 0
    with mp.workdps(40):
        loss, masses = exact(line)
        for i in range(edges.size - 1):
            a, b, x = mp.mpf(u[i]), mp.mpf(u[i + 1]), mp.mpf(edges[i])
            if np.isfinite(u[i + 1]):
                assert loss(b) <= mp.mpf(edges[i + 1])
            if not b > a:
                assert cut.most[i] == 0
                continue
            p, q = masses(a, b)
            assert cut.least[i] <= p <= cut.most[i]
            assert cut.most[i] - cut.least[i] <= 1e-9 * p + mp.mpf("1e-16")
            assert cut.rest[i] >= q * mp.exp(x) * (1 - mp.mpf("1e-30"))
            assert cut.rise[i] >= min(p - q * mp.exp(x), p) - mp.mpf("1e-35")
            checked += p > mp.mpf("1e-30")
    return checked


@pytest.mark.parametrize(
    "step", [DiscreteGaussianStep(2.0, 1, 1.0), ResponseStep(1.0, 4), FinitePairStep((0.9, 0.1, 0.0), (0.9, 0.0, 0.1))]
)
def test_atoms_lie_below_the_edge_of_their_cell(step):
    for swapped in (False, True):
        found = cuttable(step, swapped)
        (atoms,) = found.pieces
        edges = np.linspace(*found.ends, 37)
        cut = found.cut(edges)
        assert cut.most.sum() + found.only + found.lost[0] >= 1
        for x, p in zip(atoms.loss, atoms.p, strict=True):
            cell = np.searchsorted(edges, x) - 1  # or one above, if the atom may exceed its upper edge
            cell += int(np.flatnonzero(cut.most[cell:] >= p)[0])
            assert edges[cell] - 1e-12 <= x <= edges[cell + 1]
            assert cut.most[cell] >= p
            assert cut.rise[cell] >= p * -np.expm1(edges[cell] - x) - 1e-18
