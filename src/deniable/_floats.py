"""Doubles: their rounding, and where the exponential leaves them (exponents are stopped there, by name)."""

import sys

EPS = sys.float_info.epsilon  # 2^−52: a rounding is half of it at the most, relative
MANY_ROUNDINGS = 2.0**-40  # relative: 8,192 roundings in a row, all to one side
ROOM = 1e-11  # relative: budgets are exceeded by this at most, however sums are rounded; promises include it

LEAST = 5e-324  # the least positive double
CACHE = 1 << 17  # doubles in one temporary array: about a processor's cache
MOST_EXPONENT = 700.0  # e^709.78 is the largest double: a factor of 10⁴ is left
PRODUCT_EXPONENT = 600.0  # a factor of e^100 is left, and e^600 − 1 = e^600
SQUARE_EXPONENT = 300.0  # the square, with a factor of e^100, is a double
LEAST_EXPONENT = -745.0  # e^−745.13 rounds to the least positive double: nothing becomes 0 that is not
