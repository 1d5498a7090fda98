"""AIM (McKenna et al. 2022) on this package's columns and junction tree: what another choice of pairs gains.

The columns are asked for as `PrivateSynthesizer` asks for them, at the same price; what is left pays for rounds that
select a pair, count it and fit again. A round costs 1/(2 sd^2) + eps^2/8 of rho: zero-concentrated privacy's price.
"""

import math
from itertools import combinations

import numpy as np
import pandas as pd

import deniable as dn
from deniable.noise import SumNoise
from deniable.synthesis.fits import Synthesis
from deniable.synthesis.junction import JunctionTree, cells_of, neighbours, triangulate

CELLS, STEPS, ROWS = 100_000, 40, 100_000  # of the model in all; of a round's fit; drawn to see what the model says


def made(train: pd.DataFrame, rho: float, rows: int, seed: int) -> pd.DataFrame:
    """Return made-up rows of a fit that spends rho in all."""
    model = dn.PrivateSynthesizer(limit=dn.mechanisms.GaussianDP(math.sqrt(2 * rho)))
    fit = Synthesis.begin(model, train, SumNoise())
    fit.ask_columns()
    cells = zip(fit.columns, fit.table.columns, strict=True)
    groups = np.column_stack([mine.groups[mine.codes(fit.table.cells(column))] for mine, column in cells])
    fit.law = rounds(groups, fit.columns, fit.n, fit.look.ledger.left**2 / 2, np.random.default_rng(seed))
    fit.finished()
    return model.sample(rows, rng=seed)


def rounds(table: np.ndarray, columns: list, n: float, rho: float, rng: np.random.Generator) -> JunctionTree:
    """Return the law after rounds that spend rho; the workload is all pairs."""
    shape, d = [column.size for column in columns], len(columns)
    sd, eps = math.sqrt(16 * d / (2 * 0.9 * rho)), math.sqrt(8 * 0.1 * rho / (16 * d))
    weights = {p: float(2 + 2 * (d - 2)) for p in combinations(range(d), 2)} | {(i,): float(d - 1) for i in range(d)}
    real = {p: _counts(table, p, shape) for p in weights}
    kept = {(i,): [(n * column.shares, _group_sd(column))] for i, column in enumerate(columns)}
    used, law = 0.0, _fitted(shape, kept, n)
    while used < rho * (1 - 1e-9):
        left = rho - used
        if left < 2 * (1 / (2 * sd**2) + eps**2 / 8):
            sd, eps = math.sqrt(1 / (2 * 0.9 * left)), math.sqrt(8 * 0.1 * left)
        used += 1 / (2 * sd**2) + eps**2 / 8
        said = _model(law, weights, shape, n, rng)
        fits = [p for p in weights if p in kept or _size([*kept, p], shape) <= CELLS * min(used / rho, 1)]
        chance = {p: math.sqrt(2 / math.pi) * sd * real[p].size for p in fits}
        gains = np.array([weights[p] * (np.abs(real[p] - said[p]).sum() - chance[p]) for p in fits])
        gains *= eps / (2 * max(weights[p] for p in fits))
        best = fits[int(np.argmax(gains + rng.gumbel(size=len(fits))))]
        kept.setdefault(best, []).append((real[best] + rng.normal(0, sd, real[best].shape), sd))
        law = _fitted(shape, kept, n)
        if np.abs(_model(law, [best], shape, n, rng)[best] - said[best]).sum() <= chance[best]:
            sd, eps = sd / 2, 2 * eps
    return law


def _group_sd(column) -> float:
    """Return the noise of a group of ordinary size, as `PrivateSynthesizer` takes it."""
    return math.sqrt(max(len(column.mass) / column.size, 1.0)) * float(column.sds[0])


def _counts(table: np.ndarray, columns: tuple[int, ...], shape: list[int]) -> np.ndarray:
    sizes = [shape[c] for c in columns]
    flat = np.ravel_multi_index([table[:, c] for c in columns], sizes)
    return np.bincount(flat, minlength=math.prod(sizes)).reshape(sizes).astype(float)


def _model(law: JunctionTree, asked, shape: list[int], n: float, rng: np.random.Generator) -> dict:
    rows = law.draw(ROWS, rng)
    return {p: _counts(rows, p, shape) * (n / ROWS) for p in asked}


def _size(margins: list[tuple[int, ...]], shape: list[int]) -> int:
    return cells_of(triangulate(neighbours(len(shape), margins), shape), shape)


def _fitted(shape: list[int], kept: dict, n: float) -> JunctionTree:
    """Fit to the mean of what was counted of each marginal, by its precision."""
    law = JunctionTree(shape, list(kept))
    precision = [sum(1 / sd**2 for _, sd in found) for found in kept.values()]
    means = [sum(c / sd**2 for c, sd in found) / p for found, p in zip(kept.values(), precision, strict=True)]
    law.fit(means, [p**-0.5 for p in precision], n, STEPS)
    return law
