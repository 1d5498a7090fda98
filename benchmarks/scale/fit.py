"""The cost model behind ``deniable plan-run``: fitted to what measure.py found, and compared with it.

    python benchmarks/scale/fit.py

Reads ``benchmarks/scale/results/measured.json``. Prints the coefficients of seconds = rows·(a + b·columns +
c·columns²), by least squares of the relative errors with none below 0, and per job the seconds that were measured,
those of this fit, and those that ``deniable plan-run`` says now; and memory, in GB.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from measure import SIZES
from scipy.optimize import nnls

from deniable.records.cost import profile_cost, retraining_cost

MEASURED = json.loads((Path(__file__).parent / "results" / "measured.json").read_text(encoding="utf-8"))


def profiles() -> list[tuple[int, int, float]]:
    """Rows, columns and CPU seconds of every profile in the file."""
    found = [(int(name.split()[0].replace(",", "")), 20, spent) for name, spent in MEASURED.get("line", {}).items()
             if name.endswith(" rows")]  # fmt: skip
    for name in ("profile50", "profile100", "parquet"):
        if name in MEASURED:
            found.append((*SIZES[name][0], MEASURED[name].get("cpu", MEASURED[name]["seconds"])))
    return found


def memory() -> None:
    """Peaks that were measured, and those of ``deniable plan-run``."""
    for name in ("profile50", "profile100", "parquet"):
        if name in MEASURED:
            (n, d), found = SIZES[name][0], MEASURED[name]["gigabytes"]
            said = profile_cost(n, d).memory / 1e9
            print(f"{f'GB: {n:,} × {d}':24}  {found:8.2f}  {'':6}  {said:8.2f}  {said / found:17.2f}")


def main() -> None:
    jobs = profiles()
    terms = np.array([[n, n * d, n * d * d] for n, d, _ in jobs]) / np.array([[spent] for *_, spent in jobs])
    fitted = nnls(terms, np.ones(len(jobs)))[0]
    print("a, b, c =", ", ".join(f"{value:.3g}" for value in fitted))
    print(f"{'job':24}  measured  fitted  plan-run  plan-run/measured")
    for n, d, spent in jobs:
        said = profile_cost(n, d).cpu_seconds
        of_fit = float(fitted @ [n, n * d, n * d * d])
        print(f"{f'profile {n:,} × {d}':24}  {spent:8.2f}  {of_fit:6.2f}  {said:8.2f}  {said / spent:17.2f}")
    if "retraining" in MEASURED:
        one, two = (MEASURED["retraining"][f"{many} process{'es' if many == 'two' else ''}"] for many in ("one", "two"))
        said = retraining_cost(3000, 48, one / 48, workers=2).seconds
        print(f"{'48 models, 2 processes':24}  {two:8.2f}  {'':6}  {said:8.2f}  {said / two:17.2f}")
    memory()


if __name__ == "__main__":
    main()
