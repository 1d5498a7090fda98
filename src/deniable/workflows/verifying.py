"""A saved report checked: every number that a stated mechanism decides is computed again and compared."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from deniable import mechanisms
from deniable._check import InputError
from deniable.accounting import tradeoff
from deniable.curves import ApproximateTradeoff, FailureTradeoff, GaussianTradeoff, Tradeoff
from deniable.mechanisms import Mechanism
from deniable.report import Asked, Assessment, Number, Section, bound_headline, bound_section, risk_section

if TYPE_CHECKING:
    from deniable.noise import Certificate

_EQUAL = 1e-6  # relative: less than the four digits of a page show
_MEASURED = ("use", "attack", "records", "vulnerable", "reading")  # sections of numbers that data decide


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
        Keys of numbers that no mechanism decides: they were measured on records, and only these could tell.

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
    mechanism does not have. What was measured on records cannot be computed again, and there is no digest of them.

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
        return Verification("", (), (why,), tuple(report.numbers))
    curve = replace(tradeoff(run), assumptions=report.assumptions)
    expected = {section.key: section for section in _expected(report, curve)}
    followed: list[str] = []
    faults: list[str] = []
    left: list[str] = []
    for section in report.sections:
        own = expected.get(section.key)
        if own is not None:
            for key, fault in _compared(section, own):
                (faults.append(fault) if fault else followed.append(key))
        elif re.sub(r"\d+$", "", section.key) in _MEASURED:
            left += [number.key for number in section.numbers]
        else:
            for number in section.numbers:
                exact = _alone(number.key, run, curve)
                if exact is None:
                    left.append(number.key)
                elif fault := _differs(number, replace(number, value=exact)):
                    faults.append(fault)
                else:
                    followed.append(number.key)
    faults += [f"Section {key!r} is missing." for key in expected if report.section(key) is None]
    faults += _decided(report, curve)
    return Verification(source, tuple(followed), tuple(faults), tuple(left))


def proof_of(certificate: Certificate) -> dict[str, str]:
    """Return what :func:`verify` needs of private queries: their mechanism, and that of replacing a record."""
    found = {"source": repr(certificate.mechanism), "replacing": _stated(certificate.replacement)}
    return {name: words for name, words in found.items() if words}


def _stated(curve: Tradeoff) -> str:
    """The mechanism of a Gaussian curve in words; nothing for another curve."""
    if isinstance(curve, FailureTradeoff):
        inner = _stated(curve.of)
        return (
            f"Composition(mechanisms=({inner}, ApproximateDP(epsilon=0.0, delta={curve.failure!r})))" if inner else ""
        )
    return f"GaussianDP(mu={curve.mu!r})" if isinstance(curve, GaussianTradeoff) else ""


def _expected(report: Assessment, curve: Tradeoff) -> Iterator[Section]:
    """The sections that the curve decides, at the priors and rates that the report states."""
    found = [number for section in report.sections if section.key in ("bound", "risks") for number in section.numbers]
    at = [number.at for number in found if number.key.startswith("bound")]
    rates = [float(number.key.partition("fpr=")[2]) for number in found if number.key.startswith("bound.tpr@")]
    blind = [float(n.key.partition("baseline=")[2]) for n in found if n.key.startswith("risk.reconstruction@")]
    priors = [n.at["prior"] for n in found if n.key.startswith("bound.precision") and "prior" in n.at]
    delta = next((one["delta"] for one in at if "delta" in one), 1e-5)
    asked = Asked(next(iter(priors), 0.5), tuple(rates), delta, tuple(blind), None, None)
    epsilon = curve.epsilon(delta)
    name = f"from (ε, δ) = ({epsilon:.4g}, {delta:g}) alone"
    beside = {name: ApproximateTradeoff(max(epsilon, 0.0), delta)} if math.isfinite(epsilon) else {}
    yield bound_section(curve, asked, comparisons=beside)
    if report.section("risks") is not None:
        replacing = _mechanism(str(report.reproduction.get("replacing", "")))
        yield risk_section(curve, asked.baselines, replacing=None if replacing is None else tradeoff(replacing))


def _compared(section: Section, own: Section) -> Iterator[tuple[str, str]]:
    """The key of each number and curve, and what is wrong with it, or nothing."""
    numbers, curves = {one.key: one for one in own.numbers}, {one.key: one for one in own.curves}
    for number in section.numbers:
        yield number.key, _differs(number, numbers.pop(number.key, None))
    yield from ((key, f"{key} is missing.") for key in numbers)
    for curve in section.curves:
        known = curves.get(curve.key)
        near = (
            known is not None
            and replace(known, tpr=curve.tpr) == curve
            and len(curve.tpr) == len(known.tpr)
            and all(map(_near, curve.tpr, known.tpr))
        )
        yield f"{curve.key} (curve)", "" if near else f"The curve {curve.key!r} does not follow."
    if (section.holds_for, section.confidence) != (own.holds_for, own.confidence):
        yield section.key, f"{section.key} holds for {own.holds_for}, with probability {own.confidence:g}."


def _differs(number: Number, own: Number | None) -> str:
    if own is None:
        return f"{number.key}: the mechanism has no such number."
    if not _near(number.value, own.value):
        way = "too small" if own.value is not None and (number.value or 0.0) < own.value else "too large"
        return f"{number.key}: {number.value!r} is {way}; {own.value!r} follows."
    return "" if replace(own, value=number.value) == number else f"{number.key}: what is said of it does not follow."


def _near(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=_EQUAL, abs_tol=1e-15)


def _alone(key: str, run: Mechanism, curve: Tradeoff) -> float | None:
    """A number of another section that the mechanism decides."""
    if re.fullmatch(r"release\d*\.advantage", key):
        return curve.advantage()
    if re.fullmatch(r"account\d*\.mu", key):
        return next((part.mu for part in mechanisms.parts_of(run) if isinstance(part, mechanisms.GaussianDP)), None)
    return None


def _decided(report: Assessment, curve: Tradeoff) -> list[str]:
    """What is wrong with the decision and the headline, given the numbers as they are stated."""
    found = []
    if report.decision is not None:
        own = report.decide(report.decision.policy).decision
        if own is not None and replace(own, changes=report.decision.changes) != report.decision:
            found.append(f"The decision does not follow from the numbers stated: {own.verdict}. {own.reason}")
    if report.headline.startswith("Provable upper bound") and not report.headline.startswith(bound_headline(curve)):
        found.append(f"The headline does not follow: {bound_headline(curve)}")
    return found


def _mechanism(text: str) -> Mechanism | None:
    """The mechanism that its ``repr`` names; nothing is run but constructors of ``deniable.mechanisms``."""
    try:
        made = _made(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, TypeError, InputError, MemoryError, RecursionError):
        return None
    return made if isinstance(made, Mechanism) else None


def _made(node: ast.expr) -> Any:
    match node:
        case ast.Call(func=ast.Name(id="array"), args=[rows, *_]):
            return _made(rows)
        case ast.Call(func=ast.Name(id=name), args=[]) if name in mechanisms.__all__:
            return getattr(mechanisms, name)(**{str(one.arg): _made(one.value) for one in node.keywords})
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [_made(part) for part in parts]
        case ast.Name(id="inf"):
            return math.inf
    return ast.literal_eval(node)
