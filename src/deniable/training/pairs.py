"""Which pairs of columns act together: sums of products, asked of the residuals of a descent that pauses.

A column is two functions of its cells, a ramp in rank and the ends against the middle, centred and orthogonal under the
released masses. What no sum of shape functions can express shows in Σ residual · f(a) · f(b). Only as many columns are
asked, those with the largest main effects, as let a pair stand out of the noise; where none can, nothing is asked.

Everything that decides is a released number: masses, what the descent found, the noisy sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from operator import methodcaller

import numpy as np

from deniable._check import FloatArray, IntArray
from deniable._floats import MANY_ROUNDINGS
from deniable._parallel import Parts
from deniable.noise import Queries
from deniable.training.design import shares
from deniable.training.encoders import LEVELS, PAIR_LEVELS, Codes, Pair, levels_of
from deniable.training.looks import Columns
from deniable.training.losses import RESIDUAL, ClippedLoss

_HIGHEST, _RAREST = 2.5, 12.0  # a function's largest value: is lowered to the first, not used above the second
_ENDS = 0.5  # standard deviation of ends against middle, to a ramp's 1: it is rarer
_CLEAR = 4.0  # standard deviations of noise by which a pair must stand out to be sought
_HOPELESS = 1.25  # of :func:`clarity`, from which on asking pays
_FEWEST = 4  # columns asked, at least
_ENERGY = 0.003  # prior variance of a product's mean residual, as a share of the residuals' mean square
_CHUNK = 1 << 12  # records at a time: the functions of 40 columns stay in the cache of the processor (measured)
_FALSE = 0.3  # pairs that may be taken by chance in a query: wrong ones cost little
_MOST = 5  # pairs taken in one query, no column twice: x, y and z of a diamond say the same of its clarity


@dataclass(frozen=True)
class Ask:
    """A query for pairs: after which share of the steps, for which share of μ², for pairs of which energy.

    ``sought`` is a share of the residuals' mean square.
    """

    moment: float
    share: float
    sought: float


ASKS = (Ask(0.3, 0.01, 0.02), Ask(0.375, 0.015, 0.002), Ask(0.5, 0.02, 0.001))  # strong pairs first, then weaker ones
MOST_PAIRS = _MOST * len(ASKS)


def clarity(ask: Ask, loss: ClippedLoss, strength: float) -> float:
    """Return the root of the number of pairs that can be asked at once; ``strength`` is n·μ of the whole fit."""
    seen = math.sqrt(ask.share * ask.sought * loss.bend.scatter)
    return strength * seen / (_CLEAR * loss.clip * (1 + _ENDS**2))


def asks_for(loss: ClippedLoss, strength: float) -> tuple[Ask, ...]:
    """Return the queries that are not hopeless."""
    return tuple(ask for ask in ASKS if clarity(ask, loss, strength) > _HOPELESS)


@dataclass(frozen=True, eq=False)
class PairColumn:
    """A column of a pair: the level of each of its cells, and two functions of the level on a lattice.

    ``functions`` has shape (levels + 1, 2), zero where the value is missing; ``energy`` is their mean square.
    """

    column: int
    levels: Codes
    functions: FloatArray
    energy: FloatArray


def side_of(column: int, levels: Codes, mass: FloatArray) -> PairColumn:
    """Return a column's levels with their functions, centred and orthogonal under ``mass``, the cells' shares."""
    held = np.maximum(np.bincount(levels, np.nan_to_num(mass), minlength=PAIR_LEVELS + 1)[:PAIR_LEVELS], 0.0)
    p = held / max(float(held.sum()), 1e-12)
    rank = np.cumsum(p) - p / 2
    out = np.zeros((PAIR_LEVELS + 1, 2))
    ramp, ends = np.clip((rank - 0.5) / 0.3, -1, 1), np.clip(np.abs(rank - 0.5) / 0.25 - 1, -1, 1)
    for k, raw in enumerate((ramp, ends)):
        first = out[:-1, 0]
        f = raw - p @ raw
        f = f - first * (p @ (f * first) / max(float(p @ first**2), 1e-12))
        spread = math.sqrt(float(p @ f**2))
        largest = float(np.abs(f * (p > 0)).max())
        if spread > 1e-3 and largest < _RAREST * spread:
            out[:-1, k] = f / max(spread, largest / _HIGHEST) * (1, _ENDS)[k]
    functions = np.rint(LEVELS * out)
    return PairColumn(column, levels, functions, held @ np.square(functions[:-1]))


@dataclass(frozen=True, eq=False)
class PairQuery:
    """What a query for pairs needs to know: all of it declared or released.

    ``effects`` holds what each cell of each column adds to the scores, (cells, outputs), as far as the descent has
    come.
    """

    loss: ClippedLoss
    columns: Columns
    effects: Sequence[FloatArray]
    n: float

    def found(
        self, look: Queries, name: str, ask: Ask, descent: Parts, w: FloatArray, known: Sequence[Pair], most: int
    ) -> list[Pair]:
        """Pay, ask, and return up to ``most`` pairs that stand out and are not ``known``, the strongest first.

        A record's products have squared norm Σ q·q over pairs of columns, q the squares of a column's functions: the
        noise is made for usual records, longer ones are scaled down to these. Residuals are those at ``w``.
        """
        mu, units = look.ledger.mu * math.sqrt(ask.share), look.units
        paid = look.pay(name, "which pairs of columns act together", mu)
        sides = self.sides(clarity(ask, self.loss, self.n * look.ledger.mu))
        usual = max(float(_of_pairs(np.array([side.energy.sum() for side in sides]))), 1.0)
        coarser = 2.0 ** -math.ceil(math.log2(units.heaviest))  # persons' weights on the lattice of the residuals
        unit = RESIDUAL * units.heaviest * coarser
        sums = np.sum(descent.each(methodcaller("products", w, self.loss, sides, usual, coarser)), axis=0)
        sd = self.loss.clip * unit * math.sqrt(usual) / mu * (1 + MANY_ROUNDINGS)
        released = np.asarray(paid.channel(name, np.full(sums.shape, sd))(sums) / unit)
        factors = self.factors(released, sides, sd / unit)
        clear = math.log(max(int(np.count_nonzero(factors)), 1) / _FALSE)
        taken: list[Pair] = []
        pairs, before = list(combinations(sides, 2)), {(pair.first, pair.second) for pair in known}
        for place in np.argsort(-factors, kind="stable")[: np.count_nonzero(factors > clear)].tolist():
            a, b = pairs[place]
            both, used = (a.column, b.column), {j for pair in taken for j in (pair.first, pair.second)}
            if both not in before and not used & set(both):
                names = (self.columns.encoders[a.column].name, self.columns.encoders[b.column].name)
                taken.append(Pair(*both, names, a.levels, b.levels))
        return taken[: min(most, _MOST)]

    def sides(self, clear: float) -> list[PairColumn]:
        """Return the columns with the largest main effects: as many as have ``clear``² pairs."""
        count = max(int((1 + math.sqrt(1 + 8 * clear**2)) / 2), _FEWEST)
        shares_of = [np.nan_to_num(mass) for mass in self.columns.masses]
        apart = [e - p @ e / max(float(p.sum()), 1e-9) for p, e in zip(shares_of, self.effects, strict=True)]
        size = np.array([float(p @ np.square(e).sum(axis=1)) for p, e in zip(shares_of, apart, strict=True)])
        among = sorted(np.argsort(-size, kind="stable")[:count].tolist())
        encoders, masses = self.columns.encoders, self.columns.masses
        return [side_of(j, levels_of(encoders[j], self.effects[j].mean(axis=1), masses[j]), masses[j]) for j in among]

    def factors(self, released: FloatArray, sides: Sequence[PairColumn], sd: float) -> FloatArray:
        """Return each pair's log Bayes factor: that it acts together, against noise of privacy and of sampling."""
        energies = [np.outer(a.energy, b.energy).ravel() for a, b in combinations(sides, 2)]
        energy, scatter = np.array(energies)[None], self.loss.bend.scatter
        noise = sd**2 + self.n * scatter * energy
        signal = _ENERGY * scatter * self.n**2 * energy
        kept = signal / (signal + noise)
        logs = 0.5 * (np.square(released) / noise * kept + np.log1p(-kept))
        return np.asarray(np.where(energy > 1, logs, 0.0).sum(axis=(0, 2)))


def products(
    residuals: Sequence[FloatArray], codes: Sequence[Codes], sides: Sequence[PairColumn], usual: float, coarser: float
) -> IntArray:
    """Return Σ weighted residual · f(a) · f(b), (outputs, pairs, 4): exact in whole numbers, in any order."""
    tables = [side.functions[side.levels] for side in sides]
    total = np.zeros((len(residuals), 2 * len(sides), 2 * len(sides)), dtype=np.int64)
    for start in range(0, residuals[0].size, _CHUNK):
        rows = slice(start, start + _CHUNK)
        values = np.concatenate([t[codes[s.column][rows]].T for t, s in zip(tables, sides, strict=True)])
        kept = shares(_of_pairs(np.square(values).reshape(len(sides), 2, -1).sum(axis=1)), usual) * coarser
        for k, residual in enumerate(residuals):
            total[k] += ((values * np.trunc(residual[rows] * kept)) @ values.T).astype(np.int64)
    first, second = np.array(list(combinations(range(len(sides)), 2))).T
    return np.stack([total[:, 2 * first + i, 2 * second + k] for i in (0, 1) for k in (0, 1)], axis=2)


def _of_pairs(each: FloatArray) -> FloatArray:
    """Return the sum of products over pairs, along the first axis."""
    return np.asarray((np.square(each.sum(axis=0)) - np.square(each).sum(axis=0)) / 2)
