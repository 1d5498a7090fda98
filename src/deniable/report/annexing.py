"""Annexes for the documents that others ask for, filled from a report's numbers; the rest is marked for a person.

The fields of a document and their sections are data: ``annexes/<kind>.toml``. A field's ``fill`` names a function here;
its ``text`` is the same for all reports.
Documents that are published get nothing that was computed from the records without noise: usefulness, attacks, record
profiles, counts of rows.
"""

from __future__ import annotations

import datetime
import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from importlib import resources
from typing import Any

from deniable import testing
from deniable._check import InputError, choice
from deniable._shown import plural, shown
from deniable.report.model import Assessment, Number
from deniable.report.sections import NOISE

KINDS = ("dpia", "edpb", "cnil", "ico", "nist-800-226", "sacro", "model-card", "dp-registry")
TO_FILL = "to be filled by you"
_SIGNS = {"provable upper bound": "≤ ", "empirical lower bound": "≥ ", "estimate": "≈ "}


def annex(assessment: Assessment, kind: str, *, owner: bool = False) -> str:
    """Return an annex: Markdown, or YAML for "dp-registry".

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
    if layout.get("form") == "registry":
        return f"# {testing.INSECURE}\n" * assessment.insecure + _entry(assessment)
    filled = [(field["section"], field["name"], _lines_of(assessment, field, public)) for field in layout["field"]]
    return _markdown(assessment, layout, filled)


def document(kind: str) -> dict[str, Any]:
    """Return what is known about a document: title, source, what was checked, its fields."""
    name = choice("kind", kind, KINDS)
    return tomllib.loads(resources.files("deniable.report").joinpath("annexes", f"{name}.toml").read_text("utf-8"))


_Filled = list[tuple[str, str, list[str]]]


def _lines_of(assessment: Assessment, field: dict[str, str], public: bool) -> list[str]:
    """The lines of a field, which the document may give; none if only a person can fill it."""
    if (name := field.get("fill")) is None:
        return [field["text"]] if "text" in field else []
    filler = PUBLISHED.get(name, FILLERS[name]) if public else FILLERS[name]
    return [line for line in filler(assessment) if line]


def _markdown(assessment: Assessment, layout: dict[str, Any], filled: _Filled) -> str:
    card = layout.get("form") == "model-card"
    lines = _front_matter(assessment) if card else []
    lines += [f"# {layout['title']}", "", *[f"**{testing.INSECURE}.**", ""] * assessment.insecure]
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
    tags = ["membership-privacy", *(["differential-privacy"] if _epsilons(assessment) else [])]
    return ["---", "tags:", *(f"- {tag}" for tag in tags), "---", ""]


def _epsilons(a: Assessment) -> list[Number]:
    """What is proven as ε at the report's δ, where it is finite."""
    found = [n for key, n in a.numbers.items() if key.startswith("bound") and ".epsilon@" in key]
    return [n for n in found if n.kind == "provable upper bound" and n.value is not None and math.isfinite(n.value)]


def _number(number: Number) -> str:
    return f"{number.label}: {_SIGNS.get(number.kind, '') if number.value is not None else ''}{number.shown}"


def _section(*names: str) -> Callable[[Assessment], list[str]]:
    """The numbers of the sections whose key starts with one of ``names``."""

    def lines(a: Assessment) -> list[str]:
        return [_number(n) for s in a.sections if s.key.rstrip("0123456789") in names for n in s.numbers]

    return lines


def _meta(*names: str) -> Callable[[Assessment], list[str]]:
    return lambda a: [a.meta[name] for name in names if name in a.meta]


def _risks(a: Assessment) -> list[str]:
    known = [n for n in a.numbers.values() if n.baseline is not None and n.unit == "rate"]
    found = [f"{_number(n)}; blind guessing reaches {shown(n.baseline or 0.0, 'rate', 'nearest')}" for n in known]
    return [*(found or ["Nothing is proven about this release."]), f"Unit: {a.assumptions.line}"]


def _decision(a: Assessment) -> list[str]:
    own = a.decision
    return [] if own is None else [f"{own.verdict}{own.basis} ({own.policy.name})", *(rule.why for rule in own.rules)]


def _mechanism(a: Assessment) -> list[str]:
    names = ("source", "mechanism", "ε", "Λ", "noise scale 1/β")
    named = [f"{name}: {a.reproduction[name]}" for name in names if name in a.reproduction]
    account = [note for section in a.sections if section.key == "account" for note in (section.summary, *section.notes)]
    otherwise = a.title if _epsilons(a) else "None: the model was trained without a privacy mechanism."
    return [*named, *account, *_section("release")(a)] or [otherwise]


def _data(a: Assessment) -> list[str]:
    known = ("data", "rows", "training rows", "target")
    found = [f"{name}: {a.reproduction[name]}" for name in known if name in a.reproduction]
    found += [f"asked of it: {s.title}" for s in a.sections if s.key.startswith("table")]
    return [*found, *_meta("data", "row_numbering")(a)]


def _or(fill: Callable[[Assessment], Iterable[str]], otherwise: str) -> Callable[[Assessment], Iterable[str]]:
    """What a filler says, or that the report does not hold it."""
    return lambda a: list(fill(a)) or [otherwise]


def _tests(a: Assessment) -> list[str]:
    """Attacks that were run: on this release by its owner, and on the software by its makers."""
    found = _section("attack")(a)
    who = f"Attacked by {a.meta.get('author', 'the owner')} on {a.meta.get('date', 'the date of the report')}."
    own = [who, *found, *(note for s in a.sections if s.key.startswith("attack") for note in s.notes)]
    version = a.reproduction.get("deniable", "")
    software = [
        f"The software, deniable {version}, every night: fits are replayed with a neighbour, whose record must move no "
        "sum by more than is certified (tests/guarantees/test_replay.py); 400 retrainings, half of them with one more "
        "record, are attacked, and a fit with a tenth of the noise must be caught "
        "(tests/guarantees/test_attacked_training.py). Each commit runs a third of these tests; 1,000 retrainings of "
        "each of five models are in benchmarks/training/results/retrainings.md.",
    ] * (a.section("shapes") is not None)  # these tests are of fits of models
    return [*(own if found else ["No attack is part of this report."]), *software]


def _attacks(a: Assessment) -> list[str]:
    """The six kinds of attack that regulators name: covered, or out of scope and why."""
    proven, secrets = bool(_epsilons(a)), any(n.startswith("risk") for n in a.numbers)
    bound = "covered by the proven bound" if proven else "nothing is proven here; see what an attack measured"
    secret = "covered, as a secret that is guessed: see the bounds" if secrets else "nothing is proven here"
    return [
        f"Membership inference: {bound}.",
        f"Attribute inference about a {a.assumptions.unit} in the data: {secret}; what holds of all people is not.",
        f"Reconstruction: {secret}.",
        f"Model inversion: of a single {a.assumptions.unit}, as reconstruction; of what is typical of a class, out of "
        "scope: that is what the release says about people in general.",
        f"Regurgitation of a {a.assumptions.unit} word for word: {secret}.",
        "Exfiltration of data, logs or files: out of scope: the proof is about what is released, not about who reads "
        "a disk.",
    ]


def _singled_out(a: Assessment) -> list[str]:
    keys = [key for key in a.numbers if key.startswith(("risk.reconstruction", "risk.replacing", "bound.precision"))]
    said = f"They bet on a {a.assumptions.unit}; these bets are bounded, whatever else is known:"
    return [said, *(_number(a.numbers[key]) for key in keys)] if keys and _epsilons(a) else []


def _noise(a: Assessment) -> list[str]:
    said = [note for s in a.sections for note in s.notes if note == NOISE]
    said += [a.numbers[name].meaning for name in ("release.noise",) if name in a.numbers]
    if said:
        return [*said, "Time and memory of the run are not covered."]
    return [
        "The bound is for real-valued noise of the stated law. How the run drew it (seed, generator, floating point) "
        "is not known to this report.",
        *a.warnings,
    ]


def _likely(a: Assessment) -> list[str]:
    """What it would take, in the words of recital 26, to identify somebody by means reasonably likely to be used."""
    found = [n for key, n in a.numbers.items() if key.startswith(("bound.accuracy", "bound.tpr", "bound.precision"))]
    said = f"Who knows all {plural(a.assumptions.unit)} but one, the software and all that is public reaches:"
    return [said, *map(_number, found)] if found and _epsilons(a) else []


def _other_releases(a: Assessment) -> list[str]:
    entered = [f"E{line[1:]}" for line in a.assumptions.notes if line.startswith("entry ")]
    alone = "None is counted here. Releases of the same records add up: deniable ledger, dn.tradeoff([a, b])."
    return [f"{line}. The ledger lists the others and adds them up." for line in entered] or [alone]


def _prior_consultation(a: Assessment) -> list[str]:
    if a.decision is None:
        return []
    return [f"Article 36 asks whether a high risk remains. Against the limits: {a.decision.verdict}. A person decides."]


FILLERS: dict[str, Callable[[Assessment], Iterable[str]]] = {
    "title": lambda a: [a.title],
    "author": _meta("author", "organisation", "version", "model_sha256"),
    **{name: _meta(name) for name in ("purpose", "organisation", "signed_by")},
    "data": _data,
    "utility": _or(_section("use"), "Usefulness is not part of this report."),
    "records": _or(_section("records"), "No record profile is part of this report."),
    "attack": _tests,
    "attacks": _attacks,
    "singling_out": _singled_out,
    "noise": _noise,
    "likely": _likely,
    "consultation": _prior_consultation,
    "review": _or(
        _meta("review_date"),
        "No date is set. Due before anything else is released from the same records, "
        "since their losses add up, and when the limits change.",
    ),
    "other_releases": _other_releases,
    "sheet": lambda a: [
        *_meta("author", "date", "version")(a),
        f"deniable {a.reproduction.get('deniable', '')}".strip(),
    ],
    "game_unit": lambda a: [f"Unit: {a.assumptions.line}", a.assumptions.game],
    "purpose_author": lambda a: _meta("purpose", "author")(a) if {"purpose", "author"} <= set(a.meta) else [],
    "stored": lambda a: ["No row is stored: noisy sums only." if a.section("account") else "Not examined here."],
    "risks": _risks,
    "epsilon": lambda a: map(_number, _epsilons(a)),
    "mechanism": _mechanism,
    "flavor": lambda a: ["(ε, δ)-differential privacy, stated from the whole trade-off curve"] * bool(_epsilons(a)),
    "decision": _decision,
    "reason": lambda a: [] if a.decision is None else [a.decision.reason],
    "changes": lambda a: (a.decision.changes or ("Nothing needs to change for these limits.",)) if a.decision else (),
    "game": lambda a: [a.assumptions.game],
    "adjacency": lambda a: [a.assumptions.adjacency],
    "access": lambda a: [a.assumptions.access],
    "assumptions": lambda a: a.assumptions.notes,
    "not_covered": lambda a: a.not_covered,
    "reproduction": lambda a: [f"{name}: {value}" for name, value in a.reproduction.items()],
}


def _proven(a: Assessment) -> list[str]:
    """The rules of the policy that were decided by proven numbers."""
    rules = () if a.decision is None else a.decision.rules
    return [rule.why for rule in rules if rule.number is not None and rule.number.startswith(("bound", "risk"))]


# in a published document: nothing that was computed from the records without noise
PUBLISHED: dict[str, Callable[[Assessment], Iterable[str]]] = {
    **dict.fromkeys(("reproduction", "reason", "changes"), lambda a: ()),
    **dict.fromkeys(("attack", "utility", "records"), lambda a: ["Measured without noise: not published."]),
    "decision": _proven,
    "data": lambda a: _meta("data")(a) if a.for_owner else _data(a),
}


def _entry(a: Assessment) -> str:
    """Return the entry: what numbers and assumptions say; what only a person knows stays "to be filled by you".

    It is a draft of tier 2. ε is that at the report's δ; a Gaussian fit that cannot fail has ρ = μ²/2 besides.
    """
    title, meta = a.title.partition(":")[0], a.meta
    basic = {
        "name": title,
        "data_curators": [meta.get("organisation", TO_FILL)],
        "description": f"{a.title}. {a.headline}",
        "intended_use": meta.get("purpose", TO_FILL),
        "data_product_type": meta.get("product_type", _product(a)),
        "data_product_region": meta.get("region", TO_FILL),
        "publication_date": meta.get("date", datetime.date.today().isoformat()),
    }
    variant, parameters = _parameters(a)
    found: dict[str, Any] = {
        "url_slug": re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_") or "release",
        "status": "Draft",
        "tier": 2,
        "deployment": {
            "basic": basic,
            "dp_variant": {
                "variant_name": variant,
                "unprotected_quantities": " ".join(n for n in a.assumptions.notes if n.lower().startswith("public"))
                or "None stated.",
            },
            "privacy_loss": {
                "privacy_unit": a.assumptions.unit,
                "privacy_unit_details": a.assumptions.line,
                "privacy_parameters": parameters,
                "privacy_parameters_details": "Upper bounds, from the whole trade-off curve. "
                + " ".join(
                    f"{n.label}: at most {n.shown}."
                    for key, n in a.numbers.items()
                    if key.startswith(("bound.adv", "bound.tpr"))
                ),
            },
            "deployment_model": {
                "model_name": "Central",
                "release_type": "Many releases" if a.section("ledger") else "One release",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "composition": " ".join(s.summary for s in a.sections if s.key in ("bound", "account", "release"))
            },
            "implementation": {"mechanisms": str(a.reproduction.get("source", a.title)), "justification": TO_FILL},
            "administrative": {"registry_authors": [meta.get("author", TO_FILL)], "notes": " ".join(a.not_covered)},
        },
    }
    return "\n".join(_lines(found)) + "\n"


def _product(a: Assessment) -> str:
    if a.section("synthesis"):
        return "Synthetic data"
    learnt = a.section("account") or a.section("shapes") or "noise_multiplier" in str(a.reproduction.get("source", ""))
    return "Machine learning model" if learnt else "Summary statistics"


def _parameters(a: Assessment) -> tuple[str, dict[str, float]]:
    """The variant and its parameters as numbers."""
    source = str(a.reproduction.get("source", ""))
    if (match := re.fullmatch(r"PureDP\(epsilon=([0-9.e+-]+)\)", source)) and math.isfinite(float(match[1])):
        return "Pure DP", {"epsilon": float(match[1])}
    proven = _epsilons(a)
    if not proven:
        return "Custom", {}
    worst = max(proven, key=lambda n: n.value or 0.0)
    found = {"epsilon": float(worst.value or 0.0), "delta": worst.at.get("delta", 0.0)}
    gaussian = re.fullmatch(r"GaussianDP\(mu=([0-9.e+-]+)\)", source)
    return "Approximate DP", found | ({"rho": float(gaussian[1]) ** 2 / 2} if gaussian else {})


def _lines(value: Any, indent: int = 0) -> Iterator[str]:
    """YAML: texts in double quotes as JSON has them, so that no letter has a meaning of its own."""
    pad = " " * indent
    for key, item in value.items():
        if isinstance(item, dict):
            yield f"{pad}{key}:" + " {}" * (not item)
            yield from _lines(item, indent + 2)
        elif isinstance(item, list):
            yield f"{pad}{key}:"
            yield from (f"{pad}  - {_scalar(one)}" for one in item)
        else:
            yield f"{pad}{key}: {_scalar(item)}"


def _scalar(value: Any) -> str:
    """A number as YAML 1.1 reads it, too: with a point in the mantissa and a sign in the exponent."""
    if isinstance(value, float):
        text = repr(value)
        return text if "." in text or "e" not in text else text.replace("e", ".0e")
    return json.dumps(value, ensure_ascii=False)
