"""The first step of a published private model: which columns of a raw table it takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin

from deniable._check import InputError
from deniable.tables.parquet import few


class TableReader(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Takes the columns of these names from a table, in this order; the model reads their cells.

    Parameters
    ----------
    columns
        The names.
    """

    def __init__(self, columns: Sequence[Any]) -> None:
        self.columns = columns

    def fit(self, X: Any, y: Any = None) -> Self:
        """Nothing is learned."""
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the columns that the model knows."""
        if absent := [name for name in self.columns if name not in X.columns]:
            raise InputError(f"the table must have the columns {few(absent)}, which it lacks")
        return X[list(self.columns)]

    def __sklearn_is_fitted__(self) -> bool:
        return True
