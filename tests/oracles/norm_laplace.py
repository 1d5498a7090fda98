"""Norm-Laplace noise the slow way: 25-digit integrals over the hyperboloids, and plain simulation."""

import mpmath as mp
import numpy as np


def tail(rho, dimension, s, world="in"):
    """P(l > s) in the given world: integrate the density of η = −l/ρ (prolate spheroidal coordinates)."""
    with mp.workdps(25):
        rho, s, d = mp.mpf(rho), mp.mpf(s), dimension
        a = rho / 2
        inner = mp.gamma(mp.mpf(d - 1) / 2) * (2 / a) ** (mp.mpf(d - 2) / 2) * mp.besselk(mp.mpf(d - 2) / 2, a)
        outer = mp.gamma(mp.mpf(d + 1) / 2) * (2 / a) ** (mp.mpf(d) / 2) * mp.besselk(mp.mpf(d) / 2, a)
        sign = 1 if world == "in" else -1

        def density(theta):  # η = −cos θ, so dη (1−η²)^{(d−3)/2} = sin^{d−2}θ dθ
            return mp.exp(sign * a * mp.cos(theta)) * mp.sin(theta) ** (d - 2) * (outer / inner + mp.sin(theta) ** 2)

        mode = mp.acos(2 * a / ((d - 2) + mp.sqrt((d - 2) ** 2 + 4 * a**2)))
        width = 1 / mp.sqrt(a * mp.cos(mode) + ((d - 2) / mp.sin(mode) ** 2 if d > 2 else 0))
        mode = mode if sign > 0 else mp.pi - mode
        cuts = [mode + k * width for k in (-16, -8, -3, 0, 3, 8, 16)]

        def mass(low, high):
            return mp.quad(density, [low, *[c for c in cuts if low < c < high], high])

        angle = mp.acos(s / rho)
        return float(mass(mp.mpf(0), angle) / mass(mp.mpf(0), mp.pi))


def losses(rho, dimension, count, rng):
    """Draw M around one centre and return l = ‖M − other‖ − ‖M − own‖ with β = 1."""
    generator = np.random.default_rng(rng)
    direction = generator.standard_normal((count, dimension))
    noise = direction * (generator.gamma(dimension, size=count) / np.linalg.norm(direction, axis=1))[:, None]
    away = noise.copy()
    away[:, 0] -= rho
    return np.linalg.norm(away, axis=1) - np.linalg.norm(noise, axis=1)
