"""Izzo et al., Corollary 10 as printed: the noise whose promise fails for d > 1 (erratum E3), and what σ asks for.

X = r·U with r ~ Laplace(scale) and U uniform on the unit sphere of ‖x‖ = (Σ|x_i/σ_i|^M / d)^{1/M}. The density is
proportional to ‖x‖^{1−d} e^{−‖x‖/scale}: infinite at the released value when d > 1.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln


@dataclass(frozen=True, eq=False)
class PublishedNoise:
    """The law at this scale, with σ = ``factor`` and M = ``moment``."""

    scale: float
    factor: np.ndarray
    moment: float = 2.0

    @property
    def dimension(self):
        return len(self.factor)

    def distance(self, x):
        """‖x‖ in units of the scale."""
        white = np.abs(np.asarray(x) / self.factor)
        largest = white.max(axis=-1, keepdims=True)  # the power of less would underflow for large M
        relative = np.divide(white, largest, out=np.zeros_like(white), where=largest > 0)
        return largest[..., 0] * np.mean(relative**self.moment, axis=-1) ** (1 / self.moment) / self.scale

    def log_density(self, x):
        """The log density at x of shape (..., d); +∞ at 0 when d > 1."""
        d, m, rho = self.dimension, self.moment, self.distance(x)
        log_ball = d / m * np.log(d) + d * (np.log(2) + gammaln(1 + 1 / m)) - gammaln(1 + d / m)
        with np.errstate(divide="ignore"):
            radial = (1 - d) * np.log(rho) if d > 1 else 0.0
        return radial - rho - np.log(d) - log_ball - d * np.log(self.scale) - np.log(self.factor).sum()

    def sample(self, size, rng):
        """Draws, (size, d)."""
        shape = (size, self.dimension)
        y = rng.choice([-1.0, 1.0], size=shape) * rng.gamma(1 / self.moment, size=shape) ** (1 / self.moment)
        sphere = y / np.mean(np.abs(y) ** self.moment, axis=-1, keepdims=True) ** (1 / self.moment)
        return self.scale * rng.laplace(size=(size, 1)) * sphere * self.factor


def published_scale(eta, moment=2.0):
    """The scale that Corollary 10 asks for, in units of σ."""
    return (6.16 / eta) ** (1 + 2 / moment)


def enough(eta):
    """The scale of Laplace noise that is enough, in units of σ (erratum E4).

    Opposite halves are 2σ apart on average, and a total variation 1 − e^{−ρ/2s}, concave in ρ, may be 2η on average.
    """
    return -1 / np.log1p(-2 * eta)
