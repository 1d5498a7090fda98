"""An oracle of its own: sampled Gaussian steps on a lattice of losses, composed by one FFT. Nothing is imported.

Both masses of a cell of losses are split between its ends, which makes the worlds easier to tell apart (H is convex in
γ): what comes out bounds H from above but for the FFT's rounding. It falls with the square of the spacing, so that
half the spacing shows how much of it is left.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

_REACH = 100.0  # of the lattice on either side
_LARGEST = 32.0  # loss of one step: what lies above gives the record away
_MOST = 18.0  # largest |ε| that is asked: what happens above _LARGEST has lost e^-14 of itself there
_POINTS = 1 << 18
_NOISE = 3e-15  # of an FFT, absolute
_CELLS = 30  # in a standard deviation: then errors fall with the square of the spacing


@dataclass(frozen=True)
class Phase:
    """``steps`` steps of N(0, σ²) against (1 − q)·N(0, σ²) + q·N(1, σ²)."""

    sigma: float
    rate: float
    steps: int


def hockey_stick(phases: list[Phase], epsilon: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """About H_{e^ε} of an added record, for |ε| ≤ 18: a bound from above, and an error; None if it does not fit."""
    if np.any(np.abs(epsilon) > _MOST) or not _fits(phases):
        return None
    coarse, fine = (_composed(phases, epsilon, points) for points in (_POINTS, 2 * _POINTS))
    if coarse is None or fine is None:
        return None
    total = sum(phase.steps for phase in phases)
    error = 8 * np.abs(coarse - fine) + _NOISE * (1 + math.log(total)) * (1 + np.exp(epsilon)) * 10 + 3e-6 * fine
    return fine, error


def _fits(phases: list[Phase]) -> bool:
    """Whether few losses above a third of the reach happen at a time, and the others stay inside many cells."""
    often, variance = 0.0, 0.0
    for phase in phases:
        shift = 1 / phase.sigma
        if phase.sigma < 0.5:
            often += phase.steps * phase.rate
        else:
            variance += phase.steps * phase.rate**2 * math.expm1(shift**2)
    cells = math.sqrt(variance) * _POINTS / (2 * _REACH)
    return often < 0.01 and variance < 20 and (cells == 0 or cells > _CELLS)


def _composed(phases: list[Phase], epsilon: np.ndarray, points: int) -> np.ndarray | None:
    spacing = 2 * _REACH / points
    transforms, kept = np.ones(points // 2 + 1, dtype=complex), 1.0
    for phase in phases:
        p, only = _step(phase, spacing, points)
        transforms *= np.fft.rfft(p) ** phase.steps
        kept *= (1 - only) ** phase.steps
    mass = np.fft.irfft(transforms, points)
    loss = spacing * np.fft.fftfreq(points, 1 / points)
    if np.abs(mass[np.abs(loss) > 0.99 * _REACH]).max() > _NOISE:
        return None
    found = np.array([float(np.sum((mass * -np.expm1(eps - loss))[loss > eps])) for eps in epsilon])
    # whatever is not on the lattice gives the record away
    return found + (1 - kept)


def _step(phase: Phase, spacing: float, points: int) -> tuple[np.ndarray, float]:
    """Masses under P on the lattice, place 0 first, and what gives the record away."""
    shift, q = 1 / phase.sigma, phase.rate
    # outcomes in units of the noise: least loss log(1 − q), or far below where q = 1
    least = math.log1p(-q) if q < 1 else -_REACH / 2
    low = max(math.floor(least / spacing), -math.floor(_REACH / 2 / spacing))
    ends = spacing * np.arange(low, math.ceil(_LARGEST / spacing) + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = (np.exp(ends) - (1 - q)) / q
        u = np.where(inner > 0, np.log(np.maximum(inner, 1e-300)) / shift + shift / 2, -np.inf)
    right = u[:-1] > 0
    below = np.where(right, -u[1:], u[:-1])
    above = np.where(right, -u[:-1], u[1:])
    out = ndtr(above) - ndtr(below)
    moved = u - shift
    right = moved[:-1] > 0
    hit = np.where(right, ndtr(-moved[:-1]) - ndtr(-moved[1:]), ndtr(moved[1:]) - ndtr(moved[:-1]))
    p = (1 - q) * out + q * hit
    # split so that both masses are kept
    up = np.clip((p - np.exp(ends[:-1]) * out) / (-np.expm1(-spacing)), 0.0, p)
    lattice = np.zeros(points)
    place = np.arange(low, low + out.size)
    np.add.at(lattice, place % points, p - up)
    np.add.at(lattice, (place + 1) % points, up)
    beyond = (1 - q) * ndtr(-u[-1]) + q * ndtr(shift - u[-1])
    return lattice, float(beyond)
