"""LeBlond et al., Figure 1: diffprivlib's private logistic regression on 100 rows and on 50 neighbouring data sets.

The models were measured with measure_diffprivlib.py and are kept in measured/. The titles' E|l| is ours.
"""

from pathlib import Path

import _adult
import matplotlib.pyplot as plt
import numpy as np
from black_boxes import coverage

import deniable as dn

MEASURED = Path(__file__).resolve().parent / "measured" / "diffprivlib.npz"
ROW = 74  # the most exposed of the 100


def make(reduced):
    X, y = _adult.adult(rows=100)
    with np.load(MEASURED) as measured:
        models, exponents = measured["points"].astype(float), measured["log10_epsilon"]
        many = measured["close"].astype(float)  # ε = 10: on all rows, and without row 74
    figure, axes = plt.subplots(2, 3, figsize=(9.6, 5.6), layout="constrained")
    numbers = {}
    for ax, clouds, exponent in zip(axes.flat, models[::-1], exponents[::-1], strict=True):
        # Beyond the paper: the losses of objective perturbation in closed form, at models that we draw and fit.
        mechanism = dn.records.ObjectivePerturbation(epsilon=10.0**exponent)
        draws = 30 if reduced else 300
        ours = dn.privacy_profile(X, y, regularization=1.0, mechanism=mechanism, n_samples=draws, rng=1)
        ax.set_title(f"log₁₀ ε = {exponent}; worst E|l| = {ours.mean_size().max():.2g}")
        _adult.draw_clouds(ax, clouds)
        numbers[f"separation_at_1e{exponent}"] = _adult.separation(clouds)
        numbers[f"worst_mean_loss_over_epsilon_at_1e{exponent}"] = float(ours.mean_size().max() / 10.0**exponent)
        if exponent == 0:
            noise = dn.privacy_profile(X, y, regularization=1.0, mechanism=dn.OutputPerturbation(epsilon=1.0)).rate
            spread = np.sqrt(clouds.var(axis=1, ddof=1).sum(axis=-1).mean())
            numbers["spread_over_that_of_output_perturbation"] = float(spread * noise / np.sqrt(6))  # E‖b‖² = 6/β²
    numbers |= black_box(X, y, many)
    return figure, numbers


def black_box(X, y, many):
    """The coverage of diffprivlib from samples alone, against the loss that objective perturbation should have."""
    start = dn.privacy_profile(X, y, regularization=1.0)
    model = start.optimum - 0.4 * (start.leave_one_out()[ROW] - start.optimum)
    mechanism = dn.records.ObjectivePerturbation(epsilon=10.0)
    exact = dn.privacy_profile(X, y, regularization=1.0, mechanism=mechanism, released=model).privacy_loss()[ROW]
    inside, outside = map(iter, many)
    samplers = (lambda rng: next(inside)), [lambda rng: next(outside)]
    found = coverage(*samplers, model, radius=0.4 * start.distance[ROW], n_samples=many.shape[1])
    low, high = found.privacy_loss_interval[0]
    return {
        "coverage_loss_width": float(high - low),
        "closed_form_loss": float(exact),
        "place_in_the_coverage_interval": float((exact - low) / (high - low)),
    }
