"""Data that are hard to fit privately, beside rivals and thirty lines of noisy gradient descent: results/hard.md.

    python benchmarks/training/hard.py deniable|thirty_lines|opacus|diffprivlib|interpret_dp_ebm [part of a set's name]

Each method runs in its own environment, writes results/hard_METHOD.json and puts the table together anew.

The thirty lines are full-batch gradient descent on a linear model, 100 steps, residuals clipped at 1, exact accounting.
They are told for nothing each column's mean and standard deviation, the number of records, and a regression's median
and spread. They and the rivals get the best of their settings, chosen by held-out score on the first draw. deniable
runs with its defaults. Means over five draws of the data; accuracy and AUC, or R², or (counts) the share of deviance
explained. Counts are regressions for the rivals, which have no Poisson loss.
"""

import importlib
import json
import sys
import warnings

import numpy as np
from hard_data import SETS, drawn
from harness import RESULTS, gdp
from sklearn.metrics import accuracy_score, d2_tweedie_score, r2_score, roc_auc_score

DRAWS, STEPS, LENGTHS = 5, 100, (1.0, 4.0, 16.0)
ADVANTAGES = (0.1, 0.462)
METHODS = {
    "deniable": "deniable",
    "thirty_lines": "thirty lines",
    "opacus": "Opacus",
    "diffprivlib": "diffprivlib",
    "interpret_dp_ebm": "DP-EBM",
    "constant": "a constant",
}
MODULES = {"opacus": "run_opacus", "diffprivlib": "run_diffprivlib", "interpret_dp_ebm": "run_interpret"}


def descended(X, y, X_new, kind, mu, length, rng):
    mean, spread, width = X.mean(axis=0), X.std(axis=0) + 1e-12, np.sqrt(X.shape[1])

    def rows(A):
        A = np.column_stack([np.clip((A - mean) / spread, -4, 4) / width, np.ones(len(A))]) / np.sqrt(2)
        return A / np.maximum(np.linalg.norm(A, axis=1), 1)[:, None]

    centre, unit = 0.0, float(y.mean())
    if kind == "numbers":
        centre, unit = float(np.median(y)), max(float(np.quantile(y, 0.84) - np.quantile(y, 0.16)) / 2, 1e-9)
    aim = np.eye(y.max() + 1)[y] if kind == "classes" else ((y - centre) / unit)[:, None]

    def link(S):
        if kind == "classes":
            P = np.exp(S - S.max(axis=1, keepdims=True))
            return P / P.sum(axis=1, keepdims=True)
        return S if kind == "numbers" else np.exp(np.minimum(S, 10))

    A, w, total = rows(X), np.zeros((X.shape[1] + 1, aim.shape[1])), 0.0
    for step in range(STEPS):
        left = link(A @ w) - aim
        left *= np.minimum(1, 1 / np.maximum(np.linalg.norm(left, axis=1), 1e-12))[:, None]
        w = w - length / len(y) * (A.T @ left + rng.normal(0, np.sqrt(STEPS) / mu, w.shape))
        total = total + w * (step >= STEPS // 2)
    found = link(rows(X_new) @ (total / (STEPS - STEPS // 2)))
    return found if kind == "classes" else centre + unit * found[:, 0]


def thirty_lines(data, kind, train, test, advantage, length, draw):
    X, y = data.X.to_numpy(), data.y
    rng = np.random.default_rng([draw, 2])
    return descended(X[train], y[train], X[test], kind, gdp(advantage), length, rng)


def deniable(data, kind, train, test, advantage, _, draw):
    import deniable as dn

    X, y, X_new = data.X.iloc[train], data.y[train], data.X.iloc[test]
    if kind == "classes":
        return dn.PrivateClassifier(advantage=advantage, classes=range(data.y.max() + 1)).fit(X, y).predict_proba(X_new)
    loss = "squared" if kind == "numbers" else "poisson"
    return dn.PrivateRegressor(advantage=advantage, loss=loss).fit(X, y).predict(X_new)


def constant(data, kind, train, test, *_):
    y = data.y[train]
    return np.tile(np.bincount(y, minlength=data.y.max() + 1), (len(test), 1)) if kind == "classes" else y.mean()


def of_rival(module):
    def found(data, kind, train, test, advantage, parameters, draw):
        prediction, probability, classes = module.fit(data, train, test, advantage, parameters, draw)
        if kind != "classes":
            return prediction
        out = np.zeros((len(test), data.y.max() + 1))
        out[:, np.asarray(classes, dtype=int)] = probability
        return out

    return found


def scored(kind, y, found):
    if kind == "classes":
        aucs = [roc_auc_score(y == c, found[:, c]) for c in range(found.shape[1]) if 0 < (y == c).sum() < len(y)]
        return [accuracy_score(y, found.argmax(axis=1)), float(np.mean(aucs))]
    found = np.broadcast_to(np.nan_to_num(np.clip(found, -1e9, 1e9)), y.shape)
    return [r2_score(y, found) if kind == "numbers" else d2_tweedie_score(y, np.maximum(found, 1e-9), power=1)]


def measure(method, name, advantage):
    """Scores of the best setting on all draws, or None where the method does not take the data."""
    module = importlib.import_module(MODULES[method]) if method in MODULES else None
    data, *_ = drawn(name, 0)
    grid = {"": None} if module is None else module.settings(data)
    if method == "thirty_lines":
        grid = {str(length): length for length in LENGTHS}
    if not grid:
        return None
    fit = (
        of_rival(module)
        if module
        else {"thirty_lines": thirty_lines, "deniable": deniable, "constant": constant}[method]
    )

    def one(setting, draw):
        data, kind, train, test = drawn(name, draw)
        return scored(kind, data.y[test], fit(data, kind, train, test, advantage, grid[setting], draw))

    first = {setting: one(setting, 0) for setting in grid}
    best = max(first, key=lambda setting: sum(first[setting]))
    return [first[best], *(one(best, draw) for draw in range(1, DRAWS))]


def cell(scores):
    if scores is None:
        return "–"
    mean = np.mean(scores, axis=0)
    return " / ".join(f"{value:.3f}" if value > -10 else "below −10" for value in mean)


def read(method):
    """What was measured so far: {"name | advantage": scores of each draw, or None}."""
    path = RESULTS / f"hard_{method}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def table():
    """The table of all results."""
    found = {method: lines for method in METHODS if (lines := read(method))}
    out = ["| data | advantage | " + " | ".join(METHODS[m] for m in found) + " |\n" + "|---" * (len(found) + 2) + "|\n"]
    for name in SETS:
        for advantage in ADVANTAGES:
            cells = [cell(lines.get(f"{name} | {advantage}")) for lines in found.values()]
            out.append(f"| {name} | {advantage} | {' | '.join(cells)} |\n")
    return "".join([*out, "\nWhere a rival's mean is ahead of deniable's:\n\n", *ahead(found)])


def ahead(found):
    """One line per data set and advantage: the rivals whose mean is above deniable's, by how much."""
    ours = {key: np.mean(scores, axis=0) for key, scores in found.get("deniable", {}).items()}
    for key in (f"{name} | {advantage}" for name in SETS for advantage in ADVANTAGES):
        gaps = {
            METHODS[method]: np.mean(lines[key], axis=0) - ours[key]
            for method, lines in found.items()
            if method != "deniable" and key in ours and lines.get(key)
        }
        said = [f"{m} {' / '.join(f'{gap:+.3f}' for gap in g)}" for m, g in gaps.items() if g.max() > 0]
        if said:
            yield f"- {key.replace(' | ', ', advantage ')}: {'; '.join(said)}\n"


def main() -> None:
    warnings.simplefilter("ignore")
    method, part = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    for name in (name for name in SETS if part in name):
        for advantage in ADVANTAGES:
            for which in (method, "constant") if method == "deniable" else (method,):
                lines = read(which)
                lines[f"{name} | {advantage}"] = scores = measure(which, name, advantage)
                print(name, advantage, which, cell(scores), flush=True)
                (RESULTS / f"hard_{which}.json").write_text(json.dumps(lines, indent=1))
    (RESULTS / "hard.md").write_text(table())


if __name__ == "__main__":
    main()
