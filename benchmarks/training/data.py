"""The data sets of the benchmark, as people have them: a frame with strings and blanks, a target, nothing encoded.

Imports nothing of deniable, so that every rival's environment can load it.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn import datasets

DATA = Path(os.environ.get("DENIABLE_DATA", Path(__file__).resolve().parents[3] / "shared" / "datasets"))


@dataclass(frozen=True)
class Dataset:
    """Records, target and what a rival without private ranges has to be told."""

    name: str
    X: pd.DataFrame
    y: np.ndarray
    task: str  # "classification" | "regression"

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Smallest and largest value of each numeric column, read off all records: free information for rivals."""
        numeric = self.X.select_dtypes("number")
        return {c: (float(numeric[c].min()), float(numeric[c].max())) for c in numeric}

    @property
    def declared(self) -> dict[str, tuple[float, float]] | None:
        """Ranges that are known without looking: the 17 grey levels of the digits."""
        return {c: (0.0, 16.0) for c in self.X} if self.name == "digits" else None


def _bundled(loader: Callable, task: str) -> Callable[[str], Dataset]:
    def load(name: str) -> Dataset:
        bunch = loader(as_frame=True)
        frame = bunch.data.copy()
        frame.columns = [str(c) for c in frame]
        return Dataset(name, frame, bunch.target.to_numpy(), task)

    return load


def _adult(name: str) -> Dataset:
    table = pd.read_parquet(DATA / "adult.parquet").drop(columns="split")
    frame = table.drop(columns="income")
    for column in frame.columns.difference(frame.select_dtypes("number").columns):
        text = frame[column].astype(object)
        frame[column] = text.where(~text.isin(["?", ""]), None)
    return Dataset(name, frame, (table["income"].str.startswith(">50K")).to_numpy().astype(int), "classification")


def _labels(score: np.ndarray, rng: np.random.Generator, names=("no", "yes")) -> np.ndarray:
    return np.where(rng.random(score.size) < 1 / (1 + np.exp(-score)), names[1], names[0])


def _places(name: str) -> Dataset:
    """Location30: 446 flags of places and kinds of places that a person has been to; 30 groups of persons."""
    with np.load(DATA / "location30.npz") as stored:
        x, y = stored["x"].astype(int), stored["y"].astype(int)
    return Dataset(name, pd.DataFrame(x, columns=[f"place_{j}" for j in range(x.shape[1])]), y, "classification")


def _skewed(name: str) -> Dataset:
    """Incomes, counts and waiting times: lognormal and Pareto columns whose logarithms matter; 5 % missing."""
    rng = np.random.default_rng(101)
    n, d = 12_000, 14
    latent = rng.normal(size=(n, d)) @ np.linalg.cholesky(0.7 * np.eye(d) + 0.3).T
    frame = pd.DataFrame({f"amount_{j}": np.exp((1 + j % 3) * latent[:, j]) * 10.0 ** (j % 5 - 1) for j in range(d)})
    frame["count"] = rng.poisson(np.exp(latent[:, 0]))
    frame["waiting"] = rng.pareto(1.1, n) * 5
    score = 1.2 * latent[:, 0] - 0.8 * latent[:, 1] + np.where(latent[:, 2] > 0.5, 1.5, -0.5) + 0.5 * latent[:, 5]
    score += 0.4 * np.log1p(frame["waiting"].to_numpy()) - 0.8
    frame = frame.mask(rng.random(frame.shape) < 0.05)
    return Dataset(name, frame, _labels(score, rng), "classification")


def _interactions(name: str) -> Dataset:
    """What no additive model can see: products and exclusive ors beside weak main effects."""
    rng = np.random.default_rng(102)
    n = 20_000
    X = rng.uniform(-1, 1, (n, 10))
    score = 4 * np.sign(X[:, 0] * X[:, 1]) * np.minimum(1, 3 * np.abs(X[:, 0] * X[:, 1])) + 3 * X[:, 2] * X[:, 3]
    score += X[:, 4] + 0.7 * X[:, 5] ** 2 - 0.3
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(10)])
    return Dataset(name, frame, _labels(score, rng), "classification")


def _messy(name: str) -> Dataset:
    """A table as exported: an id, dates as text, a postcode with 300 values, flags, skew, 5 % blanks; 15 % positive."""
    rng = np.random.default_rng(103)
    n = 8_000
    age = rng.gamma(9, 5, n).round()
    income = np.exp(rng.normal(10, 0.8, n)).round(2)
    postcode = rng.zipf(1.3, n) % 300
    effect = rng.normal(0, 0.7, 300)
    region = rng.choice(["north", "south", "east", "west"], n, p=[0.4, 0.3, 0.2, 0.1])
    smoker = rng.choice(["y", "n"], n, p=[0.2, 0.8])
    visits = rng.negative_binomial(1, 0.3, n)
    joined = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 3000, n), "D")
    score = 0.06 * (age - 45) - 0.5 * (np.log(income) - 10) + effect[postcode] + 1.1 * (smoker == "y")
    score += 0.25 * np.minimum(visits, 6) + 0.5 * (region == "east") - 2.9
    frame = pd.DataFrame(
        {
            "id": np.arange(n) + 100_000,
            "age": age,
            "income": income,
            "postcode": [f"P{p:03d}" for p in postcode],
            "region": region,
            "smoker": smoker,
            "visits": visits.astype(float),
            "joined": joined.strftime("%Y-%m-%d").to_numpy(),
            "constant": 1.0,
        }
    )
    blank = rng.random((n, 7)) < 0.05
    for j, column in enumerate(frame.columns[1:8]):
        frame[column] = frame[column].where(~blank[:, j], None if frame[column].dtype == object else np.nan)
    return Dataset(name, frame, _labels(score, rng), "classification")


def _wide(name: str) -> Dataset:
    """Few records, 60 columns of which 8 matter, correlated, three classes."""
    rng = np.random.default_rng(104)
    n, d = 1_500, 60
    X = rng.normal(size=(n, d))
    X[:, 20:] = 0.8 * X[:, rng.integers(0, 20, 40)] + 0.6 * X[:, 20:]
    W = np.zeros((d, 3))
    W[:8] = rng.normal(0, 1.0, (8, 3))
    logits = X @ W + rng.gumbel(size=(n, 3))
    return Dataset(name, pd.DataFrame(X, columns=[f"f{j}" for j in range(d)]), logits.argmax(1), "classification")


def _small(name: str) -> Dataset:
    """240 records, 6 columns: where noise weighs most."""
    rng = np.random.default_rng(105)
    X = rng.normal(size=(240, 6))
    score = 2 * X[:, 0] + X[:, 1] - X[:, 2]
    return Dataset(name, pd.DataFrame(X, columns=list("abcdef")), _labels(score, rng), "classification")


def _houses(name: str) -> Dataset:
    """Prices of 20,000 homes: skewed incomes, rooms, two coordinates with a ridge, a cap on the price."""
    rng = np.random.default_rng(106)
    n = 20_000
    east, north = rng.uniform(-124, -114, n), rng.uniform(32, 42, n)
    income = rng.gamma(3, 1.3, n)
    age = rng.integers(1, 53, n).astype(float)
    rooms = np.exp(rng.normal(1.65, 0.3, n))
    occupancy = np.exp(rng.normal(1, 0.25, n)) + (rng.random(n) < 0.002) * 300
    population = np.exp(rng.normal(7, 0.8, n)).round()
    coast = np.exp(-np.abs(east + 0.8 * (north - 32) + 118) / 1.5)
    price = 0.42 * income + 1.5 * coast + 0.01 * age + 0.15 * np.log(rooms) - 0.5 * np.log(occupancy.clip(1, 10)) + 0.5
    price = np.clip(price * np.exp(rng.normal(0, 0.25, n)), 0.15, 5.0)
    frame = pd.DataFrame(
        {"income": income, "age": age, "rooms": rooms, "population": population, "occupancy": occupancy,
         "latitude": north, "longitude": east}
    )  # fmt: skip
    return Dataset(name, frame, price, "regression")


LOADERS: dict[str, Callable[[str], Dataset]] = {
    "breast_cancer": _bundled(datasets.load_breast_cancer, "classification"),
    "digits": _bundled(datasets.load_digits, "classification"),
    "adult": _adult,
    "places": _places,
    "skewed": _skewed,
    "interactions": _interactions,
    "messy": _messy,
    "wide": _wide,
    "small": _small,
    "diabetes": _bundled(datasets.load_diabetes, "regression"),
    "houses": _houses,
}


@cache
def load(name: str) -> Dataset:
    """One data set by name; the generated ones are the same on every machine."""
    return LOADERS[name](name)
