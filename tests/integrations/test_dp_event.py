"""DpEvent trees become mechanisms, tight or on the safe side as the table says, or are refused by name."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

import deniable as dn
from deniable.integrations.dp_event import REFUSED, SERVED

dp = pytest.importorskip("dp_accounting")
dp_event = pytest.importorskip("dp_accounting.dp_event")
rdp = pytest.importorskip("dp_accounting.rdp")

GAUSS = dp.GaussianDpEvent(1.5)
STEP = dp.PoissonSampledDpEvent(0.04, GAUSS)


def test_the_known_shapes():
    assert dn.from_dp_event(GAUSS) == dn.SubsampledGaussian(1.5, 1.0, 1)
    assert dn.from_dp_event(STEP) == dn.SubsampledGaussian(1.5, 0.04, 1)
    assert dn.from_dp_event(dp.SelfComposedDpEvent(STEP, 2250)) == dn.SubsampledGaussian(1.5, 0.04, 2250)
    tree = dp.ComposedDpEvent([dp.SelfComposedDpEvent(STEP, 10), GAUSS, dp.PoissonSampledDpEvent(0.1, GAUSS)])
    assert dn.from_dp_event(tree) == dn.Composition(
        [dn.SubsampledGaussian(1.5, 0.04, 10), dn.SubsampledGaussian(1.5, 1.0, 1), dn.SubsampledGaussian(1.5, 0.1, 1)]
    )


def test_nesting_multiplies_and_equal_releases_merge():
    inner = dp.ComposedDpEvent([STEP, dp.SelfComposedDpEvent(GAUSS, 3), STEP])
    tree = dp.SelfComposedDpEvent(dp.ComposedDpEvent([inner, STEP, dp.ComposedDpEvent([])]), 10**6)
    assert dn.from_dp_event(tree) == dn.Composition(
        [dn.SubsampledGaussian(1.5, 0.04, 3 * 10**6), dn.SubsampledGaussian(1.5, 1.0, 3 * 10**6)]
    )


def test_a_deep_tree():
    tree = STEP
    for _ in range(5000):
        tree = dp.ComposedDpEvent([tree])
    assert dn.from_dp_event(tree) == dn.SubsampledGaussian(1.5, 0.04, 1)


def test_several_releases_from_one_sample_are_one():
    """Same Rényi curve as dp-accounting gives the tree, and σ on the safe side."""
    tree = dp.PoissonSampledDpEvent(
        0.1, dp.ComposedDpEvent([dp.SelfComposedDpEvent(dp.GaussianDpEvent(2.0), 3), dp.GaussianDpEvent(4.0)])
    )
    ours = dn.from_dp_event(tree)
    exact = 1 / math.sqrt(3 / 4 + 1 / 16)
    assert exact * (1 - 1e-14) < ours.noise_multiplier <= exact
    assert (ours.sample_rate, ours.steps) == (0.1, 1)
    same = dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(ours.noise_multiplier))
    epsilons = [rdp.RdpAccountant().compose(event).get_epsilon(1e-5) for event in (tree, same)]
    assert epsilons[0] == pytest.approx(epsilons[1], rel=1e-10)


def test_it_is_not_composition_of_the_sampled_releases():
    """Negative control: sampling afresh for each release is a different, more private mechanism."""
    once = dp.PoissonSampledDpEvent(0.1, dp.SelfComposedDpEvent(GAUSS, 2))
    afresh = dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.1, GAUSS), 2)
    assert dn.from_dp_event(once) != dn.from_dp_event(afresh)


def curve(event):
    return dn.tradeoff(dn.from_dp_event(event))


def test_events_without_a_sampler():
    assert dn.from_dp_event(dp.NoOpDpEvent()) == dn.PureDP(0.0)
    assert dn.from_dp_event(dp.ComposedDpEvent([dp.NoOpDpEvent(), GAUSS])) == dn.SubsampledGaussian(1.5, 1.0, 1)
    assert curve(dp.NonPrivateDpEvent()).tpr(1e-9) == 1
    assert curve(dp.PoissonSampledDpEvent(0.1, dp.NonPrivateDpEvent())).advantage() == pytest.approx(0.1)
    assert dn.from_dp_event(dp.ZCDpEvent(0.1, 0.2)) == dn.ZeroConcentratedDP(0.1, 0.2)
    three = dn.from_dp_event(dp.SelfComposedDpEvent(dp.ZCDpEvent(0.1), 3))
    assert 0.3 <= three.rho <= 0.3 * (1 + 1e-14)
    assert dn.from_dp_event(dp.SelfComposedDpEvent(dp.LaplaceDpEvent(2.0), 7)) == dn.Laplace(2.0, steps=7)
    assert dn.from_dp_event(dp.PoissonSampledDpEvent(0.3, dp.LaplaceDpEvent(2.0))) == dn.Laplace(2.0, sample_rate=0.3)
    response = dn.from_dp_event(dp_event.RandomizedResponseDpEvent(0.5, 4))
    assert response.epsilon == pytest.approx(math.log((0.5 + 0.125) / 0.125))
    noise = dn.from_dp_event(dp_event.DiscreteLaplaceDpEvent(0.3, 2))
    assert (noise.sensitivity, noise.steps) == (2, 1)
    assert noise.scale == pytest.approx(1 / 0.3, rel=1e-14)
    many = dn.from_dp_event(dp.SelfComposedDpEvent(dp_event.RandomizedResponseDpEvent(0.5, 4), 12))
    assert (many.categories, many.steps) == (4, 12)
    assert curve(dp_event.RandomizedResponseDpEvent(0.0, 4)).advantage() == 1


def test_batches_of_a_fixed_size():
    event = dp.SampledWithoutReplacementDpEvent(100, 10, GAUSS)
    assert dn.from_dp_event(event) == dn.WithoutReplacement(1.5, 10, 100)
    assert "for replacing a record, which moves a sum by two norms" in str(dn.assess(event))
    run = dn.from_dp_event(dp.SelfComposedDpEvent(event, 30))
    assert run == dn.WithoutReplacement(1.5, 10, 100, steps=30)
    assert run.adjacency == "replace"
    both = dn.from_dp_event(dp.SampledWithoutReplacementDpEvent(100, 10, dp.SelfComposedDpEvent(GAUSS, 4)))
    assert 0.75 * (1 - 1e-14) < both.noise_multiplier <= 0.75


def test_repeat_and_select_is_tuning():
    event = dp_event.RepeatAndSelectDpEvent(dp.SelfComposedDpEvent(STEP, 10), 5.0, 1.0)
    assert dn.from_dp_event(event) == dn.mechanisms.tuned(dn.SubsampledGaussian(1.5, 0.04, 10), trials=5.0)
    poisson = dp_event.RepeatAndSelectDpEvent(GAUSS, 0.5, math.inf)
    assert dn.from_dp_event(poisson) == dn.mechanisms.tuned(
        dn.SubsampledGaussian(1.5, 1.0, 1), trials=0.5, shape=math.inf
    )


def test_a_sample_of_a_sample_multiplies_the_rates():
    nested = dn.from_dp_event(dp.PoissonSampledDpEvent(0.1, dp.PoissonSampledDpEvent(0.3, GAUSS)))
    assert nested.sample_rate == pytest.approx(0.03, rel=1e-14)
    assert nested.sample_rate >= 0.03
    both = dp.ComposedDpEvent([GAUSS, GAUSS])
    deep = dn.from_dp_event(dp.PoissonSampledDpEvent(0.1, dp.PoissonSampledDpEvent(0.3, both)))
    assert deep.noise_multiplier == pytest.approx(1.5 / math.sqrt(2))


def test_guarantees_inside_a_sample_are_amplified_and_hold():
    """Randomised response in a Poisson sample, enumerated: the amplified guarantee covers both directions."""
    p, q = 0.5, 0.2
    response = dp_event.RandomizedResponseDpEvent(p, 2)
    t = curve(dp.PoissonSampledDpEvent(q, response))
    inside = np.array([1 - p / 2, p / 2])
    out = np.array([p / 2, 1 - p / 2])
    sampled = (1 - q) * out + q * inside
    for gamma in (0.5, 1.0, 1.3):
        remove = np.maximum(sampled - gamma * out, 0).sum()
        add = np.maximum(out - gamma * sampled, 0).sum()
        assert t.hockey_stick(gamma) >= remove - 1e-12
        assert t.hockey_stick(gamma, "add") >= add - 1e-12
    assert t.hockey_stick(1.0) < dn.tradeoff(dn.from_dp_event(response)).advantage()


def test_one_coordinate_is_the_worst_split_of_a_laplace_sensitivity():
    """P against Q for a vector moved by 1 in L1 norm, by quadrature: no split passes all of it in one coordinate."""
    h = 0.02
    x = np.arange(-16, 17, h)

    def density(at):
        return np.exp(-np.abs(x - at)) / 2

    for first in (0.1, 0.3, 0.5):
        inside = np.outer(density(first), density(1 - first))
        out = np.outer(density(0), density(0))
        for gamma in (0.5, 1.0, 1.5, 2.3):
            split = float(np.maximum(inside - gamma * out, 0).sum()) * h * h
            assert split <= curve(dp.LaplaceDpEvent(1.0)).hockey_stick(gamma) + 2e-4


def test_mixtures_with_one_sensitivity_are_sampled_gaussians():
    event = dp_event.MixtureOfGaussiansDpEvent(3.0, [0.0, 2.0, 2.0], [0.9, 0.04, 0.06])
    found = dn.from_dp_event(event)
    assert found.noise_multiplier == pytest.approx(1.5)
    assert found.sample_rate == pytest.approx(0.1)


def test_mixtures_with_several_sensitivities_are_those_of_persons():
    weights = [0.64, 0.32, 0.04]  # of two records at rate 0.2
    event = dp_event.MixtureOfGaussiansDpEvent(1.5, [0.0, -1.0, -2.0], weights)
    person = dn.tradeoff(dn.SubsampledGaussian(1.5, 0.2, 3, records_per_person=2))
    found = curve(dp.SelfComposedDpEvent(event, 3))
    assert found.advantage() == pytest.approx(person.advantage(), abs=1e-7)
    # half of it in a Poisson sample: the weights of what is not 0 are halved
    halved = curve(dp.PoissonSampledDpEvent(0.5, event))
    again = curve(dp_event.MixtureOfGaussiansDpEvent(1.5, [0.0, 1.0, 2.0], [0.82, 0.16, 0.02]))
    assert halved.advantage() == pytest.approx(again.advantage(), abs=1e-7)
    for sensitivities in ([1.0, 2.0, 3.0], [0.0, -1.0, 2.0]):
        with pytest.raises(dn.InputError, match="must have sensitivity 0"):
            dn.from_dp_event(dp_event.MixtureOfGaussiansDpEvent(1.0, sensitivities, weights))
    with pytest.raises(dn.InputError, match="sum of MixtureOfGaussiansDpEvent"):
        dn.from_dp_event(dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0, 2.0], [0.1, 0.2, 0.3]))


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 7, 8, 100])
def test_tree_aggregation_has_the_figures_of_dp_accounting(steps):
    accountant = rdp.RdpAccountant([2.0, 8.0], dp.NeighboringRelation.REPLACE_SPECIAL)
    event = dp.SingleEpochTreeAggregationDpEvent(2.0, steps)
    accountant.compose(event)
    mechanism = dn.from_dp_event(event)
    assert mechanism.adjacency == "zero-out"
    assert dn.tradeoff(mechanism).renyi([2.0, 8.0]) == pytest.approx(accountant._rdp, rel=1e-9)
    several = dn.from_dp_event(dp.SelfComposedDpEvent(dp.SingleEpochTreeAggregationDpEvent(2.0, [steps, 1]), 4))
    assert dn.tradeoff(several).renyi(2.0) == pytest.approx(4 * accountant._rdp[0], rel=1e-9)


def main_branch(name, **fields):
    return type(name, (), {"__module__": "dp_accounting.dp_event", **fields})()


def test_events_of_the_main_branch_are_known_by_name():
    kind = type("EpsilonDeltaDpEvent", (), {"__module__": "dp_accounting.dp_event", "epsilon": 1.0, "delta": 1e-6})
    assert dn.from_dp_event(kind()) == dn.ApproximateDP(1.0, 1e-6)
    integer = main_branch("DiscreteGaussianDpEvent", sigma=3.0, sensitivity=2.0, dimension=1)
    assert dn.from_dp_event(integer) == dn.DiscreteGaussian(3.0, 2)
    assert dn.from_dp_event(dp.PoissonSampledDpEvent(0.1, integer)) == dn.DiscreteGaussian(3.0, 2, sample_rate=0.1)
    vector = dn.from_dp_event(main_branch("DiscreteGaussianDpEvent", sigma=3.0, sensitivity=2.0, dimension=None))
    assert vector.rho == pytest.approx(2 / 9, rel=1e-14)
    assert vector.rho >= 2 / 9
    exponential = main_branch("ExponentialMechanismDpEvent", epsilon=0.5)
    assert dn.from_dp_event(dp.SelfComposedDpEvent(exponential, 4)) == dn.mechanisms.BoundedRange(0.5, steps=4)
    assert dn.from_dp_event(dp.PoissonSampledDpEvent(0.1, exponential)).epsilon == pytest.approx(
        math.log1p(0.1 * math.expm1(0.5))
    )
    assert dn.from_dp_event(main_branch("PermuteAndFlipDpEvent", epsilon=0.5)) == dn.PureDP(0.5)
    epoch = main_branch("RandomAllocationDpEvent", event=dp.GaussianDpEvent(2.0), num_selected=3, num_steps=50)
    assert dn.from_dp_event(epoch) == dn.RandomAllocation(2.0, 50, batches_per_record=3)
    assert dn.from_dp_event(dp.SelfComposedDpEvent(epoch, 4)) == dn.RandomAllocation(2.0, 50, 4, 3)
    epoch = main_branch("RandomAllocationDpEvent", event=dp.LaplaceDpEvent(2.0), num_selected=1, num_steps=50)
    with pytest.raises(dn.InputError, match="Gaussians inside RandomAllocationDpEvent, got LaplaceDpEvent"):
        dn.from_dp_event(epoch)
    unknown = type("BrandNewDpEvent", (), {"__module__": "dp_accounting.dp_event"})
    with pytest.raises(dn.InputError, match="got BrandNewDpEvent; it is not an event that is known here"):
        dn.from_dp_event(unknown())


def truncated(n, most, rate, sigma=1.0):
    return dp_event.TruncatedSubsampledGaussianDpEvent(n, rate, most, sigma)


def test_truncated_batches_that_are_never_or_always_cut():
    assert dn.from_dp_event(truncated(99, 100, 0.5)) == dn.SubsampledGaussian(1.0, 0.5, 1)
    always = dn.from_dp_event(dp.SelfComposedDpEvent(truncated(100, 20, 1.0), 3))
    assert (always.noise_multiplier, always.steps) == (0.5, 3)
    assert 0.2 <= always.sample_rate <= 0.2 * (1 + 1e-15)
    full = dn.tradeoff(dn.from_dp_event(truncated(20, 20, 1.0)))  # all take part: only one more displaces another
    assert full.advantage() == pytest.approx(dn.tradeoff(dn.GaussianDP(2.0)).advantage(), rel=1e-12)
    one_more = dn.tradeoff(dn.SubsampledGaussian(0.5, 20 / 21, 1))
    assert full.advantage(side="lower") == pytest.approx(one_more.advantage(), rel=1e-9)
    nearly = dn.tradeoff(dn.from_dp_event(truncated(20, 20, 1 - 1e-9)))  # of 20 records cut, if one is added
    assert nearly.advantage() == pytest.approx(dn.tradeoff(dn.GaussianDP(2.0)).advantage(), rel=1e-6)
    for fields in ((0, 1, 0.5), (10, 0, 0.5), (10, 1, -0.1), (10, 1, 0.5, -1.0)):
        with pytest.raises(dn.InputError, match=r"TruncatedSubsampledGaussianDpEvent\.\w+ must be"):
            dn.from_dp_event(truncated(*fields))
    with pytest.raises(dn.InputError, match="TruncatedSubsampledGaussianDpEvent inside PoissonSampledDpEvent"):
        dn.from_dp_event(dp.PoissonSampledDpEvent(0.1, truncated(10, 1, 0.5)))


def test_no_noise_gives_all_away_and_rate_or_count_zero_nothing():
    bare = dp.GaussianDpEvent(0.0)
    for event in (bare, dp.LaplaceDpEvent(0.0), truncated(10, 1, 0.5, 0.0), dp.ComposedDpEvent([STEP, bare])):
        assert dn.tradeoff(dn.from_dp_event(event)).epsilon(0.1) == math.inf
    for inner in (bare, dp.ComposedDpEvent([bare, GAUSS])):  # seen if the record is drawn
        sampled = dn.tradeoff(dn.from_dp_event(dp.PoissonSampledDpEvent(0.2, inner)))
        assert sampled.advantage() == pytest.approx(0.2, rel=1e-9)
    nothing = (
        dp.PoissonSampledDpEvent(0.0, GAUSS),
        dp.SelfComposedDpEvent(STEP, 0),
        dp.ComposedDpEvent([]),
        truncated(10, 1, 0.0),
    )
    for event in nothing:
        assert dn.from_dp_event(event) == dn.PureDP(0.0)
        assert dn.from_dp_event(dp.ComposedDpEvent([event, GAUSS])) == dn.SubsampledGaussian(1.5, 1.0, 1)


def test_every_event_stands_in_the_docs():
    every = {name for name, kind in vars(dp_event).items() if name.endswith("DpEvent") and isinstance(kind, type)}
    page = (Path(__file__).resolve().parents[2] / "docs" / "integrations.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+DpEvent)` \| (tight|upper bound|refused) \|", page, re.MULTILINE))
    assert every - {"DpEvent"} <= set(rows) == {*SERVED, *REFUSED}
    assert {name for name, status in rows.items() if status == "refused"} == set(REFUSED)
    for name, why in REFUSED.items():
        assert f"| `{name}` | refused | {why} |" in page


WITHOUT = dp.SampledWithoutReplacementDpEvent
NOTHING = dp.UnsupportedDpEvent()
SAID = [
    (WITHOUT(100, 10, dp.LaplaceDpEvent(1.0)), "got LaplaceDpEvent inside Sampled"),
    (WITHOUT(100, 10, dp.ComposedDpEvent([])), "got nothing inside Sampled"),
    (WITHOUT(10, 100, GAUSS), "batch must be at most n_records, got 100 and 10"),
    (WITHOUT(10, 0, GAUSS), "SampledWithoutReplacementDpEvent.sample_size"),
    (dp.PoissonSampledDpEvent(0.1, WITHOUT(100, 10, GAUSS)), "got Sampled"),
    (NOTHING, "got UnsupportedDpEvent;"),
    (dp.SampledWithReplacementDpEvent(100, 10, GAUSS), "got SampledWithReplacementDpEvent;"),
    (dp.PoissonSampledDpEvent(0.1, NOTHING), "got UnsupportedDpEvent inside PoissonSampledDpEvent;"),
    (dp.PoissonSampledDpEvent(0.1, dp.ZCDpEvent(0.1)), "got ZCDpEvent inside PoissonSampledDpEvent;"),
    (
        dp.PoissonSampledDpEvent(0.1, dp.ComposedDpEvent([GAUSS, STEP])),
        "got GaussianDpEvent, PoissonSampledDpEvent inside PoissonSampledDpEvent;",
    ),
    (dp.ComposedDpEvent([STEP, dp.SelfComposedDpEvent(NOTHING, 3)]), "got UnsupportedDpEvent;"),
    (3.0, "got builtins.float;"),
    (dp.GaussianDpEvent(math.nan), "noise_multiplier must be above 0"),
    (dp.PoissonSampledDpEvent(1.5, GAUSS), "sampling_probability must be at least 0"),
    (dp.SelfComposedDpEvent(STEP, -1), "count must be at least 0"),
    (dp.SelfComposedDpEvent(STEP, 2.5), "count must be a whole number"),
    *((type(name, (), {"__module__": "dp_accounting.dp_event"})(), why) for name, why in REFUSED.items()),
]


def test_everything_else_is_refused_by_name_with_a_reason():
    wrong = []
    for event, words in SAID:
        try:
            wrong.append(f"{event} is {dn.from_dp_event(event)}")
        except dn.InputError as error:
            wrong += [] if words in str(error) else [f"{event}: {error}"]
    assert wrong == []


def test_a_subclass_may_mean_something_else():
    class GaussianDpEvent(dp.GaussianDpEvent):
        pass

    with pytest.raises(dn.InputError, match=r"test_dp_event\.GaussianDpEvent"):
        dn.from_dp_event(GaussianDpEvent(1.0))
