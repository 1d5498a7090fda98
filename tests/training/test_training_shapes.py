"""Bins from a library of shapes: close where the histogram is clear, sane where it is noise, post-processing only."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from deniable.noise.columns import CELLS, octave_cells
from deniable.training import bins
from deniable.training.bins import _ALIKE, octave_library, shared_priors
from deniable.training.encoders import Thermometer


def octaves(values, sd, seed=0):
    counts = np.bincount(octave_cells(np.asarray(values, dtype=float)), minlength=CELLS).astype(float)
    return counts + np.random.default_rng(seed).normal(0, sd, CELLS)


def cells_from_octaves(counts, sd, records):
    library = octave_library()
    return library.mixture(library.posterior(counts, sd, records))


def filled(values, cells, parts=32):
    """Shares of the values in the bins that the cells lead to."""
    edges = bins.equal_mass_edges(cells, parts)
    return np.bincount(np.searchsorted(edges, values, side="right"), minlength=edges.size + 1) / len(values)


def test_quantiles_belong_to_the_probabilities():
    """Each shape's quantiles put into octaves give its probabilities, up to the 64 points.

    But where much of it is smaller than the smallest octaves, in which the probabilities of all smaller numbers are.
    """
    library = octave_library()
    smallest = np.r_[CELLS // 2 - 5 : CELLS // 2, CELLS // 2 + 1 : CELLS // 2 + 6]
    whole = np.flatnonzero(library.cells[:, smallest].sum(axis=1) < 0.3)
    assert whole.size > 4_600
    for i in whole[::7]:
        counted = np.bincount(octave_cells(library.quantiles[i]), minlength=CELLS) / 64
        assert np.abs(np.cumsum(counted) - np.cumsum(library.cells[i])).max() < 0.04


@pytest.mark.parametrize(
    "law",
    [
        stats.norm(0, 1),
        stats.norm(40, 15),
        stats.lognorm(0.8, scale=20),
        stats.gamma(2, scale=1e6),
        stats.uniform(0, 16),
        stats.norm(-0.002, 0.001),
        stats.expon(scale=3e-4),
    ],
)
@pytest.mark.parametrize("noise", [1.0, 15.0])
def test_bins_fit_common_columns(law, noise):
    """No bin of 32 is empty of sense: 300 records, and noise of up to 15 on each of 121 counts."""
    values = law.rvs(300, random_state=np.random.default_rng(3))
    many = law.rvs(50_000, random_state=np.random.default_rng(4))
    worst = max(filled(many, cells_from_octaves(octaves(values, noise, s), noise, 300)).max() for s in range(5))
    assert worst < 0.3  # equal shares would be 0.03; with equal widths over the octaves found it is up to 0.9


@pytest.mark.parametrize("values", [np.zeros(200), np.full(200, 7.0), np.full(200, -1e12), np.full(200, 1e-300)])
@pytest.mark.parametrize("sd", [0.5, 20.0, 1e4])
def test_degenerate_columns_give_ordered_finite_cells(values, sd):
    cells = cells_from_octaves(octaves(values, sd), sd, 200.0)
    assert np.isfinite([cells.low, cells.high]).all()
    assert cells.low < cells.high
    assert (np.diff(cells.bounds) > 0).all()
    assert cells.mass.size == cells.edges.size + 1


def test_shared_priors_are_the_posterior_of_the_written_model():
    """Sums over θ and the common shape, in plain probabilities."""
    library, sd = octave_library(), 25.0
    counts = [octaves(np.random.default_rng(j).normal(0, 1 + 99 * (j == 2), 150), sd, j) for j in range(3)]
    base = np.exp(library.prior) / np.exp(library.prior).sum()
    likelihood = [np.exp(library.log_likelihood(column, sd, 150.0)) for column in counts]
    for j, prior in enumerate(shared_priors(counts, sd, 150.0)):
        expected = np.zeros_like(base)
        for alike in _ALIKE:
            common = base.copy()
            for i, column in enumerate(likelihood):
                if i != j:
                    common *= alike * column + (1 - alike) * (base @ column)
            expected += alike * common + (1 - alike) * common.sum() * base
        np.testing.assert_allclose(np.exp(prior), expected / expected.sum(), rtol=1e-9)


@pytest.mark.parametrize("zeros", [0.3, 0.55, 0.75, 0.93])
def test_flags_get_one_edge_between_their_two_values(zeros):
    values = np.where(np.random.default_rng(4).random(2_000) < zeros, 0.0, 1.0)
    cells = cells_from_octaves(octaves(values, 20.0), 20.0, 2_000.0)
    edges = bins.equal_mass_edges(cells, 32)
    assert edges.size == 1
    assert 0 < edges[0] < 1
    assert bins.quantile(cells, 0.01) < 0.1 < 0.4 < bins.quantile(cells, 0.99) <= 1


def test_line_of_roughly_known_bins_is_between_values_and_ranks():
    share = np.arange(1, 32) / 32
    rough = Thermometer("wage", np.exp(2 * ndtri(share)), 0.0, 1e3, 0.8, ranked=True)
    rows, scale = rough.basis()
    line, places = rows[:-1, 31], replace(rough, ranked=False).basis()[0][:-1, 31]
    ranks = 127 * ndtri((np.arange(32) + 0.5) / 32) / ndtri(31.5 / 32)
    assert (np.minimum(places, ranks) - 1 <= line).all()
    assert (line <= np.maximum(places, ranks) + 1).all()
    assert (np.diff(line) >= 0).all()
    assert line[0] < -80
    assert line[-1] == 127
    assert np.square(rows * scale).sum(axis=1).max() <= 1 + 1e-12


@pytest.mark.parametrize(("values", "zeros"), [((0, 1), 0.5), ((0, 1, 2, 3), 0.6), ((0, -1), 0.5)])
def test_zeros_of_flags_and_counts_have_a_bin_of_their_own(values, zeros):
    """300 records, clear counts: a value of 1 lies at the end of its octave, and yet not in the bin of the zeros."""
    rng = np.random.default_rng(5)
    seen = rng.choice(values, 300, p=[zeros, *[(1 - zeros) / (len(values) - 1)] * (len(values) - 1)])
    for noise in (1.0, 10.0):
        edges = bins.equal_mass_edges(cells_from_octaves(octaves(seen, noise), noise, 300), 32)
        zero, one = np.searchsorted(edges, values[:2], side="right")
        many = 1 if values == (0, 1) else 5  # as many edges as half of the zeros' mass would have; one for a flag
        assert abs(zero - one) >= many, noise
