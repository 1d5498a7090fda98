"""The assessment as data: numbers first; text, JSON and HTML are drawn from it and from nothing else."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from itertools import count
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from deniable import testing
from deniable._check import InputError
from deniable._files import check_writable, read_json, to_json, write_atomically
from deniable._notebook import Textual
from deniable._optional import require
from deniable._shown import Unit, shown
from deniable.curves import Assumptions
from deniable.limits import Limit
from deniable.report.decision import Decision, Remedies, changes, contradicted, decide
from deniable.report.policy import Policy

SCHEMA_VERSION = "1.2"

NumberKind = Literal[
    "provable upper bound", "empirical lower bound", "measured interval", "exact", "estimate", "parameter"
]
Status = Literal["bounded", "consistent", "measured", "inconclusive", "violated"]
_SEVERITY: tuple[Status, ...] = ("bounded", "consistent", "measured", "inconclusive", "violated")


@dataclass(frozen=True)
class Number:
    """One number of a report: what it is, on which side of the truth it lies, and what it means.

    ``value`` is None where nothing can be said; ``low`` and ``high`` are set for intervals; ``baseline`` is what blind
    guessing reaches; ``at`` holds the prior, rate or δ that a bound is for. Rates are fractions here and percentages
    where a person reads them.

    Examples
    --------
    See ``Policy``.
    """

    key: str
    label: str
    value: float | None
    meaning: str
    kind: NumberKind = "provable upper bound"
    unit: Unit = "rate"
    low: float | None = None
    high: float | None = None
    baseline: float | None = None
    at: dict[str, float] = field(default_factory=dict, hash=False)

    @property
    def shown(self) -> str:
        """The number as a person reads it, rounded to the side that its kind claims."""
        if self.low is not None and self.high is not None:
            low, high = shown(self.low, self.unit, "lower"), shown(self.high, self.unit, "upper")
            return f"{low} to {high}"
        if self.value is None:
            return "not resolvable"
        side = {"provable upper bound": "upper", "empirical lower bound": "lower"}.get(self.kind, "nearest")
        return shown(self.value, self.unit, side)


@dataclass(frozen=True)
class Curve:
    """A ROC to draw: a bound (``tpr`` only) or a measured band (``low`` and ``high`` too).

    Examples
    --------
    See ``Policy``.
    """

    key: str
    label: str
    kind: NumberKind
    fpr: list[float] = field(hash=False)
    tpr: list[float] = field(hash=False)
    low: list[float] | None = field(default=None, hash=False)
    high: list[float] | None = field(default=None, hash=False)


@dataclass(frozen=True)
class Series:
    """A picture of numbers against numbers that is not a ROC: ranked records, a transition band.

    Examples
    --------
    See ``Policy``.
    """

    key: str
    title: str
    x_label: str
    y_label: str
    x: list[float] = field(hash=False)
    lines: dict[str, list[float]] = field(hash=False)
    log_x: bool = False
    log_y: bool = False
    alt: str = ""
    dates: bool = False


@dataclass(frozen=True)
class Bars:
    """A picture of one value for each category, with its limits: against noise, and wider ones of the population.

    ``dates`` says that values are days since 1970-01-01.

    Examples
    --------
    See ``Policy``.
    """

    key: str
    title: str
    x_label: str
    labels: list[str] = field(hash=False)
    values: list[float] = field(hash=False)
    low: list[float] = field(hash=False)
    high: list[float] = field(hash=False)
    wide_low: list[float] = field(default_factory=list, hash=False)
    wide_high: list[float] = field(default_factory=list, hash=False)
    dates: bool = False
    alt: str = ""


@dataclass(frozen=True)
class Grid:
    """A small table of words and numbers: the most exposed records, subgroups.

    Examples
    --------
    See ``Policy``.
    """

    key: str
    title: str
    columns: list[str] = field(hash=False)
    rows: list[list[Any]] = field(hash=False)


@dataclass(frozen=True)
class Section:
    """One part of the report: bound, records, attack, utility, release.

    ``holds_for`` says for which records and data a bound holds (``deniable.curves.EVERY_CASE`` for a mechanism's), and
    ``confidence`` with which probability. ``protected`` is False for what was computed from records without noise: it
    is for their owner.

    Examples
    --------
    See ``Policy``.
    """

    key: str
    title: str
    summary: str
    numbers: tuple[Number, ...] = ()
    curves: tuple[Curve, ...] = ()
    series: tuple[Series, ...] = ()
    grids: tuple[Grid, ...] = ()
    bars: tuple[Bars, ...] = ()
    notes: tuple[str, ...] = ()
    holds_for: str = ""
    confidence: float = 1.0
    protected: bool = True


@dataclass(frozen=True)
class Assessment(Textual):
    """What was asked and nothing else: sections of numbers with the game in which they hold.

    ``status`` is the worst of its parts: "bounded" (a proof, no attack run), "consistent" (attacks stay below the
    proof), "measured" (attacked, but nothing was promised: no verdict), "inconclusive", "violated" (an attack is above
    the proof, beyond its error: the implementation under test is broken). ``alert`` is what a person must read first,
    for example that a model is of no use. ``decision`` holds the numbers against a policy; ``meta`` is what a person
    added; ``remedies`` computes settings of what ran that would change the decision.

    Examples
    --------
    See ``Policy``.
    """

    title: str
    status: Status
    headline: str
    sections: tuple[Section, ...]
    assumptions: Assumptions
    not_covered: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    reproduction: dict[str, Any] = field(default_factory=dict, hash=False)
    schema_version: str = SCHEMA_VERSION
    alert: str = ""
    decision: Decision | None = None
    meta: dict[str, str] = field(default_factory=dict, hash=False)
    remedies: Remedies | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        for proof in ("bound", "records"):
            if sum(section.key.rstrip("0123456789") == proof for section in self.sections) > 1:
                raise InputError(
                    f"a page holds one proof of a kind, got two ({proof!r}); two releases add up: assess what ran "
                    "together, dn.assess([a, b]), or put two pages side by side, dn.compare(a, b)"
                )
        marked = self.assumptions.insecure and testing.INSECURE not in self.alert
        object.__setattr__(self, "alert", " ".join(testing.marked((self.alert,) if self.alert else (), marked)))
        if self.assumptions.insecure and self.status == "bounded":
            object.__setattr__(self, "status", "inconclusive")

    @property
    def numbers(self) -> dict[str, Number]:
        """All numbers by key."""
        return {number.key: number for section in self.sections for number in section.numbers}

    @property
    def curves(self) -> tuple[Curve, ...]:
        """All ROC curves, bounds and measured bands, in the order of the sections."""
        return tuple(curve for section in self.sections for curve in section.curves)

    @property
    def threat_model(self) -> list[tuple[str, str]]:
        """The assumptions as pairs of a name and a sentence."""
        a = self.assumptions
        return [
            ("Attacker", a.game),
            ("Access", a.access),
            ("Prior", "what the attacker believes beforehand; it is stated with every number that depends on it"),
            ("Unit, adjacency and batches", a.line),
            *(("Also assumed", note) for note in a.notes),
        ]

    @property
    def for_owner(self) -> str:
        """What a page says first that must stay with the data: which of its parts no noise protects; or nothing."""
        parts = [section.title for section in self.sections if not section.protected]
        verb = "was" if len(parts) == 1 else "were"
        what = f"{verb} computed from the records without noise. Keep this with the data; do not publish it."
        return f"For the owner of the data: “{'”, “'.join(parts)}” {what}" if parts else ""

    @property
    def tone(self) -> Literal["good", "open", "bad", "none"]:
        """How the decision is coloured: a useless model that meets a policy without a rule on use is not "good"."""
        if self.decision is None:
            return "none"
        tones: dict[str, Literal["good", "open", "bad"]] = {"meets": "good", "does not meet": "bad"}
        tone = tones.get(self.decision.outcome, "open")
        return "open" if tone == "good" and self.alert else tone

    def section(self, key: str) -> Section | None:
        """Return the section called ``key``, or None if it was not asked for."""
        return next((section for section in self.sections if section.key == key), None)

    def merge(self, other: Assessment) -> Assessment:
        """Return one assessment with the parts of both: a proof first, the worse status with its headline.

        Where an attack of one shows a larger advantage than the other proves, the promise is violated.

        Raises ``InputError`` for two proven bounds, which are of two releases and add up, and for two units.
        """
        if self.section("bound") is None and other.section("bound") is not None:
            return other.merge(self)
        stated = [a for a in (self.assumptions, other.assumptions) if a.unit in a.adjacency]
        units = {a.unit.replace("line of the file", "record") for a in stated} - {"canary"}
        if len(units) > 1:
            raise InputError(f"assessments on one page must be for one unit, got {' and '.join(sorted(units))}")
        taken = {section.key for section in self.sections}
        renamed = tuple(_rename_section(section, taken) for section in other.sections)
        worst = max(self, other, key=lambda a: _SEVERITY.index(a.status))
        both = replace(
            self,
            title=f"{self.title}; {other.title}",
            status=worst.status,
            headline=worst.headline,
            sections=self.sections + renamed,
            assumptions=replace(
                self.assumptions,
                notes=_union(self.assumptions.notes, other.assumptions.notes, _differences(self, other)),
            ),
            not_covered=_union(self.not_covered, other.not_covered),
            warnings=_union(self.warnings, other.warnings),
            reproduction={**other.reproduction, **self.reproduction},
            alert=" ".join(dict.fromkeys(text for text in (self.alert, other.alert) if text)),
            meta={**other.meta, **self.meta},
            remedies=self.remedies or other.remedies,
        )
        if contradicted(both) and both.status != "violated":
            said = f"An attack exceeds the bound proven here: what was promised does not hold. {both.headline}"
            both = replace(both, status="violated", headline=said)
        judged = self.decision or other.decision
        return both if judged is None else both.decide(judged.policy)

    def decide(self, policy: Policy) -> Assessment:
        """Return the same numbers, decided by another policy."""
        found, broken = decide(self, policy), self.status == "violated"
        return replace(self, decision=replace(found, changes=changes(found, policy, self.remedies, broken=broken)))

    __add__ = merge

    def to_dict(self) -> dict[str, Any]:
        """Return the assessment as plain types, in the order of the schema."""
        parts = asdict(replace(self, remedies=None))
        del parts["remedies"]
        parts["assumptions"]["unit"] = self.assumptions.unit
        if self.decision is not None:
            parts["decision"]["policy"]["limits"] = [limit.arguments for limit in self.decision.policy.limits]
        return {"schema_version": self.schema_version, **parts}

    def to_json(self, path: str | Path | None = None) -> str:
        """Return JSON (no NaN, no infinity; schema in ``deniable/report/schema.json``) and write it to ``path``."""
        return _written("path", to_json(self.to_dict()), path, (".json",))

    @classmethod
    def from_json(cls, path: str | Path) -> Assessment:
        """Read an assessment that :meth:`to_json` wrote.

        Raises
        ------
        InputError
            If the file is missing, is not JSON, or is not an assessment of this schema version.
        """
        where = f"assessment file {str(path)!r}"
        try:
            content = read_json(path)
        except OSError:
            raise InputError(f"{where} cannot be read: there is no such file") from None
        except ValueError as error:
            raise InputError(f"{where} is not JSON (a page has a button that saves it): {error}") from None
        found = content.get("schema_version") if isinstance(content, dict) else None
        if found not in ("1.1", SCHEMA_VERSION):
            raise InputError(
                f"{where} must have schema_version {SCHEMA_VERSION!r}, got {found!r}; write it again with this version "
                "of deniable"
            )
        try:
            made: Assessment = _from_plain(cls, content)
        except (TypeError, InputError) as error:
            raise InputError(f"{where} is no assessment: {error}") from None
        return made

    def to_text(self, *, full: bool = True, width: int = 100) -> str:
        """Return the report as plain text: every number, or with ``full=False`` the decision and what belongs to it."""
        require("rich", purpose="A report as text")
        from deniable.report.text import to_text

        return to_text(self, width, full=full)

    def to_html(self, path: str | Path | None = None) -> str:
        """Return one self-contained offline page and write it, complete or not at all, to ``path``."""
        from deniable.report.page import to_html

        return _written("path", to_html(self), path, (".html", ".htm"))

    def to_junit(self) -> str:
        """Return the rules of the policy as test cases in JUnit XML: a failure each that is missed or not decided."""
        from deniable.report.ci import to_junit

        return to_junit(self)

    def to_sarif(self, where: str = "pyproject.toml") -> str:
        """Return what keeps the policy from being met as SARIF 2.1.0; ``where`` is the file of the policy."""
        from deniable.report.ci import to_sarif

        return to_sarif(self, where)

    def annex(self, kind: str, *, owner: bool = False) -> str:
        """Return the fields of a document filled from these numbers, the rest marked "to be filled by you".

        ``kind`` is "dpia", "edpb", "cnil", "ico", "nist-800-226", "sacro", "model-card" (Markdown) or "dp-registry"
        (YAML).
        Figures that no noise protects go into a document only with ``owner=True``, and into the last two never.
        """
        from deniable.report.annexing import annex

        return annex(self, kind, owner=owner)

    def _text(self) -> str:
        return self.to_text(full=False)


def _from_plain(kind: Any, content: Any, place: str = "") -> Any:
    """What :func:`asdict` made of an object of this type, back, each part checked by its annotation.

    An upper bound that JSON could not state is an infinite one; a number of a list that it could not state is NaN.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return None if content is None else _from_plain(inner[0], content, place)
    if origin in (tuple, list, Sequence) and isinstance(content, list):
        items = [math.nan if inner[0] is float and item is None else item for item in content]
        made = [_from_plain(inner[0], item, f"{place}[{i}]") for i, item in enumerate(items)]
        return made if origin is list else tuple(made)
    if origin is dict and isinstance(content, dict):
        return {key: _from_plain(inner[1], item, f"{place}.{key}") for key, item in content.items()}
    if is_dataclass(kind) and isinstance(content, dict):
        return _object(kind, content, place)
    if origin is Literal:
        fits = content in inner
    else:
        wanted = (int, float) if kind is float else origin or kind
        fits = kind is Any or (isinstance(content, wanted) and isinstance(content, bool) == (kind is bool))
    if not fits:
        what = kind.__name__ if isinstance(kind, type) else str(kind)
        raise TypeError(f"{place.lstrip('.')} must be {what.rpartition('.')[2]}, got {content!r:.60}")
    return content


def _object(kind: Any, content: dict[str, Any], place: str) -> Any:
    types = {name: Any for name in content} if kind is Limit else get_type_hints(kind)  # a limit checks itself
    names = [name for name in content if (kind, name) != (Assumptions, "unit")]
    if unknown := set(names) - set(types):
        raise TypeError(f"{place.lstrip('.') or 'it'} has no {min(unknown)!r}")
    parts = {name: _from_plain(types[name], content[name], f"{place}.{name}") for name in names}
    if kind is Number and parts.get("kind") == "provable upper bound" and parts.get("value", 0.0) is None:
        parts["value"] = math.inf
    return kind(**parts)


def _rename_section(section: Section, taken: set[str]) -> Section:
    """Give a section whose key is taken a key of its own, and its numbers keys below it."""
    if section.key not in taken:
        return section
    suffix = next(f"{i}" for i in count(2) if f"{section.key}{i}" not in taken)
    moved: dict[str, Any] = {
        kind: tuple(replace(one, key=re.sub(r"^[^.]*", rf"\g<0>{suffix}", one.key)) for one in getattr(section, kind))
        for kind in ("numbers", "curves", "series", "grids", "bars")
    }
    return replace(section, key=f"{section.key}{suffix}", **moved)


def _union(*groups: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for group in groups for item in group))


def _differences(one: Assessment, other: Assessment) -> tuple[str, ...]:
    """Say where the second assessment was made in another game than the first."""
    pairs = (
        (name, getattr(one.assumptions, name), getattr(other.assumptions, name))
        for name in ("game", "adjacency", "access")
    )
    return tuple(f"For “{other.title}” the {name} is: {b}." for name, a, b in pairs if a != b)


def cell_text(cell: object) -> str:
    """Return one cell of a grid as text: numbers with four digits."""
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def _written(name: str, content: str, path: str | Path | None, suffixes: tuple[str, ...]) -> str:
    if path is not None:
        write_atomically(check_writable(name, path, suffixes=suffixes), content)
    return content
