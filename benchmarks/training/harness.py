"""Splits, scores, conversions of the target and a resumable record of results: what all runners share.

Every runner is a script ``run_*.py`` with a list of settings for each data set and a function that fits one of them:

    python benchmarks/training/run_interpret.py --data adult --splits 10

Each result is one JSON line under benchmarks/training/results/; what is there already is not run again. A rival with
several settings is given its best one, by held-out score, at each data set and advantage: settings are compared on
splits 0 and 1, and the best of them runs on all ten. That is in the rival's favour (nobody may choose
by held-out data for free), and it is said in the table. None of this imports deniable.
"""

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from data import LOADERS, Dataset, load
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtri
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score
from sklearn.model_selection import train_test_split

RESULTS = Path(__file__).parent / "results"
ADVANTAGES = (0.1, 0.2, 0.462)
EXPLORED = 2  # splits on which a rival's settings are compared
SPLITS, FEWER = 10, {"places": 3}  # places: one fit takes ten seconds; settings are compared on split 0
REPEATS = {"breast_cancer": 5, "small": 5, "digits": 5}  # fits with fresh noise a split; scores are averaged
DELTA = 1e-6


# Conversions: one game for all, adding or removing one record.
def gdp(advantage: float) -> float:
    """μ of Gaussian DP whose best attacker has this advantage: 2Φ(μ/2) − 1 = a."""
    return float(2 * ndtri((1 + advantage) / 2))


def pure(advantage: float) -> float:
    """ε of pure DP whose best attacker has this advantage: (e^ε − 1)/(e^ε + 1) = a."""
    return float(np.log((1 + advantage) / (1 - advantage)))


def gdp_delta(epsilon: float, mu: float) -> float:
    """δ(ε) of μ-GDP (Dong, Roth and Su, corollary 1)."""
    return float(np.exp(log_ndtr(mu / 2 - epsilon / mu)) - np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu)))


def gdp_mu(epsilon: float, delta: float) -> float:
    """The μ whose δ(ε) is δ."""
    return float(brentq(lambda mu: gdp_delta(epsilon, mu) - delta, 1e-3, 50, xtol=1e-12))


# Features for rivals that need numbers.
def encode(data: Dataset, train: np.ndarray, scaling: str) -> np.ndarray:
    """One-hot categories, blanks filled in, scaled: by statistics of the training part that the rival gets for free.

    ``scaling="standard"``: mean 0, variance 1, clipped at ±4. ``"range"``: the declared range to [0, 1].
    Categories in less than 0.5 % of the records share a column (ids and dates would be a column each).
    """
    parts = []
    for name, column in data.X.items():
        if pd.api.types.is_numeric_dtype(column):
            values = column.to_numpy(dtype=float)
            known = values[train][~np.isnan(values[train])]
            centre = float(np.median(known)) if known.size else 0.0
            values = np.where(np.isnan(values), centre, values)
            if scaling == "standard":
                values = np.clip((values - values[train].mean()) / (values[train].std() or 1.0), -4, 4)
            else:
                low, high = data.ranges[name]
                values = (values - low) / ((high - low) or 1.0)
            parts.append(values[:, None])
        else:
            text = column.astype(object).where(column.notna(), "missing").astype(str)
            frequent = text.iloc[train].value_counts(normalize=True)
            kept = list(frequent.index[frequent >= 0.005])
            parts.append(np.column_stack([text == value for value in kept] + [~text.isin(kept)]).astype(float))
    return np.hstack(parts)


def scores(
    data: Dataset, truth: np.ndarray, prediction: np.ndarray, probability: Any, classes: Any
) -> dict[str, float]:
    """Accuracy, AUC and calibration error (macro, one against the rest) and log loss, or R².

    ``ece_calibrated`` is the calibration error of a model whose chances are right, on as many records: finite tests
    alone make it that large.
    """
    if data.task == "regression":
        return {"r2": float(r2_score(truth, prediction))}
    result = {"accuracy": float(accuracy_score(truth, prediction))}
    if len(classes) == 2:
        result["auc"] = float(roc_auc_score(truth == classes[1], probability[:, 1]))
    else:
        aucs = [roc_auc_score(truth == c, probability[:, k]) for k, c in enumerate(classes) if (truth == c).any()]
        result["auc"] = float(np.mean(aucs))
    chances = np.maximum(probability, 1e-6)
    which = np.searchsorted(classes, truth)
    result["log_loss"] = float(-np.log(chances[np.arange(len(truth)), which]).mean())
    rng, kept = np.random.default_rng(0), range(len(classes) == 2, len(classes))
    drawn = (probability.cumsum(axis=1) < rng.random((len(truth), 1))).sum(axis=1)
    for name, label in (("ece", which), ("ece_calibrated", drawn)):
        result[name] = float(np.mean([calibration_error(label == k, probability[:, k]) for k in kept]))
    return result


def calibration_error(truth: np.ndarray, chances: np.ndarray, parts: int = 10) -> float:
    """How far chances are off on average, in ten parts of as many records each, by the size of the chance."""
    split = np.array_split(np.argsort(chances, kind="stable"), parts)
    return float(sum(part.size * abs(truth[part].mean() - chances[part].mean()) for part in split if part.size)) / len(
        truth
    )


def goal(line: dict[str, Any]) -> float:
    """What settings are compared by: accuracy plus AUC, or R²."""
    return line["r2"] if "r2" in line else line["accuracy"] + line["auc"]


def read(method: str | None = None) -> list[dict[str, Any]]:
    """All results, or those of one method."""
    files = sorted(RESULTS.glob("*.jsonl")) if method is None else [RESULTS / f"{method}.jsonl"]
    return [json.loads(line) for path in files if path.exists() for line in path.read_text().splitlines()]


Fit = Callable[[Dataset, np.ndarray, np.ndarray, float, Any, int], tuple[np.ndarray, Any, Any]]


def run(
    method: str,
    settings: Callable[[Dataset], dict[str, Any]],
    fit: Fit,
    arguments: Iterable[str] | None = None,
    defaults: Iterable[str] = tuple(LOADERS),
    takes_advantage: bool = True,
    draws: Mapping[str, int] = REPEATS,
) -> None:
    """Run the grid that the command line asks for; ``fit`` returns predictions, probabilities and classes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", nargs="+", default=list(defaults), choices=list(LOADERS))
    parser.add_argument("--advantage", nargs="+", type=float, default=list(ADVANTAGES))
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--again", action="store_true", help="forget earlier results of this method on these data")
    parser.add_argument("--dry", action="store_true", help="run again, keep nothing, and print means")
    options = parser.parse_args(None if arguments is None else list(arguments))
    RESULTS.mkdir(exist_ok=True)
    path = Path(os.devnull) if options.dry else RESULTS / f"{method}.jsonl"
    done = [] if options.dry else read(method)
    if options.again:
        done = [line for line in done if line["data"] not in options.data]
        path.write_text("".join(json.dumps(line) + "\n" for line in done))
    known = {(line["data"], line["advantage"], line["split"], line["setting"]): line for line in done}

    def one(
        data: Dataset, advantage: float, split: int, name: str, parameters: Any, repeats: int = 1
    ) -> dict[str, Any]:
        key = (data.name, advantage, split, name)
        if key in known and known[key].get("repeats", 1) >= repeats:
            return known[key]
        rows = np.arange(len(data.y))
        train, test = train_test_split(rows, test_size=0.25, random_state=split)
        start, cpu = time.perf_counter(), time.process_time()
        line: dict[str, Any] = {"method": method, "data": data.name, "advantage": advantage, "split": split}
        line["setting"] = name
        found = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for repeat in range(repeats):
                prediction, probability, classes = fit(data, train, test, advantage, parameters, split + 1000 * repeat)
                found.append(scores(data, data.y[test], prediction, probability, classes))
        line |= {score: float(np.mean([each[score] for each in found])) for score in found[0]}
        seconds, cpu_seconds = (time.perf_counter() - start) / repeats, (time.process_time() - cpu) / repeats
        line |= {"seconds": round(seconds, 3), "cpu_seconds": round(cpu_seconds, 3), "repeats": repeats}
        text = json.dumps(line) + "\n"
        if key in known:  # explored with fewer repeats: replaced
            text = path.read_text().replace(json.dumps(known[key]) + "\n", text)
        with path.open("w" if key in known else "a") as out:
            out.write(text)
        known[key] = line
        print(json.dumps(line), flush=True)
        return line

    for dataset in options.data:
        data = load(dataset)
        grid = settings(data)
        splits, explored = FEWER.get(dataset, SPLITS), 1 if dataset in FEWER else EXPLORED
        for advantage in options.advantage if takes_advantage else [1.0]:
            best = next(iter(grid), None)
            if len(grid) > 1:
                mean = {
                    name: np.mean([goal(one(data, advantage, s, name, p)) for s in range(explored)])
                    for name, p in grid.items()
                }
                best = max(mean, key=lambda name: mean[name])
            if best is not None:
                repeats, count = draws.get(dataset, 1) if takes_advantage else 1, min(options.splits, splits)
                lines = [one(data, advantage, split, best, grid[best], repeats) for split in range(count)]
                if options.dry:
                    for score in ("accuracy", "auc", "log_loss", "ece", "ece_calibrated", "r2"):
                        found = np.array([line[score] for line in lines if score in line])
                        if len(found) > 1:
                            error = found.std(ddof=1) / np.sqrt(len(found))
                            print(f"{dataset}, advantage {advantage:g}, {score}: {found.mean():.4f} ± {error:.4f}")
