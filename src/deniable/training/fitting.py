"""One fit from a table to coefficients: bins, noisy gradients, pairs; each query is paid for before it happens.

Noisy full-batch gradient descent with momentum and averaging: all that is released are noised integer sums. The descent
pauses three times, asks which pairs of columns act together (:mod:`deniable.training.pairs`), and goes on in the larger
basis from where it is, with the same budget a step. What it found is shrunk (:mod:`deniable.training.shrinkage`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import pairwise
from operator import methodcaller

import numpy as np

from deniable._check import FloatArray
from deniable._floats import MANY_ROUNDINGS
from deniable._parallel import Parts
from deniable.noise import Queries
from deniable.training.additive import Additive, codes_of
from deniable.training.clipping import CLIP_SHARE, WIDEST, reclip, tells
from deniable.training.descent import MOMENTUM, STABLE, Coded, Descent, Lattice
from deniable.training.design import Basis
from deniable.training.encoders import Pair, Thermometer
from deniable.training.features import Declared
from deniable.training.looks import Columns, Task
from deniable.training.losses import ClippedLoss
from deniable.training.pairs import ASKS, Ask, PairQuery, asks_for
from deniable.training.shrinkage import Directions, Response, shrunk_coefficients

STEPS = 120  # sums of gradients in a descent; matters for convergence only (:meth:`Path._length`)
_GROWTH = 1.1  # factor by which a step may be longer than the one before
_CLEAR = 4.0  # standard deviations of noise that a curvature must stand out by
_SAFE = 0.7  # of the length from which on a direction of the curvature that was seen would oscillate
PAIRS_NORM = 0.6  # mean square norm of all pairs' rows together, as a share of the columns'


class Path:
    """A descent under way: its coefficients, and what was found of pairs so far.

    ``mu`` is the budget of all :data:`STEPS` steps; each costs mu²/STEPS, whatever the basis and the clip.
    """

    def __init__(self, task: Task, columns: Columns, mu: float) -> None:
        self.task, self.columns, self.mu, self.loss = task, columns, mu, task.loss
        rows = Coded(codes_of(task.table, columns.encoders), task.target, task.look.units.weights)
        self.rows = Parts.of(rows.cut)
        self.pairs: list[Pair] = []
        self.born: list[int] = []  # the step at which each pair was added
        self.squares: dict[str, FloatArray] = {}  # of each unit's contributions, by the uses' names
        self.averaged = STEPS // 2  # the first step whose coefficients enter the mean
        self._set_out()
        self.first: Basis = self.lattice.basis
        self.length, self.stable = self._length(), math.inf  # ``stable``: for the curvature that was seen
        self.noise = np.zeros(STEPS)  # of each step, in each coordinate of its move
        self.w, self.move, self.sum = (np.zeros((self.first.scale.size, self.loss.outputs)) for _ in range(3))

    def _set_out(self) -> None:
        task, columns = self.task, self.columns
        basis = Basis.of((*columns.encoders, *self.pairs), columns.masses_with(self.pairs))
        mu = self.mu / math.sqrt(STEPS)
        self.lattice = Lattice.of(basis, self.loss, task.look.units.heaviest, task.n, mu)
        self.descent = self.rows.then(partial(Descent, self.lattice, self.pairs))

    def _length(self, stable: float = 0.0) -> float:
        """Return the factor on sums of gradients that pays best, at most ``stable`` or what is so for equal columns.

        One over length·steps/(1 − momentum) is an implicit ridge; the path is as long as if rows were not scaled. With
        longer rows shorter steps move the scores as much.
        """
        bend, longer = self.loss.bend, float(self.first.scale[-1] / self.lattice.basis.scale[-1]) ** 2
        reach = min(bend.travel * self.mu, bend.reach) * self.first.usual * longer
        return min(reach * (1 - MOMENTUM) / STEPS, max(stable, STABLE / (bend.largest * self.task.n)))

    def _adapt(self, change: FloatArray, noise: float) -> None:
        """Make steps as long as the curvature allows that the last two noisy gradients show, little by little.

        How long they may be without oscillating is known beforehand for the worst table only, that of equal columns. A
        direction that begins to oscillate shows its curvature in the ``change`` of the gradient over the last move.
        """
        size = max(math.sqrt(float(np.square(self.move).sum())), 1e-300)
        bent = (float((self.move / size * change).sum()) - _CLEAR * noise) / size
        if bent > 0:
            self.stable = min(self.stable, _SAFE * STABLE / bent)
            self.length = self._length(min(_GROWTH * self.length, self.stable))

    def walk(self, start: int, end: int) -> FloatArray:
        """Pay for the steps from ``start`` to ``end``, make them, and return the coefficients' mean over them."""
        lattice, name = self.lattice, "coefficients" + f", from step {start}" * bool(start)
        price = self.mu * math.sqrt((end - start) / STEPS)
        paid = self.task.look.pay(name, f"{STEPS} sums of gradients for the coefficients", price)
        channel = paid.channel(name, np.repeat(lattice.sd[:, None], self.loss.outputs, axis=1), end - start)
        scale, taken = lattice.basis.scale[:, None], list[FloatArray]()
        noise = float(lattice.sd[0] * scale[0, 0]) / lattice.unit  # the same in each coordinate
        recent, since, last = np.zeros_like(self.w), max(start, end // 2), np.zeros_like(self.w)
        for step in range(start, end):
            taken += [self.w] if self.rows.client else []  # rows that are here are not lost
            sums = sum(self.descent.each(methodcaller("gradient", step, self.w)))
            gradient = channel(sums) * (scale / lattice.unit)
            if step > start:
                self._adapt(gradient - last, noise)
            self.noise[step], last = self.length * noise, gradient
            self.move = MOMENTUM * self.move - self.length * gradient
            self.w = self.w + self.move
            self.sum += self.w * (step >= self.averaged)
            recent += self.w * (step >= since)
        self.squares[name] = np.concatenate(self.descent.each(methodcaller("squares", range(start, end), taken)))
        return recent / (end - since)

    def effects(self, w: FloatArray) -> list[FloatArray]:
        """Return what each column's cells add to the scores."""
        basis = self.lattice.basis
        cells = np.asarray(basis.entries @ (basis.scale[:, None] * w))
        return np.split(cells, basis.starts[1:])[: len(self.columns.encoders)]

    def reclip(self, settled: FloatArray) -> ClippedLoss:
        """Ask how large the residuals are and return the loss with the best clip."""
        found = self.descent.each(methodcaller("residuals", settled, replace(self.loss, clip=WIDEST)))
        residuals = np.concatenate([one for (one,) in found])
        return reclip(self.task.look, self.loss, residuals, self.task.n, self.mu, len(self.columns.encoders))

    def go_on(self, step: int, loss: ClippedLoss, found: Sequence[Pair]) -> None:
        """Go on with another loss and with more pairs: the same coefficients and velocity, in the larger basis."""
        self.loss = loss
        self.born = [*self.born, *[step] * len(found)]
        weight = math.sqrt(PAIRS_NORM / max(len(self.born), 1)) / self.first.usual
        self.pairs = [replace(pair, weight=weight) for pair in (*self.pairs, *found)]
        old = self.lattice.basis
        del self.descent  # before the next one: each holds the records
        self._set_out()
        new, self.length = self.lattice.basis, self._length(self.length)
        where = [*range(old.scale.size - 1), new.scale.size - 1]  # the intercept stays the last one
        ratio = (old.scale / new.scale[where])[:, None]

        def moved(x: FloatArray) -> FloatArray:
            out = np.zeros((new.scale.size, loss.outputs))
            out[where] = x * ratio
            return out

        self.w, self.move = moved(self.w), moved(self.move)
        self.noise[:step] *= ratio[-1, 0]
        if found:
            self.averaged = max(STEPS // 2, step + (STEPS - step) // 3)
        self.sum = np.zeros_like(self.w)

    def ended(self) -> Additive:
        """Return the model: the mean of the coefficients, shrunk."""
        basis, encoders = self.lattice.basis, self.columns.encoders
        masses, pairs = self.columns.masses_with(self.pairs), tuple(self.pairs)
        sizes = [block.basis()[1].size for block in encoders] + [pair.basis()[1].size for pair in pairs]
        rows = [slice(int(end) - size, int(end)) for size, end in zip(sizes, np.cumsum(sizes), strict=True)]
        born, cells = [0] * len(encoders) + self.born, basis.starts[:-1].tolist()
        parts = [Directions.of(basis, *part) for part in zip(cells, rows, masses, born, strict=True)]
        lines = [part for part, one in zip(parts, encoders, strict=False) if isinstance(one.number, Thermometer)]
        response = Response(self.length, MOMENTUM, self.averaged, self.noise / self.length)
        mean, groups = self.sum / (STEPS - self.averaged), (lines, parts[len(encoders) :])
        found = shrunk_coefficients(mean, groups, basis, self.loss, self.task.n, response)
        return Additive(encoders, pairs, basis, found)

    def scores(self, model: Additive) -> FloatArray:
        """Return the scores of all records, (rows, outputs)."""
        return np.concatenate(self.rows.each(lambda rows: model.sum_scores(rows.codes)))


def fit_table(task: Task, declared: Declared, model: str, most: int) -> Path:
    """Fit ``model`` with at most ``most`` pairs of columns; return the descent at its end."""
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
        loss = path.reclip(settled) if clips and k == 0 else path.loss
        found: Sequence[Pair] = ()
        if (ask := pauses[step]) is not None:
            query = PairQuery(loss, columns, path.effects(settled), task.n)
            name, left = f"pairs at step {step}", most - len(path.pairs)
            found = query.found(look, name, ask, path.descent, settled, path.pairs, left)
        if found or loss is not path.loss:
            path.go_on(step, loss, found)
        settled = path.walk(step, end)
    del path.descent  # it holds the records once more
    return path


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
