"""An entry of the public registry of differential privacy deployments, as YAML that its schema accepts."""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Iterator
from typing import Any

from deniable.report.model import Assessment

_BLANK = "to be filled by you"


def entry(a: Assessment) -> str:
    """Return the entry: what numbers and assumptions say; what only a person knows stays "to be filled by you".

    It is a draft of tier 2. ε is that at the report's δ; a Gaussian fit that cannot fail has ρ = μ²/2 besides.
    """
    title, meta = a.title.partition(":")[0], a.meta
    basic = {
        "name": title,
        "data_curators": [meta.get("organisation", _BLANK)],
        "description": f"{a.title}. {a.headline}",
        "intended_use": meta.get("purpose", _BLANK),
        "data_product_type": meta.get("product_type", _product(a)),
        "data_product_region": meta.get("region", _BLANK),
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
                "release_type": "One release",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "composition": " ".join(s.summary for s in a.sections if s.key in ("bound", "account", "release"))
            },
            "implementation": {"mechanisms": str(a.reproduction.get("source", a.title)), "justification": _BLANK},
            "administrative": {"registry_authors": [meta.get("author", _BLANK)], "notes": " ".join(a.not_covered)},
        },
    }
    return "\n".join(_lines(found)) + "\n"


def _product(a: Assessment) -> str:
    if any(section.key.startswith("table") for section in a.sections):
        return "Summary statistics"
    learnt = a.section("account") or a.section("shapes") or "noise_multiplier" in str(a.reproduction.get("source", ""))
    return "Machine learning model" if learnt else "Summary statistics"


def _parameters(a: Assessment) -> tuple[str, dict[str, float]]:
    """The variant and its parameters as numbers."""
    source = str(a.reproduction.get("source", ""))
    if (match := re.fullmatch(r"PureDP\(epsilon=([0-9.e+-]+)\)", source)) and math.isfinite(float(match[1])):
        return "Pure DP", {"epsilon": float(match[1])}
    numbers = [n for key, n in a.numbers.items() if key.startswith("bound") and ".epsilon@" in key]
    proven = [n for n in numbers if n.kind == "provable upper bound" and n.value is not None and math.isfinite(n.value)]
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
