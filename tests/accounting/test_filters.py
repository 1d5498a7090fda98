"""Filters keep their budget under adversarial schedules; the natural filter of trade-off curves does not."""

import copy
import math
import pickle
import sys
import threading

import numpy as np
import pytest

import deniable as dn
from deniable.accounting import BudgetSpentError


def test_gaussian_filter_counts_squares_and_refuses_before_the_step():
    budget = dn.accounting.GaussianFilter(1.0)
    assert budget.remaining() == pytest.approx(1.0)
    budget.spend(0.6)
    assert budget.remaining() == pytest.approx(0.8)
    assert 0.36 + budget.remaining() ** 2 <= 1 + 1e-15
    budget.spend(dn.GaussianDP(0.3))
    budget.spend(dn.SubsampledGaussian(10.0, 1.0, 4))
    left = budget.remaining()
    assert left == pytest.approx(math.sqrt(1 - 0.36 - 0.09 - 0.04))
    with pytest.raises(BudgetSpentError, match="do not run it"):
        budget.spend(left * (1 + 1e-9))
    assert budget.remaining() == left
    budget.spend(left)
    assert budget.remaining() < 1e-6
    whole = dn.tradeoff(dn.GaussianDP(1.0)).advantage()
    assert whole <= budget.tradeoff().advantage() <= whole * (1 + 1e-10)
    with pytest.raises(BudgetSpentError):
        budget.spend(0.1, times=3)


def test_a_plan_that_is_the_budget_fits_and_nothing_more():
    for parts in (1, 3, 10, 1000):
        budget = dn.accounting.GaussianFilter(0.7)
        for _ in range(parts):
            budget.spend(0.7 / math.sqrt(parts))
        with pytest.raises(BudgetSpentError):
            budget.spend(1e-5)
    orders, plan = [2.0, 4.0, 64.0], dn.SubsampledGaussian(1.0, 0.01, 300)
    whole, tenth = dn.tradeoff(plan).renyi(orders), dn.SubsampledGaussian(1.0, 0.01, 30)
    at_once, in_tenths = (
        dn.accounting.RenyiFilter(orders, whole),
        dn.accounting.RenyiFilter(orders, 10 * dn.tradeoff(tenth).renyi(orders)),
    )
    at_once.spend(plan)
    for _ in range(10):
        in_tenths.spend(tenth)
    for budget in (at_once, in_tenths):
        assert np.all(budget.remaining() <= 1e-12)
        with pytest.raises(BudgetSpentError):
            budget.spend([1e-8] * 3)
        assert np.all(budget.tradeoff().renyi(orders) >= budget._spent)


@pytest.mark.parametrize("mu", [1e-300, 1e-170, 1e-9, 1e170, 1e300])
def test_no_budget_is_too_small_or_too_large_to_be_kept(mu):
    budget = dn.accounting.GaussianFilter(mu)
    budget.spend(mu)
    for step, times in ((mu, 1), (mu / 2, 4), (mu, 10**300), (1e308, 1)):
        with pytest.raises(BudgetSpentError):
            budget.spend(step, times)
    assert budget.remaining() <= mu * 1e-5
    budget = dn.accounting.RenyiFilter([2.0], [mu])
    budget.spend([mu])
    with pytest.raises(BudgetSpentError):
        budget.spend([mu])


@pytest.mark.parametrize(
    ("make", "step", "fit"),
    [
        (lambda: dn.accounting.GaussianFilter(1.0), 0.3, 11),
        (lambda: dn.accounting.RenyiFilter([2.0], [1.0]), [0.09], 11),
    ],
)
def test_threads_cannot_spend_a_budget_twice(make, step, fit):
    """Without the lock about every second of these filters lets more steps pass."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(30):
            budget, passed, start = make(), [], threading.Barrier(8)

            def spend(budget=budget, passed=passed, start=start):
                start.wait()
                for _ in range(4):
                    try:
                        budget.spend(step)
                    except BudgetSpentError:
                        return
                    passed.append(1)

            threads = [threading.Thread(target=spend) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(passed) == fit
    finally:
        sys.setswitchinterval(before)


def test_a_budget_is_fixed_and_has_no_copies():
    first, second = dn.accounting.GaussianFilter(1.0), dn.accounting.RenyiFilter([2.0], [1.0])
    with pytest.raises(AttributeError):
        first.mu = 9.0
    with pytest.raises(AttributeError):
        second.budget = dn.RenyiDP([2.0], [9.0])
    for budget in (first, second):
        for twice in (copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError):
                twice(budget)


def test_a_gaussian_filter_holds_against_a_schedule_that_looks_at_the_ratio():
    """Played out: each step's noise depends on the attacker's own ratio; 40,000 runs per world."""
    rng, n, mu = np.random.default_rng(7), 40_000, 1.2
    bound = dn.tradeoff(dn.GaussianDP(mu)).advantage()
    for greedy in (0.3, 0.7):
        loss = {}
        for member in (0, 1):
            total, left = np.zeros(n), np.full(n, mu**2)
            for _ in range(12):
                wanted = np.where(np.abs(total) < 0.5, greedy, 0.02)  # much where undecided, little elsewhere
                square = np.minimum(wanted * mu**2, left)
                left -= square
                step = np.sqrt(square)
                seen = step * member + rng.normal(size=n)
                total += step * seen - square / 2
            loss[member] = total
        advantage = np.mean(np.maximum(-np.expm1(-loss[1]), 0)) / 2 + np.mean(np.maximum(-np.expm1(loss[0]), 0)) / 2
        assert advantage <= bound + 4 / math.sqrt(n)


def hockey_stick(p, q, gamma):
    return float(np.maximum(p - gamma * q, 0).sum())


def test_the_natural_filter_is_broken_by_a_schedule_and_the_renyi_filter_is_not():
    """Negative control, enumerated: first a response, then one of two mirrored steps, chosen by the first answer.

    On either path the realised composition keeps the budget curve; what was run does not.
    """
    first = np.array([0.6, 0.4]), np.array([0.4, 0.6])
    telling_in = np.array([0.9, 0.1]), np.array([0.99, 0.01])
    telling_out = telling_in[::-1]

    def composed(after):
        pairs = [(first[0][k] * second[0], first[1][k] * second[1]) for k, second in enumerate(after)]
        return tuple(np.concatenate([pair[world] for pair in pairs]) for world in (0, 1))

    paths = [composed([second, second]) for second in (telling_in, telling_out)]
    ran = composed([telling_out, telling_in])  # "in" likelier: look for signs of "out", and the reverse
    budget = max(hockey_stick(*path, 1.0) for path in paths)
    assert hockey_stick(*ran, 1.0) > budget + 0.03

    orders = np.array([1.5, 2.0, 4.0, 8.0])
    steps = [dn.mechanisms.FinitePair(tuple(p), tuple(q)) for p, q in (first, telling_in, telling_out)]
    costs = [dn.tradeoff(step).renyi(orders) for step in steps]
    kept = dn.accounting.RenyiFilter(orders, (costs[0] + np.maximum(costs[1], costs[2])) * (1 + 1e-12))
    kept.spend(steps[0])
    kept.spend(steps[2])
    curve = kept.tradeoff()
    for gamma in (0.3, 0.7, 1.0, 1.5, 4.0):
        assert hockey_stick(*ran, gamma) <= curve.hockey_stick(gamma)
        assert hockey_stick(*ran[::-1], gamma) <= curve.hockey_stick(gamma, "add")
