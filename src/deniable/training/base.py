"""What the classifier and the regressor share: fitting, curves, exposure, pictures, what is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_is_fitted

from deniable._check import FloatArray, InputError, nearest_names
from deniable._files import stamp, unstamp
from deniable._notebook import Promised
from deniable._plot import marked
from deniable.curves import Tradeoff
from deniable.limits import Limit
from deniable.mechanisms import Mechanism
from deniable.noise import Account, NoiseSource, SumNoise, Units, only_our_words
from deniable.tables import Schema, apart, as_schema, as_table, open_table
from deniable.training.account import RecordTradeoffs
from deniable.training.additive import Additive
from deniable.training.features import FeatureTable
from deniable.training.fits import ModelFit, checked, complete_columns, without_group

T = TypeVar("T")
_NO_LEDGER = "not stored with a fitted model: set it anew"  # in place of a path; enter() refuses it


@dataclass_transform(kw_only_default=True)
def estimator(cls: type[T]) -> type[T]:
    """Give a class a constructor that takes its fields, and those of its bases, as scikit-learn's parameters."""
    made = dataclass(cls, kw_only=True, eq=False, repr=False)
    made.__init__ = nearest_names(made.__init__)  # type: ignore[method-assign]
    return made


@estimator
class Certified(Promised, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base of whatever is fitted under one certificate: its curves, what is stored, and the ledger that copies keep."""

    advantage: float | None = None
    limit: Limit | Mechanism | None = None
    schema: Schema | None = None
    group: Any = None
    ledger: Account | None = None

    @property
    def tradeoff_(self) -> Tradeoff:
        """The curve for adding or removing one unit."""
        check_is_fitted(self)
        curve: Tradeoff = self.certificate_.tradeoff
        return curve

    @property
    def replacement_tradeoff_(self) -> Tradeoff:
        """The curve for *replacing* one unit by another: a removal and an addition in one, twice the μ."""
        check_is_fitted(self)
        curve: Tradeoff = self.certificate_.replacement
        return curve

    def __sklearn_is_fitted__(self) -> bool:
        return "certificate_" in vars(self)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state with its format; a fitted model does not say where its ledger lies, and refuses to refit."""
        state = dict(super().__getstate__())
        if self.__sklearn_is_fitted__() and self.ledger is not None:
            state["ledger"] = _NO_LEDGER
        return stamp(state)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state of a model of this format; refuse others."""
        super().__setstate__(unstamp(state))


@estimator
class PrivateModel(Certified):
    """Base of the private estimators; see :class:`deniable.PrivateClassifier`."""

    model: str = "additive"
    ranges: Mapping[Any, tuple[Any, Any]] | None = None
    categories: Mapping[Any, Any] | str | None = None
    discovery_delta: float = 1e-6
    interactions: int | None = None
    records_per_person: int = 1
    _steps: ClassVar[type[ModelFit]]  # how the kind of model is fitted
    _record_tradeoffs: ClassVar[RecordTradeoffs | None] = None

    def fit(self, X: Any, y: Any = None, *, target: Any = None) -> Self:
        """Fit to a table and its target; nothing is set if this raises.

        Parameters
        ----------
        X
            Whatever holds a table of (rows, columns): a data frame of pandas, Polars (lazy, too), PyArrow or DuckDB,
            whatever has ``__arrow_c_stream__``, an array, a dict of columns. Or, without ``y``, one with the column
            ``target``: these, a file, or rows that need not fit into memory: a Parquet file or folder, a query of
            DuckDB, a Dask data frame; a list of blocks, an iterator of them or a function that returns one, a block
            being a pair ``(X, y)`` or a data frame. Columns of those are read one at a time (those that are in no
            file from a temporary one), and about 60 bytes per record are held, plus three for every column;
            with the same noise the model is bit for bit that of the same rows in memory.
        y
            Target, one entry per row.
        target
            The column of X to predict, where ``y`` is not given.
        """
        with only_our_words(DataConversionWarning):
            said, unit = as_schema(self.schema), "record"
            if isinstance(X, str | Path):
                opened = open_table(X, said).checked()  # of a text file a line is hidden
                X, unit = opened.frame, opened.unit
            if y is None:
                X, y = apart(X, said.target if target is None else target, as_table(X, said))
            elif target is not None:
                raise InputError("target names a column of X: give it or y, not both")
            return self._fit(X, y, SumNoise(), unit)

    def _fit(self, X: Any, y: Any, source: NoiseSource, unit: str = "record") -> Self:
        """Fit with another source of noise: every query of the data goes through ``source``."""
        self._steps.begin(self, X, source, Units(unit)).complete(y)
        return self

    @property
    def record_tradeoffs_(self) -> RecordTradeoffs:
        """Each record's own exposure in this fit: for the owner of the data; gone after pickling."""
        check_is_fitted(self)
        if self._record_tradeoffs is None:
            raise AttributeError(
                "record_tradeoffs_ reveals facts about the training records, so it is not stored "
                "with a model: it exists only on the fitted object itself, not on copies or pickles"
            )
        return self._record_tradeoffs

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the exposures, which are not protected."""
        state = super().__getstate__()
        state.pop("_record_tradeoffs", None)
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.non_deterministic = True
        tags.target_tags.required = True
        return tags

    def plot(self, columns: Any = None) -> Any:
        """Draw what each column, or each of those named, adds to the score; returns a matplotlib figure."""
        from deniable.training.plots import draw

        check_is_fitted(self)
        figure = draw(self.model_, columns, [column.name for column in self.columns_ if column.axis == "date"])
        return marked(figure, self.certificate_.insecure)

    def _scores(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        X, _ = without_group(self, as_table(X, self.schema_), fitting=False)
        model: Additive = self.model_
        return model.scores(
            FeatureTable(checked(self, complete_columns(self, X), reset=False), self.schema_, self.columns_)
        )
