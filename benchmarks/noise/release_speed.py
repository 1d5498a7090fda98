"""Processor time and memory of releases from 10⁶ records × 20 columns (160 MB), each in a process of its own.

python benchmarks/noise/release_speed.py [CASE …]
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import numpy as np

import deniable as dn
from deniable.noise import Covariance, Histogram, Mean, Quantile

COLUMN = slice(0, 1)
CASES = {
    "means, swap": (Mean(), slice(None), "swap"),
    "means, public bounds": (Mean(bounds=(-6, 6)), slice(None), "auto"),
    "histogram of 20 bins, swap": (Histogram(tuple(np.linspace(-4, 4, 21))), COLUMN, "swap"),
    "histogram of 20 bins, direct": (Histogram(tuple(np.linspace(-1, 1, 21))), COLUMN, "direct"),
    "covariance, swap": (Covariance(), slice(None), "swap"),
    "median, auto": (Quantile(), COLUMN, "auto"),
}


def measured(name):
    algorithm, columns, bound = CASES[name]
    data = np.random.default_rng(0).normal(size=(1_000_000, 20))
    began = time.process_time()
    found = dn.release(algorithm, data[:, columns], eta=0.1, bound=bound)
    spent = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    noise = float(np.sqrt(np.mean(np.square(found.noise_scale))))
    print(f"| {name} | {spent:.1f} s | {peak:.0f} MB | {noise:.3g} | {found.certificate.eta:.3g} |", flush=True)


def main():
    if sys.argv[1:2] == ["--one"]:
        measured(sys.argv[2])
        return
    print(
        "| release | processor time | peak, data and imports included | noise | η |\n|---|---|---|---|---|", flush=True
    )
    for name in sys.argv[1:] or CASES:
        subprocess.run([sys.executable, __file__, "--one", name], check=True)


if __name__ == "__main__":
    main()
