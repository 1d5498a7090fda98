"""CPU time of one noisy coordinate: OpenDP's Gaussian on integers and on floats, and ``deniable.noise.rounding``.

python benchmarks/training/noise_speed.py
"""

from collections.abc import Callable
from importlib.metadata import version
from time import process_time

import numpy as np
import opendp.prelude as dp

from deniable.noise.rounding import rounded_gaussian

COORDINATES = 20_000


def microseconds(call: Callable[[], object], draws: int, repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        start = process_time()
        call()
        times.append(process_time() - start)
    return float(np.median(times)) / draws * 1e6


def main() -> None:
    dp.enable_features("contrib")
    rounded_gaussian(1.0, 1)  # builds the table, 0.05 s once a process
    print(f"| scale | OpenDP {version('opendp')}, integers | OpenDP, floats | rounded_gaussian |\n|---|---|---|---|")
    for scale in (1.0, 2.0**10, 2.0**20, 2.0**30, 2.0**36, 2.0**40):
        integers = dp.m.make_gaussian(dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float), scale=scale)
        floats = dp.m.make_gaussian(
            dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float), scale=scale
        )
        whole, real = [0] * COORDINATES, [0.0] * COORDINATES
        row = (
            microseconds(lambda m=integers, v=whole: m(v), COORDINATES),
            microseconds(lambda m=floats, v=real: m(v), COORDINATES),
            microseconds(lambda s=scale: rounded_gaussian(s, 25 * COORDINATES), 25 * COORDINATES),
        )
        print(f"| {scale:g} | {row[0]:.1f} µs | {row[1]:.1f} µs | {row[2]:.3f} µs |", flush=True)


if __name__ == "__main__":
    main()
