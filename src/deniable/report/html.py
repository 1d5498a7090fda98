"""One self-contained page: no request leaves the machine that opens it."""

from __future__ import annotations

import json
import math
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from deniable._files import plain
from deniable.report.figures import roc_figure, series_figure
from deniable.report.model import Assessment
from deniable.report.text import cell_text, threat_model

_FINDINGS = {
    "bounded": "Bounded by proof",
    "consistent": "Measured attack does not contradict the bound",
    "measured": "Measured, nothing promised: at least this much leaks",
    "inconclusive": "Inconclusive",
    "target missed": "Target missed",
    "violated": "Bound violated",
}


def to_html(assessment: Assessment) -> str:
    """Return the page: inline styles, scripts and data; numbers equal those of ``to_json``."""
    from plotly.offline import get_plotlyjs

    environment = Environment(
        loader=PackageLoader("deniable.report", "."),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cell"] = cell_text
    figures: dict[str, Any] = {}
    if roc := roc_figure(assessment):
        figures["roc"] = roc
    for section in assessment.sections:
        figures |= {series.key: series_figure(series) for series in section.series}
    return environment.get_template("page.html.j2").render(
        a=assessment,
        finding=_FINDINGS[assessment.status],
        game=threat_model(assessment),
        has_roc=bool(roc),
        infinity=math.inf,
        data=_script_safe(assessment.to_dict()),
        figures=_script_safe(figures),
        plotly=get_plotlyjs() if figures else "",
    )


def _script_safe(value: Any) -> str:
    """Return JSON that can stand inside a script element."""
    text = json.dumps(plain(value), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
