"""DP-SGD on H_d^f in full: every weight, every per-record gradient, clipped, summed and noised."""

import numpy as np


def train(
    coordinates: np.ndarray,
    labels: np.ndarray,
    dimension: int,
    *,
    noise_multiplier: float,
    sample_rate: float,
    steps: int,
    rng: np.random.Generator,
    clip: float = 0.1,
    learning_rate: float = 0.001,
) -> np.ndarray:
    """Return all models, shape (steps, dimension), of logistic regression on unit vectors e_i with labels in {0, 1}."""
    records = np.eye(dimension)[coordinates]
    weights, models = np.zeros(dimension), []
    for _ in range(steps):
        batch = rng.random(len(records)) < sample_rate
        predicted = 1 / (1 + np.exp(-records @ weights))
        gradients = (predicted - labels)[:, None] * records
        norms = np.linalg.norm(gradients, axis=1, keepdims=True)
        clipped = gradients * np.minimum(1.0, clip / np.maximum(norms, 1e-300))
        noise = noise_multiplier * clip * rng.standard_normal(dimension)
        weights = weights - learning_rate * (clipped[batch].sum(axis=0) + noise)
        models.append(weights)
    return np.array(models)
