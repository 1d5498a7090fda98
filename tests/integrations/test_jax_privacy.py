"""Plans of JAX Privacy in: which record they protect, from what, and what a bare event leaves open."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import deniable as dn
from deniable.mechanisms import ADJACENCIES

MEANT = "adjacency as its author meant it; JAX Privacy plans: a record zeroed out, unless INDEPENDENT"
KINDS = ["ADD_OR_REMOVE_ONE", "REPLACE_ONE", "REPLACE_SPECIAL"]


class BandMFExecutionPlanConfig(SimpleNamespace):
    """The shape of a config of jax_privacy 2.0.0."""


class DPKerasConfig(SimpleNamespace):
    pass


for kind in (BandMFExecutionPlanConfig, DPKerasConfig):
    kind.__module__ = "jax_privacy.experimental.execution_plan"


def plan(strategy=(1.0, 0.0, 0.0), iterations=3, noise=1.0, relation="REPLACE_SPECIAL", split="EQUAL_SPLIT", **changes):
    gaussian = SimpleNamespace(noise_multiplier=noise)
    step = gaussian if changes.get("truncated_batch_size") else SimpleNamespace(event=gaussian)
    values = {
        "strategy": strategy, "iterations": iterations, "noise_multiplier": noise, "sampling_prob": 1.0,
        "partition_type": SimpleNamespace(name=split), "truncated_batch_size": None, "num_examples": None,
        "accountant": SimpleNamespace(neighboring_relation=SimpleNamespace(name=relation)), "noise_seed": None,
        "column_normalize": False, "plan": SimpleNamespace(dp_event=SimpleNamespace(event=step)),
    }  # fmt: skip
    return BandMFExecutionPlanConfig(**values | changes)


def real_plan(strategy=(1.0, 0.0, 0.0), iterations=3, noise=1.0, relation="REPLACE_SPECIAL", split=None, **changes):
    plans = pytest.importorskip("jax_privacy.experimental.execution_plan")
    from dp_accounting import NeighboringRelation, pld
    from jax_privacy.batch_selection import PartitionType

    return plans.BandMFExecutionPlanConfig(
        **{"sampling_prob": 1.0, "epsilon": None, "delta": None} | changes,
        strategy=np.array(strategy),
        iterations=iterations,
        noise_multiplier=noise,
        accountant=pld.PLDAccountant(NeighboringRelation[relation]),
        partition_type=PartitionType[split or "EQUAL_SPLIT"],
    )


both = pytest.mark.parametrize("make", [plan, real_plan])


def normal_advantage(mu):
    return math.erf(mu / 2 / math.sqrt(2))


def sums(n, rng):
    """Sums of three steps over n records that all contribute 1: an equal split leaves n mod 3 records out."""
    groups = np.array_split(rng.permutation(n), 3)
    return np.array([len(group[: n // 3]) for group in groups], dtype=float)


@both
def test_an_equal_split_protects_a_record_that_is_zeroed_out_and_no_more(make):
    run = dn.from_dp_event(make())
    curve = dn.tradeoff(run)
    assert curve.advantage() == pytest.approx(normal_advantage(1), rel=1e-12)
    assert curve.assumptions.adjacency == ADJACENCIES["zero-out"]
    with pytest.raises(dn.InputError, match="adjacency must be 'zero-out'"):
        dn.tradeoff(run, adjacency="add-remove")
    assert ADJACENCIES["zero-out"] in " ".join(dn.assess(make()).to_text(full=True).split())


def test_without_one_of_three_records_nobody_takes_part():
    """The attack: 0.6135, where the event alone says 0.383; zeroing the record out reaches no more than that."""
    rng = np.random.default_rng(0)
    with_it, without = (np.array([sums(n, rng) for _ in range(10)]) for n in (3, 2))
    assert (with_it == 1).all()
    assert (without == 0).all()
    noise = rng.normal(size=(2, 200_000, 3)).sum(axis=2)
    reached = np.mean(noise[0] + 3 > 1.5) - np.mean(noise[1] > 1.5)
    assert reached == pytest.approx(normal_advantage(math.sqrt(3)), abs=0.005)
    assert normal_advantage(math.sqrt(3)) == pytest.approx(0.6135, abs=5e-5)
    zeroed = noise[0] + 2  # the others stay: the sum of the three moves by one
    assert np.mean(noise[1] + 3 > 2.5) - np.mean(zeroed > 2.5) < dn.tradeoff(dn.from_dp_event(plan())).advantage()


def test_jax_privacy_splits_so():
    pytest.importorskip("jax_privacy")
    strategy = real_plan().plan.batch_selection_strategy
    assert [len(batch) for batch in strategy.batch_iterator(3, rng=0)] == [1, 1, 1]
    assert [len(batch) for batch in strategy.batch_iterator(2, rng=0)] == [0, 0, 0]


@both
def test_independent_groups_hold_for_records_that_come_and_go(make):
    own = dn.from_dp_event(make(relation="ADD_OR_REMOVE_ONE", split="INDEPENDENT", sampling_prob=0.5))
    assert own == dn.SubsampledGaussian(1.0, 0.5, 1)
    assert own.adjacency == "add-remove"
    zeroed = dn.from_dp_event(make(split="INDEPENDENT", sampling_prob=0.5))
    for adjacency in ("zero-out", "add-remove"):
        assert dn.tradeoff(zeroed, adjacency=adjacency).advantage() == dn.tradeoff(own).advantage()
    assert zeroed.adjacency == "zero-out"


@both
@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_a_plan_for_replaced_records_has_noise_for_two_norms(make, rate):
    """Its multiplier is in units of what a replacement moves, so the sums have twice the noise."""
    run = dn.from_dp_event(make((1.0, 0.5), 6, 1.5, relation="REPLACE_ONE", sampling_prob=rate))
    same = dn.tradeoff(dn.SubsampledGaussian(3.0, rate, 3), adjacency="replace")
    assert dn.tradeoff(run).advantage() == pytest.approx(same.advantage(), rel=1e-6)
    assert dn.tradeoff(run).assumptions.adjacency == "replace one record"
    with pytest.raises(dn.InputError, match="adjacency must be 'replace'"):
        dn.tradeoff(run, adjacency="zero-out")


@both
def test_normalized_columns_leave_less_noise_than_the_event_says(make):
    """Noise is scaled by the norm of the columns before they were normalized: half of it for a strategy of norm ½."""
    run = dn.from_dp_event(make((0.5,), 4, 1.0, column_normalize=True))
    assert 0.5 * (1 - 1e-12) < run.noise_multiplier <= 0.5
    longer = dn.from_dp_event(make((3.0,), 4, 1.0, column_normalize=True))
    assert longer.noise_multiplier == 1.0


def test_the_noise_that_is_drawn_with_normalized_columns():
    pytest.importorskip("jax_privacy")
    import jax.numpy as jnp

    drawn = []
    for seed in range(40):
        draw = real_plan((0.5,), 1, 1.0, column_normalize=True, noise_seed=seed).plan.noise_addition_transform
        shape = jnp.zeros(200)
        drawn.append(draw.update(shape, draw.init(shape))[0])
    assert np.std(drawn) == pytest.approx(0.5, rel=0.05)


@both
def test_full_batches_drop_records_whoever_they_are(make):
    """Above: as if none were cut. Below: the rate at which a sampled record surely stays."""
    kept = {"sampling_prob": 0.5, "truncated_batch_size": 5, "num_examples": 20}
    curve = dn.tradeoff(dn.from_dp_event(make((1.0, 0.5), 6, 2.0, **kept)))
    assert curve.advantage() == dn.tradeoff(dn.SubsampledGaussian(2.0, 0.5, 3)).advantage()
    below = dn.tradeoff(dn.SubsampledGaussian(2.0, 0.25, 3)).advantage()
    assert below * (1 - 1e-9) < curve.advantage(side="lower") <= below
    rare = make((1.0, 0.5), 6, 2.0, **kept | {"truncated_batch_size": 10})
    assert dn.from_dp_event(rare) == dn.SubsampledGaussian(2.0, 0.5, 3)


def test_plans_of_which_nothing_is_seen_and_plans_that_are_not_read():
    assert dn.from_dp_event(plan(sampling_prob=0.0)) == dn.PureDP(0.0)
    assert dn.from_dp_event(plan(num_examples=2, truncated_batch_size=5)) == dn.PureDP(0.0)
    with pytest.raises(dn.InputError, match="got its DPKerasConfig; of a plan pass the config"):
        dn.from_dp_event(DPKerasConfig())
    with pytest.warns(UserWarning, match="noise_seed is set"):
        dn.from_dp_event(plan(noise_seed=1))


def test_a_bare_event_says_on_every_output_that_its_author_knows_the_adjacency():
    dp = pytest.importorskip("dp_accounting")
    step = dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(2.0))
    several = dp.ComposedDpEvent([step, dp.GaussianDpEvent(9.0), dp.LaplaceDpEvent(20.0)])
    selected = dp.dp_event.RepeatAndSelectDpEvent(dp.GaussianDpEvent(9.0), 2.0, 1.0)
    guarantees = dp.ZCDpEvent(0.01)
    truncated = dp.dp_event.TruncatedSubsampledGaussianDpEvent(100, 0.1, 15, 3.0)
    for event in (step, dp.SelfComposedDpEvent(step, 5), several, selected, guarantees, truncated):
        run = dn.from_dp_event(event)
        assert dn.tradeoff(run).assumptions.adjacency == MEANT
        assert MEANT in repr(dn.tradeoff(run)) or MEANT in str(dn.tradeoff(run))
    made = dn.assess(step)
    for text in (made.to_text(full=True), made.to_json(), made.to_html()):
        assert MEANT in " ".join(text.split())
    own = dn.SubsampledGaussian(2.0, 0.1, 3)
    assert (dn.from_dp_event(step) + own).adjacency == (own + dn.from_dp_event(step)).adjacency == "event"
    known = dn.tradeoff(dn.from_dp_event(step), adjacency="add-remove")  # whoever asks knows
    assert known.assumptions.adjacency == "add or remove one record"
    assert known.advantage() == dn.tradeoff(dn.from_dp_event(step)).advantage()
    once = dn.bounds.mip_eta(dn.tradeoff(dn.from_dp_event(step)))
    assert once == dn.bounds.mip_eta(known)  # taken twice, once each way, where the size is fixed


def test_events_that_say_what_their_worlds_are_keep_them():
    dp = pytest.importorskip("dp_accounting")
    fixed = dp.SampledWithoutReplacementDpEvent(100, 10, dp.GaussianDpEvent(2.0))
    assert dn.from_dp_event(fixed).adjacency == "replace"
    assert dn.from_dp_event(dp.dp_event.SingleEpochTreeAggregationDpEvent(2.0, [4])).adjacency == "zero-out"
