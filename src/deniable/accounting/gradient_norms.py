"""The norms of gradients, as an array or as recorded during a run, and their shares of the clipping norm."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable._check import FloatArray, InputError, as_float64, integer, numbers, refuse_sparse


class NormRecorder:
    """Collects gradient norms while training runs, without keeping a (records × steps) array.

    Call :meth:`add` for the records whose norms are known in the current step, as often as needed, then
    :meth:`end_step`. A record that was not added in a step is taken to have had the clipping norm in it. That is
    the only sound choice: the attacker's advantage in a step comes from the chance that the record took part, with the
    gradient that it would have had, and a record left out of the batch did not show that gradient.

    Examples
    --------
    >>> import deniable as dn
    >>> recorder = dn.accounting.NormRecorder(100)
    >>> recorder.add([0, 7], [0.5, 2.0])                              # of the records in the batch
    >>> recorder.end_step()
    """

    def __init__(self, records: int) -> None:
        self.records = integer("records", records, at_least=1)
        self._steps: list[list[tuple[NDArray[np.intp], FloatArray]]] = [[]]

    def __len__(self) -> int:
        """Return the number of finished steps."""
        return len(self._steps) - 1

    def add(self, indices: ArrayLike, norms: ArrayLike) -> None:
        """Note the gradient norms (before or after clipping) of some records in the current step."""
        where = np.atleast_1d(np.asarray(indices))
        values = np.atleast_1d(numbers("norms", norms, at_least=0.0))
        if where.shape != values.shape or where.ndim != 1:
            raise InputError(f"indices and norms must have equal length, got shapes {where.shape} and {values.shape}")
        if where.size and not np.issubdtype(where.dtype, np.integer):
            raise InputError(f"indices must be whole numbers, got {where.dtype}")
        where = where.astype(np.intp)
        if where.size and not (where.min() >= 0 and where.max() < self.records):
            raise InputError(f"indices must be in 0..{self.records - 1}, got {where.min()}..{where.max()}")
        seen = np.concatenate([known for known, _ in self._steps[-1]] + [where])
        if np.unique(seen).size != seen.size:
            raise InputError(
                "indices must name each record at most once per step; a record that is drawn twice counts twice"
            )
        self._steps[-1].append((where, values))

    def end_step(self) -> None:
        """Close the current step."""
        self._steps.append([])

    def steps(self) -> Iterator[tuple[NDArray[np.intp], FloatArray]]:
        """Yield (indices, norms) of every finished step."""
        for parts in self._steps[:-1]:
            yield (
                np.concatenate([where for where, _ in parts] or [np.empty(0, dtype=np.intp)]),
                np.concatenate([values for _, values in parts] or [np.empty(0)]),
            )


def norm_array(gradient_norms: ArrayLike) -> FloatArray:
    """Return norms of shape (records, steps) as an array, or raise ``InputError``; NaN is an unknown norm."""
    try:
        refuse_sparse("gradient_norms", gradient_norms)
        array = as_float64(gradient_norms)  # NaN, also for a masked cell, is an unknown norm
    except InputError:
        raise
    except (TypeError, ValueError):
        raise InputError(f"gradient_norms must be an array of numbers, got {type(gradient_norms).__name__}") from None
    if array.ndim != 2 or array.size == 0:
        raise InputError(f"gradient_norms must have shape (records, steps), got {array.shape}")
    if np.any(array < 0):
        raise InputError(f"gradient_norms must be at least 0, got {float(array[array < 0][0]):g}")
    return array


def shares(norms: FloatArray, clip: float) -> FloatArray:
    """r/C of the clipped gradients, 1 where unknown; what is not 0 is at least a millionth."""
    clipped = np.minimum(np.where(np.isnan(norms), clip, norms), clip)
    return np.where(clipped > 0, np.maximum(clipped / clip, 1e-6), 0.0)
