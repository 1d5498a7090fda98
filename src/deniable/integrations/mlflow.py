"""MLflow: the numbers of an assessment as metrics of a run, its page and JSON as artifacts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from deniable._optional import require

if TYPE_CHECKING:
    from deniable.report import Assessment


def log_assessment(assessment: Assessment, *, artifacts: bool = True) -> None:
    """Log an assessment to the active MLflow run.

    Every number with a finite value becomes the metric ``deniable/<key>`` (characters that MLflow refuses become
    "_"; intervals add ``.low`` and ``.high``); the status is the tag ``deniable.status``.

    A record profile is as sensitive as the training data, and both artifacts hold it: pass ``artifacts=False`` where
    others read the artifact store.
    """
    mlflow = require("mlflow", purpose="Logging an assessment")
    metrics: dict[str, float] = {}
    for key, number in assessment.numbers.items():
        ends = {"": number.value, ".low": number.low, ".high": number.high}
        name = re.sub(r"[^\w\-. /]", "_", f"deniable/{key}")
        metrics |= {name + end: value for end, value in ends.items() if value is not None and abs(value) < float("inf")}
    mlflow.log_metrics(metrics)
    mlflow.set_tag("deniable.status", assessment.status)
    if artifacts:
        mlflow.log_text(assessment.to_json(), "deniable/assessment.json")
        mlflow.log_text(assessment.to_html(), "deniable/assessment.html")
