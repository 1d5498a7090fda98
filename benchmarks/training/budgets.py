"""Noise multipliers for Opacus from deniable's exact curve, so that the rival's run spends exactly the target.

python benchmarks/training/budgets.py        # in deniable's environment; writes results/budgets.json
"""

import json

from harness import ADVANTAGES, RESULTS

import deniable as dn

RUNS = ((1.0, 100), (1 / 32, 640))  # (sampling rate, steps): full batches; 20 epochs of Poisson batches


def main() -> None:
    table = {}
    for rate, steps in RUNS:
        for advantage in ADVANTAGES:
            noise = dn.calibrate(
                lambda s, q=rate, t=steps: dn.SubsampledGaussian(s, q, t), bracket=(0.3, 4000), advantage=advantage
            )
            multiplier = noise.noise_multiplier if hasattr(noise, "noise_multiplier") else float(noise)
            table[f"{rate:g} {steps} {advantage:g}"] = multiplier
            print(rate, steps, advantage, multiplier)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "budgets.json").write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
