"""The model points behind figure 1: diffprivlib's logistic regression on 100 rows and on 50 neighbouring data sets.

It runs in an environment of its own, since diffprivlib 0.6.6 needs scikit-learn below 1.8:

    python3.11 -m venv .venv-diffprivlib && .venv-diffprivlib/bin/pip install diffprivlib==0.6.6 scikit-learn==1.7.2
    .venv-diffprivlib/bin/python papers/leblond2023/measure_diffprivlib.py

and writes measured/diffprivlib.npz: ``points`` (ε, data set, sample, parameter), data set 0 being all 100 rows and
data set i the 100 rows without row i − 1; ``log10_epsilon``; ``close`` (data set, sample, parameter): many models at
ε = 10 on all rows and without row 74, the most exposed one; ``about``: versions, machine, date.
"""

import csv
import datetime
import gzip
import json
import os
import platform
import warnings
from pathlib import Path

import diffprivlib
import numpy as np
import sklearn
from diffprivlib.models import LogisticRegression

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("DENIABLE_DATA", HERE.parents[2] / "shared" / "datasets"))
ROWS, NEIGHBOURS, SAMPLES, LOG10_EPSILON = 100, 50, 20, (-1, 0, 1, 2, 3, 4)
CLOSE_ROW, CLOSE_SAMPLES = 74, 2500


def two_columns():
    """The first 100 rows of adult.data's age and education-num, standardised, divided by the largest norm."""
    with gzip.open(DATA / "adult.csv.gz", "rt", newline="") as file:
        table = [row for row in csv.DictReader(file) if row["split"] == "train"]
    X = np.array([[float(row["age"]), float(row["education-num"])] for row in table])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X /= np.linalg.norm(X, axis=1).max()
    return X[:ROWS], np.array([row["income"].startswith(">50K") for row in table])[:ROWS]


def trained(X, y, epsilon, seed):
    model = LogisticRegression(
        epsilon=epsilon,
        data_norm=1.0,
        C=1 / len(y),  # Λ = 1: scikit-learn's C is 1/(nΛ)
        fit_intercept=False,
        random_state=seed,
    )
    return model.fit(X, y).coef_[0]


def main():
    X, y = two_columns()
    warnings.simplefilter("ignore")  # the solver's convergence warnings at tiny ε
    points = np.empty((len(LOG10_EPSILON), NEIGHBOURS + 1, SAMPLES, 2), dtype=np.float32)
    for seed, at in enumerate(np.ndindex(points.shape[:3])):
        keep = np.arange(ROWS) != at[1] - 1
        points[at] = trained(X[keep], y[keep], 10.0 ** LOG10_EPSILON[at[0]], seed)
    keep, seeds = np.arange(ROWS) != CLOSE_ROW, np.arange(2 * CLOSE_SAMPLES).reshape(2, -1) + 10**6
    close = [[trained(X, y, 10.0, s) for s in seeds[0]], [trained(X[keep], y[keep], 10.0, s) for s in seeds[1]]]
    about = {
        "command": "python papers/leblond2023/measure_diffprivlib.py",
        "diffprivlib": diffprivlib.__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "date": datetime.date.today().isoformat(),
    }
    np.savez_compressed(
        HERE / "measured" / "diffprivlib.npz",
        points=points,
        log10_epsilon=LOG10_EPSILON,
        close=np.array(close, dtype=np.float32),
        about=json.dumps(about),
    )


if __name__ == "__main__":
    main()
