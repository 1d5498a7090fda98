"""LeBlond et al., Figure 8: the same by output perturbation, from the right density (erratum E12)."""

import _adult
import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import quad

import deniable as dn

EXPONENTS = (4, 3, 2, 1, 0, -1)  # the text does not state the subplots' ε


def make(reduced):
    X, y = _adult.adult(rows=100)
    rng = np.random.default_rng(0)
    figure, axes = plt.subplots(2, 3, figsize=(9.6, 5.6), layout="constrained")
    numbers = {}
    for ax, exponent in zip(axes.flat, EXPONENTS, strict=True):
        profile = dn.privacy_profile(X, y, regularization=1.0, mechanism=dn.OutputPerturbation(epsilon=10.0**exponent))
        centres = [profile.optimum, *profile.leave_one_out()[:50]]
        clouds = np.array([_adult.draw_around(centre, profile.rate, 20, rng) for centre in centres])
        ax.set_title(f"log₁₀ ε = {exponent}; worst advantage {profile.advantage().max():.1%}")
        _adult.draw_clouds(ax, clouds)
        numbers[f"separation_at_1e{exponent}"] = _adult.separation(clouds)
        numbers[f"worst_advantage_at_1e{exponent}"] = float(profile.advantage().max())
    band = profile.transition()  # from 5 % to 95 % advantage of the worst record, whatever ε it is asked at
    beta = profile.rate
    noise = np.linalg.norm(_adult.draw_around(np.zeros(2), beta, 20_000, rng), axis=1)
    numbers |= {
        "transition_from_epsilon": band.epsilon_low,
        "transition_to_epsilon": band.epsilon_high,
        "mean_noise_times_beta": float(noise.mean() * beta),
        "mass_of_the_printed_density_times_beta": beta
        * quad(lambda r: np.pi * beta * r * np.exp(-beta * r), 0, np.inf)[0],
    }
    return figure, numbers
