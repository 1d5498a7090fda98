"""What the classifier and the regressor share: checking, budget, certificate, persons, exposure, pictures."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from deniable._check import FloatArray, InputError, choice, integer, number
from deniable._files import stamped, unstamped
from deniable.accounting import tradeoff
from deniable.curves import Tradeoff, with_assumptions
from deniable.limits import DEFAULT_ADVANTAGE
from deniable.mechanisms import Composition, GaussianDP
from deniable.mechanisms.core import parts_of
from deniable.noise.certificate import AS_GIVEN, Certificate
from deniable.noise.columns import COUNT_NOISE
from deniable.noise.queries import SHARED, Ledger, NoiseSource, Paid, Queries, SumNoise, Units, units_of
from deniable.noise.sealed import only_our_words
from deniable.planning.budget import Budget, budget
from deniable.planning.calibration import as_limit
from deniable.tables import ColumnSchema, ColumnsOnDisk, as_schema
from deniable.training.account import RecordTradeoffs
from deniable.training.features import Declared, FeatureTable, apart, as_table, asks_discovery, declare, public_inputs
from deniable.training.fitting import Additive, Task, fit_table
from deniable.training.looks import KINDS_SHARE, kinds
from deniable.training.losses import ClippedLoss

LEVEL_SHARE = 0.04  # of μ²: a last look at the level of the predictions
FEW = 50  # records below which a warning says what can be promised


class TrainingWarning(UserWarning):
    """The guarantee holds, but the model may be of little use; the message says what would help.

    It consists of declared names and released numbers only, and so does the decision to warn.
    """


@dataclass
class Begun:
    """A fit that has begun: its columns, its queries, and what is known without looking."""

    table: FeatureTable
    look: Queries
    declared: Declared
    allowance: Budget
    seen: dict[str, Any]  # the names of the columns, for scikit-learn


class PrivateModel(BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn has no types
    """Base of the private estimators; see :class:`deniable.PrivateClassifier`."""

    _record_tradeoffs: RecordTradeoffs | None = None

    def fit(self, X: Any, y: Any = None, *, target: Any = None) -> Self:
        """Fit to a table and its target; nothing is set if this raises.

        Parameters
        ----------
        X
            Data frame (numbers, texts, categories, booleans, dates, missing values) or array, (rows, columns).
            Or, without ``y``, rows that need not fit into memory: a Parquet file or folder or a Dask data frame with
            ``target``; a list of blocks, an iterator of them or a function that returns one, a block being a pair
            ``(X, y)`` or, with ``target``, a data frame. Columns are then read one at a time (those of Dask and of
            blocks from a temporary folder), and about 60 bytes per record are held, plus two for every two or three
            columns; with the same noise the model is bit for bit that of the same rows in memory.
        y
            Target, one entry per row.
        target
            The column of X to predict, where ``y`` is not given.
        """
        with only_our_words(DataConversionWarning):
            if y is None:
                target = as_schema(self.schema).target if target is None else target
                X, y = apart(X, target, declared=self._declared_target)
            elif target is not None:
                raise InputError("target names a column of X: give it or y, not both")
            return self._fit(X, y, SumNoise())

    def _fit(self, X: Any, y: Any, source: NoiseSource, unit: str = "record") -> Self:
        """Fit with another source of noise: every query of the data goes through ``source``."""
        return self._set(self._fitted(X, y, source, unit))  # everything is computed before anything is set

    def _set(self, fresh: Mapping[str, Any]) -> Self:
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        for name, value in fresh.items():
            setattr(self, name, value)
        return self

    def _fitted(self, X: Any, y: Any, source: NoiseSource, unit: str = "record") -> dict[str, Any]:
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None")
        begun = self._begin(X, source, unit)
        check_consistent_length(begun.table, y)
        target = self._target(y, begun.look)
        n, _ = kinds(begun.look, begun.table, begun.declared)
        return self._learn(begun, target, n)

    def _begin(self, X: Any, source: NoiseSource, unit: str = "record") -> Begun:
        """Check the options and the columns; no cell is looked at but those that name persons."""
        choice("model", self.model, ("additive", "linear"))
        if integer("interactions", self.interactions, at_least=0) and self.model != "additive":
            raise InputError("interactions are for model='additive'")
        X, owners = self._without_group(as_table(X), fitting=True)
        names = type(self)(**self.get_params(deep=False))  # takes the columns' names: self stays as it is if refused
        X = names._checked(X, reset=True)
        seen = {k: v for k, v in vars(names).items() if k in ("n_features_in_", "feature_names_in_")}
        delta, parts = number("discovery_delta", self.discovery_delta, above=0.0, below=1.0), self._discovers()
        limit = as_limit(self.advantage, self.limit, DEFAULT_ADVANTAGE)
        said, records = replace(as_schema(self.schema), person=self._person), self.records_per_person
        units = Units(unit) if owners is None else units_of(owners, records, declared=said.column(said.person))
        allowance = budget(limit, unit=units.unit, failure=delta if parts else 0.0)
        every = list(X.columns) if hasattr(X, "columns") else list(range(X.shape[1]))
        declared = declare(every, said, self.ranges, self.categories, delta / max(parts, 1))
        table = FeatureTable(X, declared.schema)
        if not table.columns:
            raise InputError("X must have a column that the schema does not drop")
        look = Queries(Ledger(allowance.mu, allowance.delta), source, units)
        return Begun(table, look, declared, allowance, seen)

    @property
    def _aim(self) -> ColumnSchema:
        """What is declared of the target."""
        schema = as_schema(self.schema)
        return schema.column(schema.target)

    @property
    def _declared_target(self) -> bool:
        """Whether records whose target does not fit weigh nothing, instead of ending the fit."""
        return bool(self._aim.kind)

    @property
    def _person(self) -> Any:
        return as_schema(self.schema).person if self.group is None else self.group

    def _discovers(self) -> int:
        """Among how many parts the δ of discovery is shared: categories, and the classes of a classifier."""
        return int(asks_discovery(self.categories))

    @abstractmethod
    def _target(self, y: Any, look: Queries) -> Any:
        """Return the checked target; records that do not fit what is declared weigh nothing in ``look``."""

    @abstractmethod
    def _learn(self, begun: Begun, target: Any, n: float) -> dict[str, Any]:
        """Spend the budget on about ``n`` units and return the fitted attributes."""

    def _common(
        self,
        begun: Begun,
        target: FloatArray,
        loss: ClippedLoss,
        n: float,
        public: tuple[str, ...],
        level: Callable[[Task, Additive, Paid], Additive] | None = None,
    ) -> dict[str, Any]:
        """Fit and return the attributes that every model has; ``level`` moves the model by a last look at its level."""
        table, look, declared, allowance = begun.table, begun.look, begun.declared, begun.allowance
        columns = len(table.columns)
        pairs = min(self.interactions, columns * (columns - 1) // 2)
        task = Task(look, n, table, target, loss)
        look.ledger.kept = kept = 0.0 if level is None else look.ledger.mu * math.sqrt(LEVEL_SHARE)
        model, spent = fit_table(task, declared, self.model, pairs)
        look.ledger.kept = 0.0
        if level is not None:
            paid = look.pay("level", "the level and the slope of the predictions, with a wide clip", kept)
            model = level(task, model, paid)
        mechanism, mu, unit = look.ledger.mechanism(), look.ledger.mu, look.units.unit
        shared = (SHARED,) * (unit == "person")
        failures = [part for part in parts_of(mechanism) if not isinstance(part, GaussianDP)] * 2
        curve, twice = tradeoff(mechanism), tradeoff(Composition((GaussianDP(2 * mu), *failures)))  # one out, one in
        adjacency = f"add or remove one {unit}" + " with all its records" * bool(shared)
        certificate = Certificate(
            allowance.words,
            unit,
            with_assumptions(curve, adjacency=adjacency, notes=(*curve.assumptions.notes, *shared)),
            with_assumptions(twice, adjacency=f"replace one {unit} by another"),
            tuple(look.ledger.uses),
            (*public_inputs(declared), *public),
            mechanism,
        )
        exposure = RecordTradeoffs(np.minimum(np.hypot(spent, kept), mu), mu, look.units.labels)
        return {
            "model_": model,
            "columns_": table.columns,
            "schema_": declared.schema,
            **begun.seen,
            "certificate_": certificate,
            "_record_tradeoffs": exposure,
        }

    def _advise(self, n: float, begun: Begun) -> None:
        """Warn, from noisy numbers only, where the noise will matter and of what was left out."""
        mu, table = begun.allowance.mu, begun.table
        unsure = 2 * COUNT_NOISE / (mu * math.sqrt(KINDS_SHARE))  # two standard deviations of the noise on n
        said = []
        if n < FEW + unsure:
            said.append(
                f"about {n:.0f} records, give or take {unsure:.0f}: the smallest count above the noise at "
                f"this target (μ = {mu:.3g}) is about {3 / mu:.0f}; the guarantee holds for any number, but with fewer "
                f"than {FEW} expect little more than guessing. More records or a weaker target would help"
            )
        if table.left_out:
            names = ", ".join(map(repr, table.left_out))
            said.append(f"left out: {names}: nearly unique words; declare the column's categories to keep it")
        for text in said:
            warnings.warn(text, TrainingWarning, stacklevel=6)

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
        """Return the state without the exposures, which are not protected, and with its format."""
        state = dict(super().__getstate__())
        state.pop("_record_tradeoffs", None)
        return stamped(state)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state of a model of this format; refuse others."""
        super().__setstate__(unstamped(state))

    def _html_repr(self) -> str:  # what a notebook shows: the promise of a fitted model above scikit-learn's diagram
        from deniable._notebook import curve_rows, panel

        diagram = str(super()._html_repr())
        if not self.__sklearn_is_fitted__():
            return diagram
        notes = [f"Target: {self.certificate_.target}.", f"Covers {AS_GIVEN}."]
        notes.append("print(model.certificate_) lists every query of the data.")
        return panel(f"Fitted {type(self).__name__}", curve_rows(self.tradeoff_), notes) + diagram

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.non_deterministic = True
        tags.target_tags.required = True
        return tags

    def plot(self, columns: Any = None, **options: Any) -> Any:
        """Draw what each column adds to the score; returns a matplotlib figure (see ``deniable.training.plots``)."""
        from deniable.training.plots import draw

        check_is_fitted(self)
        dates = [column.name for column in self.columns_ if column.kind == "date"]
        return draw(self.model_, columns, **{"dates": dates} | options)

    def _scores(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        X, _ = self._without_group(as_table(X), fitting=False)
        model: Additive = self.model_
        return model.scores(FeatureTable(self._checked(X, reset=False), self.schema_, self.columns_))

    def _checked(self, X: Any, *, reset: bool) -> Any:
        if isinstance(X, pd.DataFrame | ColumnsOnDisk):
            if not X.columns.is_unique:
                raise InputError(
                    f"X must have columns of different names, got {X.columns[X.columns.duplicated()][0]!r} twice"
                )
            named = X.header if isinstance(X, ColumnsOnDisk) else X
            validate_data(self, named, reset=reset, skip_check_array=True)
            if len(X) == 0 or X.shape[1] == 0:
                raise InputError(
                    f"X must have rows and columns; found 0 sample(s) or 0 feature(s) (shape={X.shape}) while a "
                    "minimum of 1 is required."
                )
            return X
        return validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)

    def _without_group(self, X: Any, *, fitting: bool) -> tuple[Any, Any]:
        """Split the person column off."""
        group = self._person
        if group is None:
            return X, None
        if isinstance(X, pd.DataFrame | ColumnsOnDisk):
            if group in X.columns:
                return X.drop(columns=group), X[group]
        elif fitting and isinstance(group, int) and getattr(X, "ndim", 0) == 2 and 0 <= group < X.shape[1]:
            return np.delete(X, group, axis=1), X[:, group]
        if fitting:
            raise InputError(f"group must name a column of X, got {group!r}")
        return X, None
