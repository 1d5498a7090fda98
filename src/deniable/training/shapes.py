"""Bins of a column from one noisy histogram over octaves, where records are too few for more: a library of shapes.

With few records, many columns or a strict target the noise on a cell's count exceeds the counts, and neither a
threshold nor a second, finer look is informative. One histogram still shows roughly where a column lies and how wide
it is. The shapes are log-normal laws of either sign, with or without exact zeros, normal laws around any centre,
uniform laws between powers of two and flags (zeros and ones), each as probabilities of the octaves. Given
noisy counts h = m·p + N(0, sd²) every shape has a posterior probability, and bins of equal mass are read off the
posterior mixture: sharp where the counts are clear, wide where they are not. All of it is post-processing of the
histogram.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from deniable._check import FloatArray
from deniable.noise.octaves import CELLS, cell_ends
from deniable.training.bins import NoisyCells, crowded

_POINTS = 64  # quantiles that stand for a shape
_ENDS = 6  # of 2·_POINTS = 128 equal parts lie beyond each end of the cells: about 5 % of the mass
_SPREADS = (0.15, 0.3, 0.6, 1.2, 2.5)  # standard deviations of log2|x|
_ZEROS = (0.0, 0.4, 0.8)  # shares of exact zeros
_LIKELY = 0.2  # share of zeros in a mixture from which on they are about as likely as not
_CENTRES = (-3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0)  # means in standard deviations
_SPANS = ((1.0, 2.0), (1.0, 4.0), (0.0, 1.0), (-1.0, 1.0), (-2.0, -1.0))  # of uniform laws, in powers of two
_FLAGS = np.arange(5, 19) / 20  # shares of zeros in columns of zeros and ones
_USUAL, _OCTAVES = 2.0, 10.0  # prior mean and standard deviation of a column's size in octaves
_UNUSUAL = 1.5  # prior penalty, in nats, of a negative sign, of exact zeros or of a negative mean
_FEWEST = 0.25  # of the records that must have a value in the column: the others may be missing
WINDOW = 64  # parts of a window that is looked into
_WIDTHS = tuple(2.0**-k for k in range(8, 0, -1))  # standard deviations of normal laws in a window of length 1
_NARROW = 5  # the first this many widths are narrow
_SURE = 0.95  # posterior probability above which a narrow law is accepted
_ALIKE = (0.01, 0.5, 0.9)  # probabilities that a column has the common shape, equally likely a priori
_NEGLIGIBLE = 1e-3  # of the best shape's posterior probability, below which a shape is left out


@dataclass(frozen=True, eq=False)
class _Library:
    """Shapes as rows: probabilities of the octave cells, log prior, ``_POINTS`` quantiles."""

    cells: FloatArray
    prior: FloatArray
    quantiles: FloatArray

    @cached_property
    def squares(self) -> FloatArray:
        """Sum of the squared probabilities of each shape."""
        return np.asarray(np.square(self.cells).sum(axis=1))


@lru_cache(maxsize=1)
def _library() -> _Library:
    """Build the library: about 5,000 shapes, 8 MB."""
    ends = np.array([cell_ends(cell)[1] for cell in range(CELLS - 1)])  # the upper ends; the last is open
    exponents = np.log2([cell_ends(cell)[0] for cell in range(CELLS // 2 + 1, CELLS)])
    half_octaves = np.arange(exponents[0], exponents[-1] + 1, 0.5)
    share = (np.arange(_POINTS) + 0.5) / _POINTS
    cells, prior, quantiles = [], [], []
    with np.errstate(divide="ignore"):
        logs = np.log2(np.maximum(ends, 0))
    for spread in _SPREADS:
        positive = ndtr((logs - half_octaves[:, None]) / spread)
        for zeros in _ZEROS:
            below = np.where(ends >= 0, zeros + (1 - zeros) * positive, 0.0)
            law = np.diff(below, axis=1, prepend=0.0, append=1.0)
            inside = np.clip((share - zeros) / (1 - zeros), 1e-9, None)
            points = np.where(share < zeros, 0.0, 2.0 ** (half_octaves[:, None] + spread * ndtri(inside)))
            cost = _prior(half_octaves, len(_SPREADS)) - _UNUSUAL * (zeros > 0)
            cells += [law, law[:, ::-1]]
            quantiles += [points, -points[:, ::-1]]
            prior += [cost, cost - _UNUSUAL]
    sizes = half_octaves[2:-4]
    widths = 2.0**sizes
    for centre in _CENTRES:
        below = ndtr(ends / widths[:, None] - centre)
        cells.append(np.diff(below, axis=1, prepend=0.0, append=1.0))
        quantiles.append(widths[:, None] * (centre + ndtri(share)))
        prior.append(_prior(sizes, len(_CENTRES)) - _UNUSUAL * (centre < 0))
    for start, stop in _SPANS:
        begin, end = start * widths[::2, None], stop * widths[::2, None]
        below = np.clip((ends - begin) / (end - begin), 0, 1)
        cells.append(np.diff(below, axis=1, prepend=0.0, append=1.0))
        quantiles.append(begin + (end - begin) * share)
        prior.append(_prior(sizes[::2], len(_SPANS)) - _UNUSUAL * (stop < 0))
    flags = np.zeros((_FLAGS.size, CELLS))
    flags[:, CELLS // 2], flags[:, CELLS // 2 + 1 + int(np.flatnonzero(exponents == 0)[0])] = _FLAGS, 1 - _FLAGS
    cells.append(flags)
    quantiles.append((share >= _FLAGS[:, None]).astype(np.float64))
    prior.append(np.full(_FLAGS.size, -_UNUSUAL - np.log(_FLAGS.size)))
    return _Library(np.concatenate(cells), np.concatenate(prior), np.concatenate(quantiles))


def _prior(sizes: FloatArray, kinds: int) -> FloatArray:
    """Log prior: every kind of shape weighs the same, shapes of usual sizes more than others."""
    logs = -(((sizes - _USUAL) / _OCTAVES) ** 2) / 2
    return np.asarray(logs - np.log(np.exp(logs).sum() * kinds))


def shared_priors(counts: Sequence[FloatArray], sd: float, records: float) -> list[FloatArray]:
    """Return for each column the log prior of the shapes when the other columns' noisy counts are known.

    Columns of one table are often alike: standardised, shares, answers on one scale. A priori there is a common shape;
    each column has it with probability θ, else one of its own; θ is one of :data:`_ALIKE`, equally likely. The
    posterior of θ and of the common shape given the other columns is exact. Where columns differ it settles on
    the smallest θ and changes little.
    """
    library = _library()
    base = library.prior - _log_sum(library.prior)
    if len(counts) < 2:
        return [base] * len(counts)
    alike = np.array(_ALIKE)[:, None]
    found = [_log_likelihood(library, column, sd, records) for column in counts]
    own = [_log_sum(column + base) for column in found]
    given = [np.logaddexp(np.log(alike) + f, np.log1p(-alike) + o) for f, o in zip(found, own, strict=True)]
    together = base + np.sum(given, axis=0)
    out = []
    for column in given:
        joint = together - column
        joint -= _log_sum(joint)
        alone = _log_sum(_log_sum(joint, 1) + np.log1p(-alike))[0]
        out.append(np.logaddexp(_log_sum(joint + np.log(alike), 0)[0], alone + base))
    return out


def cells_from_octaves(counts: FloatArray, sd: float, records: float, prior: FloatArray | None = None) -> NoisyCells:
    """Return adjacent cells of equal mass under the posterior mixture of all shapes, 5 % of the mass beyond each end.

    Parameters
    ----------
    counts
        Noisy counts of the octave cells (``octaves.octave_cells``).
    sd
        Standard deviation of their noise.
    records
        About how many records there are; a quarter of them or more is taken to have a value in this column.
    prior
        Log prior of the shapes (:func:`shared_priors`); the library's unless given.
    """
    library = _library()
    return _mixture(library.quantiles, _posterior(library, counts, sd, records, prior))


def crowded_octaves(
    counts: FloatArray, sd: float, records: float, prior: FloatArray | None = None
) -> tuple[float, float] | None:
    """Return the ends of two adjacent octaves that hold nearly all values of the posterior mixture, or None."""
    library = _library()
    law = _posterior(library, counts, sd, records, prior) @ library.cells
    return crowded(np.array([cell_ends(cell)[0] for cell in range(CELLS)] + [cell_ends(CELLS - 1)[1]]), law)


def cells_in_window(counts: FloatArray, sd: float, records: float, low: float, high: float) -> NoisyCells | None:
    """Return equal-mass cells from noisy counts of :data:`WINDOW` equal parts of a window that holds nearly all values.

    None if the values may as well be spread over the window: the earlier cells are better then.
    """
    window = _window()
    posterior = _posterior(window, counts, sd, records)
    if not posterior[: _NARROW * 2 * WINDOW].sum() > _SURE:
        return None
    return _mixture(low + (high - low) * window.quantiles, posterior)


def crowded_part(counts: FloatArray, sd: float, records: float, low: float, high: float) -> tuple[float, float] | None:
    """Return the ends of two adjacent parts of the window that hold nearly all values of the mixture, or None."""
    window = _window()
    law = _posterior(window, counts, sd, records) @ window.cells
    return crowded(np.linspace(low, high, WINDOW + 1), law)


@lru_cache(maxsize=1)
def _window() -> _Library:
    """Build normal laws of all places and widths in the window from 0 to 1."""
    centres = (np.arange(2 * WINDOW) + 0.5) / (2 * WINDOW)
    ends = np.arange(WINDOW + 1) / WINDOW
    cells, quantiles = [], []
    for width in _WIDTHS:
        cells.append(np.diff(ndtr((ends - centres[:, None]) / width), axis=1))
        quantiles.append(centres[:, None] + width * ndtri((np.arange(_POINTS) + 0.5) / _POINTS))
    return _Library(np.concatenate(cells), np.zeros(len(_WIDTHS) * centres.size), np.concatenate(quantiles))


def _log_likelihood(library: _Library, counts: FloatArray, sd: float, records: float) -> FloatArray:
    """Return the log likelihood of each shape at its likeliest number of values, up to a constant."""
    squares, products = library.squares, library.cells @ counts
    records = max(records, 1.0)
    size = np.clip(products / squares, _FEWEST * records, records)
    return np.asarray((size * products - size**2 * squares / 2) / sd**2)


def _normalised(logs: FloatArray) -> FloatArray:
    """Return probabilities along the last axis, those far below the likeliest as 0."""
    out = np.exp(logs - logs.max(axis=-1, keepdims=True))
    out[out <= _NEGLIGIBLE] = 0.0
    return np.asarray(out / out.sum(axis=-1, keepdims=True))


def _log_sum(logs: FloatArray, axis: int | None = None) -> FloatArray:
    """Return log ∑ exp, dimensions kept, of finite logs (SciPy's takes ten times as long on few numbers)."""
    most = logs.max(axis=axis, keepdims=True)
    return np.asarray(most + np.log(np.exp(logs - most).sum(axis=axis, keepdims=True)))


def _posterior(
    library: _Library, counts: FloatArray, sd: float, records: float, prior: FloatArray | None = None
) -> FloatArray:
    """Return the posterior probability of each shape."""
    return _normalised(_log_likelihood(library, counts, sd, records) + (library.prior if prior is None else prior))


def _mixture(quantiles: FloatArray, posterior: FloatArray) -> NoisyCells:
    kept = posterior > 0
    points = quantiles[kept].ravel()
    weights = np.repeat(posterior[kept], _POINTS)
    order = np.argsort(points, kind="stable")
    reached = np.cumsum(weights[order])
    at = np.searchsorted(reached / reached[-1], np.arange(1, 2 * _POINTS, 1) / (2 * _POINTS))
    found = points[order][np.minimum(at, points.size - 1)]
    low, high = found[_ENDS - 1], found[-_ENDS]  # far tails of a wide mixture would leave no slope to a linear term
    edges = np.unique(np.concatenate((found[1::2], _beside_zeros(found))))
    if not low < high:
        low, high = low - abs(low) / 2 - 2.0**-20, high + abs(high) / 2 + 2.0**-20
    edges = edges[(edges > low) & (edges < high)]
    if not edges.size:
        edges = np.array([low + (high - low) / 2])
    return NoisyCells(float(low), float(high), edges, np.ones(edges.size + 1))


def _beside_zeros(points: FloatArray) -> FloatArray:
    """Return edges between exact zeros and the octave nearest to them, if a shape with zeros is likely.

    A shape's values in an octave are spread over all of it, those of a count or a flag are at its lower end: without
    such edges zeros and ones would share a bin. There are as many as half of the zeros' mass would have had, but one
    for a flag: all would say the same.
    """
    zeros = float((points == 0).mean())
    many = max(int(np.rint(zeros * _POINTS / 4)), 1) if np.unique(points).size > 2 else 1
    part = np.arange(1, many + 1) / (2 * many)
    sides = [(1.0, points[points > 0]), (-1.0, -points[points < 0][::-1])] if zeros > _LIKELY else []
    found = [sign * 2.0 ** np.floor(np.log2(side[0])) * part for sign, side in sides if side.size]
    return np.concatenate([np.empty(0), *found])
