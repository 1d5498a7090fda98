"""``PrivateSynthesizer``: a table of made-up rows that bounds what anybody can infer about who was in the real one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from deniable._check import InputError, Seed, integer, seeded
from deniable.noise import SumNoise, only_our_words
from deniable.synthesis.fits import Synthesis
from deniable.synthesis.marginals import CountInterval, Marginal, interval, marginals_of
from deniable.synthesis.rows import cells_made, relabel
from deniable.training import Certified, estimator


@estimator
class PrivateSynthesizer(Certified):
    """Makes a table of made-up rows that is as useful as a membership target allows.

    Guarantee: an attacker who knows all records but one, and sees the model, its certificate and any number of made-up
    rows, infers whether that one was in the table no better than the limit allows: with ``advantage=0.1``, at even
    odds, with accuracy at most 55 %. Everything that the fit learns comes from noisy counts, whose queries stand in one
    account; ranges, words, the number of records and the choice of pairs are paid for. So drawing rows is free.
    Rows are draws from a model, about nobody.

    Parameters
    ----------
    advantage, limit
        What an attacker may reach, at most one of them, as for :class:`deniable.PrivateClassifier`; without one
        ``advantage=0.1``.
    targets
        Columns that somebody will want to predict. Where all classes of one are frequent, three tenths of μ² go to a
        :class:`deniable.PrivateClassifier` that labels the rows; otherwise its pairs with all columns are counted.
        Default: the schema's target, if it names one.
    schema
        A :class:`deniable.Schema`: public knowledge of columns, never read off the data. What it declares is not
        queried. Few records need it.
    group
        Name of the column that says whose record each one is: whole persons are hidden then, a person's records share
        her weight, and rows are drawn as often as there are persons. The column is left out.
    cells
        How many numbers the model may hold: more follow the table closer and take longer.
    ledger
        A :class:`deniable.Ledger`: the fit is entered before any noise is drawn, or refused.

    Attributes
    ----------
    tradeoff_, replacement_tradeoff_
        The curve for adding or removing one record (or person), and for replacing one by another.
    certificate_
        Every query of the data with its share; ``print`` it.
    n_
        About how many records (or persons) there are.
    marginals_
        The noisy counts that were released, of all columns and of the pairs that were counted
        (:class:`deniable.synthesis.Marginal`).
    columns_, law_, labels_
        The model: cells of the columns, the law of their groups, models of the targets; noisy numbers only.

    Notes
    -----
    Counts of all pairs' distances from what is known choose which pairs are counted (as in MST and AIM, McKenna et al.
    2021, 2022; here all scores are one Gaussian query); the rows follow the law of largest entropy with these counts.

    Examples
    --------
    >>> import deniable as dn
    >>> from sklearn.datasets import load_breast_cancer
    >>> table = load_breast_cancer(as_frame=True).frame[["mean radius", "mean texture", "target"]]
    >>> made = dn.PrivateSynthesizer(advantage=0.4).fit(table)
    >>> made.tradeoff_.advantage() <= 0.4
    True
    >>> made.sample(5).shape
    (5, 3)
    """

    targets: Sequence[Any] | str = ()
    cells: int = 200_000

    def fit(self, table: Any, y: Any = None) -> Self:
        """Fit to a table: a data frame, blocks, an array, or the path of a file. Nothing is set if this raises.

        Raises
        ------
        InputError
            For a table that cannot be opened, columns that are not there, and a limit that no noise meets. Errors
            depend on the names of the columns and on released numbers, on no cell.
        """
        if y is not None:
            raise InputError("y must be a column of the table, named by targets")
        with only_our_words():
            fit = Synthesis.begin(self, table, SumNoise())
            fit.ask_columns()
            fit.ask_pairs()
            fit.finished()
        return self

    def sample(self, n: int | None = None, *, rng: Seed = None) -> pd.DataFrame:
        """Return ``n`` made-up rows; None: as many as there are records, by the noisy count.

        Any number of rows may be drawn, with any seed ``rng``: nothing more is learned of the table.
        """
        check_is_fitted(self)
        rows = round(self.n_) if n is None else integer("n", n, at_least=0)
        random = seeded(rng)
        groups = self.law_.draw(rows, random).T.astype(np.int64)
        cells = {c.name: c.drawn(own, random) for c, own in zip(self.columns_, groups, strict=True)}
        columns, schema = {column.name: column for column in self.columns_}, self.schema_
        made: dict[str, Any] = dict.fromkeys(self.feature_names_in_, np.arange(1, rows + 1))  # where words are unique
        made |= {name: np.full(rows, None) for name, held in self.surrogates_.items() if held == "nothing"}
        for name in [*(name for name in cells if name not in self.labels_), *self.labels_]:
            column = columns[name]
            if name in self.labels_ and rows:
                frame = pd.DataFrame({one: made[one] for one in self.labels_[name].feature_names_in_})
                cells[name] = relabel(cells[name], frame, self.labels_[name], column, schema, random)
            made[name] = cells_made(column, cells[name], schema, random)
        return pd.DataFrame(made, index=range(rows))

    def intervals(self, query: Mapping[Any, Any], confidence: float = 0.9) -> CountInterval:
        """Return an interval for how many records (or persons) fit a question about one column or two; it is free.

        A person counts by the share of her records that fit. Limits for two columns that were not counted together are
        wide, and so are those of a question that cuts groups of cells.

        Parameters
        ----------
        query
            {column: a value, a list of values, or (low, high) with both ends}: ``{"sex": "F", "age": (30, 39)}``.
            Only a schema that declares a column "whole" excludes fractions: without it the lower limit of a single
            number, or day, is 0. Numbers beyond a range, declared or found, count at its end: there a lower limit
            wants an end that is open, ``(65, math.inf)``.
        confidence
            Chance that the interval holds the true count, at least, for a question that was fixed beforehand.
        """
        check_is_fitted(self)
        return interval(self, query, confidence)

    @property
    def marginals_(self) -> tuple[Marginal, ...]:
        """The noisy counts of all columns, then those of pairs."""
        check_is_fitted(self)
        return marginals_of(self.columns_, self.pairs_)
