"""Numbers as a person reads them, rounded to the side of the truth that they claim."""

from __future__ import annotations

import decimal
from typing import Literal

import numpy as np

Unit = Literal["rate", "number", "count"]
LISTED = 12  # names, rows or records that are written out; of the others, their number
DRAWN = 40  # rows of one picture


def plural(unit: str) -> str:
    """Return what is in or out in the plural: records, persons, lines of the file."""
    noun, *rest = unit.split(" ")
    return " ".join([f"{noun}s", *rest])


def shown(value: float, unit: Unit, side: str, digits: int = 4) -> str:
    """Return a number for people: rates in percent, few digits, rounded to the named side of the truth.

    The number that is rounded is the decimal one that JSON and ``repr`` show, so that 0.9 is 90 %, not 90.01 %.
    """
    if np.isinf(value):
        return "unbounded" if value > 0 else "−∞"
    if unit == "count":
        return f"{value:,.0f}"
    exact = decimal.Decimal(repr(float(value))) * (100 if unit == "rate" else 1)
    if exact == 0:
        return "0\u00a0%" if unit == "rate" else "0"
    ways = {"upper": decimal.ROUND_CEILING, "lower": decimal.ROUND_FLOOR, "nearest": decimal.ROUND_HALF_EVEN}
    exponent = exact.adjusted() - digits + 1
    rounded = exact.quantize(decimal.Decimal(1).scaleb(exponent), rounding=ways[side])
    if unit == "rate":
        rounded = min(rounded, decimal.Decimal(100)) if value <= 1 + 1e-9 else rounded  # bounds are rounded up from 1
    text = f"{rounded:f}" if -6 <= rounded.adjusted() <= 6 else f"{rounded:.{digits - 1}e}"
    if "." in text and "e" not in text:
        text = text.rstrip("0").rstrip(".")
    return f"{text}\u00a0%" if unit == "rate" else text


def percent(rate: float) -> str:
    """Return a setting or a limit, which has no side."""
    return shown(rate, "rate", "nearest")


def with_error(value: float, error: float) -> str:
    """Return a number and its error, ``591 ± 15``: the error with two digits, rounded up, the number to their place."""
    if not error > 0:
        return f"{value:,.6g}"
    return f"{_to_place(value, error, decimal.ROUND_HALF_EVEN)} ± {_to_place(error, error, decimal.ROUND_CEILING)}"


def beyond(value: float, low: float, high: float) -> str:
    """Return a value outside what is possible, and what follows from it: ``-28, so at most 25``."""
    word, end, way = ("most", high, decimal.ROUND_CEILING) if value < low else ("least", low, decimal.ROUND_FLOOR)
    said, bound = (_to_place(one, high - low, how) for one, how in ((value, decimal.ROUND_HALF_EVEN), (end, way)))
    return f"{said}, so at {word} {bound}"


def between(low: float, high: float) -> str:
    """Return an interval, ``540 to 640``: two digits of half its width, ends rounded outwards."""
    half = (high - low) / 2
    if not half > 0:
        return f"{low:,.6g}"
    return f"{_to_place(low, half, decimal.ROUND_FLOOR)} to {_to_place(high, half, decimal.ROUND_CEILING)}"


def _to_place(value: float, error: float, way: str) -> str:
    """The number, rounded to the second digit of its error; very large and very small ones as powers of ten."""
    exact, step = (decimal.Decimal(repr(float(one))) for one in (value, error))
    size = max(exact.copy_abs(), step).adjusted()
    place = max(step.adjusted() - 1, size - 16)  # a double has no more digits
    rounded = exact.quantize(decimal.Decimal(1).scaleb(place), rounding=way)
    return f"{rounded:,f}" if -12 < size < 16 else f"{rounded:e}"
