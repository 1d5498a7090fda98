"""CPU time and memory of profiles from Parquet, and the model that ``deniable plan-run`` computes with.

Prints a table and the coefficients of seconds = s + rows·(a + b·columns + c·columns²), fitted by least squares of the
relative errors with no coefficient below 0. ``python benchmarks/records/cost_model.py [rows]``; times are of the
process, not of the clock.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from scipy.optimize import nnls

COLUMNS = (5, 20, 50, 100)
ONE = """
import resource, sys, time
import deniable as dn
begun = time.process_time()
profile = dn.privacy_profile(sys.argv[1], target="y", regularization=1e-3, rng=0)
profile.advantage(), profile.tpr(1e-3)
print(time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""


def write(path: Path, rows: int, columns: int) -> None:
    """Rows of norm at most 1 and labels that follow a logistic model."""
    slopes = np.random.default_rng(0).standard_normal(columns) * 3
    writer = None
    for start in range(0, rows, 250_000):
        rng = np.random.default_rng([1, start])
        X = rng.standard_normal((min(250_000, rows - start), columns)) / (3 * np.sqrt(columns))
        X /= np.maximum(1, np.linalg.norm(X, axis=1))[:, None]
        y = (X @ slopes + 0.3 * rng.logistic(size=len(X)) > 0).astype(np.int8)
        table = pa.table({**{f"x{i}": X[:, i] for i in range(columns)}, "y": y})
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def main() -> None:
    rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else 800_000
    seconds, terms = [], []
    print("   rows  columns  CPU seconds  GB")
    with tempfile.TemporaryDirectory() as folder:
        for count, columns in [(rows // 8, 20), *((rows, columns) for columns in COLUMNS), (rows // 4, 100)]:
            path = Path(folder) / "rows.parquet"
            write(path, count, columns)
            said = subprocess.run([sys.executable, "-c", ONE, str(path)], capture_output=True, text=True, check=True)
            spent, memory = map(float, said.stdout.split())
            print(f"{count:7}  {columns:7}  {spent:11.2f}  {memory:.2f}")
            seconds.append(spent)
            terms.append([1.0, count, count * columns, count * columns**2])
    weights = 1 / np.array(seconds)  # relative errors
    found = nnls(np.array(terms) * weights[:, None], np.ones(len(seconds)))[0]
    print("s, a, b, c =", ", ".join(f"{value:.2g}" for value in found))


if __name__ == "__main__":
    main()
