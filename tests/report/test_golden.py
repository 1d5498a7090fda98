"""The terminal's text, word by word. To accept a change: DENIABLE_ACCEPT=1 pytest tests/report/test_golden.py."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import deniable as dn

GOLDEN = Path(__file__).with_name("golden")


def measured():
    """Scores at fixed quantiles of two normal laws: nothing random."""
    grid = (np.arange(2000) + 0.5) / 2000
    from scipy.special import ndtri

    scores = dn.audit_scores(ndtri(grid) + 1.0, ndtri(grid))
    return dn.assess(scores, bound=dn.tradeoff(dn.GaussianDP(0.2)), title="Too good for its bound")


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("run", lambda: dn.assess(dn.SubsampledGaussian(5.0, 1.0, 500), prior=0.1)),
        ("guarantee", lambda: dn.assess(dn.ApproximateDP(1.0, 1e-5), fpr=[0.01])),
        ("violated", measured),
    ],
)
def test_text(name, make):
    text = replace(make(), reproduction={"command": "deniable assess"}).to_text().replace("\u00a0", " ")
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("DENIABLE_ACCEPT"):
        path.write_text(text)
    assert text == path.read_text()
