"""Assessments: numbers first, then text, JSON, HTML and plots."""

from deniable.report.comparing import Comparison
from deniable.report.decision import Decision, Rule
from deniable.report.model import Assessment, Curve, Grid, Number, Section, Series
from deniable.report.policy import Policy

__all__ = [
    "Assessment",
    "Comparison",
    "Curve",
    "Decision",
    "Grid",
    "Number",
    "Policy",
    "Rule",
    "Section",
    "Series",
]
