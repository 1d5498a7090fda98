"""What a report of a wrong bound needs: versions, platform, and whether known answers come out here."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from deniable._optional import EXTRA_OF
from deniable.mechanisms import GaussianDP, Mechanism, SubsampledGaussian

_DISTRIBUTIONS = {"flint": "python-flint", "sklearn": "scikit-learn"}  # where the module has another name
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

# 2Φ(½) − 1 to 25 digits; the advantage of σ = 1, q = 0.01, T = 5000 to 10 (an independent high-resolution inversion)
_GAUSSIAN, _RUN = 0.3829249225480262, 0.3508330355


@dataclass(frozen=True)
class Check:
    """One question with a known answer: ``detail`` says what came out."""

    name: str
    fine: bool
    detail: str


@dataclass(frozen=True)
class Diagnosis:
    """Environment and checks of this installation; nothing of any data.

    Attributes
    ----------
    versions
        Version of deniable, Python and every library that is installed.
    missing
        Libraries that are not installed, each with the extra that brings it.
    machine
        Platform, processor, cores, thread limits, precision of ``numpy.longdouble``.
    checks
        Known answers, computed here.
    """

    versions: dict[str, str] = field(hash=False)
    missing: dict[str, str] = field(hash=False)
    machine: dict[str, str] = field(hash=False)
    checks: tuple[Check, ...]

    @property
    def fine(self) -> bool:
        """Whether every check came out right."""
        return all(check.fine for check in self.checks)

    def lines(self) -> list[str]:
        """Return the diagnosis as text."""
        return [
            *(f"{name:<14} {found}" for name, found in (self.versions | self.machine).items()),
            *(f"{name:<14} not installed (pip install 'deniable[{extra}]')" for name, extra in self.missing.items()),
            *(f"{'ok' if check.fine else 'WRONG':<6} {check.name}: {check.detail}" for check in self.checks),
        ]


def diagnose() -> Diagnosis:
    """Return versions, platform and the outcome of the checks."""
    installed = {name: _version(_DISTRIBUTIONS.get(name, name)) for name in ("numpy", "scipy", "typer", *EXTRA_OF)}
    return Diagnosis(
        versions={"deniable": _version("deniable") or "not installed as a package", "python": sys.version.split()[0]}
        | {name: found for name, found in installed.items() if found},
        missing={name: EXTRA_OF[name] for name, found in installed.items() if not found},
        machine={
            "platform": platform.platform(),
            "processor": f"{platform.machine()}, {os.cpu_count()} cores",
            "threads": ", ".join(f"{name}={os.environ.get(name, 'not set')}" for name in _THREADS),
            "longdouble": f"{np.finfo(np.longdouble).nmant} bits",
        },
        checks=tuple(_run(name, question) for name, question in _QUESTIONS.items()),
    )


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def _run(name: str, question: Callable[[], tuple[bool, str]]) -> Check:
    try:
        return Check(name, *question())
    except Exception as error:
        missing = getattr(error, "name", None) if isinstance(error, ImportError) else None
        absent = missing in EXTRA_OF
        told = f"not asked: {missing} is not installed" if absent else f"{type(error).__name__}: {error}"
        return Check(name, absent, told)


def _rounding() -> tuple[bool, str]:
    nearest = 1.0 + 2.0**-53 == 1.0 and 1.0 + 3 * 2.0**-53 == 1.0 + 2.0**-51
    subnormal = float(np.float64(2.0**-1073) / 2) > 0
    return nearest and subnormal, f"to nearest: {nearest}; subnormal numbers kept: {subnormal}"


def _advantage(mechanism: Mechanism, known: float, rounded: float = 0.0) -> tuple[bool, str]:
    """Compare an advantage with what it is ``known`` to be, up to where that number was ``rounded``."""
    from deniable.accounting import tradeoff

    curve = tradeoff(mechanism)
    low, high = curve.advantage(side="lower"), curve.advantage()
    fine = low - rounded <= known <= high + rounded and high - low < 1e-9
    return fine, f"{low!r} … {high!r}, known: {known}"


def _noise() -> tuple[bool, str]:
    from deniable.noise import SumNoise

    drawn = SumNoise().channel("noise", np.full(10_000, 1e6), 1)(np.zeros(10_000, dtype=np.int64)) / 1e6
    mean, deviation = float(drawn.mean()), float(drawn.std())
    return abs(mean) < 0.06 and abs(deviation - 1) < 0.05, f"10,000 draws: mean {mean:.3f}, deviation {deviation:.3f}"


_QUESTIONS: dict[str, Callable[[], tuple[bool, str]]] = {
    "floating point": _rounding,
    "closed form": partial(_advantage, GaussianDP(1.0), _GAUSSIAN),
    "inversion": partial(_advantage, SubsampledGaussian(1.0, 0.01, 5000), _RUN, 5e-11),
    "noise": _noise,
}
