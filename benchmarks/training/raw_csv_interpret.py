"""DP-EBM on the splits of raw_csv.py (a coin for each record), in interpret's environment.

python benchmarks/training/raw_csv_interpret.py    # writes results/raw_csv_interpret.json
"""

import json
import warnings

import numpy as np
from data import load
from harness import RESULTS, scores
from run_interpret import fit


def main() -> None:
    data = load("messy")
    found = []
    for seed in range(10):
        train = np.random.default_rng(seed).random(len(data.y)) >= 0.25
        parts = np.flatnonzero(train), np.flatnonzero(~train)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = fit(data, *parts, 0.1, {}, seed)
        found.append(scores(data, data.y[~train], *made)["auc"])
    (RESULTS / "raw_csv_interpret.json").write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
