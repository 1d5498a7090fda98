"""The transform of Gaussian mixture steps against dense sums, and its brackets against those of other engines."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

import deniable as dn
from deniable.accounting.engines.inverted import InvertedTradeoff
from deniable.accounting.pld.curve import MultiScaleTradeoff
from deniable.accounting.steps.gaussian_mixture import several_records
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.accounting.transform.mixture import MixtureLoss

PERSON = dn.SubsampledGaussian(0.8, 0.02, 300, records_per_person=4)
CUT = dn.TruncatedPoisson(1.0, 0.02, 300, max_batch=30, n_records=1000)
RARE = dn.SubsampledGaussian(1.0, 1e-4, 200, records_per_person=3)


def loss_of(*mechanisms):
    found = MixtureLoss.of(PrivacyLoss.of(mechanisms))
    assert found is not None
    return found


def inverted(*mechanisms):
    return InvertedTradeoff(loss_of(*mechanisms))


def transform(loss, w):
    """M(w) of the first step: a dense sum on the real line in extended precision."""
    (step, _), *_ = loss.parts
    u = np.arange(-18.0, 40.0, 1 / 256).astype(np.longdouble)
    total = np.clongdouble(0)
    for case in step.cases:
        shift = np.array(case.records, dtype=np.longdouble) / np.longdouble(step.noise)
        log_ratio = np.log(np.exp(np.multiply.outer(u, shift) - shift**2 / 2) @ np.array(case.weight, np.longdouble))
        density = np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi, dtype=np.longdouble) / 256
        if loss.window is not None:
            density = density * ndtr(((loss.window[0] - u) / loss.window[1]).astype(float))
        total += np.longdouble(case.probability) * np.sum(density * np.exp(np.clongdouble(w) * log_ratio))
    return total


@pytest.mark.parametrize(
    ("run", "w"), [(PERSON, 0.5 + 3j), (PERSON, -4 + 9j), (PERSON, 1.6 + 2j), (CUT, 2 + 20j), (RARE, 3 + 40j)]
)
def test_the_transform_is_within_its_error(run, w):
    loss = loss_of(run)
    loss = loss.truncation if w.real > 1 else loss
    (_, count), *_ = loss.parts
    truth = complex((transform(loss, w) / transform(loss, w.real)) ** count)
    one_by_one, error = (x[-1] for x in loss.line(w.real).transform(np.array([0.0, w.imag])))
    many, many_error = (x[100] for x in loss.line(w.real).transform(w.imag / 100 * np.arange(200), w.imag / 100))
    assert abs(np.exp(one_by_one) - truth) <= error
    assert abs(np.exp(many) - truth) <= many_error
    assert error < 1e-10


@pytest.mark.parametrize(("run", "c"), [(PERSON, 0.5), (PERSON, -6.0), (PERSON, 4.0), (CUT, 1.5), (RARE, 2.0)])
def test_the_envelope_bounds_the_transform_and_the_tail(run, c):
    loss = loss_of(run).truncation
    width = math.sqrt(loss.cumulants(c)[2])
    envelope = loss.envelope(c, width)
    t = np.geomspace(envelope.edges[0], envelope.edges[-1], 300)
    transformed, error = loss.line(c).transform(t)
    bound = envelope.log_bound[np.searchsorted(envelope.edges, t, side="right") - 1]
    assert np.all(np.exp(transformed.real) <= np.exp(bound) * (1 + 1e-9) + error)
    assert envelope.log_bound[45] < -20  # and it is not empty
    beyond = envelope.edges[-1] * np.geomspace(1, 100, 50)
    transformed, error = loss.line(c).transform(beyond)
    assert np.all(np.exp(transformed.real) <= envelope.rest * beyond[0] / beyond * (1 + 1e-9) + error)


@pytest.mark.parametrize("run", [CUT, PERSON + dn.GaussianDP(0.3) + dn.PureDP(0.1)])
def test_brackets_meet_those_of_the_grid_and_are_narrow(run):
    parts = run.mechanisms if isinstance(run, dn.Composition) else (run,)
    exact, grid = inverted(*parts), MultiScaleTradeoff.of(PrivacyLoss.of(parts))
    for ask in (
        lambda t, side: t.advantage(side=side),
        lambda t, side: t.tpr(1e-3, side),
        lambda t, side: t.delta(0.3, "remove", side),
    ):
        low, high = ask(exact, "lower"), ask(exact, "upper")
        assert low <= ask(grid, "upper")
        assert ask(grid, "lower") <= high
        assert high - low <= 1e-9 + 1e-6 * low


def test_one_record_has_the_curve_of_the_plain_mechanism():
    run = dn.SubsampledGaussian(0.8, 0.02, 300)
    plain, found = dn.tradeoff(run), InvertedTradeoff(loss_of(several_records(run).times(300)))
    for fpr in (1e-9, 1e-5, 0.1, 0.9):
        assert found.tpr(fpr, "lower") <= plain.tpr(fpr)
        assert plain.tpr(fpr, "lower") <= found.tpr(fpr)
        assert found.tpr(fpr) / found.tpr(fpr, "lower") < 1 + 1e-6
    assert found.advantage(side="lower") <= plain.advantage()
    assert plain.advantage(side="lower") <= found.advantage()
    assert found.advantage() - found.advantage(side="lower") < 1e-9


def test_divergences_of_persons_are_those_of_the_transform():
    t = dn.tradeoff(PERSON)
    loss = loss_of(PERSON)
    for order in (1.5, 4.0):
        for direction, point in (("add", order), ("remove", 1 - order)):
            truth = float(300 * np.log(transform(loss, point).real) / (order - 1))
            assert truth <= t.renyi(order, direction) <= truth * (1 + 1e-9)


def test_steps_of_another_law_have_no_such_transform():
    telling = dn.mechanisms.FinitePair((0.5, 0.25, 0.25), (0.5, 0.5, 0.0))  # one outcome shows what happened
    assert MixtureLoss.of(PrivacyLoss.of([PERSON, telling])) is None
    with pytest.raises(dn.InputError, match="engine 'inversion' does not serve every step"):
        dn.tradeoff(telling, engine="inversion")
