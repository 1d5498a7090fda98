"""One self-contained page: no request leaves the machine that opens it."""

from __future__ import annotations

import json
import math
from functools import partial
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from deniable._files import plain
from deniable._shown import shown
from deniable.report.decision import Decision, Rule
from deniable.report.meta import FIELDS
from deniable.report.model import Assessment
from deniable.report.svg import roc_picture, series_picture
from deniable.report.text import cell_text, threat_model

TONES = {"met": "good", "missed": "bad", "not decided": "open"}


def to_html(assessment: Assessment) -> str:
    """Return the page: inline styles, drawings and data; numbers equal those of ``to_json``."""
    environment = Environment(
        loader=PackageLoader("deniable.report", "."),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cell"] = cell_text
    environment.filters["rate"] = partial(shown, unit="rate", side="nearest")
    decision, proven = assessment.decision, assessment.status != "violated"
    page = environment.get_template("page.html.j2").render(
        a=assessment,
        d=decision,
        tone=assessment.tone,
        rules=[shown_rule(rule, decision) for rule in decision.rules] if decision else [],
        meta=[(FIELDS.get(key, key), value) for key, value in assessment.meta.items()],
        game=threat_model(assessment),
        roc=roc_picture(assessment.curves, proven=proven),
        pictures={series.key: series_picture(series) for part in assessment.sections for series in part.series},
        proven=assessment.status != "violated"
        and any(curve.kind == "provable upper bound" for curve in assessment.curves),
        measured=any(curve.low is not None for curve in assessment.curves),
        infinity=math.inf,
        data=_script_safe(assessment.to_dict()),
    )
    return page.lstrip()


def shown_rule(rule: Rule, decision: Decision) -> dict[str, Any]:
    """Return a rule as a person reads it: what was found on the side of the truth on which it lies."""
    return {
        "label": rule.label,
        "limit": shown_limit(rule),
        "found": shown_found(rule),
        "outcome": rule.outcome,
        "tone": TONES.get(rule.outcome, "none"),
        "decides": rule.key == decision.decided_by,
    }


def shown_limit(rule: Rule) -> str:
    """Return the limit of a rule: a rate in percent, a loss of usefulness as the number that it is."""
    if rule.limit is None:
        return "–"
    return f"{rule.limit:g}" if rule.key == "utility_loss" else shown(rule.limit, "rate", "nearest")


def shown_found(rule: Rule) -> str:
    """Return what was found, with its side: an upper bound rounded up, a measured lower end rounded down."""
    if rule.found is None:
        return "–"
    if rule.key == "utility_loss":
        return f"≈ {max(round(rule.found, 3), 0.0):g}"  # its interval stands in the reason
    lower = rule.number is not None and rule.number.startswith("attack")
    return f"{'≥' if lower else '≤'} {shown(rule.found, 'rate', 'lower' if lower else 'upper')}"


def _script_safe(value: Any) -> str:
    """Return JSON that can stand inside a script element."""
    text = json.dumps(plain(value), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
