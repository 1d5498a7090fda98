"""One fit of a private model: its columns, its queries, what each costs, and what is certified in the end."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import column_or_1d, validate_data

from deniable._check import FloatArray, InputError, choice, integer, number
from deniable.limits import DEFAULT_ADVANTAGE
from deniable.noise import (
    COUNT_NOISE,
    KINDS_SHARE,
    ColumnKind,
    NoiseSource,
    Paid,
    Queries,
    QueryBudget,
    Receipt,
    Units,
    certificate_of,
    enter,
    units_of,
)
from deniable.planning import Budget, as_limit, budget, failure_of
from deniable.tables import (
    ColumnCells,
    ColumnSchema,
    ColumnsOnDisk,
    advice_on_keys,
    as_column,
    as_schema,
    as_table,
    column_among,
    name_of,
)
from deniable.training.account import RecordTradeoffs
from deniable.training.additive import Additive
from deniable.training.features import Declared, FeatureTable, asks_discovery, declare, public_inputs
from deniable.training.fitting import exposures, fit_table
from deniable.training.looks import Task, kinds
from deniable.training.losses import ClippedLoss
from deniable.training.pairs import MOST_PAIRS

FEW = 50  # records below which a warning says what can be promised


class TrainingWarning(UserWarning):
    """The guarantee holds, but the model may be of little use; the message says what would help.

    It consists of declared names and released numbers only, and so does the decision to warn.

    Examples
    --------
    >>> import numpy as np
    >>> import deniable as dn
    >>> import warnings
    >>> X, y = np.random.default_rng(0).uniform(size=(30, 1)), np.arange(30) % 2
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     model = dn.PrivateClassifier(advantage=0.05, ranges={0: (0, 1)}).fit(X, y)
    >>> any(issubclass(one.category, dn.training.TrainingWarning) for one in said)
    True
    """


@dataclass(kw_only=True, eq=False)
class Fit:
    """One fit under one account.

    Attributes
    ----------
    model
        The estimator; its parameters are read, its fitted attributes are set at the very end.
    table, declared
        The columns, and what the caller declared of them.
    look, allowance
        The only way to the data, and what it may cost.
    n
        About how many units there are, once :meth:`count` has asked.
    entry
        Of the ledger, if there is one: made before the first query.
    """

    model: Any
    table: FeatureTable
    look: Queries
    declared: Declared
    allowance: Budget
    n: float = 1.0
    entry: Receipt | None = None

    @classmethod
    def opened(
        cls, model: Any, X: Any, declared: Declared, units: Units, source: NoiseSource, delta: float | None, **own: Any
    ) -> Self:
        """Return a fit to the columns of X; ``delta`` is that of finding words, None as much as the limit has room."""
        limit = as_limit(model.advantage, model.limit, DEFAULT_ADVANTAGE)
        allowed = budget(limit, unit=units.unit, failure=failure_of(limit) if delta is None else delta)
        look, table = Queries(QueryBudget(allowed.mu, allowed.delta), source, units), FeatureTable(X, declared.schema)
        return cls(model=model, table=table, look=look, declared=declared, allowance=allowed, **own)

    def count(self, target: ColumnCells | None = None) -> ColumnKind:
        """Ask how many units there are and what the columns hold; return what ``target`` holds, if it is given."""
        what, mechanism = type(self.model).__name__, self.look.ledger.mechanism()
        self.entry = enter(self.model.ledger, mechanism, unit=self.look.units.whom, what=what)  # all that will run
        self.n, kind = kinds(self.look, self.table, self.declared, target)
        return kind

    def stored(self, public: tuple[str, ...] = (), **fitted: Any) -> Any:
        """Set the certificate and these attributes in place of those of an earlier fit, and return the model."""
        known = (*public_inputs(self.declared), *public)
        fitted["certificate_"] = certificate_of(self.look, self.allowance.words, known, self.entry)
        fitted["schema_"] = self.declared.schema
        for name in [name for name in vars(self.model) if name.endswith("_")]:
            delattr(self.model, name)
        vars(self.model).update(fitted)
        return self.model


@dataclass(kw_only=True, eq=False)
class ModelFit(Fit, ABC):
    """One fit of a private model: :meth:`begin`, :meth:`count`, then :meth:`learn`; or :meth:`complete` for all.

    ``seen`` holds the names of the columns, for scikit-learn.
    """

    seen: dict[str, Any]

    @classmethod
    def begin(cls, model: Any, X: Any, source: NoiseSource, units: Units) -> Self:
        """Check the options and the columns; no cell is looked at but those that name persons."""
        choice("model", model.model, ("additive", "linear"))
        asked = model.interactions
        if asked is not None and integer("interactions", asked, at_least=0) and model.model != "additive":
            raise InputError("interactions are for model='additive'")
        X, owners = without_group(model, as_table(X, as_schema(model.schema)), fitting=True)
        names = type(model)(**model.get_params(deep=False))  # takes the columns' names: ``model`` stays if refused
        X = checked(names, X, reset=True)
        seen = {k: v for k, v in vars(names).items() if k in ("n_features_in_", "feature_names_in_")}
        delta, parts = number("discovery_delta", model.discovery_delta, above=0.0, below=1.0), cls.discovers(model)
        said, records = replace(as_schema(model.schema), person=person_of(model)), model.records_per_person
        if owners is None and records != 1:
            raise InputError(f"records_per_person must be 1 without persons, got {records!r}: name them by group=")
        column = said.column(said.person)
        units = units if owners is None else units_of(owners, said.person, records, declared=column)
        declared = declare(tuple(X.columns), said, model.ranges, model.categories, delta / max(parts, 1))
        fit = cls.opened(model, X, declared, units, source, delta if parts else 0.0, seen=seen)
        if not fit.table.columns:
            raise InputError("X must have a column that the schema does not drop")
        return fit

    @staticmethod
    def aim(model: Any) -> ColumnSchema:
        """Return what is declared of the target."""
        schema = as_schema(model.schema)
        return schema.column(schema.target)

    @classmethod
    def declares_target(cls, model: Any) -> bool:
        """Return whether records whose target does not fit weigh nothing, instead of ending the fit."""
        return bool(cls.aim(model).kind)

    @staticmethod
    def discovers(model: Any) -> int:
        """Return among how many parts the δ of discovery is shared: categories, and the classes of a classifier."""
        return int(asks_discovery(model.categories))

    @abstractmethod
    def target(self, y: Any) -> Any:
        """Return the checked target; records that do not fit what is declared weigh nothing from here on."""

    def refuse_cells(self, cells: ColumnCells, wrong: Any, needed: str, way_out: str) -> None:
        """Refuse a target with wrong cells by where the first stands and what it holds, which is not quoted."""
        if wrong.any():
            row = int(np.argmax(wrong))
            held = ("nothing, or an infinity", "a number", "a date", "a word or a truth value")[cells.kind[row]]
            raise InputError(f"y must hold {needed} in every record, {self.table.place_of(row)} has {held}; {way_out}")

    @abstractmethod
    def learn(self, target: Any) -> Any:
        """Spend the budget and return the model, fitted."""

    def complete(self, y: Any) -> Any:
        """Fit to a target from beginning to end and return the model; nothing is set if this raises."""
        if y is None:
            name = type(self.model).__name__
            raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None")
        if not isinstance(y, ColumnCells):
            y = as_column("y", column_or_1d(y, warn=True) if getattr(y, "ndim", 1) == 2 else y).infer_objects()
        if len(y) != self.table.n_rows:
            raise InputError(f"y must have one cell a record, got {len(y)} for {self.table.n_rows} records; give all")
        target = self.target(y)
        self.count()
        return self.learn(target)

    def finished(
        self,
        target: FloatArray,
        loss: ClippedLoss,
        public: tuple[str, ...],
        level: tuple[float, Callable[[Task, Additive, FloatArray, Paid], tuple[Additive, ClippedLoss]]] | None = None,
        **attributes: Any,
    ) -> Any:
        """Fit the coefficients and set all attributes; ``level``: a share of μ² for a last look, and what follows."""
        look = self.look
        asked = MOST_PAIRS if self.model.interactions is None else self.model.interactions
        pairs = asked if self.model.model == "additive" else 0
        task = Task(look, self.n, self.table, target, loss)
        look.ledger.kept = kept = 0.0 if level is None else look.ledger.mu * math.sqrt(level[0])
        path = fit_table(task, self.declared, self.model.model, pairs)
        self.advise()
        additive, spent = path.ended(), exposures(look, path.squares)
        look.ledger.kept = 0.0
        if level is not None:
            paid = look.pay("level", "the level and the slope of the predictions", kept)
            additive, loss = level[1](task, additive, path.scores(additive), paid)
        mu = look.ledger.mu
        exposure = RecordTradeoffs(np.minimum(np.hypot(spent, kept), mu), mu, look.units.labels)
        return self.stored(
            public,
            model_=additive,
            loss_=loss,
            columns_=self.table.columns,
            left_out_=self.table.left_out,
            _record_tradeoffs=exposure,
            **self.seen,
            **attributes,
        )

    def advise(self) -> None:
        """Warn, from noisy numbers only, where the noise will matter and of what was left out."""
        mu, table, n = self.allowance.mu, self.table, self.n
        unsure = 2 * COUNT_NOISE / (mu * math.sqrt(KINDS_SHARE))  # two standard deviations of the noise on n
        said = advice_on_keys([one.name for one in table.columns], as_schema(self.model.schema))
        said += self.look.notes.values()
        if n < FEW + unsure:
            said.append(
                f"about {n:.0f} records, give or take {unsure:.0f}: the smallest count above the noise at "
                f"this target (μ = {mu:.3g}) is about {3 / mu:.0f}; the guarantee holds for any number, but with fewer "
                f"than {FEW} expect little more than guessing. More records or a weaker target would help"
            )
        if table.left_out:
            names = ", ".join(f"{name!r}: {why}" for name, why in table.left_out.items())
            said.append(f"left out: {names}; declare the column's categories to keep it")
        for text in said:
            warnings.warn(text, TrainingWarning, stacklevel=7)


def person_of(model: Any) -> Any:
    """Return the name of the column that says whose record it is, or None."""
    return as_schema(model.schema).person if model.group is None else name_of(model.group)


def complete_columns(model: Any, X: Any) -> Any:
    """Return the table with empty columns where it lacks some that the model left out."""
    names, here = list(getattr(model, "feature_names_in_", ())), list(getattr(X, "columns", ()))
    gone, used = set(names) - set(here), {column.name for column in model.columns_}
    if not here or not gone or gone & used or not set(here) <= set(names):
        return X  # whatever is wrong with it is told by its check
    columns = {i: None if name in gone else X[name].reset_index(drop=True) for i, name in enumerate(names)}
    return pd.DataFrame(columns, index=range(len(X))).set_axis(pd.Index(names, dtype=object), axis=1)


def checked(model: Any, X: Any, *, reset: bool) -> Any:
    """Return X as scikit-learn wants it; ``reset`` notes the names of the columns on the model."""
    if isinstance(X, pd.DataFrame | ColumnsOnDisk):
        places = range(X.shape[1])  # columns that are called after them have no names, as those of an array
        names = places if list(X.columns) == [*map(str, places)] else X.columns
        validate_data(model, pd.DataFrame(columns=names), reset=reset, skip_check_array=True)
        if len(X) == 0 or X.shape[1] == 0:
            raise InputError(
                f"X must have rows and columns; found 0 sample(s) or 0 feature(s) (shape={X.shape}) while a "
                "minimum of 1 is required."
            )
        return X
    return validate_data(model, X, reset=reset, dtype=None, ensure_all_finite=False)


def without_group(model: Any, X: Any, *, fitting: bool) -> tuple[Any, Any]:
    """Split the person column off."""
    group, names = person_of(model), list(getattr(X, "columns", ()))
    if group is None or not (fitting or group in names):
        return X, None
    group = column_among("group", group, names)
    return X.drop(columns=group), X[group]
