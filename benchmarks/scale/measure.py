"""All measured targets of docs/scale in one run: wall and CPU seconds and peak memory, a process per case.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/scale/measure.py [CASE ...]

Cases: retraining line profile50 profile100 parquet train train10m duckdb release. Without names all, about twelve
minutes on two idle cores and 6 GB of disk in the temporary folder. What is found is printed, and written to
``benchmarks/scale/results/measured.json``, beside what other cases found before; ``line`` draws
``docs/images/scale_line.svg``. CPU seconds include child processes and memory is the largest of the process (GB of
10⁹ bytes), imports included. This file imports nothing that is large, so that a child does not inherit the peak of its
parent.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
LINE = (250_000, 500_000, 1_000_000, 2_000_000)  # rows whose times should lie on a straight line
# case → what is promised: (quantity, at most or at least, limit)
TARGETS = {
    "retraining": [("speed-up", ">=", 1.7)],
    "profile50": [("seconds", "<=", 15), ("gigabytes", "<=", 1)],
    "profile100": [("gigabytes", "<=", 1)],
    "parquet": [("seconds", "<=", 120), ("gigabytes", "<=", 1)],
    "train": [],
    "train10m": [("gigabytes", "<=", 1.5)],
    "duckdb": [("CPU of a query by that of the file", "<=", 1.1)],
    "release": [],
    "line": [],
}


def written(folder: Path, rows: int, columns: int) -> Path:
    """Parquet of rows of norm at most 1 and labels that follow a logistic model, 262,144 rows a group."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    path = folder / f"{rows}x{columns}.parquet"
    if path.exists():
        return path
    slopes = np.random.default_rng(0).standard_normal(columns) * 3
    writer = None
    for start in range(0, rows, 262_144):
        rng = np.random.default_rng([1, start])
        X = rng.standard_normal((min(262_144, rows - start), columns)) / (3 * np.sqrt(columns))
        X /= np.maximum(1, np.linalg.norm(X, axis=1))[:, None]
        y = (X @ slopes + 0.3 * rng.logistic(size=len(X)) > 0).astype(np.int8)
        table = pa.table({**{f"x{i}": X[:, i] for i in range(columns)}, "y": y})
        writer = writer or parquet.ParquetWriter(path, table.schema, compression="none", use_dictionary=False)
        writer.write_table(table)
    assert writer is not None
    writer.close()
    return path


class Clock:
    """Wall and CPU seconds, of this process and its children."""

    def __init__(self) -> None:
        self.begun, self.cpu = time.perf_counter(), sum(os.times()[:4])

    def read(self) -> dict[str, float]:
        return {"seconds": time.perf_counter() - self.begun, "cpu": sum(os.times()[:4]) - self.cpu}


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def profiled(path: str) -> dict[str, float]:
    """A profile with the curves of all its records."""
    import numpy as np

    import deniable as dn

    before, clock = peak(), Clock()
    profile = dn.privacy_profile(
        path, target="y", regularization=1e-3, mechanism=dn.OutputPerturbation(epsilon=1.0), rng=0
    )
    advantage, rate = profile.advantage(), profile.tpr(1e-3)
    assert np.all((advantage >= 0) & (rate >= 0))
    return clock.read() | {"gigabytes": peak(), "gigabytes before": before}


def train(path: str) -> dict[str, float]:
    import deniable as dn

    before, clock = peak(), Clock()
    dn.PrivateClassifier(advantage=0.1).fit(path, target="y")
    return clock.read() | {"gigabytes": peak(), "gigabytes before": before}


def queried(path: str) -> dict[str, float]:
    """One fit from a Parquet file and from a query of DuckDB over it, with the same noise, after a fit that imports."""
    import duckdb
    import numpy as np

    import deniable as dn
    from deniable.testing import insecure_noise

    found = {}
    for name, data in (("imports", path), ("file", path), ("query", duckdb.sql(f"select * from '{path}'"))):
        clock = Clock()
        with insecure_noise(np.random.default_rng(0)):
            dn.PrivateClassifier(advantage=0.1).fit(data, target="y")
        found[name] = clock.read()["cpu"]
    ratio = found["query"] / found["file"]
    return {f"cpu, {name}": cpu for name, cpu in found.items()} | {"CPU of a query by that of the file": ratio}


def release(path: str) -> dict[str, float]:
    import deniable as dn
    from deniable.releases import Mean

    before, clock = peak(), Clock()
    dn.release(Mean(bounds=(-1.0, 1.0)), path, advantage=0.1, rng=0)
    return clock.read() | {"gigabytes": peak(), "gigabytes before": before}


def retraining(_: str) -> dict[str, float]:
    """Shadow models, on one process and on two that are running already."""
    import numpy as np
    from sklearn.ensemble import RandomForestClassifier

    import deniable as dn

    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 20))
    y = (X[:, :5].sum(axis=1) + rng.normal(size=3000) > 0).astype(int)
    model = RandomForestClassifier(20, random_state=0)

    def run(shadows: int, jobs: int) -> tuple[float, object]:
        clock = Clock()
        found = dn.attack_estimator(model, X, y, method="lira", n_shadows=shadows, rng=0, n_jobs=jobs, progress=False)
        return clock.read()["seconds"], found.member_scores

    run(4, 2)
    (one, alone), (two, together) = run(48, 1), run(48, 2)
    assert np.array_equal(alone, together)
    return {"one process": one, "two processes": two, "speed-up": one / two, "seconds": one + two}


def line(folder: str) -> dict[str, float]:
    """Time of a profile against the number of rows: how far from a straight line, and the picture of it."""
    import numpy as np
    from matplotlib.figure import Figure

    profiled(str(Path(folder) / f"{LINE[0]}x20.parquet"))  # imports
    cpu = [profiled(str(Path(folder) / f"{rows}x20.parquet"))["cpu"] for rows in LINE]
    rows = np.array(LINE) / 1e6
    slope, start = np.polyfit(rows, cpu, 1, w=1 / np.array(cpu))
    off = float(np.max(np.abs((start + slope * rows) / cpu - 1)))
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(rows, cpu, "o", label="measured")
    ends = np.array([0, rows[-1]])
    axes.plot(ends, start + slope * ends, label=f"{start:.1f} s + {slope:.1f} s per million rows")
    axes.set(xlabel="million records × 20 columns", ylabel="CPU seconds of a profile with its curves", ylim=(0, None))
    axes.legend()
    (HERE / "results").mkdir(exist_ok=True)
    figure.savefig(HERE.parents[1] / "docs/images/scale_line.svg", metadata={"Date": None})
    return {f"{n:,} rows": second for n, second in zip(LINE, cpu, strict=True)} | {
        "seconds per million": float(slope), "start": float(start), "largest deviation": off,
    }  # fmt: skip


SIZES = {
    "line": [(rows, 20) for rows in LINE], "profile50": [(1_000_000, 50)], "profile100": [(800_000, 100)],
    "parquet": [(10_000_000, 20)], "train": [(1_000_000, 20)], "release": [(1_000_000, 20)],
    "train10m": [(10_000_000, 20)], "duckdb": [(1_000_000, 5)],
}  # fmt: skip
CALLS = {
    "line": line, "profile50": profiled, "profile100": profiled, "parquet": profiled, "train": train,
    "train10m": train, "duckdb": queried, "release": release, "retraining": retraining,
}  # fmt: skip


def main(names: list[str]) -> int:
    found, missed = {}, 0
    alone = [sys.executable, "-W", "ignore", __file__, "--child"]
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            for rows, columns in SIZES.get(name, []):
                subprocess.run([*alone, "write", folder, str(rows), str(columns)], check=True)
            given = folder
            if name in SIZES and name != "line":
                given = f"{folder}/{SIZES[name][0][0]}x{SIZES[name][0][1]}.parquet"
            said = subprocess.run([*alone, name, given], stdout=subprocess.PIPE, text=True, check=True).stdout
            found[name] = json.loads(said.splitlines()[-1])
            kept = []
            for what, side, limit in TARGETS[name]:
                holds = found[name][what] <= limit if side == "<=" else found[name][what] >= limit
                missed += not holds
                kept.append(f"{what} {side} {limit}: {'holds' if holds else 'MISSED'}")
            numbers = ", ".join(f"{key} {value:.3g}" for key, value in found[name].items())
            print(f"{name}: {numbers}{'; ' if kept else ''}{'; '.join(kept)}", flush=True)
            for big in Path(folder).glob("*.parquet"):
                if big.stat().st_size > 5e8:
                    big.unlink()
    (HERE / "results").mkdir(exist_ok=True)
    path = HERE / "results" / "measured.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(known | found, indent=2) + "\n")
    return missed


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:2] == ["--child", "write"]:
        written(Path(arguments[2]), int(arguments[3]), int(arguments[4]))
    elif arguments[:1] == ["--child"]:
        print(json.dumps(CALLS[arguments[1]](arguments[2])))
    else:
        wanted = arguments
        if unknown := set(wanted) - set(CALLS):
            sys.exit(f"unknown cases: {', '.join(sorted(unknown))}; known are {', '.join(CALLS)}")
        sys.exit(main(wanted or list(CALLS)) > 0)
