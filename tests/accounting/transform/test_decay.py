"""Bounds on the decay of transforms, against samples wherever samples are more than rounding."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import deniable as dn
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.accounting.transform.decay import ByParts, Envelope


@settings(max_examples=75, deadline=None)
@given(
    log_sigma=st.floats(-0.5, 1.7),
    log_rate=st.floats(-6, -0.05),
    steps=st.integers(2, 40),
    region=st.sampled_from(["left", "middle", "right"]),
    place=st.floats(0, 1),
    end=st.one_of(st.none(), st.floats(2.5, 9)),
)
def test_no_sample_is_above_the_envelope(log_sigma, log_rate, steps, region, place, end):
    sigma, rate = 10**log_sigma, 10**log_rate
    loss = PrivacyLoss.of([dn.SubsampledGaussian(sigma, rate, steps)])
    if end is not None:  # a smooth window, as bulk and jumps are parted by
        loss = loss.windowed(np.array([end]), np.array([min(0.5 * sigma, 0.7) / 3]))
    spread = math.sqrt(PrivacyLoss.of([dn.SubsampledGaussian(sigma, rate, 1)]).cumulants(0.5)[2])
    c = {"left": -(10 ** (2 * place - 1)) / spread, "middle": place, "right": 1 + 10 ** (3 * place - 2)}[region]
    try:
        width = math.sqrt(loss.cumulants(c)[2])
        assume(width > 0)
        envelope = Envelope.of(loss, c, width, 1e-14)
        t = np.geomspace(0.6, 300.0, 60) / width
        sampled = loss.line(c, float(t[-1])).log_transform(t).real
    except TooSlowError:
        assume(False)
    panel = np.searchsorted(envelope.edges, t, side="right") - 1
    assert np.all((panel >= 0) & (panel < envelope.edges.size - 1))
    seen = sampled > steps * math.log(1e-11)
    assert np.all(sampled[seen] <= envelope.log_bound[panel[seen]] + 1e-8 * steps)


@pytest.mark.parametrize(("sigma", "rate", "steps"), [(0.108, 0.34, 3), (0.5, 0.1, 2), (1.0, 0.01, 40)])
def test_what_lies_beyond_the_last_panel(sigma, rate, steps):
    """That the bound on |M| falls like 1/t there was taken for granted: by 0.11 a panel at a noise of 0.108."""
    loss = PrivacyLoss.of([dn.SubsampledGaussian(sigma, rate, steps)])
    found = Envelope.of(loss, 0.5, math.sqrt(loss.cumulants(0.5)[2]), 1e-14)
    t = found.edges[-1] * np.geomspace(1.0, 1e12, 4000)
    bound = np.exp(steps * ByParts.of(loss.real_line(0.5))(t)[0])
    assert found.rest >= float(np.sum(bound[1:] * np.diff(np.log(t)))) > 0
