"""Persons of several records under any mechanism: attacks played out, closed forms, and what cannot be grouped."""

import numpy as np
import pytest

import deniable as dn


def test_a_person_of_several_records_is_found_more_often_than_a_record_and_not_beyond_the_bound():
    rng, n, batches = np.random.default_rng(0), 4_000, 10
    run = dn.RandomAllocation(noise_multiplier=1.0, batches=batches)

    def scores(records):
        sums = rng.normal(size=(n, batches))
        for _ in range(records):
            sums[np.arange(n), rng.integers(batches, size=n)] += 1
        return np.log(np.mean(np.exp(sums - 0.5), axis=1))  # the optimal score against one record

    pilot = np.sort(np.concatenate([scores(3), scores(0)]))
    threshold = pilot[pilot.size // 2]
    reached = np.mean(scores(3) > threshold) - np.mean(scores(0) > threshold)
    error = np.sqrt(2 * np.log(1e6) / n)
    assert dn.tradeoff(run).advantage() < reached - error
    assert reached - error <= dn.tradeoff(dn.mechanisms.Grouped(run, 3)).advantage()


def test_gaussians_are_those_of_the_sum_and_poisson_sampling_is_sharper():
    t = dn.tradeoff(dn.mechanisms.Grouped(dn.GaussianDP(0.5), 3))
    truth = dn.tradeoff(dn.GaussianDP(1.5)).advantage()
    assert truth <= t.advantage() <= truth * (1 + 1e-12)
    assert t.assumptions.adjacency == "add or remove a group of 3 records"
    exact = dn.tradeoff(dn.SubsampledGaussian(1.0, 0.1, 10, records_per_person=3))
    bound = dn.tradeoff(dn.mechanisms.Grouped(dn.SubsampledGaussian(1.0, 0.1, 10), 3))
    assert exact.advantage(side="lower") < bound.advantage() < 1.1 * exact.advantage()
    assert bound.advantage(side="lower") <= exact.advantage()


def test_one_record_is_the_mechanism_itself_and_replacing_replaces_them_all():
    assert dn.tradeoff(dn.mechanisms.Grouped(dn.PureDP(1.0), 1)) == dn.tradeoff(dn.PureDP(1.0))
    replaced = dn.tradeoff(dn.mechanisms.Grouped(dn.GaussianDP(0.5), 2), adjacency="replace")
    assert replaced.advantage() == pytest.approx(dn.tradeoff(dn.GaussianDP(2.0)).advantage(), rel=1e-12)


def test_what_is_grouped_is_everything_that_ran():
    with pytest.raises(dn.InputError, match=r"group them together: Grouped\(Composition\(\[...\]\), 2\)"):
        dn.mechanisms.Grouped(dn.PureDP(1.0), 2) + dn.GaussianDP(1.0)
    with pytest.raises(dn.InputError, match="tuned before it is grouped"):
        dn.mechanisms.tuned(dn.mechanisms.Grouped(dn.PureDP(1.0), 2), trials=3)
    assert dn.tradeoff(dn.mechanisms.Grouped(dn.mechanisms.tuned(dn.GaussianDP(0.2), trials=3), 2)).advantage() < 1
    with pytest.raises(dn.InputError, match="records_per_person"):
        dn.mechanisms.Grouped(dn.PureDP(1.0), 0)
    with pytest.raises(dn.InputError, match="of nothing else are many curves known here"):
        dn.accounting.individual_tradeoffs(
            np.ones((2, 3)), 1.0, dn.mechanisms.Grouped(dn.SubsampledGaussian(1.0, 0.1, 3), 2)
        )


@pytest.mark.parametrize(
    ("mechanism", "loss"), [(dn.SubsampledGaussian(1.0, 0.01, 500), 1e-5), (dn.DiscreteGaussian(3.0, steps=4), 1e-3)]
)
def test_bounds_of_a_group_are_those_of_the_composed_curve(mechanism, loss):
    """sup of TPR∘TPR∘TPR − γ·FPR over dense tests, from below, against the search over slopes, a bound from above."""
    t = dn.tradeoff(mechanism)
    grouped = t.group(3)

    def reached(logits, gamma):
        fpr = 1 / (1 + np.exp(-logits))
        return t.tpr(t.tpr(t.tpr(fpr))) - gamma * fpr

    for epsilon in (-0.5, 0.7, 2.0):
        logits = np.linspace(-12, 5, 60)
        middle = logits[np.argmax(reached(logits, np.exp(epsilon)))]
        least = np.max(reached(np.linspace(middle - 0.3, middle + 0.3, 40), np.exp(epsilon)))
        assert least * (1 - 1e-9) <= grouped.delta(epsilon, "remove") <= least * (1 + loss)


def test_where_hardly_anything_leaks_bounds_are_still_near():
    rare = dn.SubsampledGaussian(1.0, 1e-300, 10)
    one = dn.tradeoff(rare).advantage()
    assert one <= dn.tradeoff(dn.mechanisms.Grouped(rare, 2)).advantage() <= 2.001 * one
    assert dn.tradeoff(rare, adjacency="replace").epsilon(1e-6) < 1e-290


def test_a_person_of_a_million_records_is_refused():
    """It was computed for minutes; no bound says anything there."""
    with pytest.raises(dn.InputError, match="records_per_person must be at most 1,000"):
        dn.mechanisms.Grouped(dn.PureDP(1.0), 1_000_000)
