"""How often stated limits cover what they name: three laws, three sizes, five statistics, fresh tables each time.

    python benchmarks/statistics/coverage.py [--releases 200] [--advantage 0.2] [--declared]

``low`` to ``high`` must cover the statistic of the table's values limited to the range that the release names;
``population_low`` to ``population_high`` that of the law they were drawn from. Widths are medians, errors root mean
squares against the table's value.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.stats import lognorm, norm, uniform

import deniable as dn
from deniable.testing import insecure_noise

LAWS = {"uniform": uniform(0, 100), "normal": norm(50, 15), "log-normal": lognorm(1.0, scale=100)}
DECLARED = {"uniform": (0, 100), "normal": (-10, 110), "log-normal": (0, 1000)}
SIZES = (400, 2_000, 20_000)
STATISTICS = ("mean(x)", "sum(x)", "median(x)", "quantile(x, 0.9)", "count()")
FEWEST, LEAST, MOST = 0.90, 0.92, 0.98  # of a cell, and of all cells of a statistic


def truths(values: np.ndarray) -> list[float]:
    """Each statistic of these values."""
    return [values.mean(), values.sum(), np.quantile(values, 0.5), np.quantile(values, 0.9), float(len(values))]


def release(
    law: str, n: int, rng: np.random.Generator, advantage: float, declared: bool, confidence: float
) -> Iterator[tuple[float, ...]]:
    """Yield of each statistic of a fresh table: whether limits cover (table, population), their widths, the error."""
    values = LAWS[law].rvs(n, random_state=rng)
    with insecure_noise(rng):
        ranges = {"x": DECLARED[law]} if declared else {}
        made = dn.release_statistics(
            pd.DataFrame({"x": values}), list(STATISTICS), advantage=advantage, ranges=ranges, confidence=confidence
        )
    low, high = made.ranges["x"]
    mean = LAWS[law].expect(lambda x: np.clip(x, low, high)) if law != "log-normal" else limited_mean(low, high)
    population = [mean, np.nan, *np.clip(LAWS[law].ppf([0.5, 0.9]), low, high), np.nan]
    for rows, table, whole in zip(made.rows, truths(np.clip(values, low, high)), population, strict=True):
        row = rows[0]
        both = row.low <= table <= row.high, row.population_low <= whole <= row.population_high
        width, wide = row.high - row.low, row.population_high - row.population_low
        withheld = np.isnan(row.value)
        yield tuple(
            np.where(withheld, np.nan, [both[0], np.nan if np.isnan(whole) else both[1], width, wide]).tolist()
            + [row.value - table]
        )


def limited_mean(low: float, high: float) -> float:
    """The mean of the log-normal law limited to a range, in closed form."""

    def upto(cut: float) -> float:  # E min(X, cut)
        z = np.log(cut / 100) if cut > 0 else -np.inf
        return 100 * np.exp(0.5) * norm.cdf(z - 1) + max(cut, 0.0) * norm.sf(z)

    return upto(high) + max(low, 0.0) - upto(low)


def coverage(
    releases: int, advantage: float, declared: bool, sizes: tuple[int, ...] = SIZES, confidence: float = 0.95
) -> dict[tuple[str, int, str], np.ndarray]:
    """Return, by law, size and statistic, an array (releases, five) of what :func:`release` yields."""
    cells = {}
    for law in LAWS:
        for n in sizes:
            rng = np.random.default_rng([zlib.crc32(law.encode()), n])
            found = np.array([list(release(law, n, rng, advantage, declared, confidence)) for _ in range(releases)])
            cells |= {(law, n, name): found[:, j] for j, name in enumerate(STATISTICS)}
    return cells


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=200)
    parser.add_argument("--advantage", type=float, default=0.2)
    parser.add_argument("--declared", action="store_true")
    given = parser.parse_args()
    cells = coverage(given.releases, given.advantage, given.declared)
    heads = f"{'table':>7}{'popul.':>7}{'width':>10}{'(popul.)':>10}{'rmse':>10}{'shown':>7}"
    print(f"{'law':11}{'n':>7}  {'statistic':18}{heads}")
    for (law, n, name), found in cells.items():
        shown = ~np.isnan(found[:, 0])
        kept = found[shown]
        if not len(kept):
            print(f"{law:11}{n:7,}  {name:18}withheld")
            continue
        table, whole, width, wide = *kept[:, :2].mean(axis=0), *np.median(kept[:, 2:4], axis=0)
        rmse = np.sqrt(np.mean(kept[:, 4] ** 2))
        print(
            f"{law:11}{n:7,}  {name:18}{table:7.3f}{whole:7.3f}{width:10.4g}{wide:10.4g}{rmse:10.4g}{shown.mean():7.2f}"
        )
    for name in STATISTICS:
        both = np.concatenate([found[:, :2] for (_, _, one), found in cells.items() if one == name]).T
        pooled = [np.nan if np.isnan(covers).all() else np.nanmean(covers) for covers in both]
        print(f"pooled             {name:18}{pooled[0]:7.3f}{pooled[1]:7.3f}")


if __name__ == "__main__":
    main()
