"""Membership games against releases, played by the best attacker of each record.

Fourteen records with an outlier, two equal rows, a constant column and heavy tails. The attacker of a record knows all
of them, the algorithm, the law of the noise and all 3,432 halves, and computes the exact odds that "his" record trained
from each released value (``dp``: that it was not replaced by the farthest end of the public range; three records). No
attacker can win more often. ``median by rank``: all records choose it by its rank; the attacker (two records) also sees
the whole noisy tree behind its error bars. The scale of the noise is found once, by the public call; every release then
draws its own half and its own noise by the public call, from the operating system's entropy.

Printed: the largest gain over all records ± one standard error, and the same with a tenth of the noise, which must be
caught. The largest of fourteen is above its own expectation by about one and a half standard errors where many records
are alike.

    python benchmarks/noise/games.py [--releases 1000] [--advantage 0.2] [--only BOUND …] [--released NAME …]
"""

from __future__ import annotations

import argparse
import sys
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import combinations
from unittest import mock

import numpy as np
import pandas as pd

import deniable as dn
from deniable.noise import (
    Covariance,
    Histogram,
    Mean,
    Quantile,
    SecondMoment,
    mechanism,
)
from deniable.noise.tabulation import releasing
from deniable.noise.tabulation.queries import _CANDIDATES, OF_TREE

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


def middle_and_trimmed(table):
    return np.array([middle(table), trimmed(table)])


CASES = {
    "swap": {"means": Mean()},
    "centre": {"means": Mean(), "medians": medians},
    "direct": {"trimmed mean": trimmed, "median": middle, "quantile, exact law": Quantile(0.6)},
    "dp": {"means": Mean(bounds=(-10, 10))},
}
MORE = {
    "swap": {
        "covariance": Covariance(),
        "second moments": SecondMoment(),
        "histogram": Histogram((-9.5, -1, 0, 1, 9.5)),
    },
    "direct": {"median and trimmed mean": middle_and_trimmed},
}


@contextmanager
def noise_found_once(weaker):
    """Find the scale of the noise at the first release only, and divide it; yield what was found, and for what task."""
    found, curves = {}, {}
    settle, choose, curve = mechanism.settle, mechanism.choose, mechanism._certified_curve

    def kept(task, way, find):
        if way not in found:
            one = find()
            found[way] = replace(one, law=one.law.with_scale(one.law.scale / weaker)), task
        return replace(found[way][0], game=replace(found[way][0].game, population=task.game.population))

    def certified(one):
        if one.bound not in curves:
            curves[one.bound] = curve(one)
        return curves[one.bound]

    with (
        mock.patch.object(mechanism, "settle", lambda task, way: kept(task, way, lambda: settle(task, way))),
        mock.patch.object(mechanism, "choose", lambda task: (kept(task, "auto", lambda: choose(task)[0]), ())),
        mock.patch.object(mechanism, "_certified_curve", certified),
        mock.patch.object(mechanism, "_useless", return_value=None),
    ):
        yield found


def played(algorithm, bound, advantage, releases, weaker=1.0):
    """Return (largest gain over the records, its standard error): ``releases`` public calls."""
    table = asked_of(algorithm)

    def call(data):
        return dn.release(algorithm, data, advantage=advantage, bound=bound, rng=0)

    with noise_found_once(weaker) as found:
        if bound == "dp":
            wins = against_replacement(algorithm, table, call, found, releases)
        else:
            wins = against_halves(lambda: call(table).value, found, releases)
    return best_of(wins)


def asked_of(algorithm):
    """The records, or what an algorithm takes of them."""
    table = records()
    if isinstance(algorithm, Quantile | Histogram):
        return table[:, [2]]
    return table


def against_halves(call, found, releases):
    """Whether the attacker of each record named its membership, (records, releases)."""
    truths = []
    draw = mechanism.Population.secret_subset

    def watched(self):
        truths.append(draw(self))
        return truths[-1]

    with mock.patch.object(mechanism.Population, "secret_subset", watched):
        values = np.array([np.ravel(call()) for _ in range(releases)])
    ((one, task),) = found.values()
    parts = list(combinations(range(N), HALF))
    outputs = np.array([np.ravel(task.algorithm(task.game.population.take(np.array(part)))) for part in parts])
    member = np.zeros((len(parts), N), dtype=bool)
    for row, part in zip(member, parts, strict=True):
        row[list(part)] = True
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
        law = found["dp"][0].law
        odds = law.log_density(values - algorithm(table)) - law.log_density(values - algorithm(other))
        wins.append((odds > 0) == present)
    return np.array(wins)


def by_rank(advantage, releases, weaker=1.0):
    """The same for a median that ``release_statistics`` chose by its rank; the tree's noise is weakened with it."""
    table, (low, high) = records()[:, 2], (-10, 10)
    rng = np.random.default_rng(0)
    seen, ranks = [], releasing._Spending._ranks

    def watched(self, query, rows, mu, serves):
        answer = ranks(self, query, rows, mu * weaker, serves)
        seen.append((answer, query.sums(rows)[0], query.choice_weights(mu * weaker * np.sqrt(1 - OF_TREE))))
        return answer

    def call(data):
        frame = pd.DataFrame({"x": data})
        with mock.patch.object(releasing._Spending, "_ranks", watched):
            dn.release_statistics(frame, "median(x)", eta=advantage / 2, ranges={"x": (low, high)})
        return seen.pop()

    wins = []
    for record in (0, int(np.argmax(np.abs(table)))):  # one of two equal rows, a tail
        other = table.copy()
        other[record] = low if table[record] > 0 else high
        (_, first, weights), (_, second, _) = call(table), call(other)
        choice = rank_law(table, weights) - rank_law(other, weights)
        present = rng.random(releases) < 0.5
        odds = []
        for one in present:
            answer = call(table if one else other)[0]
            noisy = answer.noise > 0
            sums, sd = answer.sums[0][noisy], answer.noise[noisy]
            tree = ((sums - second[noisy]) ** 2 - (sums - first[noisy]) ** 2) / (2 * sd**2)
            odds.append(tree.sum() + choice[round(answer.chosen[0.5] * _CANDIDATES) + _CANDIDATES])
        wins.append((np.array(odds) > 0) == present)
    return best_of(np.array(wins))


def rank_law(column, weights):
    """Log probability of each candidate for the median of a column on [−10, 10], from its definition."""
    ordered = np.sort(np.round(column / 10 * _CANDIDATES).astype(int))
    points, n = np.arange(-_CANDIDATES, _CANDIDATES + 1), len(column)
    below, at_most = (np.searchsorted(ordered, points, side) for side in ("left", "right"))
    away = np.maximum(np.maximum(below - n // 2, -(-n // 2) - at_most), 0)
    log = -weights.rate * away
    return log - np.logaddexp.reduce(log)


def best_of(wins):
    """Return (largest gain over the records, its standard error)."""
    best = int(np.argmax(wins.mean(axis=1)))
    rate = float(wins[best].mean())
    return rate - 0.5, float(np.sqrt(rate * (1 - rate) / wins.shape[1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--releases", type=int, default=1000)
    parser.add_argument("--advantage", type=float, default=0.2)
    parser.add_argument("--only", nargs="+", default=None, help="Bounds of the table to print.")
    parser.add_argument("--released", nargs="+", default=None, help="What is released in the games to play.")
    args = parser.parse_args()
    print("| bound | released | largest gain of an attacker | with a tenth of the noise |\n|---|---|---|---|")
    failed = False
    games = [
        (b, name, partial(played, algorithm, b)) for b, cases in CASES.items() for name, algorithm in cases.items()
    ]
    games += [
        (b, name, partial(played, algorithm, b)) for b, cases in MORE.items() for name, algorithm in cases.items()
    ]
    games += [("dp", "median by rank", by_rank)]
    for bound, name, play in games:
        if (args.only and bound not in args.only) or (args.released and name not in args.released):
            continue
        gain, failure = play(args.advantage, args.releases)
        caught, other = play(args.advantage, args.releases, weaker=10.0)
        failed |= gain > args.advantage / 2 + 4 * failure or caught < args.advantage / 2 + 2 * other
        print(f"| {bound} | {name} | {gain:.3f} ± {failure:.3f} | {caught:.3f} ± {other:.3f} |", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
