"""Synthetic data: a Gaussian generator G(z) = mean + Wz whose mean and covariance are released (Izzo et al. §5.2).

What a private generator generates is private, too: post-processing never raises η (Izzo et al., Theorem 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable._check import FloatArray, InputError, Seed, integer, numbers, seeded
from deniable.noise.certificate import Certificate
from deniable.noise.covariance import Covariance
from deniable.noise.mechanism import release


@dataclass(frozen=True, eq=False)
class GaussianGenerator:
    """Draws records from N(mean, covariance), both released.

    Attributes
    ----------
    mean, covariance
        The released values, (d,) and (d, d); the matrix is projected to the nearest covariance in units of its
        diagonal.
    certificate
        The membership guarantee. It covers the generator and everything drawn from it, however much.
    columns
        Names of the columns, if the data had any: ``sample`` then returns a DataFrame.
    """

    mean: FloatArray
    covariance: FloatArray
    certificate: Certificate
    columns: tuple[Any, ...] | None = None

    @property
    def weights(self) -> FloatArray:
        """W = covariance^{1/2} (Izzo et al. print (A + Aᵀ)^{1/2}, which doubles the covariance: erratum E6)."""
        values, vectors = np.linalg.eigh(self.covariance)
        return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)

    def sample(self, n: int, *, rng: Seed = None) -> Any:
        """Draw ``n`` records, G(z) with z ~ N(0, I): an array (n, d), or a DataFrame if the data had column names."""
        count = integer("n", n, at_least=1)
        z = seeded(rng).standard_normal((count, len(self.mean)))
        drawn = self.mean + z @ self.weights
        if self.columns is None:
            return drawn
        import pandas as pd

        return pd.DataFrame(drawn, columns=list(self.columns))


def release_generator(data: Any, *, eta: float, **options: Any) -> GaussianGenerator:
    """Release a Gaussian generator of the records' numbers with a certified η-MIP.

    The mean and the covariance of a secret random part of the data get the least noise that certifies ``eta`` for the
    two together. The generator knows nothing else of the data: no tails, no gaps, no dependence beyond correlation.

    Parameters
    ----------
    data
        Array or DataFrame of finite numbers, one record in each row, at least two columns.
    eta
        Largest gain of any membership attack over guessing.
    options
        As in :func:`deniable.release`, but for ``noise`` and ``bound``: ``fraction``, ``rng``, ….

    Raises
    ------
    InputError
        If the data are no table of finite numbers, or an option is not one of ``release``.

    Source: Izzo et al. §5.2, with a mean; errata E3, E5 and E6 apply to the paper's own procedure.
    """
    columns = tuple(data.columns) if hasattr(data, "columns") else None
    table = numbers("data", data)
    if table.ndim != 2 or table.shape[1] < 2 or not np.isfinite(table).all():
        raise InputError(f"data must be a table of finite numbers with two columns or more, got shape {table.shape}")
    for name in ("noise", "bound"):
        if name in options:
            raise InputError(f"{name} is fixed: Gaussian noise by the swap bound, which covers every record exactly")
    found = release(Covariance(with_mean=True), table, eta=eta, bound="swap", **options)
    value, d = np.asarray(found.value), table.shape[1]
    return GaussianGenerator(value[:d], projected(value[d:].reshape(d, d)), found.certificate, columns)


def projected(matrix: FloatArray) -> FloatArray:
    """Return the nearest positive semidefinite matrix, in units of the diagonal; a variance below 0 becomes 0."""
    both = (matrix + matrix.T) / 2
    unit = np.sqrt(np.maximum(np.diag(both), 0.0))
    safe = np.where(unit > 0, unit, 1.0)
    values, vectors = np.linalg.eigh(np.where(np.outer(unit, unit) > 0, both / np.outer(safe, safe), 0.0))
    kept = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return np.asarray(kept * np.outer(unit, unit))
