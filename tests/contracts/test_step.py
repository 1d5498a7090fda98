"""What every Step keeps, against laws written down a second time: masses, brackets, an attack that is played out."""

import dataclasses
import math
import pickle
from dataclasses import dataclass
from inspect import isabstract

import numpy as np
import pytest

import deniable as dn
from deniable._floats import EPS
from deniable.accounting.pld.compose import cuttable
from deniable.accounting.reductions import Dominated, reduced
from deniable.accounting.steps.allocation import AllocatedStep
from deniable.accounting.steps.base import SampledStep, Step
from deniable.accounting.steps.discrete import ResponseStep
from deniable.accounting.steps.gaussian_mixture import Case, GaussianMixtureStep
from deniable.accounting.steps.outcomes import ListedOutcomes
from deniable.accounting.steps.registry import STEPS, step_of
from deniable.accounting.steps.sampled_gaussian import ReplacedGaussianStep, SubsampledGaussianStep
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.curves.combined import BracketTradeoff
from oracles.one_step_laws import LAWS

ONE = {name: law.mechanism for name, law in LAWS.items()}
laws = pytest.mark.parametrize("name", LAWS)


def step(name):
    known = reduced(ONE[name])
    return step_of(known.above if isinstance(known, Dominated) else known)[0]


def composed(name, times):
    """Both sides of the law itself: where it only dominates a mechanism, lower sides of that are another's."""
    t = dn.tradeoff(dn.Composition([ONE[name]] * times))
    return t.above if isinstance(t, BracketTradeoff) else t


def test_every_mechanism_of_the_registry_is_tried():
    tried = {type(mechanism) for mechanism in ONE.values()}
    elsewhere = {
        "PureDP",
        "Repeated",
        "SubsampledGaussian",
    }  # below, and in test_gaussian_mixtures
    assert {kind.__name__ for kind in set(STEPS) - tried} <= elsewhere


@laws
def test_outcomes_hold_both_laws(name):
    """All of P, in either order; where both orders are called alike, cells have the same masses."""
    one = step(name)
    both = [cuttable(one, swapped) for swapped in (False, True)]
    low, high = min(x.ends[0] for x in both), max(x.ends[1] for x in both)
    edges = np.linspace(low, high, 1001)
    cuts = [x.cut(edges) for x in both]
    for found, cut, only in zip(both, cuts, one.only, strict=True):
        assert cut.least.sum() + only <= 1 + 1e-12
        assert cut.most.sum() + only + found.lost[0] + 1e-12 >= 1
        assert cut.most.sum() - cut.least.sum() < 1e-9
        assert np.all((cut.rise >= 0) & (cut.rise <= cut.most))
        inside = np.minimum(cut.rest * np.exp(-edges[:-1]), 1.0).sum() + sum(one.only) - only
        assert inside == pytest.approx(1, abs=1e-6)
        assert found.ends[0] >= (one.lowest if found is both[0] else -one.highest) - 1e-9
    if one.symmetric:
        np.testing.assert_allclose(np.cumsum(cuts[0].most), np.cumsum(cuts[1].most), atol=1e-9)
    else:
        assert not isinstance(one, ResponseStep)


@laws
def test_two_steps_match_a_convolution_that_is_written_down(name):
    """H of two steps is the mean of one step's H, moved by the other's loss: an integral over the one-step law."""
    law = LAWS[name]
    twice = composed(name, 2)
    for log_gamma in (-0.3 * law.scale, 0.0, 0.4 * law.scale):
        for direction in ("remove", "add"):
            truth = law.two_steps(log_gamma, direction)
            low, high = (twice.delta(log_gamma, direction, side) for side in ("lower", "upper"))
            assert low - 1e-12 <= truth <= high + 1e-12
            assert high - low < 1e-5 * max(law.scale, 0.1)


@laws
def test_an_attack_that_is_played_out_stays_within_the_bracket(name):
    """The likelihood ratio attack on five steps, its losses from densities, not from cells; in both directions."""
    law, steps, size = LAWS[name], 5, 20_000
    rng = np.random.default_rng(17)
    t = composed(name, steps)
    inside, out = (law.sample(rng, world, (size, steps)).sum(axis=1) for world in (True, False))
    for curve, guilty, innocent in ((t, inside, out), (t.inverse(), -out, -inside)):
        for threshold in np.quantile(innocent, [0.5, 0.9, 0.99]):
            fpr, hit = np.mean(innocent >= threshold), np.mean(guilty >= threshold)
            spread = 5 * math.sqrt(0.25 / size)
            assert hit <= curve.tpr(min(fpr + spread, 1.0)) + spread
            assert hit >= curve.tpr(max(fpr - spread, 0.0), "lower") - spread


@laws
def test_a_weaker_mechanism_does_not_contain_the_attack(name):
    """Negative control: the same attack breaks the curve of far fewer steps."""
    law, rng, size = LAWS[name], np.random.default_rng(3), 20_000
    steps = max(round((3 / law.scale) ** 2), 20)
    inside, out = (law.sample(rng, world, (size, steps)).sum(axis=1) for world in (True, False))
    assert np.mean(inside > 0) - np.mean(out > 0) > dn.tradeoff(ONE[name]).advantage() + 0.05


@laws
def test_a_step_is_a_value(name):
    one = step(name)
    assert one == step(name)
    assert hash(one) == hash(step(name))
    assert pickle.loads(pickle.dumps(one)) == one
    assert PrivacyLoss.of([one, one]).others[-1][1] == 2


@dataclass(frozen=True)
class Abstains(Step):
    """A user's own mechanism: a bit that is silent half of the time, and else right with odds e^ε."""

    epsilon: float

    @property
    def lowest(self):
        return -self.epsilon

    @property
    def highest(self):
        return self.epsilon

    @property
    def pitch(self):
        return self.epsilon

    def pieces(self):
        right = 0.5 / (1 + math.exp(-self.epsilon))
        p = np.array([0.5 - right, 0.5, right])
        return (ListedOutcomes(self.epsilon * np.arange(-1.0, 2.0), p, p[::-1], 0.0, 8 * EPS),)


def test_a_users_own_step_works():
    """Against the mixture over how often it spoke: k of n answers, each randomised response."""
    n, eps = 30, 0.4
    t = dn.tradeoff(Abstains(eps).times(n))
    spoke = [math.comb(n, k) / 2**n for k in range(n + 1)]
    for log_gamma in (0.0, 0.7):
        truth = spoke[0] * max(0.0, 1 - math.exp(log_gamma))
        truth += sum(
            share * dn.tradeoff(dn.Composition([dn.PureDP(eps)] * k)).delta(log_gamma)
            for k, share in enumerate(spoke)
            if k
        )
        assert t.delta(log_gamma, side="lower") <= truth <= t.delta(log_gamma)
        assert t.delta(log_gamma) - t.delta(log_gamma, side="lower") < 1e-6
    both = dn.tradeoff(Abstains(eps) + dn.GaussianDP(1.0) + dn.ApproximateDP(0.5, 1e-3))
    assert dn.tradeoff(dn.GaussianDP(1.0)).advantage() < both.advantage(side="lower")


MIXTURE = GaussianMixtureStep(1.0, (Case(1.0, (0.0, 1.0), (0.9, 0.1)),), EPS)
BALL = {
    SubsampledGaussianStep(1.0, 0.1): dn.SubsampledGaussian(1.0, 0.1, 1),
    SubsampledGaussianStep(1.5, 1.0): dn.GaussianDP(1 / 1.5),
    MIXTURE: dn.SubsampledGaussian(1.0, 0.1, 1),
    ResponseStep(0.7, 2): dn.PureDP(0.7),
}


def test_every_kind_of_step_has_an_oracle():
    """Ball arithmetic knows Gaussian steps and responses; others are written down a second time, as densities.

    Random allocation is an integral over all batches, and of a replaced record there is one step in quadrature:
    ``test_allocation`` and ``test_pld_curve`` have them. Sampled and allocated steps are enumerated in
    ``test_sampled_steps``.
    """
    elsewhere = {ReplacedGaussianStep, SampledStep, AllocatedStep}

    def kinds(of):
        return {of}.union(*map(kinds, of.__subclasses__()))

    own = {kind for kind in kinds(Step) if kind.__module__.startswith("deniable.") and not isabstract(kind)}
    assert own == {type(one) for one in [*BALL, *map(step, LAWS)]} | elsewhere


@pytest.mark.parametrize("one", BALL, ids=lambda one: type(one).__name__)
def test_brackets_meet_what_ball_arithmetic_proves(one):
    pytest.importorskip("flint")
    beside = dn.GaussianDP(1.0)  # without one the sums of two steps are long
    t = dn.tradeoff(one.times(2) + beside)
    proven = dn.proof.enclosure(dn.Composition([BALL[one], BALL[one], beside]))
    for epsilon, direction in ((0.0, "remove"), (0.8, "add")):
        assert t.delta(epsilon, direction, "lower") <= proven.delta(epsilon, direction)
        assert proven.delta(epsilon, direction, "lower") <= t.delta(epsilon, direction)
    assert t.advantage() - t.advantage(side="lower") < 1e-6 * t.advantage()


@pytest.mark.parametrize("engine", ["auto", "pld"])
def test_outcomes_that_only_one_world_produces(engine):
    """Three steps of a pair with both kinds, outcome by outcome."""
    p, q = [0.1, 0.6, 0.3, 0.0], [0.0, 0.5, 0.3, 0.2]
    t = dn.tradeoff(dn.mechanisms.FinitePair(p, q, steps=3), engine=engine)
    joint = [np.array(v) for v in (p, q)]
    for _ in range(2):
        joint = [np.multiply.outer(mass, v).ravel() for mass, v in zip(joint, (p, q), strict=True)]
    for log_gamma in (-3.0, -0.2, 0.0, 0.15, 0.5, 4.0):
        for direction, (one, other) in {"remove": joint, "add": joint[::-1]}.items():
            truth = np.maximum(one - math.exp(log_gamma) * other, 0).sum()
            assert t.delta(log_gamma, direction, "lower") - 1e-14 <= truth <= t.delta(log_gamma, direction) + 1e-14
    assert t.tpr(0.0, "lower") <= 1 - 0.9**3 <= t.tpr(0.0) <= 1 - 0.9**3 + 1e-12
    assert t.epsilon(0.0) == math.inf


@pytest.mark.parametrize("mechanism", [dn.DiscreteGaussian(1e4, 1, 100), dn.mechanisms.FinitePair([1.0], [1.0], 10**6)])
def test_many_outcomes_and_many_steps(mechanism):
    t = dn.tradeoff(mechanism)
    assert 0 <= t.advantage(side="lower") <= t.advantage() < 0.01


@pytest.mark.parametrize("made", [dn.PureDP(1.0), dn.Laplace(2.0), dn.SubsampledGaussian(1.0, 0.01, 9)])
def test_a_subclass_runs_what_it_is_nearest_to(made):
    fields = {item.name: getattr(made, item.name) for item in dataclasses.fields(made)}
    own = type("Own", (type(made),), {})(**fields)
    assert dn.tradeoff(own).advantage() == dn.tradeoff(made).advantage()


def test_wrong_counts_are_refused():
    with pytest.raises(dn.InputError, match="count"):
        ResponseStep(1.0, 2).times(0)
