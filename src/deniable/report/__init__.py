"""Assessments: numbers first, then text, JSON, HTML and plots."""

from deniable.report.assessing import assess
from deniable.report.following import OpacusCallback
from deniable.report.model import Assessment, Curve, Grid, Number, Section, Series, with_limit

__all__ = ["Assessment", "Curve", "Grid", "Number", "OpacusCallback", "Section", "Series", "assess", "with_limit"]
