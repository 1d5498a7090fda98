"""Every number that leaves a curve passes here: in range and on its side, or the trivial bound; what it assumes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from deniable import testing
from deniable._check import FloatArray, InputError, choice, numbers
from deniable._floats import EPS, LEAST

Side = Literal["upper", "lower"]
Direction = Literal["add", "remove"]
AnyDirection = Literal["add", "remove", "both"]

EVERY_CASE = "every record and every rest of the data"  # what a curve must hold for to bound other risks
ONE_CASE = "the record and the data set for which it was computed"
_UNITS = ("person", "group", "canary", "line of the file")
TINY = float(np.finfo(np.float64).tiny)
# of an engine: its bound is trivial then
FAILURES = (ArithmeticError, IndexError, MemoryError, ValueError, np.linalg.LinAlgError)
LEAST_RATE = 1e-300  # false positive rates below have fewer digits, or none to spare for a product
ADD: Direction = "add"
REMOVE: Direction = "remove"
OPPOSITE: dict[Direction, Direction] = {"add": "remove", "remove": "add"}


@dataclass(frozen=True)
class Assumptions:
    """The game in which a number holds: read it before quoting the number.

    Examples
    --------
    >>> import deniable as dn
    >>> print(dn.tradeoff(dn.GaussianDP(0.5)).assumptions.adjacency)
    add or remove one record
    """

    game: str = "the attacker knows the whole training set but for one record, and tests whether that record was in"
    adjacency: str = "add or remove one record"
    access: str = "everything that the mechanism outputs, intermediate steps included"
    notes: tuple[str, ...] = ()
    batches: str = ""

    @property
    def unit(self) -> str:
        """Whose presence, or whose content, is bounded."""
        return next((unit for unit in _UNITS if unit in self.adjacency), "record")

    @property
    def line(self) -> str:
        """The unit, the two worlds and the batches: what goes with every number."""
        return f"{self.unit} ({self.adjacency}){self.batches and f'; {self.batches}'}"

    def __post_init__(self) -> None:
        object.__setattr__(self, "notes", testing.marked(self.notes, testing.insecure()))

    @property
    def insecure(self) -> bool:
        """Whether this was made inside :func:`deniable.testing.insecure_noise`."""
        return testing.INSECURE in self.notes


def directions(direction: str, symmetric: bool = False) -> tuple[Direction, ...]:
    """Return the directions that one word stands for; of a symmetric curve one is asked for all."""
    choice("direction", direction, ("add", "remove", "both"))
    if symmetric:
        return ("remove",)
    return ("remove", "add") if direction == "both" else (cast(Direction, direction),)


def valid_side(side: str) -> Side:
    """Return the side, checked."""
    return cast(Side, choice("side", side, ("upper", "lower")))


def valid_prior(prior: ArrayLike) -> FloatArray:
    """Return priors as an array, checked: strictly between 0 and 1."""
    return numbers(
        "prior",
        prior,
        above=0.0,
        below=1.0,
        hint="at a prior of 0 or 1 the answer is certain, and no attack can add anything",
    )


def lower_or_higher(log_gamma: FloatArray, side: Side) -> FloatArray:
    """Move a rounded logarithm of γ to where H_γ is on its side: H falls in γ. 0 is exact."""
    slack = np.where(np.isfinite(log_gamma) & (log_gamma != 0), 4 * EPS * np.abs(log_gamma) + LEAST, 0.0)
    return log_gamma - slack if side == "upper" else log_gamma + slack


def no_information(log_gamma: FloatArray, side: Side) -> FloatArray:
    """(1 − γ)₊, the hockey stick of two equal laws and a lower bound on every other, rounded to its side."""
    plain = np.maximum(-np.expm1(np.minimum(log_gamma, 0.0)), 0.0)
    slack = np.where(plain > 0, 4 * EPS * plain + LEAST, 0.0)
    return np.where(np.isneginf(log_gamma), 1.0, outward(plain, slack, side))


def sane(compute: Callable[[], FloatArray], floor: FloatArray, side: Side) -> FloatArray:
    """Return what ``compute`` finds as bounds on something in [``floor``, 1]: the one place where bounds are checked.

    NaN and infinities are not bounds: they, and an engine that fails (no memory, overflow), give the trivial bound,
    which is 1 from above and ``floor`` from below. What the caller did wrong (:class:`InputError`) is still raised.
    """
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(compute(), dtype=np.float64)
    except InputError:
        raise
    except FAILURES:
        found = np.full(floor.shape, np.nan)
    trivial = np.ones_like(floor) if side == "upper" else floor
    return np.where(np.isfinite(found), np.clip(found, floor, 1.0), trivial)


def sane_hockey_sticks(
    ask: Callable[[FloatArray], FloatArray], certain: Callable[[], float], log_gamma: FloatArray, side: Side
) -> FloatArray:
    """Hockey sticks made safe; those below the least normal number, with no relative accuracy, go to their side.

    From above they become that number, an underflow to 0 too, but where γ is at least e^{certain}: there H_γ is 0, if
    ``certain()`` bounds the log-likelihood ratio. From below they become the trivial bound.
    """
    floor = no_information(log_gamma, side)
    found = sane(lambda: ask(log_gamma), floor, side)
    if side == "lower":  # no more than (1 − γ)₊ as engines round it
        found = np.where(found <= no_information(log_gamma, "upper"), floor, found)
    small = (found < TINY) & np.isfinite(log_gamma)
    if not small.any():
        return found
    if side == "lower":
        return np.where(small, floor, found)
    return np.where(small & (log_gamma < certain()), TINY, found)


def sane_rates(roc: Callable[[FloatArray], FloatArray], fpr: FloatArray, side: Side) -> FloatArray:
    """Largest true positive rates made safe.

    Among denormal rates nothing has relative accuracy: from above they get the bound of the first normal ones, from
    below the trivial one.
    """
    denormal = (fpr > 0) & (fpr < LEAST_RATE)
    asked = np.where(denormal, LEAST_RATE, fpr)
    rates = sane(lambda: roc(asked), asked, side)
    return rates if side == "upper" else np.where(denormal, fpr, rates)


def outward(value: FloatArray, slack: FloatArray, side: Side) -> FloatArray:
    """Move a probability to its safe side by ``slack``, staying in [0, 1]."""
    return np.clip(value + slack if side == "upper" else value - slack, 0.0, 1.0)


def shaped(like: FloatArray, flat: FloatArray) -> float | FloatArray:
    """Return a flat array in the shape of what was asked: a float for a scalar."""
    return float(flat[0]) if like.ndim == 0 else flat.reshape(like.shape)


def accuracy_from(prior: FloatArray, gained: FloatArray, side: Side) -> FloatArray:
    """Return max(π, 1 − π) + ``gained`` (in [0, ½]) as the nearest double on its side; where it is a double, that.

    What each of the two operations rounds off is itself a double (Dekker 1971), and so is known.
    """
    guess = np.maximum(prior, 1 - prior)
    found = guess + gained
    rest = (gained - (found - guess)) + np.where(prior < 0.5, (1 - guess) - prior, 0.0)
    if side == "upper":
        return np.where(rest > 0, np.nextafter(found, 2.0), found)
    return np.where(rest < 0, np.nextafter(found, 0.0), found)


def posterior(tpr: FloatArray, fpr: FloatArray, prior: FloatArray, log_ratio: float, side: Side) -> FloatArray:
    """P(in | accused) = π·TPR/(π·TPR + (1 − π)·FPR), rounded to ``side``; at ``fpr=0`` from the largest log-ratio."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        steepest = np.exp(log_ratio) * (1 + (EPS if side == "upper" else -EPS))
        ratio = np.where(fpr > 0, tpr / fpr, np.where(tpr > 0, np.inf, steepest))
        odds = (1 - prior) / prior / ratio
        value, miss = 1 / (1 + odds), 1 / (1 + 1 / odds)
    # a rate is at least fpr, so that the precision is at least the prior; both forms have a few roundings
    above = np.minimum(value * (1 + 8 * EPS), np.nextafter(1 - miss * (1 - 8 * EPS), 2.0))
    moved = np.where(ratio == 1, prior, above) if side == "upper" else value * (1 - 8 * EPS)
    bound = np.clip(np.where(np.isfinite(ratio), moved, 1.0), prior, 1.0)
    return np.where(np.isnan(value), 1.0 if side == "upper" else prior, bound)
