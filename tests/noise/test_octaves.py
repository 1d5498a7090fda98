"""Ranges from noisy octave counts: chance alone must not set the scale of a column."""

import numpy as np
import pytest

from deniable.noise.columns import CELLS, YEARS, octave_cells, range_from_counts, year_cells, years_from_counts

SD = 20.0


def counted(values):
    return np.bincount(octave_cells(np.asarray(values, dtype=float)), minlength=CELLS).astype(float)


@pytest.mark.parametrize(("strength", "stretched"), [(4.5, False), (8.0, True)])
def test_a_far_octave_counts_only_if_it_stands_out_clearly(strength, stretched):
    counts = counted(np.random.default_rng(0).normal(50, 10, size=2000))
    far = octave_cells(np.array([2.0**35]))[0]
    counts[far] += strength * SD  # 4.5 standard deviations pass the ordinary threshold
    low, high = range_from_counts(counts, SD)
    assert low <= 32
    assert (high > 2.0**35) == stretched
    assert high >= 64


def test_the_next_octaves_and_the_other_sign_need_no_more_than_before():
    counts = counted(np.concatenate([np.full(1000, 50.0), np.full(90, 100.0), np.full(90, -50.0)]))
    assert range_from_counts(counts, SD) == (-64.0, 128.0)


def test_noise_seldom_stretches_a_range_over_orders_of_magnitude():
    rng = np.random.default_rng(1)
    counts = counted(rng.normal(50, 10, size=2000))
    highs = [range_from_counts(counts + rng.normal(0, SD, CELLS), SD)[1] for _ in range(2000)]
    assert np.mean(np.array(highs) > 1e4) < 1e-3  # with one threshold for all octaves: about 1 %


@pytest.mark.parametrize(("first", "last"), [("2019-03-01", "2022-08-31"), ("1930-01-01", "2009-12-31")])
def test_dates_lie_in_the_years_that_stand_out_or_most_do(first, last):
    days = np.arange(first, last, 1, dtype="M8[D]").astype(np.int64).astype(float)
    few = np.random.default_rng(2).choice(days, 1500)  # of 80 years no single one stands out
    counts = np.bincount(year_cells(few), minlength=YEARS) + np.random.default_rng(3).normal(0, SD, YEARS)
    low, high = years_from_counts(counts, SD)
    assert abs(low - days[0]) < 366 * 8
    assert abs(high - days[-1]) < 366 * 8
    assert year_cells(np.array([-1e7, 0.0, 1e7])).tolist() == [0, 70, YEARS - 1]
