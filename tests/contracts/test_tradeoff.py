"""What every Tradeoff keeps, whatever computes it: order, range, duality, monotonicity, and behaviour as a value."""

import copy
import importlib
import math
import pickle
import pkgutil
from dataclasses import replace
from fractions import Fraction
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import deniable
import deniable as dn
from deniable.accounting.engines.finite import FiniteTradeoff
from deniable.accounting.pld.curve import MultiScaleTradeoff
from deniable.accounting.steps.finite_law import FiniteLaw
from deniable.accounting.steps.laplace import BoundedRangeTradeoff
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.curves import EVERY_CASE, Assumptions, EnvelopeTradeoff, SmallestTradeoff, Tradeoff
from deniable.laws.norm_laplace import NormLaplaceTradeoff

RUN, SHARP = dn.SubsampledGaussian(1.0, 0.1, 10), dn.SubsampledGaussian(0.2, 1e-3, 2)
GRID = np.linspace(-3, 3, 13)


def _envelope():
    t = dn.tradeoff(dn.GaussianDP(1.0))
    return EnvelopeTradeoff(GRID, t.delta(GRID, "remove"), t.delta(GRID, "add"))


EXAMPLES = {
    "pure": lambda: dn.tradeoff(dn.PureDP(1.0)),
    "approximate": lambda: dn.tradeoff(dn.ApproximateDP(1.0, 1e-3)),
    "revealed": lambda: dn.tradeoff(dn.ApproximateDP(1.0, 1.0)),
    "nothing": lambda: dn.tradeoff(dn.GaussianDP(0.0)),
    "gaussian": lambda: dn.tradeoff(dn.GaussianDP(1.5)),
    "inverse": lambda: dn.tradeoff(dn.SubsampledGaussian(1.0, 0.1, 1)).inverse(),
    "one step": lambda: dn.tradeoff(dn.SubsampledGaussian(0.5, 0.1, 1)),
    "envelope": _envelope,
    "composed": lambda: dn.tradeoff(RUN),
    "inversion": lambda: dn.tradeoff(RUN, engine="inversion"),
    "lattices": lambda: dn.tradeoff(dn.SubsampledGaussian(1.0, 0.1, 2), engine="pld"),
    "finite": lambda: dn.tradeoff(dn.PureDP(1.0) + dn.PureDP(0.3)),
    "finite, one-sided": lambda: FiniteTradeoff.of([FiniteLaw.of([0.2, 0.5, 0.3], [0.0, 0.1, 0.9])]),
    "laplace": lambda: dn.tradeoff(dn.Laplace(1.5)),
    "laplace, sampled": lambda: dn.tradeoff(dn.Laplace(1.5, sample_rate=0.2)),
    "bounded range": lambda: BoundedRangeTradeoff(1.5),
    "laplace, composed": lambda: MultiScaleTradeoff(PrivacyLoss.of([dn.Laplace(1.5, steps=3)])),
    "lattice": lambda: dn.tradeoff(dn.RandomizedResponse(0.5, 3, steps=4)),
    "failure": lambda: dn.tradeoff(dn.ApproximateDP(1.0, 1e-3) + dn.GaussianDP(1.0)),
    "little noise": lambda: dn.tradeoff(dn.SubsampledGaussian(0.05, 0.01, 50)),
    "sharp": lambda: dn.tradeoff(dn.SubsampledGaussian(0.05, 0.01, 50) + dn.GaussianDP(1.0)),
    "rényi": lambda: dn.tradeoff(dn.RenyiDP([1.5, 2, 8], [0.1, 0.2, 0.4])),
    "concentrated": lambda: dn.tradeoff(dn.ZeroConcentratedDP(0.3) + dn.GaussianDP(0.5)),
    "shuffled": lambda: dn.tradeoff(dn.ShuffledBatches(1.0, 5, 2)),
    "last iterate": lambda: dn.tradeoff(dn.NoisyGradientDescent(5.0, 100, 0.1, 2.0, 0.5)),
    "matrix": lambda: dn.tradeoff(dn.MatrixMechanism(2.0, np.eye(6), sample_rate=0.2)),
    "next to no noise": lambda: dn.tradeoff(dn.SubsampledGaussian(0.001, 0.01, 50)),
    "persons": lambda: dn.tradeoff(dn.SubsampledGaussian(1.0, 1e-4, 3, records_per_person=2)),
    "gaussian mixture": lambda: dn.tradeoff(dn.GaussianDP(0.7) + dn.PureDP(0.5)),
    "allocation": lambda: dn.tradeoff(dn.RandomAllocation(1.0, 20, 2)),
    "allocation, bracketed": lambda: dn.tradeoff(dn.RandomAllocation(2.0, 10, 2, 3)),
    "replaced": lambda: dn.tradeoff(dn.GaussianDP(0.5), adjacency="replace"),
    "replaced, sampled": lambda: dn.tradeoff(RUN, adjacency="replace"),
    "smallest": lambda: SmallestTradeoff((dn.tradeoff(dn.GaussianDP(1.0)), _envelope())),
    "chain": lambda: dn.tradeoff(dn.ApproximateDP(1.0, 1e-3)).group(2),
    "norm-laplace": lambda: NormLaplaceTradeoff(1.0, 3),
}
if find_spec("flint"):
    EXAMPLES["proof"] = lambda: dn.proof.enclosure(dn.GaussianDP(1.5))
UNORDERED = {"monte carlo"}  # a confidence band: its two sides come from different samples
_known: dict[str, Tradeoff] = {}


def example(name: str) -> Tradeoff:
    if name not in _known:
        _known[name] = EXAMPLES[name]()
    return _known[name]


def kinds(base: type[Tradeoff] = Tradeoff) -> set[type[Tradeoff]]:
    found = set()
    for kind in base.__subclasses__():
        found |= {kind} | kinds(kind)
    return found


def test_every_kind_is_among_the_examples():
    for module in pkgutil.walk_packages(deniable.__path__, "deniable."):
        if not module.name.endswith("__main__") and not module.name.startswith("deniable.app"):
            try:
                importlib.import_module(module.name)
            except ImportError:  # an extra is missing
                continue
    concrete = {k for k in kinds() if not k.__abstractmethods__ and k.__module__.startswith("deniable.")}
    shown = {type(example(name)) for name in EXAMPLES}
    assert {kind.__name__ for kind in concrete - shown} == (set() if find_spec("flint") else {"BallTradeoff"})


names = pytest.mark.parametrize("name", EXAMPLES)


WORLDS = Assumptions(adjacency="a person moves house")


@names
def test_a_sketch_keeps_what_its_curve_is_about(name):
    curve = replace(example(name), holds_for=EVERY_CASE, confidence=0.875, assumptions=WORLDS)
    rough, fpr = curve.sketch(), np.array([1e-6, 1e-3, 0.3])
    assert np.all(curve.tpr(fpr, "lower") <= rough.tpr(fpr))
    assert (rough.holds_for, rough.confidence, replace(rough.assumptions, notes=())) == (EVERY_CASE, 0.875, WORLDS)
    assert rough.group(2).holds_for == EVERY_CASE
    assert (rough.group(2).confidence, curve.group(2).confidence) == (0.875, 0.875)
    turned = curve.inverse()
    for found in (turned, turned.sketch(), turned.inverse()):
        assert (found.confidence, replace(found.assumptions, notes=())) == (0.875, WORLDS)
    assert turned.sketch().holds_for == turned.holds_for
    assert rough.sketch() is rough
    assert (flat := turned.sketch()).sketch() is flat


@names
@settings(max_examples=3)
@given(
    epsilon=st.one_of(st.floats(-4, 6), st.sampled_from([-800.0, -20.0, 0.0, 50.0, 800.0])),
    alpha=st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 5e-324, 1e-300, 1e-12, 1.0])),
    prior=st.one_of(st.floats(0.001, 0.999), st.sampled_from([1e-300, 1e-12, 0.5, 1 - 1e-12])),
)
def test_brackets_are_ordered_in_range_and_dual(name, epsilon, alpha, prior):
    t = example(name)
    for roc in (t, t.inverse()):
        low, high = roc.tpr(alpha, "lower"), roc.tpr(alpha)
        assert alpha <= low <= 1
        assert alpha <= high <= 1
        assert low <= high or name in UNORDERED
        for way in ("remove", "add"):
            assert 0 <= roc.delta(epsilon, way, "lower") <= 1
            assert roc.delta(epsilon, way, "lower") <= roc.delta(epsilon, way)
        # weak duality: TPR(α) ≤ γα + H_γ for every γ
        if name not in UNORDERED and epsilon < 700:
            assert low <= (math.exp(epsilon) * alpha + roc.delta(epsilon, "remove")) * (1 + 1e-13)
    # H_γ(P‖Q) = 1 − γ + γ·H_{1/γ}(Q‖P): the two brackets meet
    if abs(epsilon) < 30:
        gamma = math.exp(epsilon)
        dual = [1 - gamma + gamma * t.delta(-epsilon, "add", side) for side in ("lower", "upper")]
        slack = 1e-13 * (1 + gamma)
        assert dual[0] <= t.delta(epsilon, "remove") + slack
        assert t.delta(epsilon, "remove", "lower") <= dual[1] + slack
    assert 0 <= t.advantage(prior, "lower") <= t.advantage(prior) <= 2 * min(prior, 1 - prior)
    guess = max(Fraction(prior), 1 - Fraction(prior))  # 1 − prior as a double may lie above it
    assert guess * (1 - Fraction(1, 2**52)) <= t.accuracy(prior, "lower") <= t.accuracy(prior) <= 1
    assert guess <= t.accuracy(prior)
    low, high = t.precision(alpha, prior, "lower"), t.precision(alpha, prior)
    assert prior * (1 - 1e-15) <= low
    assert low <= high <= 1 or name in UNORDERED


@names
def test_curves_are_monotone_up_to_their_width(name):
    t = example(name)
    epsilon, alpha = np.linspace(-3, 5, 17), np.concatenate([[0.0], np.geomspace(1e-9, 1.0, 10)])
    for roc in (t, t.inverse()):
        low, high = roc.delta(epsilon, "remove", "lower"), roc.delta(epsilon, "remove")
        assert np.all(low[1:] <= high[:-1])
        if name not in UNORDERED:
            assert np.all(roc.tpr(alpha, "lower")[:-1] <= roc.tpr(alpha)[1:])


@names
def test_epsilon_is_the_inverse_of_delta(name):
    t = example(name)
    for delta in (0.0, 1e-12, 0.3, 1.0):
        low, high = t.epsilon(delta, side="lower"), t.epsilon(delta)
        assert 0 <= low <= high, delta  # fails for NaN
        if math.isfinite(high):
            assert t.delta(high) <= delta * (1 + 1e-9) + (delta == 0) * 4e-15


@names
def test_a_curve_is_a_value(name):
    t = example(name)
    assert t == t
    assert isinstance(hash(t), int)
    assert len(repr(t).splitlines()) == 2
    assert len(repr(t)) < 500
    assert "nan" not in repr(t).lower().replace("nanosecond", "")
    for twin in (pickle.loads(pickle.dumps(t)), copy.copy(t), copy.deepcopy(t)):
        assert type(twin) is type(t)
        assert twin.advantage() == t.advantage()
        assert twin.tpr(0.1) == t.tpr(0.1)
    assert t.inverse().inverse().advantage() == t.advantage()
    assert t.inverse().delta(0.3, "remove") == t.delta(0.3, "add")
    assert isinstance(t.tpr(0.1), float)
    assert t.tpr([[0.1, 0.2]]).shape == (1, 2)
    assert t.tpr([]).shape == (0,)
    assert t.delta(np.zeros((2, 0))).shape == (2, 0)


@names
def test_an_answer_has_the_bounds_of_the_curve_and_charges_that_account_for_them(name):
    t = example(name)
    epsilon, alpha = 0.4, 0.013
    told = {
        t.explain(fpr=alpha): (t.tpr(alpha, "lower"), t.tpr(alpha)),
        t.inverse().explain(fpr=alpha): (t.inverse().tpr(alpha, "lower"), t.inverse().tpr(alpha)),
        t.explain(epsilon=epsilon): (t.delta(epsilon, side="lower"), t.delta(epsilon)),
        t.explain(epsilon=epsilon, direction="remove"): (
            t.delta(epsilon, "remove", "lower"),
            t.delta(epsilon, "remove"),
        ),
        t.explain(epsilon=-math.inf, direction="add"): (1.0, 1.0),
        t.explain(fpr=0.0): (t.tpr(0.0, "lower"), t.tpr(0.0)),
        t.explain(fpr=1.0): (t.tpr(1.0, "lower"), t.tpr(1.0)),
        t.explain(): (t.advantage(side="lower"), t.advantage()),
    }
    for answer, (low, high) in told.items():
        assert (answer.low, answer.high) == (low, high), answer.question
        assert answer.engine
        assert answer.lower_engine
        assert answer.method.startswith(answer.engine)
        assert answer.method.endswith(answer.engine) or answer.method.endswith(f"{answer.lower_engine})")
        assert answer.confidence == t.confidence
        charges = (answer.aliasing, answer.truncation, answer.rounding, answer.other)
        assert all(charge >= 0 and math.isfinite(charge) for charge in charges)  # fails for NaN
        # they account for the distance of the sides, and are not larger than an engine's own error bound can be
        assert answer.width <= 2 * sum(charges) * (1 + 1e-9)
        if name not in UNORDERED and low > 1e-12 and high < 1:
            assert sum(charges[:3]) <= answer.width * (1 + 1e-6) + 1e-13
        assert len(answer.lines()) == 3
