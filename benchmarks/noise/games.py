"""Membership games against releases, played by the best attacker of each record.

Fourteen records with an outlier, two equal rows, a constant column and heavy tails. The attacker of a record knows all
of them, the algorithm, the law of the noise and all 3,432 halves, and computes the exact odds that "his" record trained
from each released value (``dp``: that it was not replaced by the farthest end of the public range; three records). No
attacker can win more often. The scale of the noise is found once, by the public call; every release then draws its own
half and its own noise by the public call, from the operating system's entropy.

Printed: the largest gain over all records ± one standard error, and the same with a tenth of the noise, which must be
caught. The largest of fourteen is above its own expectation by about one and a half standard errors where many records
are alike.

    python benchmarks/noise/games.py [--releases 1000] [--eta 0.1]
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from itertools import combinations
from unittest import mock

import numpy as np

import deniable as dn
from deniable.noise import Mean, mechanism

N, HALF = 14, 7


def records():
    """Columns: an outlier, a constant, heavy tails; the first two rows are equal."""
    rng = np.random.default_rng(3)
    table = np.column_stack([rng.normal(size=N), np.full(N, 2.0), np.clip(rng.standard_t(1.5, size=N), -9, 9)])
    table[-1, 0] = 9.0
    table[1] = table[0]
    return table


def trimmed(table):
    return np.sort(table[:, 0])[1:-1].mean()


def middle(table):
    return np.median(table[:, 2])


def medians(table):
    return np.median(table, axis=0)


CASES = {
    "swap": {"means": Mean()},
    "centre": {"means": Mean(), "medians": medians},
    "direct": {"trimmed mean": trimmed, "median": middle},
    "dp": {"means": Mean(bounds=(-10, 10))},
}


def played(algorithm, bound, eta, releases, weaker=1.0):
    """Return (largest gain over the records, its standard error, noise): ``releases`` public calls."""
    table = records()
    found, curves = {}, {}
    settle, curve = mechanism.settle, mechanism._certified_curve

    def settled(task, way):
        if way not in found:
            one = settle(task, way)
            found[way] = replace(one, law=one.law.with_scale(one.law.scale / weaker))
        return replace(found[way], game=replace(found[way].game, population=task.game.population))

    def certified(one):
        if one.bound not in curves:
            curves[one.bound] = curve(one)
        return curves[one.bound]

    def call(data):
        return dn.release(algorithm, data, eta=eta, bound=bound, rng=0)

    with (
        mock.patch.object(mechanism, "settle", settled),
        mock.patch.object(mechanism, "_certified_curve", certified),
        mock.patch.object(mechanism, "_useless", return_value=None),
    ):
        if bound == "dp":
            wins = against_replacement(algorithm, table, call, found, releases)
        else:
            wins = against_halves(algorithm, table, call, found, releases)
    best = int(np.argmax(wins.mean(axis=1)))
    rate = float(wins[best].mean())
    return rate - 0.5, float(np.sqrt(rate * (1 - rate) / wins.shape[1])), found[bound].noise


def against_halves(algorithm, table, call, found, releases):
    """Whether the attacker of each record named its membership, (records, releases)."""
    halves = list(combinations(range(N), HALF))
    outputs = np.array([np.ravel(algorithm(table[list(half)])) for half in halves])
    member = np.zeros((len(halves), N), dtype=bool)
    for row, half in zip(member, halves, strict=True):
        row[list(half)] = True
    truths = []
    draw = mechanism.Population.secret_subset

    def watched(self, testing=None):
        truths.append(draw(self, testing))
        return truths[-1]

    with mock.patch.object(mechanism.Population, "secret_subset", watched):
        values = np.array([np.ravel(call(table).value) for _ in range(releases)])
    (one,) = found.values()
    law, free = one.law, one.plan.coordinates.free
    weights = np.array([np.exp(law.log_density(v[free] - outputs[:, free])) for v in values])
    inside = np.array([np.isin(np.arange(N), rows) for rows in truths])
    guesses = weights @ np.where(member, 1.0, -1.0) > 0
    return (guesses == inside).T


def against_replacement(algorithm, table, call, found, releases):
    """Whether the attacker of each record told it from the end of the range farthest from it, (records, releases)."""
    low, high = algorithm.bounds
    rng = np.random.default_rng(0)
    wins = []
    for record in (0, int(np.argmax(np.abs(table[:, 2]))), N - 1):  # one of two equal rows, a tail, the outlier
        other = table.copy()
        other[record] = np.where(table[record] > (low + high) / 2, low, high)
        present = rng.random(releases) < 0.5
        values = np.array([np.ravel(call(table if one else other).value) for one in present])
        law = found["dp"].law
        odds = law.log_density(values - algorithm(table)) - law.log_density(values - algorithm(other))
        wins.append((odds > 0) == present)
    return np.array(wins)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--releases", type=int, default=1000)
    parser.add_argument("--eta", type=float, default=0.1)
    args = parser.parse_args()
    print("| bound | released | largest gain of an attacker | with a tenth of the noise |\n|---|---|---|---|")
    failed = False
    for bound, cases in CASES.items():
        for name, algorithm in cases.items():
            gain, failure, _ = played(algorithm, bound, args.eta, args.releases)
            caught, other, _ = played(algorithm, bound, args.eta, args.releases, weaker=10.0)
            failed |= gain > args.eta + 4 * failure or caught < args.eta + 2 * other
            print(f"| {bound} | {name} | {gain:.3f} ± {failure:.3f} | {caught:.3f} ± {other:.3f} |", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
