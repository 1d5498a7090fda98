"""LeBlond et al., Figure 2 and §5.1: A_wc against retraining at Λ = 1, and where it fails (erratum E14)."""

import _adult
import matplotlib.pyplot as plt
import numpy as np
from spheres import worst_case_sphere

import deniable as dn

REGULARIZATIONS = (1.0, 1e-2, 1e-4)
ANY = dn.OutputPerturbation(epsilon=1.0)  # the noise plays no part in this figure


def refit_error(X, y, profile, regularization, records):
    """The largest error of our leave-one-out optima against exhaustive retraining, relative to the distance."""
    worst = 0.0
    for record in records:
        keep = np.arange(len(y)) != record
        refit = dn.privacy_profile(
            X[keep], y[keep], regularization=regularization, mechanism=ANY, tolerance=1.0
        ).optimum
        worst = max(worst, np.linalg.norm(refit - profile.leave_one_out()[record]) / profile.distance[record])
    return worst


def make(reduced):
    figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.6), layout="constrained")
    numbers = {}
    for name, columns in (("two", _adult.TWO), ("six", _adult.SIX)):
        X, y = _adult.adult(columns)
        for ax, regularization in zip(axes, REGULARIZATIONS, strict=True):
            profile = dn.privacy_profile(X, y, regularization=regularization, mechanism=ANY)
            guess = worst_case_sphere(X, y, regularization=regularization).worst_case
            error = _adult.relative_error(guess, profile)
            records = [int(profile.ranking("typical")[0]), int(np.argmax(error))][: 1 if reduced else 2]
            at = f"{name}_columns_at_{regularization:g}"
            numbers[f"worst_case_error_{at}"] = float(error.max())
            numbers[f"our_error_{at}"] = refit_error(X, y, profile, regularization, records)
            numbers[f"our_certificate_{at}"] = float(np.max(profile.radius() / profile.distance))
            if name == "two":
                ours, theirs = (1e5 * (p - profile.optimum).T for p in (profile.leave_one_out(), guess))
                ax.plot(*theirs, "o", ms=3, mfc="none", mec="C1", mew=0.4, label="A_wc, all records", rasterized=True)
                ax.plot(*ours, ".", ms=1, color="C0", label="A(y), certified (ours)", rasterized=True)
                ax.set(title=f"Λ = {regularization:g}", xlabel="10⁵ (f₁ − A(x)₁)", ylabel="10⁵ (f₂ − A(x)₂)")
                ax.legend(fontsize=7)
                if regularization == 1.0:
                    numbers["most_exposed_record"] = float(profile.ranking("typical")[0])
    return figure, numbers
