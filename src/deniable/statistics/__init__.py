"""Statistics that offices publish, from one table under one budget: the question, noisy sums, estimates with errors."""

from deniable.statistics.grammar import FUNCTIONS, Statistic, parse
from deniable.statistics.released import Row, StatisticsRelease
from deniable.statistics.releasing import release_statistics

__all__ = ["FUNCTIONS", "Row", "Statistic", "StatisticsRelease", "parse", "release_statistics"]
