"""Statistics that offices publish, from one table under one budget: the question, noisy sums, estimates with errors."""

from deniable.statistics.grammar import FUNCTIONS, Statistic, parse
from deniable.statistics.released import StatisticsRelease
from deniable.statistics.releasing import release_statistics

__all__ = ["FUNCTIONS", "Statistic", "StatisticsRelease", "parse", "release_statistics"]
