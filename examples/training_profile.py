"""Who is exposed by a DP-SGD run? Logistic regression on breast cancer data, trained in NumPy, norms recorded."""

import numpy as np
from scipy.special import expit
from sklearn.datasets import load_breast_cancer

import deniable as dn
from deniable.accounting import individual_tradeoffs

NOISE_MULTIPLIER, SAMPLE_RATE, STEPS, CLIP, LEARNING_RATE = 1.5, 0.1, 150, 0.5, 2.0


def train(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights, and the norm that every record's gradient had in every step, drawn or not."""
    weights, norms = np.zeros(X.shape[1]), np.empty((len(X), STEPS))
    for step in range(STEPS):
        gradients = -(y * expit(-y * (X @ weights)))[:, None] * X
        norms[:, step] = np.linalg.norm(gradients, axis=1)
        clipped = gradients * np.minimum(1, CLIP / np.maximum(norms[:, step], 1e-12))[:, None]
        drawn = rng.random(len(X)) < SAMPLE_RATE
        noise = rng.normal(scale=NOISE_MULTIPLIER * CLIP, size=X.shape[1])
        weights = weights - LEARNING_RATE * (clipped[drawn].sum(axis=0) + noise) / (SAMPLE_RATE * len(X))
    return weights, norms


def main() -> None:
    """Train, profile, print."""
    X, target = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X /= np.linalg.norm(X, axis=1).max()
    y = np.where(target == 1, 1.0, -1.0)
    weights, norms = train(X, y, np.random.default_rng(0))
    run = dn.SubsampledGaussian(NOISE_MULTIPLIER, SAMPLE_RATE, STEPS)
    print(f"accuracy {np.mean(np.sign(X @ weights) == y):.3f}")
    any_record = dn.tradeoff(run).advantage()
    advantage = np.minimum(individual_tradeoffs(norms, CLIP, run).advantage(), any_record)
    print(f"any record: advantage at most {100 * any_record:.2f} %")
    print(f"these records: median {100 * np.median(advantage):.2f} %, worst {100 * advantage.max():.2f} %")
    print("most exposed:", ", ".join(f"record {i} ({100 * advantage[i]:.2f} %)" for i in np.argsort(-advantage)[:5]))
    print("Computed from the records' own gradients: for the owner of the data, not to be published with the model.")


if __name__ == "__main__":
    main()
