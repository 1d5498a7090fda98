"""Errors of released statistics at one membership target: this library, plain noise, OpenDP, diffprivlib.

Everybody gets the same public ranges and the same η in the game where "out" means replaced by another record of the
range: ε = log((½+η)/(½−η)) for pure DP, which no ε-DP mechanism exceeds, and μ = 2Φ⁻¹(½+η) for Gaussian DP. Errors are
root mean squares against the value on all records, in units of the column's standard deviation (counts: records),
± standard error.

* auto: ``release_statistics(bound="auto")``: noise on all records, and a secret half where that answer says that it is
  mostly noise, joined with that answer where it can be. direct: ``bound="direct"``, the half alone, up to 1,000
  records; beyond, *half* is the error of a half without any noise, which is below that of every method that trains on
  one. published: Izzo Corollary 10, M = 6, a half, no guarantee. Those of a half keep another promise (who is in it).
* laplace, gaussian: independent noise of one size on the sums that a statistic needs, for their L1 or L2 sensitivity.
* opendp: its own mean (bounded, of known size) with Laplace noise.
* diffprivlib: its own mean, sum, var, std, median, quantile, histogram, LinearRegression. It runs in an interpreter of
  its own (``--diffprivlib PYTHON``), as it pins other versions.

Answers of auto and direct are what the public call returns, but that the certificate of a half, which fixes the noise
and may take minutes, is made once for a statistic and not at each release: halves and noise are drawn anew, from the
algorithm, table and options that the library itself hands to ``release``.

Release number i of auto, direct and gaussian share their draws: the half with its noise, and the standard normals that
the library added to its sums. So their errors are compared pair by pair, and those of the same answer do not differ at
all. The others are compared with independent draws.

The script fails if auto is worse than the best of all others by more than 5 % and by more than three standard errors
(of some 190 comparisons five would be worse by two of them by chance). Where nobody's error is below half a standard
deviation there is no answer to compare, and the table says so.

Each cell (data set, η, statistic) is kept in a file of its own under ``--parts``, so a run that was stopped goes on
where it was; ``--compact`` prints what is there, ``--into docs/release_benchmark.md`` puts it into that table.

    python benchmarks/noise/statistics_table.py --data FOLDER --parts FOLDER [--etas 0.02 0.05 0.1 0.2] [--repeats 60]
        [--only NAME …] [--statistics NAME …] [--diffprivlib PYTHON] [--out table.md]
        [--compact] [--into PAGE]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from rivals import DRAWS, opendp_mean, plain, published, theirs, without_noise
from scipy.special import ndtri

import deniable as dn
from deniable.noise.tabulation import halves, parse, releasing
from deniable.noise.tabulation.halves import can_be_halved

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
PLACES = ["breast cancer", "diabetes", "adult", "heavy tails"]
HOPELESS = 0.5  # an error of so many standard deviations answers nothing
KNOWN = 0.005  # a ratio with a smaller standard error needs no more draws
SMALL = 1000  # records up to which a direct certificate is made
METHODS = ["auto", "direct", "half", "published", "gaussian", "laplace", "opendp", "diffprivlib"]


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


@contextmanager
def certified_once(made):
    """Let releases of a half find their certificate in ``made``; yield the draws that the next release is to take.

    What the library hands to ``release`` is handed on, once; then halves and noise are drawn. The standard normals that
    are added to sums over all records are appended to ``draws["normals"]``.
    """
    draws = {"half": None, "normals": []}
    certify, add = halves.release, releasing.add_rounded_gaussian

    def release(algorithm, table, **options):
        if "half" not in made:
            try:
                made["half"] = certify(algorithm, table, **{**options, "rng": 0})
            except dn.InputError as error:
                made["half"] = error
        found, rng = made["half"], draws["half"]
        if isinstance(found, Exception):
            raise found
        rows = np.sort(rng.permutation(found.certificate.n_records)[: found.certificate.n_train])
        part = tuple(each[rows] for each in table) if isinstance(table, tuple) else table[rows]
        value = np.asarray(algorithm(part))
        return replace(found, value=value + rng.normal(size=value.shape) * found.noise_scale)

    def noised(values, scale, **options):
        out = add(values, scale, **options)
        draws["normals"].append(np.ravel((out - values) / scale))
        return out

    with mock.patch.object(halves, "release", release), mock.patch.object(releasing, "add_rounded_gaussian", noised):
        yield draws


def released(frame, ranges, eta, name, bound, repeats, seed, made):
    """Values of our releases of one statistic, how many are of a half, and the normals on sums over all records."""
    values, turned, normals = [], 0, []
    with certified_once(made) as draws:
        for i in range(repeats):
            draws.update(half=np.random.default_rng([*seed, i]), normals=[])
            try:
                found = dn.release_statistics(frame, ASKED[name], eta=eta, ranges=ranges, bound=bound, rng=0)
            except dn.InputError:
                return None, 0, []
            numbers = [row.value for row in found.rows[0]]
            values.append(numbers[-1 if name == "slope" else 0 :])
            turned += found.certificate.n_train < found.certificate.n_records
            normals.append(draws["normals"][0] if draws["normals"] else np.zeros(0))
    return values, turned, normals


def paired_normals(name, normals, draws, rng):
    """Standard normals ``(draws, k)`` on k sums: those that the library drew, release by release, then fresh ones."""

    def of(k):
        out = rng.normal(size=(draws, k))
        for row, found in zip(out, normals, strict=False):
            ours = found.reshape(2, -1)[:, :2].T.ravel() if name == "means by group" else found
            row[: min(k, ours.size)] = ours[:k]
        return out

    return of


def squares(values, truth, unit):
    """Mean squared error of each release in squared units; infinite where a value was withheld."""
    square = np.mean((np.asarray(values, dtype=float) - np.asarray(truth)) ** 2, axis=1) / unit**2
    return np.where(np.isfinite(square), square, np.inf)


def error(square):
    """Root mean square error ± its standard error; releases without a value make it infinite."""
    if not np.isfinite(square).all():
        return np.inf, 0.0
    size = float(np.sqrt(square.mean()))
    return size, float(square.std(ddof=1) / np.sqrt(len(square)) / (2 * max(size, 1e-300)))


def ratio(own, other, paired):
    """Root of the ratio of the means ± its standard error, from pairs if they tell more than all draws."""
    if not (np.isfinite(own).all() and np.isfinite(other).all() and own.mean() > 0 and other.mean() > 0):
        return (1.0, 0.0) if own.mean() == other.mean() == 0 else (np.nan, np.nan)
    a, b = own / own.mean(), other / other.mean()
    r = float(np.sqrt(own.mean() / other.mean()))
    found = [(r, r / 2 * float(np.hypot(a.std(ddof=1) / len(a) ** 0.5, b.std(ddof=1) / len(b) ** 0.5)))]
    k = min(len(own), len(other))
    if paired and other[:k].mean() > 0:
        r = float(np.sqrt(own[:k].mean() / other[:k].mean()))
        apart = own[:k] / own[:k].mean() - other[:k] / other[:k].mean()
        found.append((r, r / 2 * float(apart.std(ddof=1)) / k**0.5))
    return min(found, key=lambda one: one[1])


def unit_of(name, frame):
    sd = frame["x"].std()
    units = {"variance": sd**2, "histogram": 1, "counts by group": 1, "correlation": 1, "sum": sd * len(frame)}
    return units.get(name, frame["y"].std() / sd if name == "slope" else sd)


def measured(place, frame, ranges, eta, name, args):
    """Squared errors of each method, and how often auto took a half."""
    began = time.process_time()
    seed = [1, *place.encode(), *name.encode(), round(1e6 * eta)]
    rng = np.random.default_rng(seed)
    epsilon, mu = float(np.log((0.5 + eta) / (0.5 - eta))), 2 * float(ndtri(0.5 + eta))
    made = {}
    draws = max(DRAWS, args.repeats)
    auto, turned, normals = released(frame, ranges, eta, name, "auto", args.repeats, seed, made)
    found = {"auto": auto, "published": published(frame, ranges, eta, name, ASKED[name], rng)}
    if len(frame) > SMALL:
        found["half"] = without_noise(frame, ranges, name, ASKED[name], rng)
    elif can_be_halved(parse(ASKED[name])):
        found["direct"] = released(frame, ranges, eta, name, "direct", args.repeats, seed, made)[0]
    same = paired_normals(name, normals, draws, rng)
    found["gaussian"] = plain(frame, ranges, lambda _, l2, k: same(k) * l2 / mu).get(name)
    found["laplace"] = plain(frame, ranges, lambda l1, _, k: rng.laplace(0, l1 / epsilon, (draws, k))).get(name)
    if name == "mean":
        found["opendp"] = opendp_mean(frame, ranges, epsilon, args.repeats)
    if args.diffprivlib:
        found["diffprivlib"] = of_diffprivlib(place, frame, ranges, eta, args).get(name)
    truth, unit = truths(frame, ranges)[name], unit_of(name, frame)
    kept = {m: squares(values, truth, unit).tolist() for m, values in found.items() if values is not None}
    return {"squares": kept, "turned": turned, "repeats": args.repeats, "seconds": time.process_time() - began}


def of_diffprivlib(place, frame, ranges, eta, args):
    """What diffprivlib returned, kept for a data set and η."""
    path = args.parts / f"diffprivlib-{place.replace(' ', '-')}-{eta:g}.json"
    if not path.exists():
        epsilon = float(np.log((0.5 + eta) / (0.5 - eta)))
        path.write_text(json.dumps(theirs(frame, ranges, [epsilon], args.repeats, args.diffprivlib)[epsilon]))
    return json.loads(path.read_text())


def part_of(place, eta, name, args):
    return args.parts / f"{place}-{eta:g}-{name}.json".replace(" ", "-")


def kept(place, frame, ranges, eta, name, args):
    """Make the cell's file if it is not there."""
    path = part_of(place, eta, name, args)
    if not path.exists():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = measured(place, frame, ranges, eta, name, args)
        path.with_suffix(".part").write_text(json.dumps(made))
        path.with_suffix(".part").replace(path)
        print(f"{place}, η = {eta:g}, {name}: {made['seconds']:.0f} s", file=sys.stderr, flush=True)


class Cell:
    """A finished cell: its errors, and auto beside the best of the others."""

    def __init__(self, path, name):
        made = json.loads(path.read_text())
        square = {m: np.array(values) for m, values in made["squares"].items()}
        self.errors = {m: error(values) for m, values in square.items()}
        self.halves = f"{made['turned'] / made['repeats']:.0%}"
        rest = {m: e[0] for m, e in self.errors.items() if m not in ("auto", "half") and np.isfinite(e[0])}
        self.best = min(rest, key=rest.get, default=None)
        self.own = self.errors["auto"][0]
        least = rest.get(self.best, np.inf)
        self.hopeless = min(self.own, least) > HOPELESS and name not in ("histogram", "counts by group")
        self.ratio = (np.nan, np.nan)
        if self.best is not None:
            self.ratio = ratio(square["auto"], square[self.best], self.best in ("direct", "gaussian"))

    @property
    def worse(self):
        """Whether auto is worse than the best by more than 5 % and by more than three standard errors."""
        return not self.hopeless and self.ratio[0] > 1.05 + 3 * self.ratio[1]

    def verdict(self):
        if self.hopeless:
            return "no answer"
        if not np.isfinite(self.ratio[0]):
            return "0 of others" if self.own > 0 and self.best else "–"
        text = f"{self.ratio[0]:.2f} ± {self.ratio[1]:.2f}"
        return f"**{text}**" if self.worse else text

    def short(self):
        """The error of auto / that of the best of the others; over the same draws where they are compared in pairs."""
        own = f"{self.own:.3g}" if np.isfinite(self.own) else "withheld"
        if self.best is None:
            return f"{own} / –"
        r = self.ratio[0]
        least = self.own / r if np.isfinite(r) and not self.hopeless else self.errors[self.best][0]
        return f"{own} / {least:.3g} {self.best}"


def compact(args):
    """One cell for each statistic, η and data set: the error of auto / the least of the others and whose it is."""
    lines = [f"| auto / best of the others | η | {' | '.join(PLACES)} |", "|---" * 6 + "|"]
    lines += [f"| {name} | {eta:g} |" + " – |" * len(PLACES) for name in ASKED for eta in args.etas]
    return filled("\n".join(lines), args)


def summary(args):
    """How well the ratios of the finished cells are known, in one paragraph."""
    every = [(place, eta, name) for name in ASKED for eta in args.etas for place in PLACES]
    cells = {where: Cell(path, where[2]) for where in every if (path := part_of(*where, args)).exists()}
    compared = {where: cell for where, cell in cells.items() if not cell.hopeless and np.isfinite(cell.ratio[0])}
    near = [cell.ratio[0] for cell in compared.values() if cell.ratio[1] < KNOWN]
    far = {where: cell for where, cell in compared.items() if cell.ratio[1] >= KNOWN}
    lines = [f"{len(cells)} cells, {len(compared)} compared; {len(near)} ratios known to {KNOWN}"]
    lines[0] += f": {min(near):.3f} to {max(near):.3f}" if near else ""
    for where, cell in sorted(far.items(), key=lambda one: -one[1].ratio[0]):
        lines.append(f"{where[2]}, {where[0]}, {where[1]:g}: {cell.verdict()} {cell.best}, {cell.halves} halves")
    return "\n".join(lines)


def filled(text, args):
    """Put the finished cells into a page with such a table; what was not run stays."""
    lines = text.split("\n")
    for i, line in enumerate(lines):
        cells = [part.strip() for part in line.split("|")[1:-1]]
        if len(cells) != 2 + len(PLACES) or cells[0] not in ASKED:
            continue
        paths = [part_of(place, float(cells[1]), cells[0], args) for place in PLACES]
        new = [Cell(p, cells[0]).short() if p.exists() else old for p, old in zip(paths, cells[2:], strict=True)]
        lines[i] = f"| {' | '.join([*cells[:2], *new])} |"
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--parts", type=Path, required=True)
    parser.add_argument("--only", nargs="+", default=None, help="Names of data sets.")
    parser.add_argument("--etas", type=float, nargs="+", default=[0.02, 0.05, 0.1, 0.2])
    parser.add_argument("--statistics", nargs="+", choices=list(ASKED), default=list(ASKED), metavar="NAME")
    parser.add_argument("--repeats", type=int, default=60)
    parser.add_argument("--diffprivlib", default=None, help="An interpreter that has it.")
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--compact", action="store_true", help="Print auto / best of the others of finished cells.")
    parser.add_argument("--into", type=Path, default=None, help="A page whose compact table gets the finished cells.")
    args = parser.parse_args()
    if args.compact:
        print(compact(args), summary(args), sep="\n\n")
        return 0
    if args.into is not None:
        args.into.write_text(filled(args.into.read_text(), args))
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
        for name in args.statistics:
            for eta in args.etas:
                kept(place, frame, ranges, eta, name, args)
                cell = Cell(part_of(place, eta, name, args), name)
                each = [f"{e[0]:.3g} ± {e[1]:.1g}" if (e := cell.errors.get(m)) else "–" for m in METHODS]
                row = f"| {name} | {eta:g} | {' | '.join(each)} | {cell.verdict()} | {cell.halves} |"
                lines.append(row.replace("inf ± 0", "withheld"))
                if cell.worse:
                    worse.append(f"{name}, {place}, η = {eta:g}: {cell.verdict()} times {cell.best}")
    if args.out is not None:
        args.out.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    for text in worse:
        print(f"worse than the best: {text}", file=sys.stderr)
    return int(bool(worse))


if __name__ == "__main__":
    sys.exit(main())
