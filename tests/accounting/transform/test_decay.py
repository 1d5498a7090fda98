"""Bounds on the decay of transforms, against samples wherever samples are more than rounding."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import deniable as dn
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.accounting.transform.decay import ByParts, Envelope, log_sampled, mean_deviations, shifted
from deniable.accounting.transform.line import Line
from deniable.accounting.transform.nodes import Nodes


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


def random_lines(count: int, seed: int = 5):
    """Real lines of one step, and how wide their tilted law is."""
    rng = np.random.default_rng(seed)
    while count:
        sigma, rate = 10 ** rng.uniform(-0.9, 2), 10 ** rng.uniform(-8, -0.02)
        c = float(rng.choice([-1, 1]) * 10 ** rng.uniform(-1, min(2.0, 2 + math.log10(sigma))) + 0.5)
        loss = PrivacyLoss.of([dn.SubsampledGaussian(sigma, rate, 1)])
        try:
            line = loss.real_line(c)
        except TooSlowError:
            continue
        if line.u.size < 700 and line.cumulants[2] > 0:
            count -= 1
            yield line, math.sqrt(line.cumulants[2])


def test_what_lies_between_the_nodes_of_the_integration_by_parts_is_bounded():
    """Against ten times as many nodes: the variation between ours is smaller, and so are partial sums."""
    smaller = 0
    for line, _ in random_lines(60):
        dense = Line.on(line.of, line.c, Nodes(float(line.u[0]), float(line.u[-1]), line.spacing / 40))
        weight = dense.tilted[0] / dense.mgf[0]
        density = weight / dense.spacing / np.maximum(dense.posterior[0] / dense.of.noise[0], 1e-300)
        variation = np.cumsum(np.abs(np.diff(density, append=0.0))[::-1])[::-1] + density
        below = np.cumsum(weight) - weight / 2  # to second order in a fortieth of the spacing
        parts, t = ByParts.of(line), np.geomspace(1e-2, 1e6, 30)
        truth = np.min(below[::20] + np.multiply.outer(1 / t, variation[::20]), axis=1)  # more v, a smaller bound
        found = np.exp(parts(t)[0])
        assert np.all(found >= np.minimum(truth, 1.0) * (1 - 2e-3) - 1e-12)
        smaller += int(np.sum(found < 0.9))
    assert smaller > 300


def test_sums_on_moved_contours_and_what_they_miss_bound_the_integrals():
    """Against eight times as many nodes; with a third of them sums are far off, and what they miss makes up for it."""
    heights = np.geomspace(0.2, 6.0, 6)
    seen = 0
    for line, width in random_lines(60, seed=7):
        t = np.geomspace(0.1, 100, 12) / width
        dense, found, few = (
            shifted(replace(line, spacing=line.spacing * times), t, heights) for times in (1 / 8, 1, 4)
        )
        assert np.all(np.minimum(found, few) >= dense - 1e-9)
        seen += int(np.sum((found < -0.1) & (found <= dense + 1e-6)))
    assert seen > 200


@pytest.mark.parametrize(("sigma", "rate"), [(0.3, 0.01), (0.7, 1e-4), (2.0, 0.3), (8.0, 1e-3)])
@pytest.mark.parametrize("c", [-5.0, 0.5, 1.5])
def test_panels_around_samples_hold_the_transform_between_them(sigma, rate, c):
    """The panels are so wide that without the Lipschitz constant one in ten would be wrong."""
    loss = PrivacyLoss.of([dn.SubsampledGaussian(sigma, rate, 1)])
    width = math.sqrt(loss.cumulants(c)[2])
    edges = np.geomspace(0.3, 60.0, 20) / width
    line = loss.line(c, float(edges[-1]), 25.0)
    typical = mean_deviations(loss.real_line(c))
    found = log_sampled(loss, line, edges, typical)[0]
    middle = line.log_moduli((edges[1:] + edges[:-1]) / 2)[0]
    dense = np.linspace(edges[:-1], edges[1:], 9).T
    truth = loss.line(c, float(edges[-1])).log_moduli(dense.ravel())[0].reshape(dense.shape).max(axis=1)
    assert np.all(np.exp(truth) <= np.exp(found) + 1e-12)
    assert np.any(np.exp(truth) > np.exp(middle) + 1e-3)


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
