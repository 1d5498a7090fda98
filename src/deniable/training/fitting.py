"""One fit from a table to coefficients: bins, noisy gradients, pairs; each query is paid for before it happens.

Noisy full-batch gradient descent with momentum and averaging: all that is released are noised integer sums. The descent
pauses three times, asks which pairs of columns act together (:mod:`deniable.training.pairs`), and goes on in the larger
basis from where it is, with the same budget a step. What it found is shrunk (:mod:`deniable.training.shrinkage`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise

import numpy as np

from deniable._check import FloatArray, InputError
from deniable._floats import MANY_ROUNDINGS
from deniable.noise import Queries
from deniable.training.additive import Additive, all_codes
from deniable.training.clipping import CLIP_SHARE, WIDEST, reclipped, tells
from deniable.training.descent import MOMENTUM, Descent, descent_of, length_of_step
from deniable.training.design import Basis
from deniable.training.encoders import Pair, Thermometer
from deniable.training.features import Declared, FeatureTable
from deniable.training.looks import CENTRES_SHARE, Columns, bins_mu, centred, encoders_for
from deniable.training.losses import RESIDUAL, ClippedLoss
from deniable.training.pairs import ASKS, Ask, PairQuery, asks_for
from deniable.training.shrinkage import Directions, Response, shrunk_coefficients

STEPS = 400  # sums of gradients in a descent; matters for convergence only (:func:`length_of_step`)
PAIRS_NORM = 0.6  # mean square norm of all pairs' rows together, as a share of the columns'
_EXACT = 2**53  # whole numbers below are exact in double precision


@dataclass(frozen=True, eq=False)
class Task:
    """What is fitted: a table, its target, a loss, about how many units there are."""

    look: Queries
    n: float
    table: FeatureTable
    target: FloatArray
    loss: ClippedLoss

    def columns(self, declared: Declared, model: str) -> Columns:
        """Look at the columns; the ledger may have been charged for the count and the target already."""
        look, table = self.look, self.table
        if not look.units.total(table.n_rows) * max(self.loss.clip, 1.0) * RESIDUAL < _EXACT:
            raise InputError(f"X must have few enough rows for exact sums in double precision, got {table.n_rows}")
        mu = bins_mu(look, table, declared, self.n)
        encoders = encoders_for(look, table, declared, model, mu, self.n, self.loss.outputs)
        return centred(look, table, encoders, look.ledger.mu * math.sqrt(CENTRES_SHARE), self.n)


class Path:
    """A descent under way: its coefficients, and what was found of pairs so far.

    ``mu`` is the budget of all :data:`STEPS` steps; each costs mu²/STEPS, whatever the basis and the clip.
    """

    def __init__(self, task: Task, columns: Columns, mu: float) -> None:
        self.task, self.columns, self.mu, self.loss = task, columns, mu, task.loss
        self.codes = list(all_codes(task.table, columns.encoders))
        self.pairs: list[Pair] = []
        self.born: list[int] = []  # the step at which each pair was added
        self.squares: dict[str, FloatArray] = {}  # of each unit's contributions, by the uses' names
        self.averaged = STEPS // 2  # the first step whose coefficients enter the mean
        self.descent: Descent = self._descent()
        self.first: Basis = self.descent.basis
        self.length, self.noise = self._length(), np.zeros(STEPS)
        self.w, self.velocity, self.sum = (np.zeros((self.first.scale.size, self.loss.outputs)) for _ in range(3))

    def _descent(self) -> Descent:
        task, columns = self.task, self.columns
        basis = Basis.of((*columns.encoders, *self.pairs), columns.masses_with(self.pairs))
        paired = (pair.codes(self.codes[pair.first], self.codes[pair.second]) for pair in self.pairs)
        codes, mu = [*self.codes[:-1], *paired, self.codes[-1]], self.mu / math.sqrt(STEPS)
        return descent_of(codes, basis, self.loss, task.target, task.look.units, task.n, mu)

    def _length(self) -> float:
        """Return the length of the steps: with longer rows shorter steps move the scores as much."""
        longer = float(self.first.scale[-1] / self.descent.basis.scale[-1]) ** 2
        return length_of_step(self.loss, self.mu, self.task.n, STEPS, self.first.usual, longer)

    def walk(self, start: int, end: int) -> FloatArray:
        """Pay for the steps from ``start`` to ``end``, make them, and return the coefficients' mean over them."""
        descent, name = self.descent, "coefficients" + f", from step {start}" * bool(start)
        price = self.mu * math.sqrt((end - start) / STEPS)
        paid = self.task.look.pay(name, f"{STEPS} sums of gradients for the coefficients", price)
        channel = paid.channel(name, np.repeat(descent.sd[:, None], self.loss.outputs, axis=1), end - start)
        self.noise[start:end], descent.squares = descent.noise, np.zeros(descent.row.size)
        recent, since = np.zeros_like(self.w), max(start, end // 2)
        for step in range(start, end):
            self.velocity = MOMENTUM * self.velocity + channel(descent.gradient(self.w)) * descent.scale
            self.w = self.w - self.length * self.velocity
            self.sum += self.w * (step >= self.averaged)
            recent += self.w * (step >= since)
        self.squares[name] = descent.squares
        return recent / (end - since)

    def effects(self, w: FloatArray) -> list[FloatArray]:
        """Return what each column's cells add to the scores."""
        basis = self.descent.basis
        cells = basis.entries @ (basis.scale[:, None] * w)
        starts = basis.starts.tolist()
        return [cells[s : s + e.size] for s, e in zip(starts, self.columns.encoders, strict=False)]

    def reclipped(self, settled: FloatArray) -> ClippedLoss:
        """Ask how large the residuals are and return the loss with the best clip."""
        (residuals,) = self.descent.residuals(settled, replace(self.loss, clip=WIDEST))
        return reclipped(self.task.look, self.loss, residuals, self.task.n, self.mu, len(self.columns.encoders))

    def go_on(self, step: int, loss: ClippedLoss, found: Sequence[Pair]) -> None:
        """Go on with another loss and with more pairs: the same coefficients and velocity, in the larger basis."""
        self.loss = loss
        self.born = [*self.born, *[step] * len(found)]
        weight = math.sqrt(PAIRS_NORM / max(len(self.born), 1)) / self.first.usual
        self.pairs = [replace(pair, weight=weight) for pair in (*self.pairs, *found)]
        old, length = self.descent.basis, self.length
        del self.descent  # before the next one: each holds the records
        self.descent = self._descent()
        new, self.length = self.descent.basis, self._length()
        where = [*range(old.scale.size - 1), new.scale.size - 1]  # the intercept stays the last one
        ratio = (old.scale / new.scale[where])[:, None]

        def moved(x: FloatArray) -> FloatArray:
            out = np.zeros((new.scale.size, loss.outputs))
            out[where] = x * ratio
            return out

        self.w, self.velocity = moved(self.w), moved(self.velocity) * (length / self.length)
        self.noise[:step] *= ratio[-1, 0] * length / self.length
        if found:
            self.averaged = max(STEPS // 2, step + (STEPS - step) // 3)
        self.sum = np.zeros_like(self.w)

    def ended(self) -> Additive:
        """Return the model: the mean of the coefficients, shrunk."""
        basis, encoders = self.descent.basis, self.columns.encoders
        masses, pairs = self.columns.masses_with(self.pairs), tuple(self.pairs)
        sizes = [block.basis()[1].size for block in encoders] + [pair.basis()[1].size for pair in pairs]
        rows = [slice(int(end) - size, int(end)) for size, end in zip(sizes, np.cumsum(sizes), strict=True)]
        born, cells = [0] * len(encoders) + self.born, basis.starts[:-1].tolist()
        parts = [Directions.of(basis, *part) for part in zip(cells, rows, masses, born, strict=True)]
        lines = [part for part, one in zip(parts, encoders, strict=False) if isinstance(one.number, Thermometer)]
        response = Response(self.length, MOMENTUM, self.averaged, self.noise)
        mean, groups = self.sum / (STEPS - self.averaged), (lines, parts[len(encoders) :])
        found = shrunk_coefficients(mean, groups, basis, self.loss, self.task.n, response)
        return Additive(encoders, pairs, basis, found)


def fit_table(task: Task, declared: Declared, model: str, most: int) -> tuple[Additive, FloatArray]:
    """Fit ``model`` with at most ``most`` pairs of columns; return it, and each unit's own Gaussian DP parameter."""
    columns, look = task.columns(declared, model), task.look
    asks = asks_for(task.loss, task.n * look.ledger.mu) if most and len(columns.encoders) > 1 else ()
    clips = task.loss.by_size and tells(look, task.n)
    asked = look.ledger.mu**2 * (math.fsum(ask.share for ask in asks) + CLIP_SHARE * clips)
    if asked > look.ledger.left**2 / 2:  # columns whose values lie close together took most of it
        asks, clips, asked = (), False, 0.0
    path = Path(task, columns, math.sqrt(look.ledger.left**2 - asked) * (1 - MANY_ROUNDINGS))
    pauses: dict[int, Ask | None] = {round(ask.moment * STEPS): ask for ask in asks}
    if clips:
        pauses.setdefault(round(ASKS[0].moment * STEPS), None)
    settled = path.walk(0, min(pauses, default=STEPS))
    for k, (step, end) in enumerate(pairwise((*sorted(pauses), STEPS))):
        loss = path.reclipped(settled) if clips and k == 0 else path.loss
        found: Sequence[Pair] = ()
        if (ask := pauses[step]) is not None:
            query = PairQuery(loss, columns, path.effects(settled), task.n)
            residuals = path.descent.residuals(settled, loss)
            name, left = f"pairs at step {step}", most - len(path.pairs)
            found = query.found(look, name, ask, path.codes, residuals, path.pairs, left)
            del residuals  # as large as the target
        if found or loss is not path.loss:
            path.go_on(step, loss, found)
        settled = path.walk(step, end)
    return path.ended(), exposures(look, path.squares)


def exposures(look: Queries, squares: Mapping[str, FloatArray]) -> FloatArray:
    """Return each unit's μ: gradients (by the names of their uses) along this fit's path, all else at its full price.

    A person's is at most the weighted sum of its records' (Minkowski's inequality over the steps).
    """
    units, whole = look.units, reduce(np.add, squares.values())  # one sum at a time is in memory
    beside = math.fsum(use.mu**2 for use in look.ledger.uses if use.name not in squares)
    if units.weights is None or units.owners is None or units.labels is None:
        return np.asarray(np.sqrt(whole + beside))
    per_person = np.bincount(units.owners, units.weights * np.sqrt(whole))[: len(units.labels)]
    return np.asarray(np.sqrt(per_person**2 + beside))
