"""What :mod:`statistics_table` compares releases with: plain noise, the published noise, OpenDP, diffprivlib."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import deniable as dn
from deniable.noise.tabulation import parse
from deniable.noise.tabulation.halves import OfRecords, can_be_halved

DRAWS = 400  # draws of plain noise and of the published release

THEIRS = """
import json, sys, warnings
import numpy as np, pandas as pd
from diffprivlib import tools
from diffprivlib.models import LinearRegression
warnings.simplefilter("ignore")
frame, ranges, repeats, epsilons = pd.read_csv(sys.argv[1]), *map(json.loads, sys.argv[2:5])
x, y = frame["x"].to_numpy(), frame["y"].to_numpy()
b, c = tuple(ranges["x"]), tuple(ranges["y"])
def slope(e):
    model = LinearRegression(epsilon=e, bounds_X=([b[0]], [b[1]]), bounds_y=c).fit(x[:, None], y)
    return [float(np.ravel(model.coef_)[0])]
calls = {
    "mean": lambda e: [tools.mean(x, epsilon=e, bounds=b)],
    "sum": lambda e: [tools.sum(x, epsilon=e, bounds=b)],
    "variance": lambda e: [tools.var(x, epsilon=e, bounds=b)],
    "sd": lambda e: [tools.std(x, epsilon=e, bounds=b)],
    "median": lambda e: [tools.median(x, epsilon=e, bounds=b)],
    "quantile 0.9": lambda e: [tools.quantile(x, 0.9, epsilon=e, bounds=b)],
    "histogram": lambda e: tools.histogram(x, epsilon=e / 2, bins=10, range=b)[0],  # add or remove: twice for replace
    "slope": slope,
}
print(json.dumps({str(e): {name: [np.asarray(call(e), float).tolist() for _ in range(repeats)]
                           for name, call in calls.items()} for e in epsilons}))
"""


def of_a_part(frame, ranges, name, text):
    """The columns of a statistic that a half can answer, clipped, its function and by what to multiply; or None."""
    statistic = parse("mean(x)" if name == "sum" else text)
    if not can_be_halved(statistic):
        return None
    columns = [np.clip(frame[c].to_numpy(dtype=float), *ranges[c]) for c in statistic.columns]
    return np.column_stack(columns), OfRecords(statistic), len(frame) if name == "sum" else 1


def published(frame, ranges, eta, name, text, rng):
    """Values of the published release: its noise once, then halves and noise."""
    found = of_a_part(frame, ranges, name, text)
    if found is None:
        return None
    table, algorithm, times = found
    options = {"noise": "published", "moment": 6.0, "reproduce": True, "n_resamples": 48}
    try:
        scale = dn.release(algorithm, table, eta=eta, rng=0, **options).noise_scale
    except dn.InputError:
        return None
    parts = (algorithm(table[rng.permutation(len(table))[: len(table) // 2]]) for _ in range(DRAWS))
    return [(part + rng.normal(size=part.shape) * scale)[-1:] * times for part in parts]


def without_noise(frame, ranges, name, text, rng):
    """Values of halves without noise: no method that trains on a half errs less."""
    found = of_a_part(frame, ranges, name, text)
    if found is None:
        return None
    table, algorithm, times = found
    parts = (algorithm(table[rng.permutation(len(table))[: len(table) // 2]]) for _ in range(DRAWS))
    return [part[-1:] * times for part in parts]


def plain(frame, ranges, noise):
    """Noise of one size on each sum: ``noise(l1, l2, k)`` draws it, (draws, k), for these sensitivities."""
    x, y, g = (frame[name].to_numpy() for name in "xyg")
    (a, b), (c, d) = ranges["x"], ranges["y"]
    half, centre = (b - a) / 2, (a + b) / 2
    u, v, n = (x - centre) / half, (y - (c + d) / 2) / ((d - c) / 2), len(x)

    def drawn(sums, l1, l2):
        return np.asarray(sums) + noise(l1, l2, len(sums))

    mean = centre + half * drawn([u.sum()], 2, 2) / n
    second = drawn([u.sum(), (u**2).sum()], 3, np.sqrt(5))
    variance = ((second[:, 1] / n - (second[:, 0] / n) ** 2) * half**2 * n / (n - 1))[:, None]
    bins = np.histogram(x, np.linspace(a, b, 11))[0]
    cells = [np.sum(g == "a"), np.sum(g == "b")]
    groups = drawn([*cells, u[g == "a"].sum(), u[g == "b"].sum()], 4, 2)
    five = drawn([u.sum(), v.sum(), (u * u).sum(), (v * v).sum(), (u * v).sum()], 8, np.sqrt(14)) / n
    both = five[:, 4] - five[:, 0] * five[:, 1]
    uu, vv = five[:, 2] - five[:, 0] ** 2, five[:, 3] - five[:, 1] ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = both / np.sqrt(np.where((uu > 0) & (vv > 0), uu * vv, np.nan))
    return {
        "mean": mean,
        "sum": mean * n,
        "variance": variance,
        "sd": np.sqrt(np.maximum(variance, 0)),
        "histogram": drawn(bins, 2, np.sqrt(2)),
        "counts by group": drawn(cells, 2, np.sqrt(2)),
        "means by group": centre + half * groups[:, 2:] / groups[:, :2],
        "correlation": correlation[:, None],
        "slope": (both / uu * (d - c) / (b - a))[:, None],
    }


def opendp_mean(frame, ranges, epsilon, repeats):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    low, high = map(float, ranges["x"])
    x = frame["x"].tolist()
    space = dp.vector_domain(dp.atom_domain(bounds=(low, high), nan=False), size=len(x)), dp.symmetric_distance()
    chain = dp.binary_search_chain(lambda s: space >> dp.t.then_mean() >> dp.m.then_laplace(s), d_in=2, d_out=epsilon)
    return [[chain(x)] for _ in range(repeats)]


def theirs(frame, ranges, epsilons, repeats, interpreter):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.csv"
        frame.to_csv(path, index=False)
        words = [interpreter, "-c", THEIRS, str(path), json.dumps(ranges), str(repeats), json.dumps(epsilons)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    return {float(e): values for e, values in json.loads(done.stdout).items()}
