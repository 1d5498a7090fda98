"""The density of the loss of a few steps, by direct convolution in the scale in which it is smooth.

Transforms of a few steps at little noise decay too slowly to be inverted. In real space everything is positive and
analytic. Write one step's likelihood ratio as r(u) = (1 − q)(1 + ρ(u)), ρ(u) = e^{(u − m)/σ}, and that of k steps as
(1 − q)^k·(1 + ρ(Z)): Z is the outcome of a single step that would show as much as all k. Its density f_k under "out"
(f_1 = φ) obeys, for independent groups of a and b steps,

    f_{a+b}(z) = σ ∫ f_a(z − σ·log(1 + e^{−s}))·f_b(z − σ·log(1 + (1 + ρ(z))·e^s)) ds,

and the density under "in" is (1 − q)^k·(1 + ρ)·f_k. All terms are positive, so that rounding stays relative. From
s = −log(1 + ρ(z))/2 on, either argument is the other one at −s, so that they are worked out and looked up once.

Errors. The integrand is analytic for |Im s| < π, f_k for |Im z| < πσ. With G_k ≥ |f_k(ζ + iy)| for |y| ≤ Y = σθ,
θ ≤ π/2, both arguments stay in that strip if Im z or Im s does, their imaginary part never exceeds Y, and their real
part lies between that at y = 0 and σ·|log cos(θ/2)| more (|A + Be^{iθ}| ≥ (A + B)·cos(θ/2)). So

- G_{a+b} ≤ σ ∫ sup G_a·sup G_b, a Riemann sum of suprema over cells;
- the trapezoid sum in s with spacing κ is wrong by at most 2·G_{a+b}/(e^{2πθ/κ} − 1); and
- a polynomial through 16 nodes is wrong by at most sup G_k over a disc of radius R = 20h times
  Π t²/((R/h)² − t²)·R/(R − h/2), t = ½, …, 7½ (Cauchy's integral for the remainder).

Left of the grid |f_k| ≤ e^{kY²/2}·φ(ζ + (k − 1)·σ|log cos(θ/2)|), by induction, as long as the argument of φ is
below −8: one of the two arguments of every product runs at half speed or faster there, and ∫φ ≤ φ/8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d

from deniable._check import FloatArray
from deniable._floats import EPS, PRODUCT_EXPONENT
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.accounting.trapezoid import strip_aliases

HALF = 8  # nodes of the interpolation on either side
DISC = 20  # its radius of analyticity, in cells
_TURN = 0.8  # θ ≤ this, and
_GROWTH = 1.25  # Y ≤ this over √k: bounds in the complex plane grow by e^0.8, and by what their cells add
_LOWEST = -13.0  # φ there is about 1e-37
_DIGITS = 36.0  # −log of the trapezoid's relative error
_NOTHING = 65.0  # −log of the mass beyond the upper end
_LARGEST = PRODUCT_EXPONENT  # loss whose exponential is still a number
_ROUND = 1e-6  # cells; more than any rounding of an argument
_BLOCK = 1 << 18  # of them at a time


@dataclass(frozen=True, eq=False)
class DensityGrid:
    """Nodes first + h·i for f_1, …, f_k, and the strip |Im z| ≤ height in which they are bounded."""

    sigma: float
    rate: float
    steps: int
    first: float
    spacing: float
    size: int
    height: float

    @classmethod
    def of(cls, loss: PrivacyLoss, most_terms: float) -> DensityGrid:
        """Choose the nodes for a loss of one phase; all convolutions together may have this many terms.

        Raises
        ------
        TooSlowError
            If the convolutions would take too long.
        """
        sigma, rate, steps = float(loss.noise[0]), float(loss.rate[0]), int(loss.steps[0])
        height = min(_TURN * sigma, _GROWTH / math.sqrt(steps))
        spacing = height / DISC
        grid = cls(sigma, rate, steps, 0.0, spacing, 0, height)
        first = _LOWEST - steps * grid.drift
        levels = math.ceil(math.log2(steps))
        rise = end_of(loss) - loss.lowest
        last = float(grid.outcomes(np.array(rise))) + spacing * (levels + 1) * grid.lost
        cells = (last - first) / spacing
        if rise < _LARGEST:
            grid = cls(sigma, rate, steps, first, spacing, math.ceil(cells) + 1, height)
            if grid.terms < most_terms:
                return grid
        raise TooSlowError("the direct convolution is too long")

    @property
    def terms(self) -> float:
        """About how many terms all convolutions together have."""
        return len(_groups(self.steps)) * self.size * 2 * self.size * self.spacing / (self.sigma * self.step)

    @property
    def turn(self) -> float:
        """θ, the height in units of σ."""
        return self.height / self.sigma

    @property
    def step(self) -> float:
        """Spacing κ in s."""
        return 2 * math.pi * self.turn / _DIGITS

    @property
    def drift(self) -> float:
        """How much the real part of an argument may grow off the real line."""
        return -self.sigma * math.log(math.cos(self.turn / 2))

    @property
    def reach(self) -> int:
        """Cells that an argument may visit while z crosses one cell and s one step, and both leave the real line."""
        path = self.spacing + self.sigma * self.step + self.drift
        return math.ceil(path / self.spacing + _ROUND) + 1

    @property
    def lost(self) -> int:
        """Cells at the upper end that a convolution cannot serve."""
        return max(DISC + 2, self.reach) + 1

    @property
    def middle(self) -> float:
        """The outcome m at which ρ = 1."""
        return 1 / (2 * self.sigma) + self.sigma * (math.log1p(-self.rate) - math.log(self.rate))

    def outcomes(self, rise: FloatArray) -> FloatArray:
        """z at which the loss is ``rise`` above its infimum."""
        z: FloatArray = self.middle + self.sigma * (np.log(-np.expm1(-rise)) + rise)
        return z

    def log_odds(self, z: FloatArray) -> FloatArray:
        """log ρ(z)."""
        odds: FloatArray = (z - self.middle) / self.sigma
        return odds

    def log_rise(self, z: FloatArray) -> FloatArray:
        """log(1 + ρ(z)): the loss above its infimum."""
        rise: FloatArray = np.logaddexp(0.0, self.log_odds(z))
        return rise

    @cached_property
    def z(self) -> FloatArray:
        """The nodes."""
        return self.first + self.spacing * np.arange(self.size, dtype=np.float64)

    @property
    def blur(self) -> float:
        """Bound on the rounding of an argument."""
        return 8 * EPS * (abs(self.first) + abs(float(self.z[-1])) + abs(self.middle) + 1 / self.sigma)

    @property
    def wrong_odds(self) -> float:
        """Bound on the rounding of log ρ at a node."""
        return 2 * EPS * (abs(self.first) + abs(float(self.z[-1])) + abs(self.middle) + 1 / self.sigma) / self.sigma

    def outside(self, steps: int) -> float:
        """Bound on |f_k| left of the grid."""
        end = self.first + (steps - 1) * self.drift
        return math.exp(steps * self.height**2 / 2 - end**2 / 2)


@dataclass(frozen=True, eq=False)
class Density:
    """A positive function on the grid's first cells: values at nodes, their errors, bounds G on cells."""

    grid: DensityGrid
    values: FloatArray
    errors: FloatArray
    bounds: FloatArray  # one fewer than values
    outside: float  # the same left of the grid

    @cached_property
    def coefficients(self) -> FloatArray:
        """Interpolating polynomials, one row a power of the position in the cell, −½ to ½; 0 without a stencil."""
        table = np.zeros((2 * HALF, self.bounds.size))
        stencils = np.lib.stride_tricks.sliding_window_view(self.values, 2 * HALF)
        table[:, HALF - 1 : HALF - 1 + len(stencils)] = _polynomials()[0] @ stencils.T
        return table

    @cached_property
    def cell_errors(self) -> FloatArray:
        """Error of the interpolation in every cell for arguments with a little blur; G itself without a stencil."""
        ratio = np.arange(0.5, HALF)
        remainder = float(np.prod(ratio**2 / (DISC**2 - ratio**2))) * DISC / (DISC - 0.5)
        around = maximum_filter1d(self.bounds, 2 * DISC + 1, mode="constant", cval=self.outside)
        remainder += self.grid.blur / ((DISC - 1) * self.grid.spacing)  # bounds |f′| as well
        stencils = np.lib.stride_tricks.sliding_window_view
        _, weights, rounding = _polynomials()
        spread = stencils(self.errors, 2 * HALF) @ weights + rounding * stencils(self.values, 2 * HALF).max(axis=1)
        found = self.bounds.copy()
        inside = slice(HALF - 1, self.values.size - HALF)
        found[inside] = remainder * around[inside] + spread
        found[-DISC - 1 :] = np.inf  # the disc is not known
        return found

    def at(self, cell: NDArray[np.intp], position: FloatArray) -> FloatArray:
        """Interpolated values at first + h·(cell + ½ + position)."""
        value: FloatArray = self.coefficients[-1].take(cell)
        for row in self.coefficients[-2::-1]:
            value *= position
            value += row.take(cell)
        return value

    def times(self, log_factor: FloatArray) -> Density:
        """Multiply by e^{log_factor}, increasing in z and on the strip at most what it is on the real line."""
        log_factor = log_factor[: self.values.size]
        factor = np.exp(log_factor)
        values = self.values * factor
        errors = self.errors * factor + ((64 + 8 * np.abs(log_factor)) * EPS + self.grid.wrong_odds) * values
        return Density(self.grid, values, errors, self.bounds * factor[1:], self.outside * float(factor[0]))

    @cached_property
    def masses(self) -> FloatArray:
        """Integral over every cell."""
        powers = np.arange(0.0, 2 * HALF, 2)
        found: FloatArray = 2 * self.grid.spacing * ((0.5 ** (powers + 1) / (powers + 1)) @ self.coefficients[::2])
        return found


@dataclass(frozen=True, eq=False)
class StepLaw:
    """Tails of a density between two nodes, given bounds on the masses outside them."""

    density: Density
    first: int
    last: int
    below: float
    above: float

    @cached_property
    def _sums(self) -> tuple[FloatArray, FloatArray]:
        """Mass and error of the cells above and below every node from first to last, without the ends: (2, nodes)."""
        cells = slice(self.first, self.last)
        both = np.stack([self.density.masses[cells], self.density.grid.spacing * self.density.cell_errors[cells]])
        none = np.zeros((2, 1))
        up = np.concatenate([np.cumsum(both[:, ::-1], axis=1)[:, ::-1], none], axis=1)
        return up, np.concatenate([none, np.cumsum(both, axis=1)], axis=1)

    def tail(self, z: FloatArray, upper: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mass above (below) every z, its error, and the density there."""
        grid = self.density.grid
        place = np.clip((z - grid.first) / grid.spacing, self.first, np.nextafter(self.last, 0))
        cell = place.astype(np.intp)
        position = place - cell - 0.5
        length = 0.5 - position if upper else position + 0.5
        centre = position + length / 2 if upper else position - length / 2
        nodes, weights = np.polynomial.legendre.leggauss(HALF)
        places = centre + np.multiply.outer(nodes, length / 2)
        values = self.density.at(np.broadcast_to(cell, places.shape), places)
        mass, error = self._sums[0][:, cell - self.first + 1] if upper else self._sums[1][:, cell - self.first]
        mass = mass + grid.spacing * length / 2 * np.cumsum(weights[:, None] * values, axis=0)[-1]
        error = error + grid.spacing * length * self.density.cell_errors[cell] + grid.blur * self.density.bounds[cell]
        end = self.above if upper else self.below
        mass, error = mass + end / 2, error + end / 2
        return mass, error + (64 + self.last) * EPS * mass, self.density.at(cell, position)

    def quantile(self, mass: FloatArray, upper: bool) -> FloatArray:
        """Return the z above (below) which there is nearly this mass."""
        sums = self._sums[0 if upper else 1][0]
        order = -sums if upper else sums
        cell = np.clip(np.searchsorted(order, -mass if upper else mass, side="right") - 1, 0, sums.size - 2)
        low, high = self.density.grid.z[self.first + cell], self.density.grid.z[self.first + cell + 1]
        z = (low + high) / 2
        for _ in range(6):  # Newton's method on the logarithm
            tail, _, slope = self.tail(z, upper)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = np.log(tail / mass) * tail / slope
            z = np.clip(z + np.nan_to_num(step if upper else -step), low, high)
        return z


def composed_density(grid: DensityGrid) -> Density:
    """Return f_k of all steps."""
    known = {1: _single(grid)}

    def of(steps: int) -> Density:
        if steps not in known:
            known[steps] = _convolved(of(steps // 2), of(steps - steps // 2), steps)
        return known[steps]

    return of(grid.steps)


def _single(grid: DensityGrid) -> Density:
    values = np.exp(-(grid.z**2) / 2) / math.sqrt(2 * math.pi)
    nearest = np.where(grid.z[:-1] > 0, grid.z[:-1], np.minimum(grid.z[1:], 0.0))
    bounds = np.exp((grid.height**2 - nearest**2) / 2) / math.sqrt(2 * math.pi)
    return Density(grid, values, EPS * (4 + grid.z**2) * values, bounds, grid.outside(1))


def _groups(steps: int) -> set[int]:
    """Numbers of steps whose densities are convolved on the way to this many."""
    if steps == 1:
        return set()
    return {steps} | _groups(steps // 2) | _groups(steps - steps // 2)


def _convolved(a: Density, b: Density, steps: int) -> Density:
    grid = a.grid
    sigma, step, reach = grid.sigma, grid.step, grid.reach
    count = min(a.values.size, b.values.size) - grid.lost
    values, errors, bounds = np.empty((3, count))
    wide_a, wide_b = _suprema(a), _suprema(b)
    margin = reach * grid.spacing / sigma + 3 * step
    rows = max(1, int(_BLOCK * sigma * step / (2 * (grid.z[-1] - grid.first) + 2 * sigma * margin)))
    for k in range(0, count, rows):
        here = slice(k, min(k + rows, count))
        z = grid.z[here, None]
        rise = grid.log_rise(z)
        most = math.ceil(((z[-1, 0] - grid.first) / sigma - rise[-1, 0] / 2 + margin) / step)
        s = step * np.arange(-most, most + 1)  # beside −log(1 + ρ(z))/2
        place = (z - grid.first) / grid.spacing - sigma / grid.spacing * np.logaddexp(0.0, rise / 2 - s)
        f, df = _looked_up(a, place)
        g, dg = (x[:, ::-1] for x in ((f, df) if a is b else _looked_up(b, place)))
        values[here] = sigma * step * np.einsum("ij,ij->i", f, g)
        errors[here] = sigma * step * (np.einsum("ij,ij->i", df, g + dg) + np.einsum("ij,ij->i", f, dg))
        low = np.maximum(np.floor(place[:, :-1] - _ROUND) + reach, 0).astype(np.intp)
        bounds[here] = sigma * step * np.einsum("ij,ij->i", wide_a[low], wide_b[low][:, ::-1])
    # where one argument is left of the grid the other is within this many cells of z
    near = 2 * math.ceil(sigma * math.log(2 + math.exp(grid.log_odds(grid.z[0]))) / grid.spacing) + 3
    near_a, near_b = (maximum_filter1d(wide, near, mode="nearest")[reach : reach + count] for wide in (wide_a, wide_b))
    omitted = 3 * (1 + sigma * step) * (a.outside * near_b + b.outside * near_a)
    bounds += omitted
    errors += strip_aliases(grid.turn, step) * bounds + (64 + f.shape[1]) * EPS * values + omitted
    return Density(grid, values, errors, bounds[:-1], grid.outside(steps))


def _suprema(of: Density) -> FloatArray:
    """Largest G over a cell and the following ones that an argument may visit; that many cells left of the grid."""
    reach = of.grid.reach
    padded = np.concatenate([np.full(reach, of.outside), of.bounds])
    forward: FloatArray = np.lib.stride_tricks.sliding_window_view(padded, reach).max(axis=1)
    return forward


def _looked_up(of: Density, place: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Values and errors at places in units of the spacing; left of the grid the value is 0."""
    floor = np.floor(place)
    cell = np.maximum(floor, 0).astype(np.intp)
    left = floor < 0
    value = np.maximum(of.at(cell, place - floor - 0.5), 0.0)
    value[left] = 0.0
    return value, np.where(left, of.outside, of.cell_errors.take(cell))


@lru_cache(maxsize=1)
def _polynomials() -> tuple[FloatArray, FloatArray, float]:
    """Lagrange's polynomials for nodes ±½, …: coefficients (powers, nodes), their sizes and rounding on [−½, ½]."""
    places = [Fraction(2 * k + 1, 2) for k in range(-HALF, HALF)]
    columns = []
    for at in places:
        poly = [Fraction(1)]
        for other in places:
            if other != at:
                shifted = [Fraction(0), *poly]
                poly = [(x - other * y) / (at - other) for x, y in zip(shifted, [*poly, Fraction(0)], strict=True)]
        columns.append([float(x) for x in poly])
    table = np.array(columns).T
    powers = np.arange(2.0 * HALF)
    sizes = np.abs(np.power.outer(np.linspace(-0.5, 0.5, 101), powers) @ table).max(axis=0)
    return table, 1.01 * sizes, 64 * EPS * float((np.abs(table).T @ 0.5**powers).sum())


def witnesses(loss: PrivacyLoss) -> tuple[FloatArray, FloatArray]:
    """Return points θ > 1 and K(θ), with a little more for its rounding: Chernoff's bounds on upper tails."""
    points, growth = loss.log_mgf_known(1 + np.geomspace(0.05, 40.0 * float(loss.noise[0]) + 5, 60))
    return points, growth + 1e-6


def end_of(loss: PrivacyLoss) -> float:
    """Return a loss above which neither law has mass worth mentioning."""
    points, growth = witnesses(loss)
    return float(np.min((growth + _NOTHING) / (points - 1)))
