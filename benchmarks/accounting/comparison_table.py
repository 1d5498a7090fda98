"""Print the table of docs/calibration.md: the exact advantage of six runs beside older bounds."""

import deniable as dn
from deniable.planning import comparison

RUNS = [
    (1.0, 0.01, 5000),
    (0.5, 0.001, 10000),
    (0.8, 0.02, 2500),
    (2.0, 0.05, 1000),
    (0.6, 1e-4, 1000000),
    (5.0, 1.0, 500),
]

print("| σ, q, T | exact | Humphries at δ = 1e-5 | Pinsker | Gaussian approximation | its TPR at FPR 1e-5 |")
print("|---|---|---|---|---|---|")
for sigma, rate, steps in RUNS:
    run = dn.SubsampledGaussian(sigma, rate, steps)
    clt = comparison.gdp_clt(run)
    numbers = [
        clt.exact.advantage(),
        comparison.humphries_of(run, 1e-5),
        comparison.pinsker_of(run),
        clt.approximation.advantage(),
    ]
    error = 100 * clt.tpr_error(1e-5) / clt.exact.tpr(1e-5)
    print(f"| {sigma:g}, {rate:g}, {steps} | " + " | ".join(f"{x:.6f}" for x in numbers) + f" | {error:+.1f} % |")
