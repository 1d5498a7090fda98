"""Time of individual accounting: 10,000 records × 1,000 steps, and memory beyond the array of norms."""

import resource
import time

import numpy as np

import deniable as dn

RUN = dn.SubsampledGaussian(1.0, 0.01, 1000)

rng = np.random.default_rng(0)
norms = rng.lognormal(-1.0, 1.0, (10_000, 1)) * rng.lognormal(0.0, 0.5, (10_000, 1_000))
dn.accounting.individual_tradeoffs(norms[:2], 1.0, RUN)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.process_time()
curves = dn.accounting.individual_tradeoffs(norms, 1.0, RUN)
curved = time.process_time()
advantage = curves.advantage()
done = time.process_time()
single = [dn.tradeoff(dn.SubsampledGaussian(1.0 + k * 1e-9, 0.01, 1000)).advantage() for k in range(20)]
each = (time.process_time() - done) / len(single)
print(
    f"curves {curved - start:.2f} s, advantages {done - curved:.2f} s of CPU, 10,000 single runs {10_000 * each:.0f} s"
)
print(f"memory beyond the norms {(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024:.0f} MiB")
print(f"advantage: median {np.median(advantage):.4f}, largest {advantage.max():.4f}, of the run {single[0]:.4f}")
