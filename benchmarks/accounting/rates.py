"""The largest TPR at a given FPR of one DP-SGD run, here and by others: σ = 1, rate 0.01, 5,000 steps.

    python benchmarks/accounting/rates.py ours
    python benchmarks/accounting/rates.py riskcal       # riskcal 1.5.1, in an environment of its own
    python benchmarks/accounting/rates.py opake         # opake-dpsgd 0.16.1 (Python 3.13), likewise

A bound below what an attack reaches (peers.py), or below the FPR itself, is refuted: guessing reaches the FPR.
"""

import sys
from collections.abc import Callable

SIGMA, RATE, STEPS = 1.0, 0.01, 5000
FPRS = (1e-2, 1e-3, 1e-5, 1e-6, 1e-8)


def ours() -> Callable[[float], float]:
    import deniable as dn

    return dn.tradeoff(dn.SubsampledGaussian(SIGMA, RATE, STEPS)).tpr


def riskcal() -> Callable[[float], float]:
    from riskcal.calibration.dpsgd import get_beta_for_dpsgd

    run = {"noise_multiplier": SIGMA, "sample_rate": RATE, "num_steps": STEPS}
    return lambda fpr: 1 - float(get_beta_for_dpsgd(alpha=fpr, **run))


def opake() -> Callable[[float], float]:
    from opake.dpsgd import accounting

    run = accounting.poisson(accounting.gaussian(SIGMA), sample_rate=RATE) * STEPS
    return lambda fpr: 1 - run.beta_at(fpr)


if __name__ == "__main__":
    tpr = {"ours": ours, "riskcal": riskcal, "opake": opake}[sys.argv[1]]()
    for fpr in FPRS:
        found = tpr(fpr)
        print(f"TPR at FPR {fpr:g}: {found:.3g}" + " (below guessing)" * (found < fpr))
