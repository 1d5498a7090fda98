"""Which pairs of columns are counted: two rounds of scores of all pairs, each one query, then the counts themselves.

The score of a pair is Σ|N − R|: its counts N against whole numbers R that follow from earlier answers. One record is in
one cell of each pair, so it moves each score by at most 1 and all m of them by at most √m. Persons: N is the weighted
count and R is multiplied by ``heaviest``, which is the most that a person's weights sum to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from deniable._check import FloatArray, IntArray
from deniable._floats import MANY_ROUNDINGS
from deniable.noise import CLEAR, Queries
from deniable.synthesis.columns import MadeColumn
from deniable.synthesis.junction import JunctionTree, cells_of, neighbours, triangulate

ColumnPair = tuple[int, int]
Counted = tuple[ColumnPair, FloatArray, float]  # the columns, noisy counts of their groups, and the noise's sd
_SHARES = (0.03, 0.25, 0.07, 0.45)  # relative: scores, spanning tree, scores, pairs of the second round
MODEL_ROWS = 100_000  # drawn from the first round's model for the second scores: a public number
STEPS = (100, 300)  # of the fits after the first round and in the end
_BLOCK, _MANY = 8, 60  # candidates that are tried together in tables of many columns
_PER_COLUMN = 3  # pairs of the second round at most, for each column
_POWER = 2 / 3  # noise falls with cells^(−1/3) of a pair: the sum of all absolute errors is smallest then


@dataclass(eq=False)
class PairCounts:
    """The pairs of one fit: records' groups of all columns go in, noisy counts and a fitted law come out."""

    look: Queries
    columns: Sequence[MadeColumn]
    groups: Sequence[IntArray]  # of each column, one entry a record
    n: float
    cells: int
    found: dict[ColumnPair, tuple[FloatArray, float]] = field(default_factory=dict)  # noisy counts, their sd

    def __post_init__(self) -> None:
        self.sizes = [column.size for column in self.columns]
        self.shares = [column.shares for column in self.columns]

    def fitted(self, mu: float, forced: Sequence[int]) -> JunctionTree:
        """Spend ``mu`` and return the law; every column is paired with each of ``forced``."""
        d = len(self.columns)
        if d == 1:
            return self._law(STEPS[0])
        every = list(combinations(range(d), 2))
        part = [mu * math.sqrt(share / sum(_SHARES)) * (1 - MANY_ROUNDINGS) for share in _SHARES]
        first = self._scores(lambda p: self.n * np.outer(self.shares[p[0]], self.shares[p[1]]), part[0], 1, every)
        tied = [p for p in every if set(p) & set(forced)]
        self._count([*tied, *spanning(first, d, forced)], part[1], 1)
        left, spread = part[3], math.sqrt(len(every))
        if spread / part[2] <= self.n / 10:
            drawn = np.ascontiguousarray(self._law(STEPS[0]).draw(MODEL_ROWS, np.random.default_rng(0)).T)
            second = self._scores(lambda p: self.n / MODEL_ROWS * self._table(p, drawn), part[2], 2, every)
        else:  # noise would hide what these scores could say: only pairs that stood out in the first ones
            second = {pair: score for pair, score in first.items() if score > CLEAR * spread / part[0]}
        self._count(self._choose_pairs(second, left), left, 2)
        return self._law(STEPS[1])

    def _table(
        self, pair: ColumnPair, rows: Sequence[IntArray] | IntArray, weights: FloatArray | None = None
    ) -> FloatArray:
        a, b = pair
        size = self.sizes[a] * self.sizes[b]
        found = np.bincount(rows[a] * self.sizes[b] + rows[b], weights, minlength=size)
        return np.asarray(found.reshape(self.sizes[a], -1), dtype=np.float64)

    def _scores(
        self, expected: Callable[[ColumnPair], FloatArray], mu: float, turn: int, pairs: Sequence[ColumnPair]
    ) -> dict[ColumnPair, float]:
        """Return Σ|N − R| of all pairs, less what chance alone makes of it; R must follow from earlier answers."""
        units, name = self.look.units, f"scores of all pairs, {turn}"
        chance, raw = np.zeros(len(pairs)), np.zeros(len(pairs), dtype=np.int64)
        for i, pair in enumerate(pairs):
            aim = np.rint(expected(pair)).astype(np.int64)
            counts = self._table(pair, self.groups, units.weights).astype(np.int64)
            raw[i] = np.abs(counts - units.heaviest * aim).sum()
            chance[i] = np.minimum(aim, np.sqrt(2 / math.pi * aim)).sum()
        sd = units.heaviest * math.sqrt(len(pairs)) / mu * (1 + MANY_ROUNDINGS)
        paid = self.look.pay(name, "how far pairs are from what is known of them", mu)
        noised = paid.channel(name, np.full(len(pairs), sd))(raw) / units.heaviest
        return dict(zip(pairs, (noised - chance).tolist(), strict=True))

    def _count(self, pairs: Sequence[ColumnPair], mu: float, turn: int) -> None:
        """Count the pairs, all together for ``mu``."""
        weights = [float(self.sizes[a] * self.sizes[b]) ** _POWER for a, b in pairs]
        for (a, b), weight in zip(pairs, weights, strict=True):
            each = mu * math.sqrt(weight / math.fsum(weights)) * (1 - MANY_ROUNDINGS)
            name = f"{self.columns[a].name} x {self.columns[b].name}"
            cells = self.groups[a] * self.sizes[b] + self.groups[b]
            size = self.sizes[a] * self.sizes[b]
            counts = self.look.histogram(name, f"pairs of round {turn}", each, slice(None), cells, size)
            self.found[a, b] = counts.reshape(self.sizes[a], -1), 1 / each

    def _choose_pairs(self, scores: dict[ColumnPair, float], mu: float) -> list[ColumnPair]:
        """Return new pairs by falling score, while they tell more than noise and the cliques stay small."""
        d, new, weight = len(self.columns), list[ColumnPair](), 0.0
        tried = sorted((p for p in scores if p not in self.found and scores[p] > 0), key=lambda p: -scores[p])
        size = {p: float(self.sizes[p[0]] * self.sizes[p[1]]) for p in tried}

        def tells(pair: ColumnPair) -> bool:
            sd = math.sqrt(weight + size[pair] ** _POWER) / mu / size[pair] ** (_POWER / 2)
            return bool(scores[pair] > math.sqrt(2 / math.pi) * sd * size[pair])

        def fits(block: list[ColumnPair]) -> bool:
            cliques = triangulate(neighbours(d, [*self.found, *new, *block]), self.sizes)
            return cells_of(cliques, self.sizes) <= self.cells

        step = _BLOCK if d > _MANY else 1
        for i in range(0, min(len(tried), max(4 * d, 200)), step):
            block, before = [p for p in tried[i : i + step] if tells(p)][: _PER_COLUMN * d - len(new)], len(new)
            whole = step > 1 and fits(block)
            for part in [block] if whole else [[pair] for pair in block]:
                if whole or fits(part):
                    new.extend(part)
                    weight += math.fsum(size[pair] ** _POWER for pair in part)
            if step > 1 and block and len(new) == before:
                break  # the model is full: hardly any later pair fits
        return new

    def _law(self, steps: int) -> JunctionTree:
        """Return the law of largest entropy for all pairs and columns."""
        single = [(i,) for i in range(len(self.columns))]
        counts = [*(counts for counts, _ in self.found.values()), *(self.n * share for share in self.shares)]
        # of a group of ordinary size
        own = (math.sqrt(max(len(c.mass) / c.size, 1.0)) * c.sds.min() for c in self.columns)
        sds = [*(sd for _, sd in self.found.values()), *own]
        law = JunctionTree(self.sizes, [*self.found, *single])
        law.fit(counts, sds, self.n, steps)
        return law


def spanning(scores: dict[ColumnPair, float], columns: int, apart: Sequence[int]) -> list[ColumnPair]:
    """Return the maximum spanning forest of the pairs whose score is positive, those of ``apart`` left out."""
    part, out = list(range(columns)), []
    for a, b in sorted(scores, key=lambda p: -scores[p]):
        if scores[a, b] > 0 and part[a] != part[b] and not {a, b} & set(apart):
            out.append((a, b))
            old, new = part[b], part[a]
            part = [new if one == old else one for one in part]
    return out
