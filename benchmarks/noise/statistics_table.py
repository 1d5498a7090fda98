"""Errors of released statistics at one membership target: this library, plain noise, OpenDP, diffprivlib.

Everybody gets the same public ranges and the same η in the game where "out" means replaced by another record of the
range: ε = log((½+η)/(½−η)) for pure DP, which no ε-DP mechanism exceeds, and μ = 2Φ⁻¹(½+η) for Gaussian DP. Errors are
root mean squares against the value on all records, in units of the column's standard deviation (counts: records),
± standard error.

* auto: ``release_statistics(bound="auto")``: noise on all records, and a secret half where that answer says that it is
  mostly noise, joined with that answer where it can be. direct: the half alone, up to 1,000 records (beyond, it is made
  where auto turns to it); *half* is the error of a half without any noise, which is below that of every method that
  trains on one. published: Izzo Corollary 10, M = 6, a half, no guarantee. Those of a half keep another promise (who is
  in it), fix their noise once and then draw halves and noise many times.
* laplace, gaussian: independent noise of one size on the sums that a statistic needs, for their L1 or L2 sensitivity.
* opendp: its own mean (bounded, of known size) with Laplace noise.
* diffprivlib: its own mean, sum, var, std, median, quantile, histogram, LinearRegression. It runs in an interpreter of
  its own (``--diffprivlib PYTHON``), as it pins other versions.

The script fails if auto is worse than the best of all others by more than 5 % and by more than three standard errors
(of some 190 comparisons five would be worse by two of them by chance). Where nobody's error is below half a standard
deviation there is no answer to compare, and the last column says so.

Each data set and η is kept in a file of its own under ``--parts``, so a run that was stopped goes on where it was.

    python benchmarks/noise/statistics_table.py --data FOLDER --parts FOLDER [--etas 0.02 0.05 0.1 0.2] [--repeats 40]
        [--only NAME …] [--statistics NAME …] [--diffprivlib PYTHON] [--out table.md]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from scipy.special import ndtri

import deniable as dn
from deniable.noise.evidence import ReleaseError
from deniable.noise.tabulation import parse, releasing
from deniable.noise.tabulation.halves import Closed, OfRecords, can_be_halved

ASKED = {
    "mean": "mean(x)",
    "sum": "sum(x)",
    "variance": "variance(x)",
    "sd": "sd(x)",
    "median": "median(x)",
    "quantile 0.9": "quantile(x, 0.9)",
    "trimmed mean": "trimmed_mean(x, 0.1)",
    "histogram": "histogram(x, bins=10)",
    "counts by group": "count() by g",
    "means by group": "mean(x) by g",
    "correlation": "correlation(x, y)",
    "slope": "regression(y ~ x)",
}
HOPELESS = 0.5  # an error of so many standard deviations answers nothing
SMALL = 1000  # records up to which a direct certificate is made
SLOW = 0.2  # η below which the slope, a direct certificate of two numbers, takes minutes
METHODS = ["auto", "direct", "half", "published", "gaussian", "laplace", "opendp", "diffprivlib"]
DRAWS = 400  # halves and noise drawn for each release of a half, and draws of plain noise

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


def data_sets(folder):
    """Name → (frame with columns x, y, g; public ranges)."""
    from sklearn.datasets import load_breast_cancer, load_diabetes

    cancer, target = load_breast_cancer(return_X_y=True)
    ill, progress = load_diabetes(return_X_y=True, scaled=False)
    adult = pd.read_parquet(folder / "adult.parquet")
    rng = np.random.default_rng(0)
    tails = np.minimum(rng.lognormal(10, 0.8, 10_000), 399_999)
    made = {
        "breast cancer": ((cancer[:, 0], cancer[:, 1], target), (0, 40), (0, 50)),
        "diabetes": ((ill[:, 2], progress, ill[:, 1]), (10, 60), (0, 400)),
        "adult": ((_column(adult, "age"), _column(adult, "hours"), _column(adult, "sex", True)), (16, 100), (0, 100)),
        "heavy tails": ((tails, tails * rng.uniform(0.2, 0.6, 10_000), rng.random(10_000) < 0.02), (0, 4e5), (0, 4e5)),
    }
    found = {}
    for name, ((x, y, g), first, second) in made.items():
        frame = pd.DataFrame({"x": x, "y": y, "g": np.where(np.asarray(g) == max(g), "b", "a")})
        found[name] = frame, {"x": first, "y": second, "g": ["a", "b"]}
    return found


def _column(frame, begins, text=False):
    name = next(column for column in frame.columns if column.startswith(begins))
    return frame[name].astype(str).to_numpy() if text else frame[name].to_numpy(dtype=float)


def truths(frame, ranges):
    """The values on all records."""
    x, y, g = frame["x"].to_numpy(), frame["y"].to_numpy(), frame["g"].to_numpy()
    inner = np.sort(x)[int(0.1 * len(x)) : len(x) - int(0.1 * len(x))]
    return {
        "mean": [x.mean()],
        "sum": [x.sum()],
        "variance": [x.var(ddof=1)],
        "sd": [x.std(ddof=1)],
        "median": [np.median(x)],
        "quantile 0.9": [np.quantile(x, 0.9)],
        "trimmed mean": [inner.mean()],
        "histogram": np.histogram(x, np.linspace(*ranges["x"], 11))[0],
        "counts by group": [np.sum(g == "a"), np.sum(g == "b")],
        "means by group": [x[g == "a"].mean(), x[g == "b"].mean()],
        "correlation": [np.corrcoef(x, y)[0, 1]],
        "slope": [np.polyfit(x, y, 1)[0]],
    }


def of_halves(frame, ranges, eta, options, rng, only, draws):
    """Releases of a half: made once, which fixes the noise; then halves and noise are drawn.

    Each is a function of what all records answered, or None, that returns the value. ``bound="direct"`` takes the
    closed forms that ``release_statistics`` takes.
    """
    values = {}
    for name in only:
        statistic = parse("mean(x)" if name == "sum" else ASKED[name])
        direct = options.get("bound") == "direct"
        if not can_be_halved(statistic) or (name == "slope" and direct and eta < SLOW):
            continue
        columns = [np.clip(frame[c].to_numpy(dtype=float), *ranges[c]) for c in statistic.columns]
        closed = Closed.of(statistic) if direct else None
        table, algorithm = np.column_stack(columns), OfRecords(statistic) if closed is None else closed.algorithm
        try:
            made = dn.release(algorithm, table, eta=eta, rng=0, **({} if closed else options))
        except dn.InputError:
            continue
        n, scale = len(table), made.noise_scale
        times = n if name == "sum" else 1
        values[name] = []
        for _ in range(draws):
            value = algorithm(table[np.sort(rng.permutation(n)[: n // 2])])
            drawn = replace(made, value=value + rng.normal(size=value.shape) * scale)
            values[name].append(partial(_number, drawn, closed, times))
    return values


def _number(drawn, closed, times, first=None):
    """The number asked for of a release of a half, joined with what all records answered."""
    if closed is not None:
        return closed.numbers(drawn, first)[0][-1:] * times
    number = np.ravel(drawn.value)
    number = number if first is None else first.joined(number, np.ravel(drawn.standard_error))[0]
    return number[-1:] * times


def alone(releases):
    return {name: [release() for release in drawn] for name, drawn in releases.items()}


def automatic(frame, ranges, eta, repeats, halves, names):
    """Values of our releases, one statistic a release, so that each has the whole budget as the others do.

    What turns to a half takes one of those that ``halves(name)`` drew; if there are none, all records stand.
    """
    values, turned = {}, {}
    for name in names:
        values[name], taken = [], []

        def a_half(*args, name=name, taken=taken):
            drawn = halves(name)
            if drawn is None:
                raise ReleaseError("none is certified")
            taken.append(drawn[len(taken)](args[-1]))

        for _ in range(repeats):
            with mock.patch.object(releasing, "_of_a_half", a_half):
                made = dn.release_statistics(frame, ASKED[name], eta=eta, ranges=ranges, bound="auto")
            numbers = taken[-1] if made is None else [row.value for row in made.rows[0]]
            values[name].append(numbers[-1 if name == "slope" else 0 :])
        turned[name] = len(taken)
    return values, turned


def plain(frame, ranges, noise, repeats, rng):
    """Noise of one size on each sum: ``noise(l1, l2)`` draws it for these sensitivities."""
    x, y, g = (frame[name].to_numpy() for name in "xyg")
    (a, b), (c, d) = ranges["x"], ranges["y"]
    half, centre = (b - a) / 2, (a + b) / 2
    u, v, n = (x - centre) / half, (y - (c + d) / 2) / ((d - c) / 2), len(x)

    def drawn(sums, l1, l2):
        return np.asarray(sums) + noise(l1, l2, (repeats, len(sums)), rng)

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
    return {"mean": [[chain(x)] for _ in range(repeats)]}


def theirs(frame, ranges, epsilons, repeats, interpreter):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.csv"
        frame.to_csv(path, index=False)
        words = [interpreter, "-c", THEIRS, str(path), json.dumps(ranges), str(repeats), json.dumps(epsilons)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    return {float(e): values for e, values in json.loads(done.stdout).items()}


def error(values, truth, unit):
    """Root mean square error ± its standard error; releases without a value make it infinite."""
    square = np.mean((np.asarray(values, dtype=float) - np.asarray(truth)) ** 2, axis=1) / unit**2
    if not np.isfinite(square).all():
        return np.inf, 0.0
    size = float(np.sqrt(square.mean()))
    return size, float(square.std(ddof=1) / np.sqrt(len(square)) / (2 * max(size, 1e-300)))


def unit_of(name, frame):
    sd = frame["x"].std()
    units = {"variance": sd**2, "histogram": 1, "counts by group": 1, "correlation": 1, "sum": sd * len(frame)}
    return units.get(name, frame["y"].std() / sd if name == "slope" else sd)


def without_noise(frame, ranges, rng):
    """Values of halves without noise: no method that trains on a half errs less."""
    values = {}
    for name, text in ASKED.items():
        statistic = parse("mean(x)" if name == "sum" else text)
        if not can_be_halved(statistic):
            continue
        columns = [np.clip(frame[c].to_numpy(dtype=float), *ranges[c]) for c in statistic.columns]
        table, algorithm, n = np.column_stack(columns), OfRecords(statistic), len(frame)
        halves = (algorithm(table[rng.permutation(n)[: n // 2]]) for _ in range(DRAWS))
        values[name] = [half[-1:] * (n if name == "sum" else 1) for half in halves]
    return values


def measured(place, frame, ranges, eta, args):
    """Errors (size, standard error) of each method at one η, and how often auto took a half."""
    rng = np.random.default_rng([1, *place.encode(), round(1e6 * eta)])
    epsilon, mu = float(np.log((0.5 + eta) / (0.5 - eta))), 2 * float(ndtri(0.5 + eta))
    small = len(frame) <= SMALL
    names, draws = args.statistics or list(ASKED), max(DRAWS, args.repeats)
    options = {"bound": "direct"}
    direct = of_halves(frame, ranges, eta, options, rng, names, draws) if small else {}

    @cache
    def half(name):  # the large tables make one where auto turns to it
        return direct.get(name) if small else of_halves(frame, ranges, eta, options, rng, [name], draws).get(name)

    auto, turned = automatic(frame, ranges, eta, args.repeats, half, names)
    printed = {"noise": "published", "moment": 6.0, "reproduce": True, "n_resamples": 48}
    found = {
        "auto": auto,
        "direct": alone(direct),
        "half": {} if small else without_noise(frame, ranges, rng),
        "published": alone(of_halves(frame, ranges, eta, printed, rng, names, draws)),
        "gaussian": plain(frame, ranges, lambda _, l2, size, r: r.normal(0, l2 / mu, size), draws, rng),
        "laplace": plain(frame, ranges, lambda l1, _, size, r: r.laplace(0, l1 / epsilon, size), draws, rng),
        "opendp": opendp_mean(frame, ranges, epsilon, args.repeats),
        "diffprivlib": theirs(frame, ranges, [epsilon], args.repeats, args.diffprivlib)[epsilon]
        if args.diffprivlib
        else {},
    }
    truth = truths(frame, ranges)
    errors = {
        name: {m: error(found[m][name], truth[name], unit_of(name, frame)) for m in METHODS if name in found[m]}
        for name in names
    }
    return {"errors": errors, "turned": turned, "repeats": args.repeats}


def kept(place, frame, ranges, eta, args):
    """The same from its file, which is made first if it is not there."""
    path = args.parts / f"{place.replace(' ', '-')}-{eta:g}.json"
    if not path.exists():
        made = measured(place, frame, ranges, eta, args)
        path.with_suffix(".part").write_text(json.dumps(made))
        path.with_suffix(".part").replace(path)
        print(f"{place}, η = {eta:g} done", file=sys.stderr, flush=True)
    return json.loads(path.read_text())


def compact(args):
    """One cell for each statistic, η and data set: the error of auto / the least of the others and whose it is."""
    names = ["breast cancer", "diabetes", "adult", "heavy tails"]
    lines = [f"| auto / best of the others | η | {' | '.join(names)} |", "|---" * 6 + "|"]
    for name in ASKED:
        for eta in args.etas:
            cells = []
            for place in names:
                path = args.parts / f"{place.replace(' ', '-')}-{eta:g}.json"
                errors = json.loads(path.read_text())["errors"].get(name) if path.exists() else {}
                cells.append("–" if not errors else _cell(errors))
            lines.append(f"| {name} | {eta:g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(errors):
    own = f"{errors['auto'][0]:.3g}" if np.isfinite(errors["auto"][0]) else "withheld"
    rest = {m: e[0] for m, e in errors.items() if m not in ("auto", "half") and np.isfinite(e[0])}
    best = min(rest, key=rest.get, default=None)
    return f"{own} / –" if best is None else f"{own} / {rest[best]:.3g} {best}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--parts", type=Path, required=True)
    parser.add_argument("--only", nargs="+", default=None, help="Names of data sets.")
    parser.add_argument("--etas", type=float, nargs="+", default=[0.02, 0.05, 0.1, 0.2])
    parser.add_argument("--statistics", nargs="+", choices=list(ASKED), default=None, metavar="NAME")
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--diffprivlib", default=None)
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--compact", action="store_true", help="Print auto / best of the others from finished parts.")
    args = parser.parse_args()
    if args.compact:
        print(compact(args))
        return 0
    args.parts.mkdir(parents=True, exist_ok=True)
    lines, worse = [], []
    for place, (frame, ranges) in data_sets(args.data).items():
        if args.only and place not in args.only:
            continue
        lines += [
            f"\n**{place}, n = {len(frame):,}**\n",
            f"| statistic | η | {' | '.join(METHODS)} | auto / best of the others | halves |",
            "|---" * 12 + "|",
        ]
        parts = {eta: kept(place, frame, ranges, eta, args) for eta in args.etas}
        for name in args.statistics or ASKED:
            for eta, part in parts.items():
                errors = part["errors"][name]
                cells = [f"{errors[m][0]:.3g} ± {errors[m][1]:.1g}" if m in errors else "–" for m in METHODS]
                best = min((tuple(e) for m, e in errors.items() if m not in ("auto", "half")), default=(np.inf, 0.0))
                own = errors["auto"]
                verdict = f"{own[0] / best[0]:.2f}" if np.isfinite(own[0]) and 0 < best[0] < np.inf else "–"
                if own[0] == best[0] == 0:
                    verdict = "1.00"
                elif min(own[0], best[0]) > HOPELESS and name not in ("histogram", "counts by group"):
                    verdict = "no answer"
                elif own[0] > 1.05 * best[0] and not own[0] - 1.05 * best[0] <= 3 * np.hypot(own[1], best[1]):
                    worse.append((name, place, eta, own[0] / best[0] if best[0] > 0 else np.inf))
                    verdict = f"**{verdict}**"
                turned = f"{part['turned'][name] / part['repeats']:.0%}"
                row = f"| {name} | {eta:g} | {' | '.join(cells)} | {verdict} | {turned} |"
                lines.append(row.replace("inf ± 0", "withheld"))
    if args.out is not None:
        args.out.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    for name, place, eta, ratio in worse:
        print(f"worse than the best: {name}, {place}, η = {eta:g}: {ratio:.2f} times", file=sys.stderr)
    return int(bool(worse))


if __name__ == "__main__":
    sys.exit(main())
