"""Assessments: numbers first, then text, JSON, HTML and plots."""

from deniable.report.assessing import assess
from deniable.report.comparing import Comparison, compare
from deniable.report.decision import Decision, Rule
from deniable.report.following import OpacusCallback
from deniable.report.model import Assessment, Curve, Grid, Number, Section, Series, with_limit
from deniable.report.policy import Policy

__all__ = [
    "Assessment",
    "Comparison",
    "Curve",
    "Decision",
    "Grid",
    "Number",
    "OpacusCallback",
    "Policy",
    "Rule",
    "Section",
    "Series",
    "assess",
    "compare",
    "with_limit",
]
