"""Stated 95 % limits cover what they name, neither less often nor, for being too wide, always."""

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable.statistics import distribution
from deniable.testing import insecure_noise
from oracles.scripts import loaded

table = loaded("benchmarks/statistics/coverage.py")
SIZES, RELEASES = (400, 4000), 60
LUCK = 0.02  # two standard deviations and more, of the 360 releases that are pooled


def pooled(confidence=0.95):
    """By statistic how often limits cover, for the table and the population; and the least of any cell."""
    cells = table.coverage(RELEASES, 0.3, False, SIZES, confidence)
    found = {
        name: np.nanmean(np.concatenate([one[:, :2] for (_, _, own), one in cells.items() if own == name]), axis=0)
        for name in table.STATISTICS
    }
    return found, min(np.nanmean(one[:, 0]) for one in cells.values())


@pytest.mark.filterwarnings("ignore:Mean of empty slice")  # sums and counts have no limits for a population
def test_limits_of_statistics_cover_what_they_name():
    found, least = pooled()
    for name, rates in found.items():
        kept = rates[~np.isnan(rates)]
        assert np.all((kept >= table.LEAST - LUCK) & (kept <= table.MOST + LUCK)), (name, rates)
    assert least > table.FEWEST - 0.1  # of 60 releases
    narrow, _ = pooled(confidence=0.8)
    assert all(rates[0] < table.LEAST - LUCK for rates in narrow.values())  # negative control: the level is seen


def test_limits_of_quantiles_are_no_wider_than_their_errors_ask_for():
    """They were those of a tree: five to twenty times as wide as 95 % needs, and covered every time."""
    rng = np.random.default_rng(2)
    asked, errors, widths = ["median(x)", "quantile(x, 0.9)"], [], []
    for _ in range(40):
        x = rng.normal(50, 15, 4000)
        with insecure_noise(rng):
            made = dn.release_statistics(pd.DataFrame({"x": x}), asked, advantage=0.2, ranges={"x": (-10, 110)})
        errors.append([made[text][0].value - np.quantile(x, p) for text, p in zip(asked, (0.5, 0.9), strict=True)])
        widths.append([made[text][0].high - made[text][0].low for text in asked])
    spread = np.sqrt(np.mean(np.square(errors), axis=0))
    assert np.all(np.mean(widths, axis=0) < 1.5 * 2 * 1.96 * spread)
    assert np.all(np.mean(widths, axis=0) > 2 * spread)


@pytest.mark.parametrize("miss", [0.1, 0.05, 0.001])
@pytest.mark.parametrize("away", [2.0, 4.0, 1e5])
def test_a_noisy_slope_is_allowed_for(miss, away):
    """Against Laplace variables drawn; where the slope is nearly exact, the limit is that of one variable."""
    least = -np.log(miss)
    x = distribution._laplace(miss, away * least)
    rng = np.random.default_rng(0)
    one, two, value = rng.laplace(size=(3, 400_000))
    missed = np.mean(np.abs(value) > x * (1 + (one + two) / (away * least)))
    assert missed < 1.35 * miss
    assert least <= x < 2 * least
    assert away < 1e5 or x == pytest.approx(least, rel=0.01)
