"""Thudi et al., Figure 4 and §5.2: one noisy gradient step that is (1, 1e-5)-DP has no bound on positive accuracy."""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit, ndtr

import deniable as dn

SIGMA, DELTA = 4.0412, 1e-5  # printed in §5.2.1; the gradient moves the weight by 1


def train(with_x2, runs, rng):
    """§5.2.1 as DP-SGD: one full-batch step of M(x) = wx from w = 10⁶ on x₁ = (10⁶, 1) and perhaps x₂ = (10⁶, 0)."""
    w, data = 1e6, [(1e6, 1.0)] + [(1e6, 0.0)] * with_x2
    clipped = 0.0
    for x, label in data:
        gradient = (expit(w * x) - label) * x  # of the cross-entropy: 0 on x₁, 10⁶ on x₂
        clipped += gradient / max(1.0, abs(gradient))
    return w - (clipped + SIGMA * rng.standard_normal(runs))


def make(reduced):
    curve = dn.tradeoff(dn.GaussianDP(1 / SIGMA))
    far = np.linspace(-100, 100, 81 if reduced else 801)
    near = np.linspace(-10, 10, 81 if reduced else 801)
    # The attack says "in" if W <= 10⁶ + threshold; without the record W is N(10⁶, σ²), so its FPR is Φ(threshold/σ).
    precision = curve.precision(ndtr(far / SIGMA), 0.5)
    fpr = ndtr(near / SIGMA)
    accuracy = 0.5 + (curve.tpr(fpr) - fpr) / 2

    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.6), layout="constrained")
    left.plot(far, precision)
    left.axhline(dn.bounds.positive_accuracy(1.0, prior=0.5)[1], ls=":", color="grey", label="Theorem 1 if δ were 0")
    left.plot(
        far,
        dn.bounds.positive_accuracy(1.0, prior=0.5, delta=DELTA, fpr=ndtr(far / SIGMA))[1],
        "--",
        label="(1, 1e-5)-DP at this FPR",
    )
    left.set(xlabel="threshold (+1e6)", ylabel="positive accuracy", ylim=(0.49, 1.01), title="(a) no bound below 1")
    right.plot(near, accuracy)
    right.axhline(curve.accuracy(0.5), ls=":", color="grey", label="ours: best of all attacks")
    rng, runs = np.random.default_rng(4), 20_000 if reduced else 1_000_000
    member, nonmember = (np.sort(train(with_x2, runs, rng) - 1e6) for with_x2 in (True, False))
    tested = np.linspace(-10, 10, 21)
    seen = 0.5 + (np.searchsorted(member, tested) - np.searchsorted(nonmember, tested)) / (2 * runs)
    right.plot(tested, seen, "k.", label="trained models, attacked")
    drawn = np.linspace(-15, 15, 11)
    accused = [np.searchsorted(side, drawn) for side in (member, nonmember)]
    left.plot(drawn, accused[0] / (accused[0] + accused[1]), "k.", label="trained models, attacked")
    right.set(xlabel="threshold (+1e6)", ylabel="accuracy", title="(b) accuracy is bounded")
    left.legend(fontsize=8)
    right.legend(fontsize=8)

    epsilon = curve.epsilon(DELTA)
    least = 1 / dn.calibrate(dn.GaussianDP, bracket=(0.01, 1.0), limit=dn.Limit(epsilon=1.0, delta=DELTA))
    return figure, {
        "best_accuracy": float(curve.accuracy(0.5)),
        "accuracy_on_trained_models": float(
            0.5 + (np.searchsorted(member, -0.5) - np.searchsorted(nonmember, -0.5)) / (2 * runs)
        ),
        "mean_step_of_trained_models": float(member.mean() - nonmember.mean()),
        "best_threshold": float(near[np.argmax(accuracy)]),
        "accuracy_bound_of_pure_dp": float(dn.bounds.accuracy(1.0, delta=0.0, prior=0.5)),
        "positive_accuracy_at_-100": float(precision[0]),
        "positive_accuracy_at_-1e6": float(curve.precision(0.0, 0.5)),
        "exact_epsilon_of_4.0412": float(epsilon),
        "least_noise_for_epsilon_1": float(least),
        "precision_at_fpr_0.01": float(curve.precision(0.01, 0.5)),
    }
