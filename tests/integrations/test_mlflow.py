"""MLflow: every finite number becomes a metric with a name that MLflow accepts."""

from __future__ import annotations

import re
import sys
from types import SimpleNamespace

import pytest

import deniable as dn
from deniable.integrations.mlflow import log_assessment


@pytest.fixture
def mlflow(monkeypatch):
    seen = SimpleNamespace(metrics={}, tags={}, texts={})
    fake = SimpleNamespace(
        log_metrics=seen.metrics.update,
        set_tag=seen.tags.__setitem__,
        log_text=lambda text, name: seen.texts.__setitem__(name, text),
    )
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    return seen


def test_numbers_become_metrics(mlflow):
    made = dn.assess(dn.PureDP(1.0))
    log_assessment(made)
    assert mlflow.metrics["deniable/bound.advantage"] == made.numbers["bound.advantage"].value
    assert all(re.fullmatch(r"[\w\-. /]+", name) for name in mlflow.metrics)
    assert mlflow.tags == {"deniable.status": "bounded"}
    assert set(mlflow.texts) == {"deniable/assessment.json", "deniable/assessment.html"}


def test_what_holds_records_can_be_kept_back(mlflow):
    log_assessment(dn.assess(dn.PureDP(1.0)), artifacts=False)
    assert mlflow.texts == {}
    assert mlflow.metrics


def test_without_mlflow_the_install_line_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ImportError, match="pip install mlflow"):
        log_assessment(dn.assess(dn.PureDP(1.0)))
