"""The engines inside a trade-off, asked directly: none may fail or return NaN, and all their brackets intersect."""

from collections.abc import Iterator

import numpy as np

from deniable.accounting.curve import ComposedTradeoff
from deniable.curves import Tradeoff
from deniable.curves.combined import FailureTradeoff

LATTICES = "pld"  # the slowest


def engines(t: Tradeoff) -> Iterator[tuple[str, Tradeoff]]:
    """Engines for one and the same pair of laws: that of ``t``, without failures."""
    if isinstance(t, FailureTradeoff):
        yield from engines(t.of)
    elif isinstance(t, ComposedTradeoff):
        for make in t.engines:
            if (engine := make()) is not None:
                yield LATTICES if engine is t.lattices else engine.method, engine
    else:
        yield t.method, t


def bracket(engine: Tradeoff, question: str, at: np.ndarray, direction: str) -> tuple[np.ndarray, np.ndarray]:
    """What an engine itself says, from below and from above, before anything is made safe."""
    ask = engine._hockey_stick if question == "H" else engine._roc
    with np.errstate(all="ignore"):
        low, high = (np.asarray(ask(at, direction, side), dtype=float) for side in ("lower", "upper"))
    return low, high
