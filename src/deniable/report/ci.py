"""The decision in the two forms that continuous integration reads: JUnit XML and SARIF 2.1.0."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

from deniable._files import to_json
from deniable.report.decision import Rule, RuleOutcome
from deniable.report.model import Assessment

_SARIF = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {"missed": "error", "not decided": "warning"}  # what stops a build


def rules_of_decision(assessment: Assessment) -> list[Rule]:
    """Return the rules of the decision; one more where it is not met and none of them decides.

    One of them is missed or not decided exactly if the policy is not met: a build stops for the same reason as the exit
    code says.
    """
    found = assessment.decision
    if found is None:
        return []
    if found.met or any(rule.key == found.decided_by for rule in found.rules):
        return list(found.rules)
    outcome: RuleOutcome = "missed" if found.outcome == "does not meet" else "not decided"
    return [*found.rules, Rule("decision", "The decision as a whole", None, outcome, None, None, found.reason)]


def to_junit(assessment: Assessment) -> str:
    """Return the rules as test cases: one that is missed or not decided is a failure, one not asked is skipped."""
    rules, decision = rules_of_decision(assessment), assessment.decision
    stopped, left = (sum(rule.outcome in kinds for rule in rules) for kinds in (_LEVELS, ("not asked",)))
    counts = {"tests": str(len(rules)), "failures": str(stopped), "errors": "0"}
    whole = ElementTree.Element("testsuites", counts)
    named = {"name": _line(decision.policy.name if decision else ""), "skipped": str(left)}
    suite = ElementTree.SubElement(whole, "testsuite", named | counts)
    for rule in rules:
        case = ElementTree.SubElement(suite, "testcase", classname=_line(assessment.title), name=_line(rule.label))
        if rule.outcome in _LEVELS:
            ElementTree.SubElement(case, "failure", message=_line(rule.why), type=rule.outcome)
        elif rule.outcome == "not asked":
            ElementTree.SubElement(case, "skipped", message=_line(rule.why))
        else:
            ElementTree.SubElement(case, "system-out").text = _line(rule.why)
    ElementTree.indent(whole)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(whole, encoding="unicode")}\n'


def to_sarif(assessment: Assessment, where: str = "pyproject.toml") -> str:
    """Return what keeps the policy from being met: a missed rule as an error, one that is not decided as a warning.

    ``where`` is the file that a reader is sent to: that of the policy.
    """
    rules, file = rules_of_decision(assessment), Path(where)
    uri = file.as_uri() if file.is_absolute() else quote(file.as_posix())
    place = {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": 1}}}
    driver = {
        "name": "deniable",
        "version": version("deniable"),
        "rules": [{"id": rule.key, "shortDescription": {"text": _line(rule.label)}} for rule in rules],
    }
    results = [
        {
            "ruleId": rule.key,
            "ruleIndex": i,
            "level": _LEVELS[rule.outcome],
            "message": {"text": f"{_line(assessment.title)}: {_line(rule.why)}"},
            "locations": [place],
        }
        for i, rule in enumerate(rules)
        if rule.outcome in _LEVELS
    ]
    return to_json({"$schema": _SARIF, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]})


def _line(text: str) -> str:
    """Return a text in one line, without what XML cannot hold."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
