"""Statistics that offices publish, from one table under one budget: the question, noisy sums, estimates with errors."""

from deniable.noise.tabulation.grammar import FUNCTIONS, Statistic, parse
from deniable.noise.tabulation.released import PricedLook, StatisticsRelease
from deniable.noise.tabulation.releasing import release_statistics

__all__ = ["FUNCTIONS", "PricedLook", "Statistic", "StatisticsRelease", "parse", "release_statistics"]
