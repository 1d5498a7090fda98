"""Time and memory of one fit: Adult, and 300,000 records × 40 columns; each in a process of its own.

    python benchmarks/training/scale.py [adult] [large] [digits] [mnist]

MNIST (60,000 pictures, ten classes, ranges found privately) is fitted by the linear model and needs mnist.npz in the
folder that DENIABLE_DATA names.

Memory is the largest resident size during the fit less the size before it (Linux only: the kernel's high-water mark is
reset before the fit), beside the size of the table and of the encoded data (one 2-byte cell number a record and column,
the intercept included).
"""

import gc
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from data import load

import deniable as dn


def table(name: str) -> tuple[pd.DataFrame, np.ndarray, dict]:
    if name == "mnist":
        with np.load(Path(os.environ["DENIABLE_DATA"]) / "mnist.npz") as file:
            return pd.DataFrame(file["x_train"].reshape(-1, 784)), file["y_train"], {"model": "linear"}
    if name != "large":
        data = load(name)
        keep = np.random.default_rng(0).permutation(len(data.y))[: round(0.75 * len(data.y))]
        return data.X.iloc[keep], data.y[keep], {"ranges": data.declared}
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300_000, 40))
    y = (X[:, :10].sum(axis=1) + rng.logistic(size=len(X)) > 0).astype(int)
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(40)]), y, {}


def resident(kind: str) -> float:
    """MiB: "VmRSS" now, "VmHWM" at most since the last reset."""
    return int(re.search(rf"{kind}:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024


def one(name: str) -> None:
    X, y, options = table(name)
    dn.PrivateClassifier().fit(X.iloc[:200], y[:200])  # imports and tables that any process needs once
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # resets the high-water mark
    before, start, cpu = resident("VmRSS"), time.perf_counter(), time.process_time()
    dn.PrivateClassifier(advantage=0.1, **options).fit(X, y)
    print(json.dumps({
        "data": name, "records": len(X), "columns": X.shape[1],
        "seconds": round(time.perf_counter() - start, 1), "cpu_seconds": round(time.process_time() - cpu, 1),
        "megabytes_more": round(resident("VmHWM") - before, 1),
        "frame_megabytes": round(X.memory_usage(deep=True).sum() / 2**20),
        "encoded_megabytes": round(2 * (X.shape[1] + 1) * len(X) / 2**20, 1),
    }), flush=True)  # fmt: skip


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["adult", "digits", "large"]
    if wanted[0] == "--one":
        one(wanted[1])
    else:
        for name in wanted:
            subprocess.run([sys.executable, __file__, "--one", name], check=True)
