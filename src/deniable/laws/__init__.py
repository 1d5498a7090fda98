"""Laws of noise, each once and exact: what releases and training add and what profiles of records measure.

``rounded_gaussian`` draws what a private training run adds to its integer sums: a Gaussian rounded to whole numbers,
without error in the law, from the operating system's entropy, fast enough for millions of draws.
"""

from deniable.laws.rounding import add_rounded_gaussian, rounded_gaussian

__all__ = ["add_rounded_gaussian", "rounded_gaussian"]
