"""Does ``release_statistics(bound="auto")`` turn to a half where it should? Generated tables, wide and narrow ranges.

For each table (law, n), public range and η: releases of all records are drawn, their rows are judged as ``auto`` judges
them, joined with a half where it turns to one, and auto's root mean square error is divided by the least of the two
ways'. The half's error is that of its closed form to first order: 2/(nμ) times the mean swap distance of its worst
record, and sampling. Where both ways err by more
than half a standard deviation there is no answer to compare. Seconds; reads no data.

    python benchmarks/noise/turning.py [--draws 200]
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from scipy.special import ndtri

from deniable.noise.tabulation import parse
from deniable.noise.tabulation.answers import Limits, QueryAnswer
from deniable.noise.tabulation.estimates import moment, moments
from deniable.noise.tabulation.halves import AllRecords, ReleasedMoments, better_of_a_half
from deniable.noise.tabulation.records import ColumnScale

LAWS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "t, 3 degrees": lambda rng, n: rng.standard_t(3, size=n),
    "lognormal 0.8": lambda rng, n: rng.lognormal(0, 0.8, n),
    "gamma 4": lambda rng, n: rng.gamma(4, size=n),
    "uniform": lambda rng, n: rng.uniform(size=n),
}
WIDTHS = (5, 8, 16)  # standard deviations from the mean to the ends of a range, or to one of them
HOPELESS = 0.5


def drawn(x, low, high, eta, draws, rng):
    """Errors of all records, of auto and of a half, in units of the column: of mean and variance."""
    n, scale, mu = len(x), ColumnScale(low, high, True), 2 * float(ndtri(0.5 + eta))
    u, noise = (x - scale.centre) / scale.half, np.array([0.0, 1.0, math.sqrt(4 / 11)]) * 2 / mu
    sums = np.array([n, u.sum(), (u**2 - 0.5).sum()])
    off, truth = x - x.mean(), {"mean": x.mean(), "variance": x.var(ddof=1)}
    worst = np.argmax(np.abs(off))
    swap = {"mean": np.abs(off - off[worst]).mean(), "variance": np.abs(off**2 - off[worst] ** 2).mean()}
    sampling = {"mean": truth["variance"] / n, "variance": (off**4).mean() / n - truth["variance"] ** 2 / n}
    half = {f: (2 * swap[f] / n / mu) ** 2 + sampling[f] for f in truth}
    alone, auto = {f: [] for f in truth}, {f: [] for f in truth}
    for _ in range(draws):
        answer = QueryAnswer((sums + noise * rng.normal(size=3))[None], noise, [()], True)
        said = {function: moments(answer, function, scale, Limits(0.95)) for function in truth}
        column = ReleasedMoments(said["mean"][0], said["variance"][0], low, high)
        for function, value in truth.items():
            turned = better_of_a_half(parse(f"{function}(x)"), said[function], n, eta, column)
            alone[function].append((np.nan_to_num(said[function][0].value) - value) ** 2)
            error = math.sqrt(half[function])
            first = AllRecords(*(np.array([part]) for part in moment(function, *answer.sums, noise, scale)))
            both = first.joined(np.array([value + error * rng.normal()]), np.array([error]))[0]
            auto[function].append((both[0] - value) ** 2 if turned else alone[function][-1])
    units = {"mean": truth["variance"], "variance": truth["variance"] ** 2}
    return {f: [float(np.sqrt(np.mean(part[f]) / units[f])) for part in (alone, auto, half)] for f in truth}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=200)
    args = parser.parse_args()
    rng = np.random.default_rng(1)
    print(
        "| law | statistic | cells | auto / better way: geometric mean | above 1.05 | above 1.5 |\n" + "|---" * 6 + "|"
    )
    for law, made in LAWS.items():
        ratios = {"mean": [], "variance": []}
        for n in (60, 300, 2000):
            x = made(np.random.default_rng([1, n]), n)
            x = (x - x.mean()) / x.std()
            ranges = [(-w, w) for w in WIDTHS] + [(x.min() - 0.1, w) for w in WIDTHS]
            for low, high in ranges:
                if np.mean((x < low) | (x > high)) > 0.002:
                    continue  # nobody would call that the range
                for eta in (0.02, 0.05, 0.1, 0.2):
                    found = drawn(np.clip(x, low, high), low, high, eta, args.draws, rng)
                    for function, (alone, auto, half) in found.items():
                        if min(alone, half) <= HOPELESS:
                            ratios[function].append(auto / min(alone, half))
        for function, found in ratios.items():
            mean, above = math.exp(np.mean(np.log(found))), [np.mean(np.array(found) > limit) for limit in (1.05, 1.5)]
            print(f"| {law} | {function} | {len(found)} | {mean:.2f} | {above[0]:.0%} | {above[1]:.0%} |")


if __name__ == "__main__":
    main()
