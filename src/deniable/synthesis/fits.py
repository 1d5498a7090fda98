"""One fit of a synthesizer: its columns, its queries, what each costs, and what is certified in the end."""

from __future__ import annotations

import math
import warnings
from copy import copy
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np

from deniable._check import InputError, IntArray, integer
from deniable._floats import MANY_ROUNDINGS
from deniable._shown import plural
from deniable.mechanisms import GaussianDP
from deniable.noise import CLEAR, COUNT_NOISE, NoiseSource, Units, units_of
from deniable.synthesis.columns import OTHER, MadeColumn, ask_column, ask_round, presence_cells
from deniable.synthesis.junction import JunctionTree
from deniable.synthesis.pairs import Counted, PairCounts
from deniable.synthesis.rows import classes_of
from deniable.tables import advice_on_keys, as_schema, few, name_of, near, open_table
from deniable.training import ClassifierFit, Fit, PrivateClassifier, declare

_PRESENCE, _COLUMNS, _ROUND = 0.01, 0.19, 0.01  # of the μ² that is not kept for labels
_LABELS = 0.30  # of μ²: models of the targets, where every class is frequent
_RARE = 0.10  # share of a class below which its pairs are counted instead: a model would not learn it
_GROUPS = 16  # of a column at most
_USELESS = 200.0  # n·μ below which a warning says that little is left


class SynthesisWarning(UserWarning):
    """The guarantee holds, but the made-up table may be of little use; the message consists of released numbers.

    Examples
    --------
    See ``PrivateSynthesizer``.
    """


@dataclass(kw_only=True, eq=False)
class Synthesis(Fit):
    """One fit: every query goes through ``look``, and everything is chosen from what was released."""

    frame: Any
    targets: tuple[str, ...]
    columns: list[MadeColumn] = field(default_factory=list)
    labels: dict[str, Any] = field(default_factory=dict)  # of the targets that get a model: classes, then the model
    law: JunctionTree | None = None
    pairs: tuple[Counted, ...] = ()

    @classmethod
    def begin(cls, model: Any, data: Any, source: NoiseSource) -> Synthesis:
        """Check the options and the columns; no cell is looked at but those that name persons."""
        schema = as_schema(model.schema)
        opened = open_table(data, schema).checked()  # its columns have names that are texts
        frame, unit, names = opened.frame, opened.unit, list(opened.frame.columns)
        person = schema.person if model.group is None else name_of(model.group)
        asked = [model.targets] if isinstance(model.targets, str | Real) else list(model.targets or ())
        targets = tuple(map(name_of, asked or [schema.target] * (schema.target is not None)))
        for option, name in (*(("targets", name) for name in targets), *[("group", person)] * (person is not None)):
            if name not in names or (option == "targets" and (name == person or schema.kind(name) == "dropped")):
                inside = ": it says whose each record is" if name == person else ": the schema drops it"
                why = inside if name in names else near(name, names)
                raise InputError(f"{option} must name columns that are kept, got {name!r}{why}")
        schema.check_names(names)
        rest = [name for name in names if name != person and schema.kind(name) != "dropped"]
        if not rest:
            raise InputError("the table must have a column besides the person's that the schema does not drop")
        units = Units(unit) if person is None else units_of(frame[person], person, declared=schema.column(person))
        found = any(schema.kind(name) in ("", "category", "code") and not schema.column(name).labels for name in rest)
        declared = declare(rest, replace(schema.only(rest), target=None, person=None), None, None, 0.0)
        delta = None if found else 0.0
        return cls.opened(model, frame[rest], declared, units, source, delta, frame=frame, targets=targets)

    def ask_columns(self) -> None:
        """Ask how many there are, and for all cells of single columns; group these for the pairs."""
        look, table, schema, mu = self.look, self.table, self.declared.schema, self.allowance.mu
        self.count()
        look.ledger.kept = mu * math.sqrt(_LABELS) if self.targets else 0.0
        free, d = math.sqrt(mu**2 - look.ledger.kept**2) * (1 - MANY_ROUNDINGS), len(table.columns)
        few_mu, each = (free * math.sqrt(share / d) * (1 - MANY_ROUNDINGS) for share in (_PRESENCE, _COLUMNS))
        sought = sum(not schema.column(c.name).labels and (bool(c.words) or not c.measured) for c in table.columns)
        delta = look.ledger.delta / max(sought, 1) * (1 - MANY_ROUNDINGS)
        for column in table.columns:
            cells, said = table.cells(column), schema.column(column.name)
            found = look.histogram(
                f"numbers, words, blanks of {column.name}",
                "how many cells of a column are numbers, words or blank",
                few_mu, slice(None), presence_cells(cells, column), 3,
            )  # fmt: skip
            made = MadeColumn(column.name, column)
            span = None if said.kind == "yes/no" else said.span
            self.columns.append(
                ask_column(look, made, cells, (found, 1 / few_mu), each, delta, span, said.labels, self.n)
            )
        ask_round(look, self.columns, lambda j: table.numbers(table.columns[j]), free * math.sqrt(_ROUND))
        columns = {made.name: made for made in self.columns}
        for made in (columns[name] for name in self.targets if name in columns):
            classes = classes_of(made, schema)
            share = made.mass[list(classes.values())] / made.mass.sum()
            if min(len(classes), len(self.columns)) > 1 and share.min() >= _RARE:
                self.labels[made.name] = list(classes)
        if not self.labels:
            look.ledger.kept = 0.0
        noise = 4 * math.sqrt(len(self.columns)) / look.ledger.left
        most = int(np.clip(math.sqrt(self.n / noise), 2, _GROUPS))
        self.columns = [column.grouped(most, noise / self.n) for column in self.columns]

    def ask_pairs(self) -> None:
        """Ask for pairs with what is left, then fit the models of the targets with what was kept for them."""
        look, table = self.look, self.table
        groups: list[IntArray] = [
            made.groups[made.codes(table.cells(column))].astype(np.int32)
            for made, column in zip(self.columns, table.columns, strict=True)
        ]
        pairs = PairCounts(look, self.columns, groups, self.n, integer("cells", self.model.cells, at_least=1))
        forced = [  # targets with classes that are too rare for a model
            i for i, made in enumerate(self.columns)
            if made.name in {*self.targets} - {*self.labels} and classes_of(made, self.declared.schema)
        ]  # fmt: skip
        self.law = pairs.fitted(look.ledger.left * (1 - MANY_ROUNDINGS), forced)
        self.pairs = tuple((pair, *counted) for pair, counted in pairs.found.items())
        look.ledger.kept, each = 0.0, 1 / math.sqrt(max(len(self.labels), 1))
        mu = look.ledger.left * each * (1 - MANY_ROUNDINGS)  # with what the pairs left
        features = [column.name for column in table.columns if column.name not in self.labels]
        for name, classes in self.labels.items():
            self.labels[name] = self._fit_labels(name, classes, features, mu)
            features = [*features, name]

    def _fit_labels(self, name: Any, classes: list[Any], features: list[Any], mu: float) -> PrivateClassifier:
        """Return a private model of a target, whose whole account is one use of this one, charged before it begins."""
        self.look.ledger.spend(f"model of {name}", "a private classifier that labels the rows", mu)
        said = self.declared.schema.only([*features, name])
        flags = next(column.flags for column in self.columns if column.name == name)
        aim = {"kind": "yes/no"} if flags else {"categories": ()}
        said = replace(said.saying({name: aim}), target=name)
        model = PrivateClassifier(limit=GaussianDP(mu), classes=classes, schema=said)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # this fit has its own
            fit = ClassifierFit.begin(model, self.frame[features], self.look.source, self.look.units)
            made: PrivateClassifier = copy(fit.complete(self.frame[name]))
        return made  # what a model says of its records is not copied

    def finished(self) -> None:
        """Set all attributes of the model."""
        kept = {*self.table.left_out, *(column.name for column in self.columns)}
        self.stored(
            columns_=tuple(self.columns),
            labels_=self.labels,
            law_=self.law,
            pairs_=self.pairs,
            n_=self.n,
            n_sd_=COUNT_NOISE / self.look.ledger.uses[0].mu,
            surrogates_=self.table.left_out,
            feature_names_in_=np.array([n for n in self.frame.columns if n in kept], dtype=object),
        )
        self._advise()

    def _advise(self) -> None:
        """Warn, from released numbers only, of what will be missing."""
        said, mu, unit = [*self.look.notes.values()], self.allowance.mu, plural(self.look.units.unit)
        said += advice_on_keys([c.name for c in self.columns], as_schema(self.model.schema))
        if self.n * mu < _USELESS:
            said.append(
                f"about {self.n:.0f} {unit} at μ = {mu:.3g}: rows will be little more than noise; more {unit}, a "
                "weaker target or a schema with ranges and categories would help"
            )
        if lost := [column.name for column in self.columns if column.words == (OTHER,) and not column.numbers]:
            least = f"about {max(column.unseen for column in self.columns):.0f} {unit}"
            said.append(f"no word of {few(lost)} was found: one needs {least}; declare its categories")
        for made in (column for column in self.columns if column.name in self.targets):
            if made.unseen and made.words[:-1] and made.mass[-2] > CLEAR * made.sds[-2]:
                said.append(
                    f"target {made.name!r}: classes of about {made.mass[-2]:.0f} {unit} were not found and became "
                    f"{OTHER}: one needs about {made.unseen:.0f}; declare its categories"
                )
            elif made.numbers and not classes_of(made, self.declared.schema):
                said.append(f"target {made.name!r} has no classes: it is made up as any other column")
        if self.table.left_out:
            held = "; ".join(f"{name!r}: {why}" for name, why in self.table.left_out.items())
            said.append(f"{held}; running numbers stand in the place of words")
        for text in said:
            warnings.warn(text, SynthesisWarning, stacklevel=5)
