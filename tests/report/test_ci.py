"""What continuous integration reads says the same as the decision: a build stops where the policy is not met."""

import json
import logging
from dataclasses import replace
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pytest

import deniable as dn

RUN = dn.SubsampledGaussian(1.0, 0.01, 5000)


def scored(shift):
    rng = np.random.default_rng(0)
    return dn.audit_scores(rng.normal(shift, 1, 800), rng.normal(0, 1, 800))


def reports():
    violated = dn.assess(scored(2.0), bound=dn.GaussianDP(0.1))
    return {
        "missed": dn.assess(RUN),
        "met": dn.assess(dn.GaussianDP(0.05)),
        "not decided": dn.assess(scored(0.0), policy=dn.Policy([dn.Limit(advantage=0.1)], measured=None)),
        "violated": violated,
        "violated, no rule about it": violated.decide(dn.Policy([], measured=0.99, utility_loss=None)),
        "odd letters": replace(dn.assess(RUN), title='a <b> & "c" \x07\x00 \ud7ff\n\u2028d'),
    }


@pytest.fixture(params=reports())
def made(request):
    return reports()[request.param]


def test_junit_fails_exactly_where_the_policy_is_not_met(made):
    suite = ElementTree.fromstring(made.to_junit())[0]
    failures = suite.findall("testcase/failure")
    assert (len(failures) == 0) == made.decision.met
    assert int(suite.get("failures")) == len(failures)
    assert int(suite.get("skipped")) == len(suite.findall("testcase/skipped"))
    assert int(suite.get("tests")) == len(suite.findall("testcase")) >= len(made.decision.rules)
    said = {" ".join(rule.why.split()) for rule in made.decision.rules if rule.outcome in ("missed", "not decided")}
    assert said <= {failure.get("message") for failure in failures}


def test_sarif_holds_what_stops_and_nothing_else(made):
    run = json.loads(made.to_sarif("rules/policy.toml"))["runs"][0]
    known = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert (run["results"] == []) == made.decision.met
    for result in run["results"]:
        assert known[result["ruleIndex"]] == result["ruleId"]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "rules/policy.toml"
    levels = {result["ruleId"]: result["level"] for result in run["results"]}
    for rule in made.decision.rules:
        assert levels.get(rule.key) == {"missed": "error", "not decided": "warning"}.get(rule.outcome)


TEXT, WHOLE = {"type": "string"}, {"type": "integer", "minimum": 0}


def closed(required=(), **properties):
    """An object of SARIF 2.1.0 with those of its properties that are written: no others are known to be right."""
    return {"type": "object", "additionalProperties": False, "properties": properties, "required": list(required)}


MESSAGE = closed(["text"], text={**TEXT, "minLength": 1})
RULE = closed(["id"], id=TEXT, shortDescription=MESSAGE)
DRIVER = closed(["name"], name=TEXT, version=TEXT, rules={"type": "array", "uniqueItems": True, "items": RULE})
PLACE = closed(artifactLocation=closed(uri={**TEXT, "pattern": r"^[\w.~!$&'()*+,;=:@/%-]+$"}),
               region=closed(startLine={**WHOLE, "minimum": 1}))  # fmt: skip
RESULT = closed(["message"], ruleId=TEXT, ruleIndex=WHOLE, level={"enum": ["none", "note", "warning", "error"]},
                message=MESSAGE, locations={"type": "array", "items": closed(physicalLocation=PLACE)})  # fmt: skip
RUN_OF_TOOL = closed(["tool"], tool=closed(["driver"], driver=DRIVER), results={"type": "array", "items": RESULT})
SARIF = closed(["version", "runs"], **{"$schema": TEXT}, version={"enum": ["2.1.0"]},
               runs={"type": "array", "items": RUN_OF_TOOL})  # fmt: skip


def test_sarif_is_as_its_schema_says_whatever_the_file_is_called(made):
    """The part of the published schema that is written; the whole of it found nothing wrong either (2026-11-28)."""
    for where in ("pyproject.toml", "rules/a b ü%.toml", "/somewhere else/policy.toml"):
        jsonschema.validate(json.loads(made.to_sarif(where)), SARIF)
    assert '"/somewhere' not in made.to_sarif("/somewhere else/policy.toml")


def test_a_decision_is_logged_under_one_name(caplog):
    with caplog.at_level(logging.INFO, "deniable"):
        dn.assess(RUN)
    assert any("Does not meet the policy" in line for line in caplog.messages)
