"""Annexes for the documents that others ask for, filled from a report's numbers; the rest is marked for a person.

The fields of a document and their sections are data: ``annexes/<kind>.toml``. A field's ``fill`` names a function here.
Documents that are published get nothing that was computed from the records without noise: usefulness, attacks, record
profiles, counts of rows.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable
from importlib import resources
from typing import Any

from deniable._check import InputError, choice
from deniable._files import to_json
from deniable._shown import shown
from deniable.report.model import Assessment, Number

KINDS = ("dpia", "cnil", "ico", "nist-800-226", "sacro", "model-card", "dp-registry")
TO_FILL = "to be filled by you"
_SIGNS = {"provable upper bound": "≤ ", "empirical lower bound": "≥ ", "estimate": "≈ "}


def annex(assessment: Assessment, kind: str, *, owner: bool = False) -> str:
    """Return an annex: Markdown, or JSON for "dp-registry".

    Parameters
    ----------
    assessment
        The report that it goes with.
    kind
        One of :data:`KINDS`.
    owner
        Whether the document stays with the owner of the data, and may hold what no noise protects.

    Raises
    ------
    InputError
        For an unknown kind; for a report with figures that no noise protects and a document that would hold them.
    """
    layout = document(kind)
    public = bool(layout.get("public", False))
    if assessment.for_owner and not public and not owner:
        raise InputError(
            "this report holds figures that no noise protects; make the annex from its public page (deniable train "
            "--report), or say that the document stays with the owner of the data: owner=True (--owner)"
        )
    filled = [(field["section"], field["name"], _filled(assessment, field, public)) for field in layout["field"]]
    if layout.get("form") == "json":
        return _json(layout, filled)
    return _markdown(assessment, layout, filled)


def document(kind: str) -> dict[str, Any]:
    """Return what is known about a document: title, source, what was checked, its fields."""
    name = choice("kind", kind, KINDS)
    return tomllib.loads(resources.files("deniable.report").joinpath("annexes", f"{name}.toml").read_text("utf-8"))


_Filled = list[tuple[str, str, list[str]]]


def _filled(assessment: Assessment, field: dict[str, str], public: bool) -> list[str]:
    """The lines of a field; none if only a person can fill it."""
    if "fill" not in field:
        return []
    name = field["fill"]
    filler = PUBLISHED.get(name, FILLERS[name]) if public else FILLERS[name]
    return [line for line in filler(assessment) if line]


def _json(layout: dict[str, Any], filled: _Filled) -> str:
    content: dict[str, Any] = {"document": layout["document"], "source": layout["url"]}
    for section, name, lines in filled:
        value = lines[0] if len(lines) == 1 else lines
        content.setdefault(section, {})[name] = value if lines else TO_FILL
    return to_json(content)


def _markdown(assessment: Assessment, layout: dict[str, Any], filled: _Filled) -> str:
    card = layout.get("form") == "model-card"
    lines = _front_matter(assessment) if card else []
    lines += [f"# {layout['title']}", ""]
    if not card:
        lines += [f"Document: {layout['document']} ({layout['url']}). Checked: {layout['checked']}.", ""]
        lines += [f"**{TO_FILL}** marks what no number of the report says.", ""]
    last = None
    for section, name, found in filled:
        if section != last:
            lines += [f"## {section}", ""]
            last = section
        lines += [f"### {name}", "", *([f"- {line}" for line in found] or [f"**{TO_FILL}**"]), ""]
    return "\n".join(lines).rstrip() + "\n"


def _front_matter(assessment: Assessment) -> list[str]:
    """The metadata block of a model card: tags only, since the block has no field for privacy."""
    tags = ["membership-privacy", *(["differential-privacy"] if _bounded(assessment) else [])]
    return ["---", "tags:", *(f"- {tag}" for tag in tags), "---", ""]


def _bounded(assessment: Assessment) -> bool:
    found = [n for key, n in assessment.numbers.items() if key.startswith("bound") and ".epsilon@" in key]
    proven = [n.value for n in found if n.kind == "provable upper bound" and n.value is not None]
    return any(math.isfinite(value) for value in proven)


def _number(number: Number) -> str:
    return f"{number.label}: {_SIGNS.get(number.kind, '') if number.value is not None else ''}{number.shown}"


def _section(*names: str) -> Callable[[Assessment], list[str]]:
    """The numbers of the sections whose key starts with one of ``names``."""

    def lines(a: Assessment) -> list[str]:
        return [
            _number(n) for section in a.sections if section.key.rstrip("0123456789") in names for n in section.numbers
        ]

    return lines


def _meta(*names: str) -> Callable[[Assessment], list[str]]:
    return lambda a: [a.meta[name] for name in names if name in a.meta]


def _risks(a: Assessment) -> list[str]:
    known = [n for n in a.numbers.values() if n.baseline is not None and n.unit == "rate"]
    found = [f"{_number(n)}; blind guessing reaches {shown(n.baseline or 0.0, 'rate', 'nearest')}" for n in known]
    return [*(found or ["Nothing is proven about this release."]), a.assumptions.line]


def _epsilon(a: Assessment) -> list[str]:
    return [_number(n) for key, n in a.numbers.items() if key.startswith("bound") and ".epsilon@" in key]


def _decision(a: Assessment) -> list[str]:
    if a.decision is None:
        return []
    return [
        f"{a.decision.verdict}{a.decision.basis} ({a.decision.policy.name})",
        *(rule.why for rule in a.decision.rules),
    ]


def _mechanism(a: Assessment) -> list[str]:
    named = [
        f"{name}: {a.reproduction[name]}"
        for name in ("source", "mechanism", "ε", "Λ", "noise scale 1/β")
        if name in a.reproduction
    ]
    account = [note for section in a.sections if section.key == "account" for note in (section.summary, *section.notes)]
    release = _section("release")(a)
    found = [*named, *account, *release]
    return found or (["None: the model was trained without a privacy mechanism."] if not _bounded(a) else [a.title])


def _data(a: Assessment) -> list[str]:
    known = {"data": "data", "rows": "rows", "training rows": "training rows", "target": "column predicted"}
    found = [f"{words}: {a.reproduction[name]}" for name, words in known.items() if name in a.reproduction]
    return [*found, *_meta("data", "row_numbering")(a)]


def _changes(a: Assessment) -> Iterable[str]:
    return () if a.decision is None else a.decision.changes or ("Nothing needs to change for these limits.",)


FILLERS: dict[str, Callable[[Assessment], Iterable[str]]] = {
    "title": lambda a: [a.title],
    "author": _meta("author", "organisation", "version", "model_sha256"),
    **{name: _meta(name) for name in ("purpose", "organisation", "date", "contact", "review_date", "signed_by")},
    "data": _data,
    "utility": _section("use"),
    "records": _section("records"),
    "attack": lambda a: _section("attack")(a) or ["No attack is part of this report."],
    "risks": _risks,
    "epsilon": _epsilon,
    "mechanism": _mechanism,
    "method": lambda a: [s.summary for s in a.sections if s.key.rstrip("0123456789") == "bound"],
    "flavor": lambda a: ["(ε, δ)-differential privacy, stated from the whole trade-off curve"] * _bounded(a),
    "decision": _decision,
    "reason": lambda a: [] if a.decision is None else [a.decision.reason],
    "changes": _changes,
    "game": lambda a: [a.assumptions.game],
    "adjacency": lambda a: [a.assumptions.adjacency],
    "access": lambda a: [a.assumptions.access],
    "assumptions": lambda a: a.assumptions.notes,
    "not_covered": lambda a: a.not_covered,
    "warnings": lambda a: a.warnings,
    "reproduction": lambda a: [f"{name}: {value}" for name, value in a.reproduction.items()],
}


def _proven(a: Assessment) -> list[str]:
    """The rules of the policy that were decided by proven numbers."""
    rules = () if a.decision is None else a.decision.rules
    return [rule.why for rule in rules if rule.number is not None and rule.number.startswith(("bound", "risk"))]


# in a published document: nothing that was computed from the records without noise
PUBLISHED: dict[str, Callable[[Assessment], Iterable[str]]] = {
    **dict.fromkeys(("attack", "utility", "records", "reproduction", "reason", "changes"), lambda a: ()),
    "decision": _proven,
    "data": _meta("data"),
}
