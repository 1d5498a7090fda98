"""Mechanisms as plain types, as files hold them: what is read back is the same mechanism."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from deniable._check import InputError
from deniable.mechanisms.core import Mechanism

_KIND, _BESIDE = "kind", ("notes", "unit")  # the key of a class's name; what is no field
_ROOM = "deniable.mechanisms."


def _kinds() -> dict[str, type[Mechanism]]:
    return {kind.__name__: kind for kind in Mechanism.__subclasses__() if kind.__module__.startswith(_ROOM)}


def to_plain(mechanism: Mechanism) -> dict[str, Any]:
    """Return the class and the fields of a mechanism as types that JSON knows; an infinite number is a text.

    Raises ``InputError`` for a class that :mod:`deniable.mechanisms` does not hold: nobody could read it back.
    """
    known = _kinds()
    kinds = type(mechanism).__mro__
    kind = next((kind for kind in kinds if known.get(kind.__name__) is kind), None)
    if kind is None:
        raise InputError(f"mechanism must be one of deniable.mechanisms to be written down, got {kinds[0].__name__}")
    beside = {name: _plain(getattr(mechanism, name)) for name in _BESIDE if getattr(mechanism, name)}
    return {_KIND: kind.__name__} | {one.name: _plain(getattr(mechanism, one.name)) for one in fields(kind)} | beside  # type: ignore[arg-type]


def from_plain(plain: Mapping[str, Any]) -> Mechanism:
    """Return the mechanism that :func:`to_plain` wrote; its values are checked as if it were made anew.

    Raises ``InputError`` for anything else.
    """
    kind = _kinds().get(str(plain.get(_KIND))) if isinstance(plain, Mapping) else None
    if kind is None:
        raise InputError(f"mechanism must name a class of deniable.mechanisms under {_KIND!r}, got {plain!r:.80}")
    try:
        made = kind(**{str(name): _parse(value) for name, value in plain.items() if name not in (_KIND, *_BESIDE)})
    except TypeError as error:
        raise InputError(f"mechanism {kind.__name__} has other fields: {error}") from None
    notes, unit = plain.get("notes", []), plain.get("unit")
    if not (isinstance(notes, list | tuple) and all(isinstance(word, str) for word in (*notes, unit or ""))):
        raise InputError(f"mechanism must have texts as notes and unit, got {notes!r:.80} and {unit!r:.80}")
    return made.with_notes(notes, unit)


def _plain(value: Any) -> Any:
    match value:
        case Mechanism():
            return to_plain(value)
        case tuple() | list():
            return [_plain(one) for one in value]
        case np.ndarray():
            return _plain(value.tolist())
        case float() if not math.isfinite(value):
            return str(value)
    return value


def _parse(value: Any) -> Any:
    match value:
        case {"kind": _}:
            return from_plain(value)
        case list():
            return [_parse(one) for one in value]
        case str():
            return float(value)
    return value
