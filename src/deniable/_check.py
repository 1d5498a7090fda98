"""Validation of what callers hand in: every message names the parameter, the rule, the value and the way out."""

from __future__ import annotations

import functools
import inspect
import math
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
Seed = int | np.random.Generator | None  # a generator, what seeds one, or None: fresh entropy
IntArray = NDArray[np.int64]
Indices = NDArray[np.intp]
P = ParamSpec("P")
R = TypeVar("R")


class InputError(ValueError):
    """An argument cannot be used; the message says which, why, and what to do instead.

    Examples
    --------
    >>> import deniable as dn
    >>> try:
    ...     dn.PureDP(-1.0)
    ... except dn.InputError as error:
    ...     print(error)
    epsilon must be at least 0, got -1
    """


class Caution(UserWarning):
    """What a person should know who goes on: the command line shows warnings of our classes, and no others."""


def numbers(
    name: str,
    value: ArrayLike,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    hint: str = "",
) -> FloatArray:
    """Return ``value`` as a float64 array after checking every element; NaN fails every rule."""
    refuse_sparse(name, value)
    try:
        array = as_float64(value)
    except (TypeError, ValueError):
        raise InputError(
            f"{name} must be a number or an array of numbers, got {reprlib.repr(value)}{_tail(hint)}"
        ) from None
    rules = {"above": above, "at least": at_least, "below": below, "at most": at_most}
    fine = ~np.isnan(array)
    for bound, holds in zip(rules.values(), (np.greater, np.greater_equal, np.less, np.less_equal), strict=True):
        if bound is not None:
            fine &= holds(array, bound)
    if not fine.all():
        rule = " and ".join(f"{words} {bound:g}" for words, bound in rules.items() if bound is not None) or "a number"
        row = f" in row {np.argmin(fine)} (the first is 0)" if array.ndim == 1 else ""
        raise InputError(f"{name} must be {rule}, got {float(array[~fine].flat[0]):g}{row}{_tail(hint)}")
    return array


def refuse_sparse(name: str, value: Any) -> None:
    """Raise ``InputError`` for a sparse matrix."""
    if hasattr(value, "toarray"):
        raise InputError(
            f"{name} must be a dense array, got a sparse one; give {name}.toarray() if it fits into memory"
        )


def unmasked(name: str, value: Any) -> Any:
    """Return ``value``, a masked array as a plain one; a cell that is masked out is refused."""
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.getmaskarray(value).any():
            raise InputError(f"{name} must not have masked cells; fill or drop them")
        return np.asarray(value.filled())
    return value


def finite(name: str, value: ArrayLike) -> FloatArray:
    """Return ``value`` as a float64 array of finite numbers."""
    array = numbers(name, value)
    if not np.isfinite(array).all():
        raise InputError(f"{name} must be finite, got {float(array[~np.isfinite(array)].flat[0]):g}")
    return array


def as_float64(value: ArrayLike) -> FloatArray:
    """Any numbers as float64; a masked cell, pandas' NA and None become NaN, which every rule refuses."""
    if isinstance(value, np.ma.MaskedArray):
        return np.asarray(np.ma.filled(value.astype(np.float64), np.nan), dtype=np.float64)
    if hasattr(value, "to_numpy"):  # pandas: its missing value is no float
        value = value.to_numpy(dtype=np.float64, na_value=np.nan)
    array = np.asarray(value)
    if array.dtype.kind not in "biufO":  # complex numbers, dates and texts would all be cast in silence
        raise TypeError
    return np.asarray(array, dtype=np.float64)


def number(name: str, value: Any, **rules: Any) -> float:
    """Return one finite-or-infinite real number as ``float``; booleans, strings and arrays are refused."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise InputError(f"{name} must be a number, got {value!r}{_tail(rules.get('hint', ''))}")
    return float(numbers(name, float(value), **rules))


def integer(name: str, value: Any, *, at_least: int | None = None, hint: str = "") -> int:
    """Return a whole number as ``int``; 3.0 is accepted, 3.5, NaN and True are not."""
    whole = isinstance(value, Integral) or (isinstance(value, Real) and float(value).is_integer())
    if isinstance(value, bool | np.bool_) or not whole:
        raise InputError(f"{name} must be a whole number, got {value!r}{_tail(hint)}")
    if at_least is not None and int(value) < at_least:
        raise InputError(f"{name} must be at least {at_least}, got {value!r}{_tail(hint)}")
    return int(value)


def choice(name: str, value: Any, known: Iterable[str]) -> str:
    """Return ``value`` if it is one of the ``known`` words; otherwise list them."""
    options = tuple(known)
    if not isinstance(value, str) or value not in options:
        raise InputError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}")
    return value


def flag(name: str, value: Any) -> bool:
    """Return ``value`` if it is True or False (NumPy's count); anything else is refused."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def seeded(rng: Seed, name: str = "rng") -> np.random.Generator:
    """Return the generator itself, or one seeded by a whole number, or by fresh entropy for None."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a whole number from 0 on, a numpy Generator or None, got {rng!r}") from None


def interval(name: str, value: Any, *, above: float = -math.inf) -> tuple[float, float]:
    """Return a pair (low, high) of finite numbers with ``above`` < low < high."""
    try:
        low, high = value
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a pair (low, high), got {value!r}") from None
    low = number(f"{name}[0]", low, above=above, below=math.inf)
    return low, number(f"{name}[1]", high, above=low, below=math.inf)


def mapping(name: str, value: Any, example: str) -> dict[Any, Any]:
    """Return ``value`` as a dict, None as an empty one; anything else that is no mapping is refused."""
    if value is not None and not isinstance(value, Mapping):
        raise InputError(f"{name} must be a mapping such as {example}, got {value!r}")
    return dict(value or {})


def function(name: str, value: Any, what: str) -> None:
    """Refuse what cannot be called; ``what`` says from what to what it goes."""
    if not callable(value):
        raise InputError(f"{name} must be a function ({what}), got {value!r}")


def refuse_unknown(where: str, given: Iterable[Any], known: Sequence[str]) -> None:
    """Raise ``InputError`` that names the first key that is not known, the nearest one and all that are."""
    for key in given:
        if key not in known:
            raise InputError(f"{where} has no {key!r}; {_hint(str(key), known)}known are {', '.join(known)}")


def nearest_names(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function with keywords say which name was probably meant by an unknown one: a ``TypeError``, as ever."""
    known = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name not in known:
                raise TypeError(f"unknown argument {name!r}; {_hint(name, known)}known: {', '.join(known[1:])}")
        return function(*args, **kwargs)

    return checked


def _hint(name: str, known: Sequence[str]) -> str:
    """Ask whether the nearest of the known names was meant, if one is near."""
    import difflib

    return "".join(f"did you mean {near!r}? " for near in difflib.get_close_matches(name, known, n=1))


def _tail(hint: str) -> str:
    return f"; {hint}" if hint else ""
