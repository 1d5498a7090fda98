"""The first step of a published private model: how the cells of a raw table are read."""

from __future__ import annotations

from typing import Any, Self

import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin

from deniable.tables import Reader

FLAG = "yes/no"


def with_flags(frame: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Return the frame with these columns of 1, 0 and NaN as yes, no and missing: their two values need no look."""
    return frame.astype(dict.fromkeys(names, "boolean"))


class TableReader(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Reads rows as the table of the fit was read; it holds names and kinds of columns, none of their values.

    Parameters
    ----------
    columns
        (name, kind, form) of each column, as :attr:`deniable.tables.Reader.columns` has them.
    """

    def __init__(self, columns: tuple[Any, ...]) -> None:
        self.columns = columns

    def fit(self, X: Any, y: Any = None) -> Self:
        """Nothing is learned."""
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the columns that the model knows, read as in the fit."""
        return with_flags(Reader(tuple(self.columns)).read(X), [name for name, kind, _ in self.columns if kind == FLAG])

    def __sklearn_is_fitted__(self) -> bool:
        return True
