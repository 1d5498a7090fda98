"""A saved report checked: every number that a stated mechanism decides is computed again and compared."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deniable import mechanisms
from deniable._check import InputError
from deniable.accounting import tradeoff
from deniable.curves import Tradeoff
from deniable.ledger import FILTER
from deniable.mechanisms import GaussianDP, Mechanism, parts_of
from deniable.report import (
    NOT_COVERED,
    Asked,
    Assessment,
    Curve,
    Number,
    Section,
    bound_headline,
    risk_section,
    roc_curve,
)  # fmt: skip
from deniable.workflows.run import assess_mechanism

_EQUAL = 1e-6  # relative: less than the four digits of a page show


@dataclass(frozen=True)
class Verification:
    """What a saved report states and what follows from its mechanism.

    Attributes
    ----------
    source
        The mechanism as the report states it; empty if it states none that is known.
    followed
        Keys of the numbers and curves that follow.
    faults
        A sentence for each thing that does not follow.
    left
        What was not checked, since no mechanism decides it: what was measured on records or released with noise, of
        which only these could tell, and words of the page's maker, such as a title or whom the unit stands for.

    Examples
    --------
    See ``verify``.
    """

    source: str
    followed: tuple[str, ...]
    faults: tuple[str, ...]
    left: tuple[str, ...]

    @property
    def follows(self) -> bool:
        """Whether something was computed again and nothing that was differs."""
        return bool(self.followed) and not self.faults


def verify(report: Assessment) -> Verification:
    """Compute every number of a report again that its stated mechanism decides, and its decision.

    A number that is too small, too large, of another kind or with other words does not follow, nor does one that the
    mechanism does not have. Nor does any other curve or number that is called proven or promised, wherever it stands.
    What was measured on records cannot be computed again, and there is no digest of them: it is ``left``.

    Examples
    --------
    >>> import deniable as dn
    >>> report = dn.assess(dn.GaussianDP(0.2))
    >>> dn.workflows.verify(report).follows
    True
    """
    source = str(report.reproduction.get("source", ""))
    run = _mechanism(source)
    if run is None:
        why = "The report states no mechanism from which its numbers could be computed again."
        if report.section("bound") is None:
            why = "Its numbers were computed from records or scores: only who has these can compute them again."
        return Verification("", (), (why,), tuple(report.numbers))
    curve, asked = replace(tradeoff(run), assumptions=report.assumptions), _asked(report)
    plain, attacked = assess_mechanism(run, asked), any(one.key.startswith("attack") for one in report.sections)
    followed, left = list[str](), list(_unchecked(report, plain, curve, attacked))
    faults = [*_faults_of_decision(report, curve, attacked), *_faults_of_words(report, plain, attacked)]
    page = plain if report.assumptions == plain.assumptions else assess_mechanism(curve, asked)  # with its own words
    expected = {section.key: section for section in page.sections}
    if (replacing := _mechanism(str(report.reproduction.get("replacing", "")))) is not None:
        expected["risks"] = risk_section(curve, asked.baselines, replacing=tradeoff(replacing))
    faults += [f"Section {key!r} is missing." for key in expected if report.section(key) is None]
    for section in report.sections:
        own, known = expected.get(section.key), section.key in expected
        if own is None:
            same = (roc_curve(one.key, one.label, curve, one.kind) for one in section.curves)
            own = replace(section, numbers=tuple(_alone(section, run, curve)), curves=tuple(same))
            left += [f"{section.key} (pictures, tables)"] * bool(section.series or section.grids or section.bars)
        if replace(section, numbers=(), curves=()) != replace(own, numbers=(), curves=()):
            faults.append(f"{section.key} has words, pictures, tables or a scope that no mechanism gives.")
        follow: list[Number | Curve] = [*own.numbers, *own.curves]
        given: list[Number | Curve] = [*section.numbers, *section.curves]
        mine = {_name(one): one for one in follow}
        for one in given:
            name, promised = _name(one), isinstance(one, Curve) and one.kind == "parameter"
            if not (fault := _fault(one, mine.get(name))):
                followed.append(name)
            elif known or (name in mine and isinstance(one, Number)):
                faults.append(f"{name}: {fault}")
            elif promised or one.kind == "provable upper bound":  # has to follow wherever it stands
                faults.append(f"{name}: it does not follow from the mechanism stated.")
            else:
                left.append(name)
        faults += [f"{one.key} is missing." for one in own.numbers if one.key not in map(_name, given)]
    return Verification(source, tuple(followed), tuple(faults), tuple(left))


def _unchecked(report: Assessment, plain: Assessment, curve: Tradeoff, attacked: bool) -> Iterator[str]:
    """Words of a report that no mechanism decides: those that the page of the mechanism alone has otherwise."""
    own, known = report.assumptions, plain.assumptions
    yield from (name for name in ("title", "alert", "meta") if getattr(report, name) != getattr(plain, name))
    if any(getattr(own, name) != getattr(known, name) for name in ("game", "adjacency", "access")):
        yield f"for whom it holds ({own.adjacency}; access: {own.access}; {own.game})"
    yield from ("status", "headline") if attacked else ()
    if not attacked and report.headline != bound_headline(curve):
        yield "what the headline says after the bound"
    for name, given, usual in (
        ("notes", own.notes, known.notes),
        ("warnings", report.warnings, plain.warnings),
        ("not covered", report.not_covered, plain.not_covered),
    ):
        if others := set(given) ^ set(usual):
            yield f"{name} ({len(others)} of its own)"
    if report.decision is not None and report.decision.changes:
        yield "what would change it"


def _faults_of_words(report: Assessment, plain: Assessment, attacked: bool) -> Iterator[str]:
    """What a report leaves out of, or turns in, what the page of its mechanism alone says."""
    own, others = report.assumptions, plain.assumptions
    # whose queries are fixed by the package, or may be chosen from earlier ones
    certified = report.section("account") or report.section("release") or FILTER in own.notes
    if ("replace" in own.adjacency, own.batches) != ("replace" in others.adjacency, others.batches):
        yield f"The mechanism's worlds are others: {others.line}."
    alone = "inconclusive" if own.insecure else "bounded"
    if (report.status == "bounded") if attacked else (report.status != alone):
        yield f"The status {report.status!r} does not follow."
    for given, needed in (
        (own.notes, () if certified else others.notes),
        (report.warnings, plain.warnings),
        (report.not_covered, {*plain.not_covered} - {NOT_COVERED.mistakes}),
    ):
        yield from (f"It is left out: {line}" for line in needed if line not in given)


def _asked(report: Assessment) -> Asked:
    """The priors and rates that a report states."""
    at: dict[str, list[float]] = {"precision": [], "tpr": [], "epsilon": [], "reconstruction": []}
    for number in report.numbers.values():
        kind = number.key.partition(".")[2].partition("@")[0]
        if number.key.startswith(("bound.", "risk.")) and kind in at:
            at[kind] += number.at.values()
    return Asked(
        next(iter(at["precision"]), 0.5), tuple(at["tpr"]), next(iter(at["epsilon"]), 1e-5),
        tuple(at["reconstruction"]), None, None,
    )  # fmt: skip


def _alone(section: Section, run: Mechanism, curve: Tradeoff) -> Iterator[Number]:
    """The numbers of another section that the mechanism decides, as they should be."""
    for number in section.numbers:
        if re.fullmatch(r"release\d*\.advantage", number.key):
            yield replace(number, value=curve.advantage())
        if re.fullmatch(r"account\d*\.mu", number.key):
            yield from (replace(number, value=part.mu) for part in parts_of(run) if isinstance(part, GaussianDP))


def _name(one: Number | Curve) -> str:
    return f"{one.key} (curve)" if isinstance(one, Curve) else one.key


def _fault(stated: Any, own: Any) -> str:
    """What is wrong with a number or a curve; nothing if it follows."""
    if own is None:
        return "the mechanism has no such number."
    field = "tpr" if isinstance(stated, Curve) else "value"
    given, exact = np.array(getattr(stated, field), float), np.array(getattr(own, field), float)
    if given.shape != exact.shape or not np.allclose(given, exact, rtol=_EQUAL, atol=1e-15):
        side = "" if given.ndim else f"{given} is too {'small' if given < exact else 'large'}; {exact} follows."
        return side or "it does not follow."
    return "" if replace(own, **{field: getattr(stated, field)}) == stated else "what is said of it does not follow."


def _faults_of_decision(report: Assessment, curve: Tradeoff, attacked: bool) -> list[str]:
    """What is wrong with the decision and the headline, given the numbers as they are stated."""
    found = []
    if report.decision is not None:
        own = report.decide(report.decision.policy).decision
        if own is not None and replace(own, changes=report.decision.changes) != report.decision:
            found.append(f"The decision does not follow from the numbers stated: {own.verdict}. {own.reason}")
    if not (attacked or report.headline.startswith(bound_headline(curve))):
        found.append(f"The headline does not follow: {bound_headline(curve)}")
    return found


def _mechanism(text: str) -> Mechanism | None:
    """The mechanism that its ``repr`` names; nothing is run but constructors of ``deniable.mechanisms``."""
    try:
        made = _construct(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, TypeError, InputError, MemoryError, RecursionError):
        return None
    return made if isinstance(made, Mechanism) else None


def _construct(node: ast.expr) -> Any:
    match node:
        case ast.Call(func=ast.Name(id="array"), args=[rows, *_]):
            return _construct(rows)
        case ast.Call(func=ast.Name(id=name), args=[]) if name in mechanisms.__all__:
            return getattr(mechanisms, name)(**{str(one.arg): _construct(one.value) for one in node.keywords})
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [_construct(part) for part in parts]
        case ast.Name(id="inf"):
            return math.inf
    return ast.literal_eval(node)
