"""Membership games against releases, played by the best attacker of each record.

Fourteen records with an outlier, two equal rows, a constant column and heavy tails. The attacker of a record knows all
of them, the algorithm, the law of the noise and all 3,432 halves, and computes the exact odds that "his" record trained
from each released value. No attacker can win more often. ``median by rank``: all records choose it by its rank; the
attacker of a record (two are tried) tells whether it is in the table, and sees the whole noisy tree behind the error
bars, too. The scale of the noise is found once, by the public call; every release then draws its own half and its own
noise by the public call, from the operating system's entropy.

Printed: the largest gain over all records ± one standard error, and the same with a tenth of the noise, which must be
caught. The largest of fourteen is above its own expectation by about one and a half standard errors where many records
are alike.

    python benchmarks/noise/games.py [--releases 1000] [--advantage 0.2] [--only BOUND …] [--released NAME …]
"""

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
from deniable.noise import queries
from deniable.releases import Histogram, Mean, SecondMoment, secret_half
from deniable.statistics import releasing
from deniable.statistics.queries import CANDIDATES

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
    "direct": {"trimmed mean": trimmed, "median": middle},
}
MORE = {
    "swap": {
        "second moments": SecondMoment(),
        "histogram": Histogram((-9.5, -1, 0, 1, 9.5)),
    },
    "direct": {"median and trimmed mean": middle_and_trimmed},
}


@contextmanager
def noise_found_once(weaker):
    """Find the scale of the noise at the first release only, and divide it; yield what was found, and for what task."""
    found, curves = {}, {}
    settle, choose, curve = secret_half.settle, secret_half.choose, secret_half._certified_curve

    def kept(task, way, find):
        if way not in found:
            one = find()
            found[way] = replace(one, law=one.law.with_scale(one.law.scale / weaker)), task
        return replace(found[way][0], task=replace(found[way][0].task, population=task.population))

    def certified(one):
        if one.task.bound not in curves:
            curves[one.task.bound] = curve(one)
        return curves[one.task.bound]

    with (
        mock.patch.object(secret_half, "settle", lambda task, way: kept(task, way, lambda: settle(task, way))),
        mock.patch.object(secret_half, "choose", lambda task: (kept(task, "auto", lambda: choose(task)[0]), ())),
        mock.patch.object(secret_half, "_certified_curve", certified),
        mock.patch.object(secret_half, "_useless", return_value=None),
    ):
        yield found


def played(algorithm, bound, advantage, releases, weaker=1.0):
    """Return (largest gain over the records, its standard error): ``releases`` public calls."""
    table = asked_of(algorithm)

    with noise_found_once(weaker) as found:
        wins = against_halves(
            lambda: dn.release(algorithm, table, advantage=advantage, bound=bound, rng=0).value, found, releases
        )
    return best_of(wins)


def asked_of(algorithm):
    """The records, or what an algorithm takes of them."""
    table = records()
    if isinstance(algorithm, Histogram):
        return table[:, [2]]
    return table


def against_halves(call, found, releases):
    """Whether the attacker of each record named its membership, (records, releases)."""
    truths = []
    draw = secret_half.Population.secret_subset

    def watched(self):
        truths.append(draw(self))
        return truths[-1]

    with mock.patch.object(secret_half.Population, "secret_subset", watched):
        values = np.array([np.ravel(call()) for _ in range(releases)])
    ((one, task),) = found.values()
    parts = list(combinations(range(N), HALF))
    outputs = np.array([np.ravel(task.algorithm(task.population.take(np.array(part)))) for part in parts])
    member = np.zeros((len(parts), N), dtype=bool)
    for row, part in zip(member, parts, strict=True):
        row[list(part)] = True
    law, free = one.law, one.plan.coordinates.free
    weights = np.array([np.exp(law.log_density(v[free] - outputs[:, free])) for v in values])
    inside = np.array([np.isin(np.arange(N), rows) for rows in truths])
    guesses = weights @ np.where(member, 1.0, -1.0) > 0
    return (guesses == inside).T


def heard(table, advantage, weaker):
    """What ``release_statistics`` draws for a median by rank: (sums, noise, answer) of each query, and the choices."""
    sums, choices = [], []
    channel, choose, budget = queries.SumNoise.channel, queries.rank_choice, releasing.budget

    def watched(self, label, sd, times):
        answer = channel(self, label, sd, times)

        def told(whole):
            sums.append((whole.ravel(), np.ravel(sd), answer(whole).ravel()))
            return sums[-1][2].reshape(whole.shape)

        return told

    def chosen(ordered, low, high, weights, shift):
        choices.append((ordered, weights, shift, choose(ordered, low, high, weights, shift)))
        return choices[-1][3]

    def weakened(*asked, **named):
        found = budget(*asked, **named)
        return replace(found, mu=found.mu * weaker)

    with (
        mock.patch.object(queries.SumNoise, "channel", watched),
        mock.patch.object(queries, "rank_choice", chosen),
        mock.patch.object(releasing, "budget", weakened),
    ):
        dn.release_statistics(pd.DataFrame({"x": table}), "median(x)", advantage=advantage, ranges={"x": (-10, 10)})
    return sums, choices


def by_rank(advantage, releases, weaker=1.0):
    """Whether the attacker of each record told whether it is in the table, from all that a median by rank rests on."""
    table = records()[:, 2]
    rng = np.random.default_rng(0)
    wins = []
    for record in (0, int(np.argmax(np.abs(table)))):  # one of two equal rows, a tail
        worlds = np.delete(table, record), table
        (out, ((first, *_), *_)), (inside, ((second, *_), *_)) = (heard(world, advantage, weaker) for world in worlds)
        present = rng.random(releases) < 0.5
        odds = []
        for one in present:
            sums, choices = heard(worlds[int(one)], advantage, weaker)
            pairs = zip(out, inside, sums, strict=True)
            gaps = [((seen - a) ** 2 - (seen - b) ** 2) / (2 * sd**2) for (a, sd, _), (b, _, _), (_, _, seen) in pairs]
            for _, weights, shift, point in choices:
                chances = (rank_law(world, weights, shift)[point + CANDIDATES] for world in (second, first))
                gaps.append(np.subtract(*chances))
            odds.append(sum(gap.sum() for gap in gaps))
        wins.append((np.array(odds) > 0) == present)
    return best_of(np.array(wins))


def rank_law(ordered, weights, shift):
    """Log probability of each candidate ``shift`` ranks from the median, from its definition."""
    points, rank = np.arange(-CANDIDATES, CANDIDATES + 1), len(ordered) / 2 + shift
    below, at_most = (np.searchsorted(ordered, points, side) for side in ("left", "right"))
    away = np.maximum(np.maximum(below - rank, rank - at_most), 0)
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
