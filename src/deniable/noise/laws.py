"""The noise added to a released value, and how well any test tells two shifted copies of it apart.

Every law here is X = scale · F z for a fixed diagonal F and a standard law of z on R^d. What an attacker can do with
v + X against w + X depends on the *distance* ρ = ‖F⁻¹(v − w)‖ / scale alone and grows with it; a larger scale only adds
noise to what was there, so it never leaks more. Both facts are what the certificates rest on.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erf, gammaln, log_ndtr, ndtr

from deniable import testing
from deniable._check import FloatArray, InputError, finite, number, numbers
from deniable._floats import EPS
from deniable.laws import NormLaplaceLaw, hockey_stick_at_most

_GRID_BITS = 40  # norm-Laplace noise is added on a grid of this share of its scale
_CHUNK = 4096  # coordinates per call of a hardened sampler, between updates of the progress bar


@dataclass(frozen=True, eq=False)
class NoiseLaw(ABC):
    """A centred noise law on R^d.

    Attributes
    ----------
    scale
        Positive factor; the noise grows with it in proportion.
    factor
        Shape: the diagonal of F, positive, (d,).
    """

    scale: float
    factor: FloatArray
    curvature: ClassVar[float]  # ‖φ''‖, the total variation of φ', of the one-dimensional density at scale 1
    reach: ClassVar[float]  # distance beyond which a one-dimensional copy has less than 1e-8 of its mass

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", number("scale", self.scale, above=0.0, below=np.inf))
        factor = numbers("factor", self.factor, above=0.0, below=np.inf)
        if factor.ndim != 1 or factor.size == 0:
            raise InputError(f"factor must have shape (d,), got {factor.shape}")
        object.__setattr__(self, "factor", factor)

    @property
    def dimension(self) -> int:
        """Number of coordinates d."""
        return len(self.factor)

    def with_scale(self, scale: float) -> Self:
        """Return the law of the same shape at another scale."""
        return replace(self, scale=scale)

    def whiten(self, values: ArrayLike) -> FloatArray:
        """Return F⁻¹·values for values of shape (..., d)."""
        return np.asarray(finite("values", values) / self.factor)

    def distance(self, v: ArrayLike, w: ArrayLike = 0.0) -> FloatArray:
        """Return ρ(v, w), in units of the scaled noise, for arrays of shape (..., d)."""
        difference = self.whiten(v)
        if np.any(w):  # whitened first, as when noise is added, so that the rounding of large values counts
            difference = difference - self.whiten(np.broadcast_to(w, np.broadcast_shapes(np.shape(v), np.shape(w))))
        return np.asarray(np.linalg.norm(difference, axis=-1) / self.scale)

    @abstractmethod
    def leakage(self, log_gamma: float, distance: FloatArray) -> FloatArray:
        """Return an upper bound on H_γ at γ = exp(log_gamma) ≥ 1 for copies ``distance`` apart; increasing in it."""

    @abstractmethod
    def radial(self, distance: FloatArray) -> FloatArray:
        """Return log density at ρ = ``distance`` minus log density at 0."""

    @property
    @abstractmethod
    def peak(self) -> float:
        """Log density of z at 0."""

    def log_density(self, x: ArrayLike) -> FloatArray:
        """Return the log density of the noise at x of shape (..., d)."""
        log_volume = float(self.dimension * np.log(self.scale) + np.log(self.factor).sum())  # of scale · F
        return np.asarray(self.radial(self.distance(x)) + self.peak - log_volume)

    @property
    @abstractmethod
    def standard_deviation(self) -> FloatArray:
        """Standard deviation of each coordinate, shape (d,)."""

    @property
    @abstractmethod
    def sampler(self) -> str:
        """How :meth:`perturb` draws, and which of its parts are hardened against floating-point attacks."""

    def perturb(self, value: ArrayLike) -> FloatArray:
        """Return ``value`` (shape (d,)) plus one draw of the noise, from fresh operating-system entropy."""
        v, rng = np.asarray(value, dtype=np.float64), testing.generator()
        if rng is None:
            return np.asarray(self.factor * self._add_fresh_noise(self.whiten(v)))
        return np.asarray(v + self.factor * self.scale * self._standard(1, rng)[0])

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Return ``size`` draws, shape (size, d), from numpy's generator: for simulations, never for a release."""
        return np.asarray(self.factor * self.scale * self._standard(size, rng))

    @abstractmethod
    def _standard(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Draws of z, shape (size, d)."""

    @abstractmethod
    def _add_fresh_noise(self, white: FloatArray) -> FloatArray:
        """``white`` + scale · z with fresh entropy."""


@dataclass(frozen=True, eq=False)
class GaussianNoise(NoiseLaw):
    """N(0, scale² F Fᵀ): with distance ρ the two worlds are N(0, 1) against N(ρ, 1), exactly.

    Examples
    --------
    >>> import numpy as np
    >>> import deniable as dn
    >>> noise = dn.noise.GaussianNoise(2.0, np.ones(3))             # standard deviation 2 in each of three coordinates
    >>> noise.sample(5, np.random.default_rng(0)).shape, dn.noise.NormLaplaceNoise(1.0, np.ones(3)).dimension
    ((5, 3), 3)
    """

    curvature = 4 / math.sqrt(2 * math.pi * math.e)  # ∫|x² − 1|φ(x)dx = 4φ(1)
    reach = 6.5  # 2Φ(−6.5) = 8e-11

    def leakage(self, log_gamma: float, distance: FloatArray) -> FloatArray:
        """Return H_γ = Φ(ρ/2 − ε/ρ) − e^ε Φ(−ρ/2 − ε/ρ) with ε = log γ (Dong, Roth & Su 2022, Corollary 2.13)."""
        rho = np.asarray(distance, dtype=np.float64)
        if log_gamma == 0:
            return np.asarray(np.minimum(erf(rho / np.sqrt(8)) * (1 + 4 * EPS), 1.0))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = np.where(rho > 0, log_gamma / rho, np.inf)
            upper = ndtr(rho / 2 - ratio)
            value = upper - np.exp(log_gamma + log_ndtr(-rho / 2 - ratio))
            slack = EPS * (8 + 4 * np.minimum((rho / 2 + ratio) ** 2, 1e6)) * upper
        return np.where(np.isinf(rho), 1.0, np.where(rho > 0, np.clip(value + slack, 0.0, 1.0), 0.0))

    def radial(self, distance: FloatArray) -> FloatArray:
        """−ρ²/2."""
        return np.asarray(-(distance**2) / 2)

    @property
    def peak(self) -> float:
        """−d·ln(2π)/2."""
        return -self.dimension / 2 * math.log(2 * math.pi)

    @property
    def standard_deviation(self) -> FloatArray:
        """Standard deviation of each coordinate, shape (d,)."""
        return self.scale * self.factor

    @property
    def sampler(self) -> str:
        """How :meth:`NoiseLaw.perturb` draws."""
        return "OpenDP make_gaussian (hardened), on the whitened value"

    def _standard(self, size: int, rng: np.random.Generator) -> FloatArray:
        return rng.standard_normal((size, self.dimension))

    def _add_fresh_noise(self, white: FloatArray) -> FloatArray:
        return _opendp("gaussian", self.scale, white)


@dataclass(frozen=True, eq=False)
class NormLaplaceNoise(NoiseLaw):
    """Density proportional to exp(−‖F⁻¹x‖/scale): radius Gamma(d, scale) and uniform direction, for every d.

    (Erratum E3: drawing the radius from a Laplace law is right for d = 1 only.) For d = 1 this is Laplace noise.

    Examples
    --------
    See ``GaussianNoise``.
    """

    curvature = 2.0  # of φ = e^{−|x|}/2: 1 from φ'' and 1 from the jump of φ' at 0
    reach = 20.0  # e^{−20} = 2e-9

    def leakage(self, log_gamma: float, distance: FloatArray) -> FloatArray:
        """Return H_γ of the exact law of the privacy loss, rounded up (:mod:`deniable.laws.norm_laplace`).

        For d > 1 both values are rounded to the grid of :meth:`NoiseLaw.perturb` first, which is charged to ρ.
        """
        rho = np.asarray(distance, dtype=np.float64)
        if self.dimension > 1:
            rho = np.where(rho > 0, rho + np.sqrt(self.dimension) * 2.0**-_GRID_BITS, 0.0)
        return hockey_stick_at_most(self.dimension, log_gamma, rho)

    def radial(self, distance: FloatArray) -> FloatArray:
        """−ρ."""
        return -np.asarray(distance, dtype=np.float64)

    @property
    def peak(self) -> float:
        """−ln ∫ e^{−‖z‖} dz."""
        d = self.dimension
        return -float(np.log(2) + d / 2 * np.log(np.pi) + gammaln(d) - gammaln(d / 2))

    @property
    def standard_deviation(self) -> FloatArray:
        """Standard deviation of each coordinate, shape (d,): E r² = d(d + 1), spread over d directions."""
        return np.asarray(np.sqrt(self.dimension + 1) * self.scale * self.factor)

    @property
    def sampler(self) -> str:
        """How :meth:`NoiseLaw.perturb` draws."""
        if self.dimension == 1:
            return "OpenDP make_laplace (hardened), on the whitened value"
        return (
            "radius from d OpenDP Laplace draws, direction from d OpenDP Gaussian draws (both hardened); their product "
            f"in floating point (not hardened); the sum in whole numbers, on a grid of 2^-{_GRID_BITS} of the scale"
        )

    def _standard(self, size: int, rng: np.random.Generator) -> FloatArray:
        return NormLaplaceLaw(self.dimension).draws(size, self.dimension, rng)

    def _add_fresh_noise(self, white: FloatArray) -> FloatArray:
        if self.dimension == 1:
            return _opendp("laplace", self.scale, white)
        zeros = np.zeros(self.dimension)
        radius = np.abs(_opendp("laplace", self.scale, zeros)).sum()  # a sum of d exponentials is Gamma(d)
        direction = _opendp("gaussian", 1.0, zeros)
        return _added_on_grid(white, radius * direction / np.linalg.norm(direction), self.scale)


def _added_on_grid(value: FloatArray, noise: FloatArray, scale: float) -> FloatArray:
    """Round both to whole multiples of a power of two and add them as whole numbers.

    Which floats can come out then does not depend on the value (Mironov 2012), and as the value is on the grid,
    value + round(noise) = round(value + noise): a function of the continuous sum, so it tells no more than that does.
    """
    step = Fraction(2) ** (math.frexp(scale)[1] - 1 - _GRID_BITS)  # at most scale · 2^−_GRID_BITS
    pairs = zip(value.tolist(), noise.tolist(), strict=True)
    return np.array([float((round(Fraction(v) / step) + round(Fraction(z) / step)) * step) for v, z in pairs])


def _opendp(law: Literal["gaussian", "laplace"], scale: float, values: NDArray[Any]) -> FloatArray:
    """Add noise to ``values`` by OpenDP's mechanism: discrete sampling on a fine grid, exact to the last float bit."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    metric = dp.l2_distance(T=float) if law == "gaussian" else dp.l1_distance(T=float)
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), metric
    make = dp.m.make_gaussian if law == "gaussian" else dp.m.make_laplace
    mechanism = make(*space, scale=scale)
    chunks = [values[start : start + _CHUNK].tolist() for start in range(0, len(values), _CHUNK)]
    return np.asarray([x for chunk in chunks for x in mechanism(chunk)], dtype=np.float64)
