"""What is computed once and kept: all mutable state behind immutable curves, laws and steps, in one class.

Engines, steps and laws are frozen and answer by themselves, so that what one of them computes is kept beside it, not
in one common place; how it is kept is the same everywhere and stands here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def _one(value: object) -> float:
    return 1.0


class Kept(Generic[K, V]):
    """Values by key, made when they are first asked for.

    A value must depend on nothing but its key, so that answers do not depend on what was asked before. When the sizes
    of all values exceed ``most``, the oldest go, but for the newest one: they can be made again. Threads may share one
    (a value may then be made twice, and the first one stays). Copies and pickles start empty, so that curves are sent
    to other processes without what they have computed.
    """

    def __init__(self, most: float = math.inf, size: Callable[[V], float] = _one) -> None:
        self._most, self._size = most, size
        self._values: dict[K, V] = {}
        self._lock = Lock()

    def __call__(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of a key; ``make`` computes it if there is none."""
        found = self.get(key)
        if found is not None:
            return found
        made = make()
        with self._lock:
            made = self._values.setdefault(key, made)
            if math.isfinite(self._most):
                total = sum(map(self._size, self._values.values()))
                while total > self._most and len(self._values) > 1:
                    total -= self._size(self._values.pop(next(iter(self._values))))
            return made

    def get(self, key: K) -> V | None:
        """Return the value of a key if it is kept."""
        return self._values.get(key)

    def __len__(self) -> int:
        return len(self._values)

    def __reduce__(self) -> tuple[Callable[..., Kept[K, V]], tuple[float, Callable[[V], float]]]:
        return Kept, (self._most, self._size)
