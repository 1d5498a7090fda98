"""From the values of a column to the index of a cell, and from cells to the whole numbers that enter the sums.

Each encoder owns one block of the design matrix. A record is in one cell of each block; the cell's row of the block's
basis holds small whole numbers, and ``scale`` turns them into reals such that every row has Euclidean norm at most 1.
Encoders hold public constants and noised numbers only; they are what a fitted model keeps.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.special import ndtri

from deniable._check import FloatArray
from deniable.tables import NUMBER, ColumnCells, flag_of

Codes = NDArray[np.uint16]
PAIR_LEVELS = 8  # of each column in a pair
LEVELS = 127  # whole numbers from the middle to an end of a column
_MARGIN = 1 / 3  # share of the span of the edges by which the open bins beyond them are drawn at most
_WIDE = 100.0  # ratio of the outermost edges above which an axis is logarithmic


@dataclass(frozen=True, eq=False)
class Thermometer:
    """A number as one ±1 per edge (above or below it) and a linear term; a missing value has a cell of its own."""

    name: Any
    edges: FloatArray
    low: float
    high: float
    line: float  # share of the squared norm that the linear term has
    mass: FloatArray | None = None  # noisy share of the records in each bin, where it is well known
    ranked: bool = False  # the linear term is half in the bins' ranks: their ends are only roughly known

    @property
    def size(self) -> int:
        """Number of cells, the missing one last."""
        return self.edges.size + 2

    def codes(self, values: Any) -> Codes:
        """Return the cell of each value; NaN is missing."""
        numbers = np.asarray(values, dtype=np.float64)
        found = np.searchsorted(self.edges, numbers, side="right")
        return np.where(np.isnan(numbers), self.size - 1, found).astype(np.uint16)

    def basis(self) -> tuple[FloatArray, FloatArray]:
        """Return the whole numbers, (cells, coordinates), and the scale of each coordinate.

        One ±1 per edge, then the place of the bin between the outermost edges (by its value, or by the mean of value
        and rank), then whether the value is missing.
        """
        m = self.edges.size
        above = np.arange(m + 1)[:, None] > np.arange(m)[None, :]
        rows = np.zeros((m + 2, m + 2))
        rows[: m + 1, :m] = np.where(above, 1.0, -1.0)
        places = _places(self.edges)
        rows[: m + 1, m] = np.trunc((places + _normal_scores(m + 1)) / 2) if self.ranked else places
        rows[m + 1, m + 1] = 1.0
        steps, line = np.sqrt(1 - self.line), np.sqrt(self.line)
        return rows, np.concatenate((np.full(m, steps / np.sqrt(max(m, 1))), [line / LEVELS, 1.0]))

    def drawn(self, values: FloatArray) -> tuple[FloatArray, FloatArray, bool]:
        """Return the ends of the bins as drawn, what they add to the score, and whether the axis is logarithmic.

        The outermost bins are open: of these at most a third of what lies between the edges is drawn. All that is known
        of their range is an octave, which may be mostly empty (the years 1024 to 2047).
        """
        edges, low, high = self.edges, self.low, self.high
        wide = bool(low > 0 and edges.size > 1 and edges[-1] > _WIDE * edges[0])
        if edges.size > 1:
            first, last = np.log(edges[[0, -1]]) if wide else edges[[0, -1]]
            ends = np.array([first - (last - first) * _MARGIN, last + (last - first) * _MARGIN])
            near, far = np.exp(ends) if wide else ends
            low, high = max(low, near), min(high, far)
        return np.concatenate(([low], edges, [high])), np.asarray(values[: edges.size + 1]), wide


def _normal_scores(bins: int) -> FloatArray:
    """Return the quantiles of a normal law at bins of equal mass, as whole numbers between −127 and 127."""
    scores = ndtri((np.arange(bins) + 0.5) / bins)
    return np.asarray(np.trunc(LEVELS * scores / max(scores[-1], 1e-9)))  # a single bin has the score 0


def _places(edges: FloatArray) -> FloatArray:
    """Return the middle of each bin as a whole number between −127 (below the first edge) and 127."""
    if edges.size == 0:
        return np.zeros(1)
    middles = np.concatenate((edges[:1], (edges[1:] + edges[:-1]) / 2, edges[-1:]))
    if edges.size == 1 or not np.isfinite(edges[-1] - edges[0]):
        return np.asarray(np.trunc(np.linspace(-LEVELS, LEVELS, edges.size + 1)))
    return np.asarray(np.trunc(LEVELS * (2 * (middles - edges[0]) / (edges[-1] - edges[0]) - 1)))


@dataclass(frozen=True, eq=False)
class Levels:
    """A number as one coordinate, linear between ``low`` and ``high`` and constant beyond, on 255 levels."""

    name: Any
    low: float
    high: float
    mass: FloatArray | None = None  # noisy share of the records on each level, where it is well known

    @property
    def size(self) -> int:
        """Number of cells, the missing one last."""
        return 2 * LEVELS + 2

    @staticmethod
    def edges(low: float, high: float) -> FloatArray:
        """Return where one level ends and the next begins."""
        return np.asarray(low + (np.arange(2 * LEVELS) + 0.5) * ((high - low) / (2 * LEVELS)))

    def codes(self, values: Any) -> Codes:
        """Return the level of each value; NaN is missing."""
        numbers = np.asarray(values, dtype=np.float64)
        share = (np.clip(numbers, self.low, self.high) - self.low) / (self.high - self.low)
        return np.where(np.isnan(numbers), self.size - 1, np.rint(np.nan_to_num(share) * 2 * LEVELS)).astype(np.uint16)

    def basis(self) -> tuple[FloatArray, FloatArray]:
        """Return the whole numbers, (cells, coordinates), and the scale of each coordinate."""
        rows = np.zeros((self.size, 2))
        rows[:-1, 0] = np.arange(-LEVELS, LEVELS + 1)
        rows[-1, 1] = 1.0
        return rows, np.array([1 / LEVELS, 1.0])


@dataclass(frozen=True, eq=False)
class Listed:
    """A category out of a known list; others share a cell, missing values have one.

    Two values are the ends of one coordinate: with a coordinate each, their difference would have √2 times the noise.
    """

    name: Any
    values: tuple[str, ...]
    flags: bool = False  # the list is no and yes, and takes all spellings of both
    _index: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_index", {value: i for i, value in enumerate(self.values)})

    @property
    def two_ends(self) -> bool:
        """Whether the list has two values, such as yes and no."""
        return len(self.values) == 2

    @property
    def size(self) -> int:
        """Number of cells: the list, others, missing."""
        return len(self.values) + 2

    def codes(self, values: Any) -> Codes:
        """Return the cell of each value; None is missing."""
        other, spelled = len(self.values), flag_of if self.flags else str
        return _by_value(values, lambda v: self._index.get(spelled(v), other), other + 1)

    def basis(self) -> tuple[FloatArray, FloatArray]:
        """Return the whole numbers, (cells, coordinates), and the scale of each coordinate."""
        rows = np.eye(self.size)
        if self.two_ends:
            rows = rows[:, 1:]
            rows[0, 0] = -1.0
        return rows, np.ones(rows.shape[1])


@dataclass(frozen=True, eq=False)
class Hashed:
    """A category in a cell given by a public hash of its text: costs nothing and never saw the data."""

    name: Any
    cells: int

    @property
    def size(self) -> int:
        """Number of cells, the missing one last."""
        return self.cells + 1

    def codes(self, values: Any) -> Codes:
        """Return the cell of each value; None is missing."""
        return _by_value(values, self.cell, self.cells)

    def cell(self, value: str) -> int:
        """Return the cell of one text."""
        digest = hashlib.blake2b(f"{self.name}\0{value}".encode(errors="surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.cells

    def basis(self) -> tuple[FloatArray, FloatArray]:
        """Return the whole numbers, (cells, coordinates), and the scale of each coordinate."""
        return np.eye(self.size), np.ones(self.size)


@dataclass(frozen=True, eq=False)
class Encoder:
    """A column of numbers or dates, words, or both: a record is in one bin, in one cell of words, or in the last one.

    What neither part takes is missing: words where there are only bins, numbers of the other kind.
    """

    number: Thermometer | Levels | None
    word: Listed | Hashed | None
    axis: int = NUMBER

    @property
    def name(self) -> Any:
        """Name of the column."""
        part = self.number or self.word
        return None if part is None else part.name

    @property
    def bins(self) -> int:
        """Number of cells of numbers, the first ones."""
        return 0 if self.number is None else self.number.size - 1

    @property
    def size(self) -> int:
        """Number of cells: bins, words, missing."""
        return self.bins + (1 if self.word is None else self.word.size)

    @property
    def mass(self) -> FloatArray | None:
        """Noisy share of the records in each cell, where it is well known; NaN for words and missing cells."""
        known = None if self.number is None else self.number.mass
        return None if known is None else np.append(known, np.full(self.size - known.size, np.nan))

    @property
    def in_order(self) -> int:
        """Number of cells, the first ones, that lie on a line: bins, or no and yes."""
        return self.bins or 2 * (isinstance(self.word, Listed) and self.word.two_ends)

    def codes(self, cells: ColumnCells) -> Codes:
        """Return the cell of each record."""
        out = np.full(len(cells), self.size - 1)
        on = (cells.kind == self.axis) & (self.number is not None)
        if self.word is not None:
            known = self.word.codes(np.array([*cells.words, None], dtype=object)).astype(np.int64)
            out = self.bins + known[cells.word]
            beside = ~on & (cells.number == cells.number)
            out[beside] = self.bins + self.word.codes(cells.at(np.flatnonzero(beside)).spelled)
        if self.number is not None:
            out[on] = self.number.codes(cells.number[on])
        return out.astype(np.uint16)

    def basis(self) -> tuple[FloatArray, FloatArray]:
        """Return the whole numbers, (cells, coordinates), and the scale of each coordinate."""
        parts = [part.basis() for part in (self.number, self.word) if part is not None]
        if len(parts) == 1:
            return parts[0]
        (bins, first), (words, second) = parts
        return block_diag(bins[:-1, :-1], words), np.concatenate((first[:-1], second))


def _by_value(values: Any, cell: Any, missing: int) -> Codes:
    """Apply ``cell`` once to each distinct text."""
    texts = values.tolist()
    cells = {text: missing if text is None else cell(text) for text in set(texts)}
    return np.fromiter((cells[text] for text in texts), np.uint16, len(texts))


@dataclass(frozen=True, eq=False)
class Pair:
    """Two columns at eight levels each (a ninth where one is missing): products of thermometer signs.

    ``weight`` is the norm of its rows.
    """

    first: int
    second: int
    names: tuple[Any, Any]
    first_levels: Codes
    second_levels: Codes
    weight: float = 1.0

    @property
    def name(self) -> str:
        """Both names."""
        return f"{self.names[0]} × {self.names[1]}"

    @property
    def size(self) -> int:
        """Number of cells."""
        return (PAIR_LEVELS + 1) ** 2

    def codes(self, first: Codes, second: Codes) -> Codes:
        """Return the joint cell of the cells of the two columns."""
        return np.asarray(self.first_levels[first] * np.uint16(PAIR_LEVELS + 1) + self.second_levels[second])

    def grid(self, cells: Any) -> NDArray[Any]:
        """Return what is given for each cell by the levels of both columns, (levels, levels)."""
        return np.asarray(cells).reshape(PAIR_LEVELS + 1, PAIR_LEVELS + 1)[:-1, :-1]

    def basis(self) -> tuple[FloatArray, FloatArray]:
        """Return the whole numbers, (cells, coordinates), and the scale of each coordinate."""
        m = PAIR_LEVELS - 1
        signs = np.zeros((PAIR_LEVELS + 1, m))
        signs[:PAIR_LEVELS] = np.where(np.arange(PAIR_LEVELS)[:, None] > np.arange(m)[None, :], 1.0, -1.0)
        return np.asarray(np.kron(signs, signs), dtype=np.float64), np.full(m * m, self.weight / m)


def with_pairs(codes: Sequence[Codes], pairs: Sequence[Pair]) -> list[Codes]:
    """Return the cells of columns, of pairs of them, and of the intercept, whose cells are the last ones."""
    return [*codes[:-1], *(pair.codes(codes[pair.first], codes[pair.second]) for pair in pairs), codes[-1]]


def levels_of(encoder: Encoder, effects: FloatArray, mass: FloatArray) -> Codes:
    """Return the level of each cell: bins in order, categories by their ``effects``, cut into equal released masses.

    Words among numbers are on the level of missing cells.
    """
    cells = encoder.bins or encoder.size - 1
    order = np.arange(cells) if encoder.bins else np.argsort(effects[:cells], kind="stable")
    held = np.maximum(np.nan_to_num(mass[:cells]), 0.0)[order]
    held = held / held.sum() if held.sum() > 0 else np.full(cells, 1 / cells)
    out = np.full(encoder.size, PAIR_LEVELS)
    out[order] = np.minimum((np.cumsum(held) - held / 2) * PAIR_LEVELS, PAIR_LEVELS - 1).astype(np.int64)
    return out.astype(np.uint16)
