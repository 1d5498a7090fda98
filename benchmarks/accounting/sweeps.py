"""Many runs at once: CPU time a curve of `dn.accounting.tradeoffs` beside one after the other, and how far above."""

import time

import numpy as np

import deniable as dn

STEPS = np.unique(np.geomspace(50, 50_000, 60).astype(int)).tolist()
SWEEPS = {
    "60 noises": [dn.SubsampledGaussian(s, 0.01, 5000) for s in np.geomspace(0.7, 6, 60)],
    "60 steps": [dn.SubsampledGaussian(1.0, 0.01, n) for n in STEPS],
    "60 rates": [dn.SubsampledGaussian(1.0, q, 2000) for q in np.geomspace(1e-3, 0.1, 60)],
    "1,000 of both": [
        dn.SubsampledGaussian(s, q, 3000) for s in np.geomspace(0.7, 6, 100) for q in np.geomspace(1e-3, 0.1, 10)
    ],
}


def fastest(function):
    """What it returns, and the least CPU time of five."""
    seconds = []
    for _ in range(5):
        start = time.process_time()
        found = function()
        seconds.append(time.process_time() - start)
    return found, min(seconds)


for name, runs in SWEEPS.items():
    some = runs[:: max(len(runs) // 60, 1)]
    alone, single = fastest(lambda: [dn.tradeoff(run).advantage() for run in some])  # noqa: B023
    every, together = fastest(lambda: dn.accounting.tradeoffs(runs).advantage())  # noqa: B023
    above = np.max(every[:: max(len(runs) // 60, 1)] - alone)
    each, one = 1000 * together / len(runs), 1000 * single / len(some)
    print(f"{name}: {each:.2f} ms a curve, one by one {one:.2f} ({one / each:.1f} x), at most {above:.1e} above")
