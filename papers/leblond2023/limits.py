"""LeBlond et al., §5.2 and §7: limits in n, Λ and d, several records, other scalings, and the peak of coverage.

Top: the ball's radius r (eqs. 15 and 18) against n, and against Λ for one and more removed records; the error of A_wc
under other scalings of the rows, which §5.2 mentions without numbers. Bottom: where a record's transition lies in d
dimensions, how high the lower plateau of |l|/β is there, and a neighbour's typical log-coverage, whose peak §7 reports
as unpublished.
"""

import matplotlib.pyplot as plt
import numpy as np
from black_boxes import typical_self_coverage
from changed_spheres import changed_sphere
from sklearn.datasets import load_breast_cancer
from spheres import worst_case_sphere

import deniable as dn
from deniable.laws.norm_laplace import NormLaplaceLaw


def scaled(X, how):
    """Raw columns over the largest row; standardised columns with rows over the largest (the paper's) or their own."""
    if how != "raw columns":
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    size = np.linalg.norm(X, axis=1)
    return X / (size[:, None] if how == "unit rows" else size.max())


def make(reduced):
    X, label = load_breast_cancer(return_X_y=True)
    y, order, paper = 2.0 * label - 1, np.random.default_rng(0).permutation(569), scaled(X, "rows over the largest")
    figure, ((by_n, by_ridge, by_scaling), (by_d, plateau, peaked)) = plt.subplots(
        2, 3, figsize=(13, 7.4), layout="tight"
    )
    sizes, ridges = np.array([40, 80, 160, 320, 569]), np.geomspace(1e-4, 1e3, 15)
    radii = np.array([changed_sphere(paper[order[:n]], y[order[:n]], regularization=1.0, removed=[0]).radius[0]
                      for n in sizes])  # fmt: skip
    by_n.loglog(sizes, radii, "o-", label="r of one record")
    by_n.loglog(sizes, radii[-1] * sizes[-1] / sizes, "k:", label="slope −1")
    by_n.set(xlabel="n", ylabel="r", title="r falls like 1/n")
    found = {k: np.array([changed_sphere(paper, y, regularization=v, removed=order[:k]).radius[0] for v in ridges])
             for k in (1, 10, 50)}  # fmt: skip
    for k, values in found.items():
        by_ridge.loglog(ridges, values, "o-", ms=3, label=f"{k} removed")
    by_ridge.set(xlabel="Λ", ylabel="r", title="r → ∞ as Λ → 0 (eqs. 14–16)")

    errors = {}
    for how in ("rows over the largest", "raw columns", "unit rows"):
        rows = scaled(X, how)
        profile = dn.privacy_profile(rows, y, regularization=1.0, mechanism=dn.OutputPerturbation(scale=1.0))
        guess = worst_case_sphere(rows, y, regularization=1.0).worst_case
        errors[how] = np.linalg.norm(guess - profile.leave_one_out(), axis=1) / profile.distance
        by_scaling.semilogy(np.sort(errors[how]), label=f"{how}: at most {errors[how].max():.1%}")
    by_scaling.set(xlabel="records, sorted", ylabel="error of A_wc over the distance", title="Scalings, Λ = 1")

    dimensions, rho = np.array([1, 2, 5, 10, 30, 100, 300]), np.geomspace(1e-2, 1e3, 300)
    ends = [np.interp([0.05, 0.95], NormLaplaceLaw(int(d)).advantage(rho, "upper"), rho) for d in dimensions]
    ends = np.array(ends) / np.sqrt(dimensions)[:, None]
    by_d.loglog(dimensions, ends, "o-", label=["advantage 5 %", "advantage 95 %"])
    by_d.set(xlabel="d", ylabel="β|A(x) − A(y)| / √d", title="The transition moves like √d")
    own = typical_self_coverage(2, rho)[1]
    other = own - NormLaplaceLaw(2).mean_loss(rho)
    peaked.semilogx(rho, own, label="E log C(x, M)")
    peaked.semilogx(rho, other, label="E log C(y, M)")
    peaked.set(xlabel="β|A(x) − A(y)|", title="A neighbour's coverage has a peak (d = 2)", ylim=(-14, 8))
    lower = np.array([float(NormLaplaceLaw(int(d)).mean_size(1e-3)) / 1e-3 for d in dimensions])
    plateau.loglog(dimensions, lower, "o-", label="lower plateau over the upper one")
    plateau.loglog(dimensions, np.sqrt(2 / np.pi / dimensions), "k:", label="√(2/(πd))")
    plateau.set(xlabel="d", ylabel="mean |l| / (β|A(x) − A(y)|)", title="The plateaus part in high dimension")
    for ax in figure.axes:
        ax.minorticks_off()
        ax.legend(fontsize=7)
    return figure, {
        "radius_times_n_last_over_first": float(radii[-1] * sizes[-1] / (radii[0] * sizes[0])),
        "radius_at_1e-4_over_1": float(found[10][0] / np.interp(1.0, ridges, found[10])),
        **{f"error_{k.replace(' ', '_')}": float(v.max()) for k, v in errors.items()},
        "low_end_over_sqrt_d_at_300": float(ends[-1, 0]),
        "high_end_over_sqrt_d_at_300": float(ends[-1, 1]),
        "peak_of_coverage_times_distance": float(rho[np.argmax(other)]),
        "lower_plateau_in_the_plane": float(lower[1]),
    }
