"""Replays: a fit on a table is recorded, its noisy answers are given to the same fit on a neighbouring table.

The mechanism is the whole way from a table to every byte that leaves. Of two neighbouring tables the noisy sums may
differ by what the account charges (realised μ ≤ certified μ); everything else must be equal, once the answers are.
"""

import contextlib
import io
import logging
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

from deniable.noise import queries as private


class DivergedError(Exception):
    """The neighbour asked for other numbers than the recorded run, so its path depends on the record itself."""


@dataclass
class Tape:
    """A source of noise: answers in the order in which they were asked for; while replaying, how far sums have moved.

    It stands in for the source of one fit, or by ``running`` for that of all.
    """

    seed: int = 0
    asked: list[tuple[str, np.ndarray, np.ndarray]] = field(default_factory=list)  # label, sums, sd of their noise
    answers: list[Any] = field(default_factory=list)
    at: int | None = None  # while replaying: the next answer
    moved: dict[str, float] = field(default_factory=dict)  # by label: Σ ((sum − recorded sum) / sd)²

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def replay(self) -> "Tape":
        """The same answers for another table."""
        return replace(self, at=0, moved={})

    def sums(self, label: str) -> list[np.ndarray]:
        return [sums for name, sums, _ in self.asked if name == label]

    def sd(self, label: str) -> np.ndarray:
        return next(sd for name, _, sd in self.asked if name == label)

    def channel(self, label: str, sd: Any, times: int) -> Callable[[np.ndarray], np.ndarray]:
        return lambda sums: self.answer(label, sums, np.asarray(sd, dtype=float))

    def answer(self, label: str, sums: np.ndarray, sd: np.ndarray) -> np.ndarray:
        """Whole numbers plus rounded noise (none where sd is 0), or what was answered in the recorded run."""
        assert sums.dtype == np.int64
        sd = np.broadcast_to(sd, sums.shape)
        if self.at is None:
            self.asked.append((label, sums.copy(), sd.copy()))
            self.answers.append(sums + np.rint(self.rng.normal(size=sums.shape) * sd).astype(np.int64))
            return self.answers[-1].copy()
        before, noise = self._next(label)
        if before.shape != sums.shape or not np.array_equal(noise, sd):
            raise DivergedError(f"question {self.at} has shape {sums.shape} and not {before.shape}, or other noise")
        self._move(label, float(np.sum(((sums - before)[sd > 0] / sd[sd > 0]) ** 2)))
        if not np.array_equal(sums[sd == 0], before[sd == 0]):
            raise DivergedError("a number that is released without noise differs")
        return self.answers[self.at - 1].copy()

    def choose(self, *args: Any, **options: Any) -> int:
        """A quantile's choice: its charge is the subject of tests/laws/test_rank_choice.py."""
        if self.at is None:
            self.asked.append(("a quantile", np.zeros(1), np.zeros(1)))
            self.answers.append(CHOICE(*args, **options))
            return self.answers[-1]
        self._next("a quantile")
        return self.answers[self.at - 1]

    def texts(self, look: Any, name: Any, values: Any, mu: float, delta: float) -> dict[str, float]:
        """Words that are found in the data: one that only the neighbour has is not shown (with probability 1 − δ)."""
        label, values = f"categories of {name}", list(values)
        weights = np.ones(len(values)) if look.units.weights is None else look.units.weights
        counts = pd.Series(weights / look.units.heaviest).groupby(np.array(values, dtype=object)).sum()
        if self.at is None:
            k, shown = len(self.asked), TEXTS(look, name, values, mu, delta)
            self.asked[k:], self.answers[k:] = [(label, counts, np.zeros(1))], [shown]
            return shown
        look.pay(label, "which texts of a column are frequent", mu, delta)
        before, _ = self._next(label)
        both = [(before.get(word, 0), counts.get(word, 0)) for word in {*before.index, *counts.index}]
        self._move(label, sum((a - b) ** 2 for a, b in both) * mu**2)
        return self.answers[self.at - 1]

    def _move(self, label: str, squared: float) -> None:
        self.moved[label] = self.moved.get(label, 0.0) + squared

    def _next(self, label: str) -> tuple[Any, np.ndarray]:
        if self.at == len(self.asked):
            raise DivergedError("more was asked than in the recorded run")
        self.at += 1
        name, *found = self.asked[self.at - 1]
        if name != label:
            raise DivergedError(f"question {self.at} is {label!r} and not {name!r}")
        return found

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        with (
            mock.patch.object(private.SumNoise, "channel", lambda _s, *asked: self.channel(*asked)),
            mock.patch.object(private.SumNoise, "coins", lambda _s, _l, n, chance: np.arange(n) % 7 < 7 * chance),
            mock.patch.object(private.Queries, "words", lambda look, *asked: self.texts(look, *asked)),  # noqa: PLW0108
            mock.patch.object(private, "rank_choice", self.choose),
        ):
            yield


CHOICE, TEXTS = private.rank_choice, private.Queries.words


def leaves(run: Callable[[Any], Any], table: Any, tape: Tape) -> dict[str, str]:
    """Run and return all that leaves, by name: the result, or the error, and what was printed, warned and logged."""
    out, told, heard = io.StringIO(), [], []
    handler = logging.Handler()
    handler.emit = lambda record: heard.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as caught, tape.running():
            warnings.simplefilter("always")
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
                try:
                    made = {name: "\n".join(plain(part)) for name, part in run(table).items()}
                except (DivergedError, AssertionError):
                    raise
                except Exception as error:
                    made = {"error": repr(error)}
        told = [str(warning.message) for warning in caught]
    finally:
        logging.getLogger().removeHandler(handler)
    return made | {"printed": out.getvalue(), "warned": "\n".join(told), "logged": "\n".join(heard)}


def plain(thing: Any, path: str = "") -> Iterator[str]:
    """Every value inside an object, as pickling would find it, one line each; floats to the last bit."""
    if isinstance(thing, np.ndarray) and thing.dtype != object:
        yield f"{path}: {thing.dtype}{thing.shape} {thing.tolist()}"
    elif isinstance(thing, pd.DataFrame | pd.Series):
        yield f"{path}: {thing.to_csv()}"
    elif isinstance(thing, dict):
        for key, value in thing.items():
            yield from plain(value, f"{path}[{key!r}]")
    elif isinstance(thing, list | tuple | np.ndarray):
        yield f"{path}: {type(thing).__name__} of {len(thing)}"
        for k, value in enumerate(thing):
            yield from plain(value, f"{path}[{k}]")
    elif isinstance(thing, str | bytes | int | float | complex | None | type) or callable(thing):
        yield f"{path}: {type(thing).__name__} {thing!r}"
    elif is_dataclass(thing):
        for one in fields(thing):
            yield from plain(getattr(thing, one.name), f"{path}.{one.name}")
    else:
        state = thing.__getstate__() if hasattr(thing, "__getstate__") else vars(thing)
        yield f"{path}: {type(thing).__name__}"
        if state is None:
            yield f"{path}: {thing!r}"
        else:
            yield from plain(state, path)


@dataclass(frozen=True)
class Replayed:
    """What a neighbour changed: the realised μ, and the outputs that differ (none should)."""

    mu: float
    differ: dict[str, tuple[str, str]]


class Recorded:
    """A run on one table, all that left it, and its answers for neighbours."""

    def __init__(self, run: Callable[[Any], dict[str, Any]], table: Any) -> None:
        self.run, self.tape = run, Tape()
        self.left = leaves(run, table, self.tape)

    def replay(self, neighbour: Any) -> Replayed:
        """Give the answers to the run on another table."""
        tape = self.tape.replay()
        try:
            after = leaves(self.run, neighbour, tape)
        except DivergedError as error:
            return Replayed(math.inf, {"path": ("", str(error))})
        if tape.at != len(tape.asked):
            return Replayed(math.inf, {"path": ("", "less was asked than in the recorded run")})
        both = {name: (self.left.get(name, ""), after.get(name, "")) for name in (*self.left, *after)}
        differ = {name: first_difference(*texts) for name, texts in both.items() if texts[0] != texts[1]}
        return Replayed(math.sqrt(sum(tape.moved.values())), differ)


def replayed(run: Callable[[Any], dict[str, Any]], table: Any, neighbour: Any) -> Replayed:
    """Record ``run`` on one table, replay its answers on the other."""
    return Recorded(run, table).replay(neighbour)


def first_difference(one: str, other: str) -> tuple[str, str]:
    """The first lines that differ."""
    lines, others = [*one.splitlines(), "(end)"], [*other.splitlines(), "(end)"]
    return next(((a[:300], b[:300]) for a, b in zip(lines, others, strict=False) if a != b), ("", ""))
