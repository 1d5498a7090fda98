"""An assessment back from its JSON."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deniable._check import InputError
from deniable._files import read_json
from deniable.curves import Assumptions
from deniable.limits import Limit
from deniable.report.decision import Decision, Rule
from deniable.report.model import SCHEMA_VERSION, Assessment, Bars, Curve, Grid, Number, Section, Series
from deniable.report.policy import Policy


def read_assessment(path: str | Path) -> Assessment:
    """Return the assessment in a JSON file that deniable wrote."""
    try:
        content = read_json(path)
    except OSError:
        raise InputError(f"assessment file {str(path)!r} cannot be read: there is no such file") from None
    except ValueError as error:
        raise InputError(f"assessment file {str(path)!r} is not JSON: {error}") from None
    found = content.get("schema_version") if isinstance(content, dict) else None
    if found not in ("1.1", SCHEMA_VERSION):
        raise InputError(
            f"assessment file {str(path)!r} must have schema_version {SCHEMA_VERSION!r}, got {found!r}; write it again "
            "with this version of deniable"
        )
    try:
        return _assessment(content)
    except (KeyError, TypeError) as error:
        raise InputError(f"assessment file {str(path)!r} is incomplete: {error}") from None


def _assessment(content: dict[str, Any]) -> Assessment:
    stated = {name: value for name, value in content["assumptions"].items() if name != "unit"}  # it follows
    parts = {**content, "assumptions": Assumptions(**_tupled(stated, "notes"))}
    parts["sections"] = tuple(_section(section) for section in content["sections"])
    if parts.get("decision") is not None:
        parts["decision"] = _decision(parts["decision"])
    return Assessment(**_tupled(parts, "not_covered", "warnings"))


def _decision(content: dict[str, Any]) -> Decision:
    rules = tuple(Rule(**rule) for rule in content["rules"])
    asked = {**content["policy"], "limits": [Limit(**limit) for limit in content["policy"]["limits"]]}
    parts = {**content, "policy": Policy(**_tupled(asked, "require")), "rules": rules}
    return Decision(**_tupled(parts, "changes"))


def _section(content: dict[str, Any]) -> Section:
    kinds: dict[str, Callable[..., Any]] = {
        "numbers": _number,
        "curves": Curve,
        "series": Series,
        "grids": Grid,
        "bars": Bars,
    }
    made = {name: tuple(kind(**item) for item in content.get(name, ())) for name, kind in kinds.items()}
    return Section(**_tupled({**content, **made}, "notes"))


def _number(**content: Any) -> Number:
    """A number; an upper bound that JSON could not state is an infinite one."""
    if content["value"] is None and content["kind"] == "provable upper bound":
        content["value"] = math.inf
    return Number(**content)


def _tupled(content: dict[str, Any], *names: str) -> dict[str, Any]:
    return {**content, **{name: tuple(content[name]) for name in names}}
