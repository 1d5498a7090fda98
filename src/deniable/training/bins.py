"""Edges of bins with about equal numbers of records, from noisy histograms of a column.

First look: uniform cells, half-octave cells and a cell around zero. Second look: the same cells, but the heavy ones are
cut into finer ones (all years from 1024 to 2047 would otherwise share one cell). Where nearly all records are in two
adjacent cells even then (times of one day, in seconds since 1970), two more looks go into these. Everything after the
noisy histograms is post-processing.

Where records are few the noise on a cell's count exceeds the counts, and a finer look is not informative. One histogram
over octaves still shows roughly where a column lies and how wide it is. A library of shapes (log-normal laws of either
sign, with or without exact zeros, normal laws around any centre, uniform laws between powers of two, flags) holds the
probabilities of the octaves. Given noisy counts h = m·p + N(0, sd²) every shape has a posterior probability, and bins
of equal mass are read off the posterior mixture: sharp where the counts are clear, wide where they are not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from deniable._check import FloatArray
from deniable.noise import CELLS, cell_ends

_UNIFORM = 64  # cells of equal width over the range
_HALF_OCTAVES = 24  # cells whose width halves every second time, towards zero: skewed columns
_FINER = 16  # parts into which a heavy cell is cut for the second look
_HEAVY = 5.0  # standard deviations of noise by which a cell must stand out to be cut
_FINEST = 2.0**-40  # relative to the numbers' size: narrower cells are not cut
_CROWDED = 0.85  # share of the records in two adjacent cells above which these get a closer look

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
NARROW = 5 * 2 * WINDOW  # the first this many laws are narrow: those of five widths
SURE = 0.95  # posterior probability above which a narrow law is accepted
_ALIKE = (0.01, 0.5, 0.9)  # probabilities that a column has the common shape, equally likely a priori
_NEGLIGIBLE = 1e-3  # of the best shape's posterior probability, below which a shape is left out


@dataclass(frozen=True, eq=False)
class NoisyCells:
    """Shrunk counts of adjacent cells: ``edges`` are the inner ones, ``low`` and ``high`` the ends of the range."""

    low: float
    high: float
    edges: FloatArray
    mass: FloatArray

    @property
    def bounds(self) -> FloatArray:
        """All edges, the ends of the range included."""
        return np.concatenate(([self.low], self.edges, [self.high]))

    @property
    def reached(self) -> FloatArray:
        """Share of the mass below each of the ``bounds``; of the cells if there is no mass."""
        mass = np.cumsum(self.mass if self.mass.sum() > 0 else np.ones(self.mass.size))
        return np.concatenate(([0.0], mass / mass[-1]))


def first_edges(low: float, high: float) -> FloatArray:
    """Return the inner edges of the first look: sorted, strictly between ``low`` and ``high``."""
    largest = max(abs(low), abs(high))
    halves = largest * 2.0 ** (-np.arange(1, _HALF_OCTAVES + 1) / 2)
    edges = np.unique(np.concatenate((np.linspace(low, high, _UNIFORM + 1), halves, -halves)))
    return edges[(edges > low) & (edges < high)]


def shrunk(counts: FloatArray, sd: float) -> FloatArray:
    """Return the counts pulled towards their mean by the share of their spread that is noise; never negative."""
    signal = max(float(np.var(counts)) - sd**2, 0.0)
    kept = signal / (signal + sd**2) if sd > 0 else 1.0
    mean = max(float(np.mean(counts)), 0.0)
    return np.maximum(mean + kept * (counts - mean), 0.0)


def look_twice(low: float, high: float, count: Callable[[str, FloatArray], FloatArray], sd: float) -> NoisyCells:
    """Return the noisy cells of a column from two histograms, each with noise of standard deviation ``sd``.

    ``count`` takes "first" or "second" and the edges, and returns noisy counts of what lies between them.
    """
    edges = first_edges(low, high)
    first = count("first", edges)
    bounds = np.concatenate(([low], edges, [high]))
    mass = shrunk(first, sd)
    heavy = (first > _HEAVY * sd) & (mass > mass.sum() / _UNIFORM * 2) & ~((bounds[:-1] < 0) & (bounds[1:] > 0))
    cuts = [np.linspace(a, b, _FINER + 1)[1:-1] for a, b in zip(bounds[:-1][heavy], bounds[1:][heavy], strict=True)]
    fine = np.unique(np.concatenate([edges, *cuts]))
    second = count("second", fine)
    # the first look's cell of each cell of the second
    parent = np.searchsorted(edges, np.concatenate(([low], fine)), side="right")
    whole = ~heavy[parent]
    out = np.empty(fine.size + 1)
    out[whole] = shrunk((first[parent[whole]] + second[whole]) / 2, sd / np.sqrt(2)) if whole.any() else 0.0
    for cell in np.flatnonzero(heavy):
        out[parent == cell] = shrunk(second[parent == cell], sd)
    return NoisyCells(low, high, fine, out)


def crowded(bounds: FloatArray, mass: FloatArray, sd: float = 0.0) -> tuple[float, float] | None:
    """Return (low, high) of the two adjacent cells with nearly all of the mass, or None; never cells at zero.

    They hold nearly all of what stands out of noise of standard deviation ``sd``, and most of the total count.
    """
    pairs = np.where((bounds[:-2] <= 0) & (bounds[2:] >= 0), 0.0, mass[:-1] + mass[1:])
    clear = float(mass[mass > _HEAVY * sd].sum())
    if not pairs.size or not pairs.max() > max(_CROWDED * clear, mass.sum() / 2) > 0:
        return None
    first = int(np.argmax(pairs))
    low, high = float(bounds[first]), float(bounds[first + 2])
    return (low, high) if high - low > _FINEST * max(abs(low), abs(high)) else None


def with_inside(cells: NoisyCells, inside: NoisyCells) -> NoisyCells:
    """Return the cells with those between two of their bounds replaced by finer ones."""
    first, last = np.searchsorted(cells.bounds, (inside.low, inside.high))
    bounds = np.concatenate((cells.bounds[:first], inside.bounds, cells.bounds[last + 1 :]))
    mass = np.concatenate((cells.mass[:first], inside.mass, cells.mass[last:]))
    return NoisyCells(cells.low, cells.high, bounds[1:-1], mass)


def equal_mass_edges(cells: NoisyCells, bins: int) -> FloatArray:
    """Return inner edges of about ``bins`` bins of equal mass; a cell heavier than a bin gets a bin of its own.

    What the heavy cells leave is shared out among the remaining bins. Within a cell the mass counts as uniform.
    """
    total = float(cells.mass.sum())
    bounds = cells.bounds
    if not total > 0:
        return np.linspace(cells.low, cells.high, bins + 1)[1:-1]
    heavy = cells.mass > total / bins
    light = np.where(heavy, 0.0, cells.mass)
    left = bins - int(np.sum(heavy))
    reached = np.concatenate(([0.0], np.cumsum(light)))
    edges = [bounds[:-1][heavy], bounds[1:][heavy]]
    if left > 1 and reached[-1] > 0:
        shares = reached[-1] * np.arange(1, left) / left
        at = np.clip(np.searchsorted(reached, shares, side="left"), 1, reached.size - 1)
        inside = (shares - reached[at - 1]) / np.maximum(reached[at] - reached[at - 1], 1e-300)
        edges.append(bounds[at - 1] + inside * (bounds[at] - bounds[at - 1]))
    found = np.unique(np.concatenate(edges))
    return found[(found > cells.low) & (found < cells.high)]


def mass_between(cells: NoisyCells, edges: FloatArray) -> FloatArray:
    """Return the share of the mass in each bin, the outer ones included."""
    return np.diff(np.interp(edges, cells.bounds, cells.reached), prepend=0.0, append=1.0)


def quantile(cells: NoisyCells, share: float) -> float:
    """Return the point below which ``share`` of the mass lies."""
    return float(np.interp(share, cells.reached, cells.bounds))


@dataclass(frozen=True, eq=False)
class Library:
    """Shapes as rows: probabilities of the cells between ``bounds``, log prior, ``_POINTS`` quantiles."""

    bounds: FloatArray
    cells: FloatArray
    prior: FloatArray
    quantiles: FloatArray

    @cached_property
    def squares(self) -> FloatArray:
        """Sum of the squared probabilities of each shape."""
        return np.asarray(np.square(self.cells).sum(axis=1))

    def log_likelihood(self, counts: FloatArray, sd: float, records: float) -> FloatArray:
        """Return the log likelihood of each shape at its likeliest number of values, up to a constant.

        A quarter of the ``records``, or more, is taken to have a value; ``counts`` have noise of size ``sd``.
        """
        products, records = self.cells @ counts, max(records, 1.0)
        size = np.clip(products / self.squares, _FEWEST * records, records)
        return np.asarray((size * products - size**2 * self.squares / 2) / sd**2)

    def posterior(self, counts: FloatArray, sd: float, records: float, prior: FloatArray | None = None) -> FloatArray:
        """Return the probability of each shape, those far below the likeliest as 0, also under another log prior."""
        logs = self.log_likelihood(counts, sd, records) + (self.prior if prior is None else prior)
        out = np.exp(logs - logs.max())
        out[out <= _NEGLIGIBLE] = 0.0
        return np.asarray(out / out.sum())

    def mixture(self, posterior: FloatArray) -> NoisyCells:
        """Return adjacent cells of equal mass under a mixture of the shapes, 5 % of the mass beyond each end."""
        kept = posterior > 0
        points = self.quantiles[kept].ravel()
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

    def crowded(self, posterior: FloatArray) -> tuple[float, float] | None:
        """Return the ends of two adjacent cells that hold nearly all values of a mixture of the shapes, or None."""
        return crowded(self.bounds, posterior @ self.cells)


@lru_cache(maxsize=1)
def octave_library() -> Library:
    """Return about 5,000 shapes of columns and their probabilities of the octaves, 8 MB."""
    bounds = np.array([cell_ends(cell)[0] for cell in range(CELLS)] + [cell_ends(CELLS - 1)[1]])
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
    return Library(bounds, np.concatenate(cells), np.concatenate(prior), np.concatenate(quantiles))


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
    library = octave_library()
    base = library.prior - _log_sum(library.prior)
    if len(counts) < 2:
        return [base] * len(counts)
    alike = np.array(_ALIKE)[:, None]
    found = [library.log_likelihood(column, sd, records) for column in counts]
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


def window_library(low: float, high: float) -> Library:
    """Return normal laws in a window, narrow ones first, and their probabilities of its :data:`WINDOW` equal parts."""
    window = _window()
    quantiles = low + (high - low) * window.quantiles
    return replace(window, bounds=np.linspace(low, high, WINDOW + 1), quantiles=quantiles)


@lru_cache(maxsize=1)
def _window() -> Library:
    """Build normal laws of all places and widths in the window from 0 to 1."""
    centres = (np.arange(2 * WINDOW) + 0.5) / (2 * WINDOW)
    ends = np.arange(WINDOW + 1) / WINDOW
    cells, quantiles = [], []
    for width in _WIDTHS:
        cells.append(np.diff(ndtr((ends - centres[:, None]) / width), axis=1))
        quantiles.append(centres[:, None] + width * ndtri((np.arange(_POINTS) + 0.5) / _POINTS))
    return Library(ends, np.concatenate(cells), np.zeros(len(_WIDTHS) * centres.size), np.concatenate(quantiles))


def _log_sum(logs: FloatArray, axis: int | None = None) -> FloatArray:
    """Return log ∑ exp, dimensions kept, of finite logs (SciPy's takes ten times as long on few numbers)."""
    most = logs.max(axis=axis, keepdims=True)
    return np.asarray(most + np.log(np.exp(logs - most).sum(axis=axis, keepdims=True)))


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
