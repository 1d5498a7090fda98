"""How the records of a column are spread over its cells, so that steps see only what differs between records.

Noise has to cover the length of a record's row. What all rows have in common adds to that length and carries nothing
that the intercept does not, so it is subtracted: the mean row of each column under the masses of its cells. The masses
come from the bins where these are well known; for other columns one noisy sum is paid for, one number (the mean
place between the ends) for a column of numbers, the counts for categories. Rows of ordinary records are then shorter
than the longest possible one; the noise is made for rows of the root mean square length and longer rows are scaled
down to it (:meth:`deniable.training.fitting.Task.descend`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable._check import FloatArray
from deniable._floats import MANY_ROUNDINGS
from deniable._search import bisect
from deniable.noise.queries import Queries
from deniable.training.encoders import Encoder
from deniable.training.features import FeatureTable
from deniable.training.interactions import LEVELS, Pair

CENTRES_SHARE = 0.03  # of μ²: the masses of columns that no other look provides
_PLACES = 127  # lattice points between the middle and the end of a column
_MOST = 0.998  # farthest mean place, as a share of the way from the middle to an end
_STEEPEST = 1e4  # largest |θ| of :func:`tilted`; the mean place _MOST needs at most 1/(1 − _MOST) = 500
_CLEAR = 3.0  # standard deviations of noise by which the count of a category must stand out


@dataclass(frozen=True, eq=False)
class Columns:
    """Encoders, and for each the share of the records in each of its cells; NaN: a cell that is not centred."""

    encoders: tuple[Encoder, ...]
    masses: tuple[FloatArray, ...]

    def masses_with(self, pairs: Sequence[Pair]) -> tuple[FloatArray, ...]:
        """Return the masses of the columns and, as if columns were independent, of pairs of them."""
        return (*self.masses, *(self._of_pair(pair) for pair in pairs))

    def _of_pair(self, pair: Pair) -> FloatArray:
        sides = [
            np.bincount(levels[:-1], np.nan_to_num(self.masses[column])[:-1], minlength=LEVELS + 1)
            for column, levels in ((pair.first, pair.first_levels), (pair.second, pair.second_levels))
        ]
        joint = np.outer(*sides)
        joint[LEVELS, :] = joint[:, LEVELS] = np.nan
        return np.asarray(joint.ravel())


def centred(
    look: Queries, name: str, table: FeatureTable, encoders: tuple[Encoder, ...], mu: float, n: float
) -> Columns:
    """Return the columns with the masses of their cells; pays at most ``mu``, nothing if all are known."""
    found = {j: encoder.mass for j, encoder in enumerate(encoders) if encoder.mass is not None}
    unknown = [j for j in range(len(encoders)) if j not in found]
    found |= _released(look, name, table, encoders, unknown, mu, n) if unknown else {}
    return Columns(encoders, tuple(found[j] for j in range(len(encoders))))


def _released(
    look: Queries,
    name: str,
    table: FeatureTable,
    encoders: tuple[Encoder, ...],
    unknown: list[int],
    mu: float,
    n: float,
) -> dict[int, FloatArray]:
    """Return the masses from one noisy sum: each column moves it by at most 1 (in norm), a unit by √columns."""
    rows = [_rows(encoders[j]) for j in unknown]
    paid = look.pay(name, "how the records lie in columns without bins of known mass", mu)
    units = look.units
    sums = []
    for j, row in zip(unknown, rows, strict=True):
        codes = encoders[j].codes(table.cells(table.columns[j]))
        counts = np.bincount(codes, units.weights, minlength=encoders[j].size).astype(np.int64)
        sums.append(row.T @ counts)
    sd = math.sqrt(len(unknown)) * _PLACES * units.heaviest / mu * (1 + MANY_ROUNDINGS)
    whole = np.concatenate(sums)
    noised = paid.channel(name, np.full(whole.size, sd))(whole) / (_PLACES * units.heaviest * n)
    parts = np.split(noised, np.cumsum([row.shape[1] for row in rows])[:-1])
    felt = sd / (_PLACES * units.heaviest * n)
    found = {j: _clear(part, felt) for j, part in zip(unknown, parts, strict=True) if part.size > 1}
    numbers = [(j, row, float(part[0])) for j, row, part in zip(unknown, rows, parts, strict=True) if part.size == 1]
    if numbers:
        inner = {j: row[: encoders[j].in_order, 0] / _PLACES for j, row, _ in numbers}
        usual = [float(places.mean()) for places in inner.values()]
        away = np.array([place - middle for (_, _, place), middle in zip(numbers, usual, strict=True)])
        signal = max(float(np.mean(np.square(away))) - felt**2, 0.0)
        kept = signal / (signal + felt**2)
        for (j, places), middle, far in zip(inner.items(), usual, away, strict=True):
            masses = tilted(places, min(max(middle + kept * far, -_MOST), _MOST))
            found[j] = np.append(masses, np.full(encoders[j].size - masses.size, np.nan))
    return found


def _rows(encoder: Encoder) -> np.ndarray:
    """Return what a record in each cell adds: (cells, 1) places on a line, or (cells, cells) ones of categories."""
    if cells := encoder.in_order:
        places = np.rint(np.linspace(-_PLACES, _PLACES, cells)) if cells > 1 else np.zeros(1)
        return np.append(places, np.zeros(encoder.size - cells)).astype(np.int64)[:, None]
    return np.eye(encoder.size, dtype=np.int64) * _PLACES


def _clear(shares: FloatArray, sd: float) -> FloatArray:
    """Return the shares that stand out of the noise, scaled down to sum to at most 1; 0 for the others."""
    out = np.where(shares > _CLEAR * sd, shares, 0.0)
    return np.asarray(out / max(float(out.sum()), 1.0))


def tilted(places: FloatArray, mean: float) -> FloatArray:
    """Return masses proportional to exp(θ·place): the law of largest entropy with this mean, |mean| ≤ ``_MOST``."""

    def masses(tilt: float) -> FloatArray:
        weights = np.exp(tilt * places - np.max(tilt * places))
        return np.asarray(weights / weights.sum())

    tilt, _ = bisect(lambda tilt: float(masses(float(tilt)) @ places) < mean, -_STEEPEST, _STEEPEST, halvings=44)
    return masses(float(tilt))
