"""Assessments: numbers first, then text, JSON, HTML and plots."""
