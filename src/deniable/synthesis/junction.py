"""The law of largest entropy with given marginals: a junction tree, its fit to noisy counts, and draws from it.

Lauritzen & Spiegelhalter 1988 (the tree), McKenna, Sheldon & Miklau 2019 (noisy marginals). Sets of columns are bit
masks, so that a table of 165 columns is triangulated in milliseconds. Everything here follows from released numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from deniable._check import FloatArray, IntArray

RIDGE = 0.03  # pull of the log-potentials towards 0, in units of each marginal's noise
_MEMORY, _DONE = 20, 1e-3  # past gradients that L-BFGS keeps; nats, and steps of noise, that are left to gain


def members(mask: int) -> Iterator[int]:
    """Return the numbers of the bits that are set, from the lowest."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def neighbours(columns: int, sets: Iterable[Sequence[int]]) -> list[int]:
    """Return for each column those that share one of the sets with it, as a bit mask."""
    masks = [0] * columns
    for one in sets:
        for a, b in combinations(one, 2):
            masks[a] |= 1 << b
            masks[b] |= 1 << a
    return masks


def triangulate(adjacent: Sequence[int], sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the maximal cliques of a triangulation: columns go one by one, the one that adds fewest edges first."""
    masks, left, cliques, logs = list(adjacent), set(range(len(sizes))), list[int](), np.log(sizes).tolist()

    def price(i: int) -> tuple[int, float, int]:
        near = masks[i]
        missing = sum((near & ~masks[a] & ~(1 << a)).bit_count() for a in members(near))
        return missing, logs[i] + sum(logs[a] for a in members(near)), i

    prices = {i: price(i) for i in left}
    while left:
        gone = min(left, key=prices.__getitem__)
        near = touched = masks[gone]
        for a in members(near):
            touched |= masks[a] if prices[gone][0] else 0
            masks[a] = (masks[a] | near) & ~(1 << a) & ~(1 << gone)
        clique = near | 1 << gone
        if not any(clique & ~known == 0 for known in cliques):
            cliques.append(clique)
        left.discard(gone)
        prices |= {a: price(a) for a in members(touched & ~(1 << gone)) if a in left}
    return [tuple(members(clique)) for clique in cliques]


def cells_of(cliques: Iterable[Sequence[int]], sizes: Sequence[int]) -> int:
    """Return how many numbers the cliques hold in all."""
    return sum(math.prod(sizes[i] for i in clique) for clique in cliques)


class JunctionTree:
    """A law over columns of ``sizes`` cells with log-potentials on ``margins``; its cliques' laws once it is fitted.

    ``order`` lists the cliques from the root; ``parent`` and ``separator`` say where each one hangs.
    """

    def __init__(self, sizes: Sequence[int], margins: Sequence[tuple[int, ...]]) -> None:
        self.sizes, self.margins = tuple(sizes), tuple(margins)
        self.cliques = triangulate(neighbours(len(sizes), margins), sizes)
        sets = [set(clique) for clique in self.cliques]
        self.order, self.parent = [0], dict[int, int]()
        best = {j: (len(sets[0] & sets[j]), 0) for j in range(1, len(sets))}
        while best:  # a spanning tree of largest separators has the running intersection property
            j = max(best, key=lambda k: best[k][0])
            self.parent[j] = best.pop(j)[1]
            self.order.append(j)
            best |= {k: (w, j) for k in best if (w := len(sets[j] & sets[k])) > best[k][0]}
        self.separator = {j: tuple(sorted(sets[j] & sets[k])) for j, k in self.parent.items()}
        cells = [cells_of([clique], sizes) for clique in self.cliques]
        self.home = [min((k for k in range(len(sets)) if sets[k] >= set(m)), key=cells.__getitem__) for m in margins]
        self.laws: list[FloatArray] = []

    def fit(self, counts: Sequence[FloatArray], sds: Sequence[float], n: float, steps: int) -> None:
        """Fit to noisy counts of all margins.

        Minimises n·log Z(θ) − ⟨θ, counts⟩ + ½·RIDGE·Σ (sd·θ)², which is convex, by at most ``steps`` of L-BFGS in units
        in which the curvature of each coordinate is about 1.
        """
        shapes = [self._shape(margin) for margin in self.margins]
        ends = np.cumsum([0, *map(math.prod, shapes)])
        ridge = RIDGE * np.repeat(np.square(sds), np.diff(ends))
        aims = np.concatenate([np.ravel(one) for one in counts])
        unit = 1 / np.sqrt(np.maximum(aims, 1.0) + ridge)
        spread = [
            self._broadcast_shape(margin, self.cliques[k]) for margin, k in zip(self.margins, self.home, strict=True)
        ]
        summed = [_others(self.cliques[k], margin) for margin, k in zip(self.margins, self.home, strict=True)]

        def potentials(theta: FloatArray) -> list[FloatArray]:
            out = [np.zeros(self._shape(clique)) for clique in self.cliques]
            for k, (a, b), shape in zip(self.home, pairwise(ends), spread, strict=True):
                out[k] += theta[a:b].reshape(shape)
            return out

        def loss(scaled: FloatArray) -> tuple[float, FloatArray]:
            theta = scaled * unit
            log_z, laws = self._propagate(potentials(theta))
            expected = np.concatenate([laws[k].sum(axis=a).ravel() for k, a in zip(self.home, summed, strict=True)])
            value = n * log_z - theta @ aims + float(ridge @ theta**2) / 2
            return value, (n * expected - aims + ridge * theta) * unit

        first: FloatArray = np.zeros(ends[-1])
        for margin, (a, b), one in zip(self.margins, pairwise(ends), counts, strict=True):
            if len(margin) == 1:  # columns that are independent
                first[a:b] = np.log(np.maximum(one, 1.0) / n) / unit[a:b]
        options: Any = {"maxiter": steps, "maxcor": _MEMORY, "maxfun": 2 * steps, "ftol": _DONE / n, "gtol": _DONE}
        found = minimize(loss, first, jac=True, method="L-BFGS-B", options=options)
        self.laws = self._propagate(potentials(found.x * unit))[1]

    def _propagate(self, potentials: list[FloatArray]) -> tuple[float, list[FloatArray]]:
        """Return log Z and the law of each clique, by messages to the root and back."""
        sent, beliefs = dict[int, FloatArray](), list(potentials)
        for j in reversed(self.order[1:]):
            sent[j] = _log_sum(beliefs[j], _others(self.cliques[j], self.separator[j]))
            k = self.parent[j]
            beliefs[k] = beliefs[k] + sent[j].reshape(self._broadcast_shape(self.separator[j], self.cliques[k]))
        root = self.order[0]
        log_z = float(logsumexp(beliefs[root]))
        beliefs[root] = beliefs[root] - log_z
        for j in self.order[1:]:
            above = self.cliques[self.parent[j]]
            told = _log_sum(beliefs[self.parent[j]], _others(above, self.separator[j])) - sent[j]
            beliefs[j] = beliefs[j] + told.reshape(self._broadcast_shape(self.separator[j], self.cliques[j]))
        return log_z, [np.exp(belief) for belief in beliefs]

    def draw(self, n: int, rng: np.random.Generator) -> IntArray:
        """Return ``n`` rows of cells, (n, columns), drawn down the tree: stratified within each separator's value."""
        out = np.full((n, len(self.sizes)), -1, dtype=np.int64)
        for j in self.order:
            clique, known = self.cliques[j], self.separator.get(j, ())
            new = tuple(i for i in clique if i not in known)
            law = np.transpose(self.laws[j], [clique.index(i) for i in (*known, *new)])
            rows = np.zeros(n, dtype=np.int64)
            for i in known:
                rows = rows * self.sizes[i] + out[:, i]
            found = draw_stratified(law.reshape(math.prod(self._shape(known)), -1), rows, rng)
            out[:, list(new)] = np.column_stack(np.unravel_index(found, self._shape(new)))
        return out

    def _shape(self, columns: Iterable[int]) -> tuple[int, ...]:
        return tuple(self.sizes[i] for i in columns)

    def _broadcast_shape(self, columns: Sequence[int], clique: Sequence[int]) -> tuple[int, ...]:
        """Return the shape in which an array over ``columns`` is added to one over a clique."""
        return tuple(self.sizes[i] if i in columns else 1 for i in clique)


def _others(clique: Sequence[int], kept: Sequence[int]) -> tuple[int, ...]:
    return tuple(axis for axis, i in enumerate(clique) if i not in kept)


def _log_sum(x: FloatArray, axes: tuple[int, ...]) -> FloatArray:
    """Return log Σ exp over some axes; as SciPy's, several times as fast."""
    if not axes:
        return x
    most = x.max(axes, keepdims=True)
    return np.asarray((np.log(np.exp(x - most).sum(axes, keepdims=True)) + most).squeeze(axes))


def draw_stratified(laws: FloatArray, rows: IntArray, rng: np.random.Generator) -> IntArray:
    """Return a draw from ``laws[row]`` for each of ``rows``; those of one row are spread evenly over its law.

    The places are shared out in random order: what is drawn for one column says nothing about another.
    """
    mixed = rng.permutation(len(rows))
    order = mixed[np.argsort(rows[mixed], kind="stable")]
    law = rows[order]
    sizes = np.bincount(law, minlength=len(laws))
    place = np.arange(len(rows)) - (np.cumsum(sizes) - sizes)[law]
    uniform = np.minimum((place + rng.random(len(rows))) / np.maximum(sizes[law], 1), 1 - 1e-12)
    reached = np.cumsum(np.maximum(laws, 0) + 1e-300, axis=1)
    reached /= reached[:, -1:]
    reached[:, -1] = 1
    found = np.searchsorted((reached + np.arange(len(laws))[:, None]).ravel(), law + uniform, side="right")
    out = np.empty(len(rows), dtype=np.int64)
    out[order] = np.clip(found - law * laws.shape[1], 0, laws.shape[1] - 1)
    return out
