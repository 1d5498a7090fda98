"""Names and values that were renamed: the old one works for two more minor versions, and says what to write instead."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar


class Renamed(NamedTuple):
    """What stands in place of a name of a module, and the version that no longer knows the old one."""

    now: str
    until: str


RENAMED: dict[str, Renamed] = {}  # every old name, with its module, as far as these modules were imported
ARGUMENTS = {"group": Renamed("group_size", until="0.5")}  # old names of parameters
Value = TypeVar("Value")


def renamed(module: str, names: Mapping[str, Renamed]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module whose names changed: ``__getattr__ = renamed(__name__, {...})``."""
    RENAMED.update({f"{module}.{old}": new for old, new in names.items()})

    def __getattr__(name: str) -> Any:  # noqa: N807
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        new = names[name]
        text = f"{module}.{name} is now {new.now}, and will be gone in deniable {new.until}"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        home, _, now = new.now.rpartition(".")
        return getattr(importlib.import_module(home), now)

    return __getattr__


def renamed_argument(old: str, given: Value | None, value: Value) -> Value:
    """Return the ``value`` of a parameter, or what was ``given`` under its ``old`` name of ``ARGUMENTS``, and warn."""
    if given is None:
        return value
    new = ARGUMENTS[old]
    text = f"{old}= is now {new.now}=, and will be gone in deniable {new.until}"
    warnings.warn(text, DeprecationWarning, stacklevel=3)
    return given


def renamed_value(parameter: str, given: Any, values: Mapping[str, Renamed]) -> Any:
    """Return the value that now stands for a ``given`` one: itself, unless it is an old name, which warns."""
    if not (isinstance(given, str) and given in values):
        return given
    new = values[given]
    text = f"{parameter}={given!r} is now {parameter}={new.now!r}, and will be gone in deniable {new.until}"
    warnings.warn(text, DeprecationWarning, stacklevel=4)
    return new.now
