"""Bounds on the decay of transforms, against samples wherever samples are more than rounding."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import deniable as dn
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.transform import decay
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.accounting.transform.decay import Envelope, shifted


@settings(max_examples=75, deadline=None)
@given(
    log_sigma=st.floats(-0.5, 1.7),
    log_rate=st.floats(-6, -0.05),
    steps=st.integers(2, 40),
    region=st.sampled_from(["left", "middle", "right"]),
    place=st.floats(0, 1),
)
def test_no_sample_is_above_the_envelope(log_sigma, log_rate, steps, region, place):
    sigma, rate = 10**log_sigma, 10**log_rate
    loss = PrivacyLoss.of([dn.SubsampledGaussian(sigma, rate, steps)])
    spread = math.sqrt(PrivacyLoss.of([dn.SubsampledGaussian(sigma, rate, 1)]).cumulants(0.5)[2])
    c = {"left": -(10 ** (2 * place - 1)) / spread, "middle": place, "right": 1 + 10 ** (3 * place - 2)}[region]
    try:
        width = math.sqrt(loss.cumulants(c)[2])
        assume(width > 0)
        envelope = Envelope.of(loss.line(c), width)
        t = np.geomspace(3.1, 300.0, 60) / width
        sampled = loss.line(c, float(t[-1])).transform(t)[0].real
    except TooSlowError:
        assume(False)
    panel = np.searchsorted(envelope.edges, t, side="right") - 1
    assert np.all((panel >= 0) & (panel < envelope.edges.size - 1))
    seen = sampled > steps * math.log(1e-11)
    assert np.all(sampled[seen] <= envelope.log_bound[panel[seen]] + 1e-8 * steps)


@pytest.mark.parametrize(("sigma", "rate", "steps"), [(0.4, 0.34, 5), (0.5, 0.1, 2), (1.0, 0.01, 40), (0.5, 0.9, 6)])
@pytest.mark.parametrize("c", [-1.0, 0.5, 2.0])
def test_what_lies_beyond_the_last_panel(sigma, rate, steps, c, monkeypatch):
    """Sums of samples, from places where they are more than rounding."""
    loss = PrivacyLoss.of([dn.SubsampledGaussian(sigma, rate, steps), dn.GaussianDP(0.0)])
    width = math.sqrt(loss.cumulants(c)[2])
    monkeypatch.setattr(decay, "PLACES", np.array([2.0, 4.0]))
    found = Envelope.of(loss.line(c), width)
    t = found.edges[-1] * np.geomspace(1.0, 20.0, 2000)
    sampled = np.exp(loss.line(c, float(t[-1])).transform(t)[0].real)
    assert found.rest >= float(np.sum(sampled[1:] * np.diff(np.log(t)))) > 0
    assert found.cut(math.inf, 1.0)[1][0] * math.pi >= found.rest  # whoever stops there is charged for it


def test_the_density_of_a_tilted_loss_is_below_its_bound():
    for line, _ in random_lines(60, seed=3):
        density = line.tilted[0] / line.mgf[0] / line.spacing / (line.posterior[0] / line.of.noise[0])
        assert np.log(density.max()) <= decay._log_density(line) + 1e-9


def random_lines(count: int, seed: int = 5):
    """Real lines of one step, and how wide their tilted law is."""
    rng = np.random.default_rng(seed)
    while count:
        sigma, rate = 10 ** rng.uniform(-0.9, 2), 10 ** rng.uniform(-8, -0.02)
        c = float(rng.choice([-1, 1]) * 10 ** rng.uniform(-1, min(2.0, 2 + math.log10(sigma))) + 0.5)
        loss = PrivacyLoss.of([dn.SubsampledGaussian(sigma, rate, 1)])
        try:
            line = loss.line(c)
            variance = line.cumulants[2]
        except TooSlowError:
            continue
        if line.phases.u.size < 700 and variance > 0:
            count -= 1
            yield line.phases, math.sqrt(variance)


def test_sums_on_moved_contours_and_what_they_miss_bound_the_integrals():
    """Against eight times as many nodes; with a third of them sums are far off, and what they miss makes up for it."""
    heights = np.geomspace(0.2, 6.0, 6)[None]
    seen = 0
    for line, width in random_lines(60, seed=7):
        t = np.geomspace(0.1, 100, 12) / width
        dense, found, few = (
            shifted(replace(line, spacing=line.spacing * times), t, heights) for times in (1 / 8, 1, 4)
        )
        assert np.all(np.minimum(found, few) >= dense - 1e-9)
        seen += int(np.sum((found < -0.1) & (found <= dense + 1e-6)))
    assert seen > 200


@pytest.mark.parametrize("angle", [0.1, 0.7, 1.2, math.pi / 2])
def test_the_inequalities_about_the_modulus_on_moved_contours(angle):
    odds = np.geomspace(1e-6, 1e6, 2001)
    modulus = np.abs(1 + odds * np.exp(1j * angle))
    assert np.all(modulus >= (1 + odds) ** math.cos(angle) * (1 - 1e-14))
    assert np.all(modulus >= (1 + odds) * math.cos(angle / 2) * (1 - 1e-14))
    for other in (0.2, 0.9, 1.5):
        turned = np.angle(1 + odds * np.exp(1j * (angle + other))) + np.angle(
            1 + odds * np.exp(1j * (other - angle)) ** -1
        )
        assert np.all(turned >= -1e-14)
