"""The privacy profile of LeBlond et al., Figure 5, sampled: ranked |l| averaged over drawn models."""

import numpy as np

from deniable.records import PrivacyProfile


def averaged_ranked_loss(profile: PrivacyProfile, models: int, seed: int) -> np.ndarray:
    """The mean of the k-th largest |l| over models of an output perturbation, largest first, whoever has it."""
    total = np.zeros(len(profile))
    for rng in np.random.default_rng(seed).spawn(models):
        noise = profile.mechanism.sample(profile.optimum, profile.rate, rng=rng) - profile.optimum
        along = profile.neighbours.onto(noise[:, None])[:, 0]
        size = float(np.linalg.norm(noise))
        loss = profile.mechanism.privacy_loss(size, profile.distance, along, profile.radii, len(noise), profile.rate)[0]
        total += np.sort(np.abs(loss))[::-1]
    return total / models
