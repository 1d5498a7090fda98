"""A raw CSV (id, dates, texts, skew, blanks) through ``deniable train`` without any option: results/raw_csv.md.

python benchmarks/training/raw_csv.py    # after raw_csv_interpret.py
"""

import json
import tempfile
import warnings
from pathlib import Path

import numpy as np
from data import load
from harness import RESULTS

from deniable.workflows.training_run import train_table


def spread(values: np.ndarray) -> np.ndarray:
    """Standard error of the mean."""
    return values.std(axis=0, ddof=1) / np.sqrt(len(values))


def main() -> None:
    data = load("messy")
    rival = np.array(json.loads((RESULTS / "raw_csv_interpret.json").read_text()))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "messy.csv"
        data.X.assign(answer=data.y).to_csv(path, index=False)
        runs = [train_table(path, target="answer") for _ in range(10)]
    made = runs[0]
    ours = np.array([[run.usefulness.private.second, run.usefulness.plain.second] for run in runs])
    mean, error = ours.mean(axis=0), spread(ours)
    lines = [
        f"Held-out AUC {mean[0]:.3f} ± {error[0]:.3f}, unprotected boosting on the same splits {mean[1]:.3f}; DP-EBM, "
        f"which is given ranges and categories, on other splits {rival.mean():.3f} ± {spread(rival):.3f}. What was "
        "understood, and the account of the first run:\n\n```text\n",
        *(f"{line}\n" for line in made.remarks),
        f"\n{made.private.certificate_}\n```\n",
    ]
    (RESULTS / "raw_csv.md").write_text("".join(lines))


if __name__ == "__main__":
    main()
