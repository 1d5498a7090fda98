"""Eight processes on one ledger, kills at random points, adaptive games against the filter."""

import math
import multiprocessing
import os
import random
import signal
import time
from contextlib import suppress

import numpy as np
import pytest
from scipy.stats import binomtest, norm

import deniable as dn
from deniable.ledger import LedgerError

SPAWN = multiprocessing.get_context("spawn")


def spend(path, times, mu):
    ledger = dn.Ledger(path)
    for _ in range(times):
        try:
            ledger.add(dn.GaussianDP(mu), name=str(os.getpid()))
        except LedgerError as error:
            assert "too little" in str(error)  # noqa: PT017  (in another process)


@pytest.mark.slow
def test_eight_processes_never_overspend_and_lose_nothing(tmp_path):
    path = tmp_path / "l"
    ledger = dn.Ledger(path, limit=dn.Limit(advantage=0.3))
    with SPAWN.Pool(8) as pool:
        pool.starmap(spend, [(path, 40, 0.1)] * 8)
    assert len(ledger.entries) == math.floor((ledger.remaining() ** 2 + 0.01 * len(ledger.entries)) / 0.01)
    assert ledger.remaining() < 0.1
    assert ledger.verify().holds
    assert dn.Limit(advantage=0.3).is_met(dn.tradeoff(ledger.mechanism()))


def writer(path, seed):
    """Start a process that enters releases and tells their heads; return it, and where it tells them."""
    read, told = os.pipe()
    child = os.fork()
    if child:
        os.close(told)
        return child, read
    try:
        ledger, rng = dn.Ledger(path), random.Random(seed)
        while True:
            time.sleep(rng.uniform(0, 0.05))  # eight of them wait most of the time
            with suppress(LedgerError):  # it is full
                os.write(told, f"{ledger.add(dn.GaussianDP(MU)).head}\n".encode())  # what is published carries the head
    finally:
        os._exit(1)


MU, KILLS, LEDGERS = 0.08, 500, 10


@pytest.mark.slow
def test_five_hundred_kills_of_eight_writers_lose_no_entry_and_never_overspend(tmp_path):
    """Each is killed at a random point, and another one takes its place; a ledger is full after some of its kills."""
    rng, published, full = random.Random(5), 0, 0
    for number in range(LEDGERS):
        path = tmp_path / str(number)
        ledger = dn.Ledger(path, limit=dn.Limit(advantage=0.2))
        running = [writer(path, rng.random()) for _ in range(8)]
        told = []
        for _ in range(KILLS // LEDGERS):
            time.sleep(rng.uniform(0, 0.08))
            child, read = running.pop(rng.randrange(8))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            told.append(read)
            running.append(writer(path, rng.random()))
        for child, read in running:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            told.append(read)
        heads = []
        for read in told:
            with os.fdopen(read) as said:
                heads += [line.strip() for line in said if len(line) == 65]
        entries = ledger.entries
        assert set(heads) <= {entry.head for entry in entries}
        assert len(set(heads)) == len(heads)
        assert len(entries) <= len(heads) + KILLS // LEDGERS + 8  # the others were entered, and their writer killed
        assert ledger.verify().holds
        assert dn.Limit(advantage=0.2).is_met(dn.tradeoff(ledger.mechanism()))
        published += len(heads)
        full += ledger.remaining() < MU
    assert published > 200
    assert full > 0


def play(rng, budget, filtered):
    """An adaptive analyst: looks at what came out and asks where it pays; the sum of the scores of all queries.

    The two worlds are 0 and 1: a query of μ answers N(world·μ, 1). He spends more where the answers so far favour
    world 1, so that without a filter he ends far above the budget just then.
    """
    world = int(rng.integers(2))
    log_ratio, spent = 0.0, 0.0
    for _ in range(40):
        mu = 0.1 if log_ratio <= 0 else 0.3
        if filtered and spent + mu**2 > budget**2:
            mu = math.sqrt(max(budget**2 - spent, 0.0))
        if mu == 0:
            break
        answer = rng.normal(world * mu)
        log_ratio += mu * answer - mu**2 / 2
        spent += mu**2
    return world, log_ratio


@pytest.mark.parametrize(("filtered", "holds"), [(True, True), (False, False)])
def test_the_filter_bounds_an_adaptive_analyst_and_without_it_he_wins_more(filtered, holds):
    rng, budget = np.random.default_rng(1), 0.5
    games = [play(rng, budget, filtered) for _ in range(10_000)]
    right = sum((log_ratio > 0) == (world == 1) for world, log_ratio in games)
    low = binomtest(right, len(games)).proportion_ci(0.999, method="exact").low
    assert (low <= norm.cdf(budget / 2)) == holds


def test_two_hundred_releases_of_which_many_are_alike_in_six_questions(tmp_path):
    ledger = dn.Ledger(tmp_path / "l")
    parts = [dn.GaussianDP(0.02 * (1 + i % 4)) if i % 2 else dn.SubsampledGaussian(1.5, 0.01, 100 + i % 3)
             for i in range(200)]  # fmt: skip
    for part in parts:
        ledger.add(part)
    one, steps = dn.tradeoff(ledger.mechanism()), sum(100 + i % 3 for i in range(0, 200, 2))
    mu = math.sqrt(sum((0.02 * (1 + i % 4)) ** 2 for i in range(1, 200, 2)))
    other = dn.tradeoff(dn.Composition([dn.GaussianDP(mu), dn.SubsampledGaussian(1.5, 0.01, steps)]))
    for ask in (lambda t: t.advantage(), lambda t: t.tpr(1e-3), lambda t: t.epsilon(1e-5), lambda t: t.delta(1.0),
                lambda t: t.accuracy(0.2), lambda t: t.reconstruction(0.01)):  # fmt: skip
        assert ask(one) == pytest.approx(ask(other), abs=1e-6)
    assert one.advantage() - one.advantage(side="lower") < 1e-6
