"""What the error bounds take for granted, measured: special functions and real transforms against 40 digits.

    python benchmarks/accounting/assumed.py [points]

Prints the largest error in units of 2^−52 beside what is charged for it; exits with 1 if a charge is too small.
"""

import math
import sys
from collections.abc import Callable

import mpmath as mp
import numpy as np
from scipy import fft
from scipy.special import log_ndtr, ndtr

import deniable as dn
from deniable._floats import EPS
from deniable.accounting.engines.chernoff import ROUNDING_OF_K
from deniable.accounting.steps.ratios import complex_log1p, log_ratio
from deniable.accounting.transform.composed import PrivacyLoss


def worst(name: str, points: np.ndarray, error: Callable[[object], float], charge: str, limit: float) -> bool:
    """Print the largest of the errors, in units of 2^−52 relative to what is charged with one unit."""
    found = max(float(error(x)) for x in points)
    print(f"{name:58s} {found:10.3g}   charged {limit:g} {charge}")
    return found <= limit


def relative(got: complex, truth: object, size: object | None = None) -> float:
    return float(abs(mp.mpmathify(got) - truth) / (abs(truth) if size is None else size) / EPS)


def log_cdf(z: object) -> object:
    return mp.log(mp.erfc(-mp.mpmathify(z) / mp.sqrt(2)) / 2)


def mgf_error(rng: np.random.Generator) -> float:
    """|ΔK| of 10⁷ steps over what is charged for it."""
    sigma, rate = 10 ** rng.uniform(-0.9, 2), 10 ** rng.uniform(-8, -0.02)
    loss = PrivacyLoss.of([dn.SubsampledGaussian(sigma, rate, 10**7)])
    theta = float(rng.choice([-1, 1]) * 10 ** rng.uniform(-2, 1) + 0.5)
    got = float(loss.cumulants_at(np.array([theta]))[0][0])
    s, q, x = mp.mpf(sigma), mp.mpf(rate), mp.mpf(theta)

    def excess(u: object) -> object:
        ratio = mp.log1p(q * mp.expm1(u / s - 1 / (2 * s * s)))
        return mp.npdf(u) * mp.expm1(x * ratio)

    reach = 14 + max(theta, 0) / sigma
    cuts = [mp.mpf(k) for k in np.linspace(-14, float(reach), int((14 + reach) / 0.7) + 2)]
    truth = 10**7 * mp.log1p(mp.quad(excess, cuts))
    return float(abs(got - truth) / (ROUNDING_OF_K + 64 * EPS * abs(truth)))


def fft_errors(rng: np.random.Generator) -> tuple[float, float]:
    """Errors of a law's transform and of its inverse, over 2⁻⁵²·log₂ n times what each is charged with one unit of.

    The reference is the same transform in long double.
    """
    n = 1 << int(rng.integers(8, 17))
    place = np.arange(n) / n
    x = rng.random(n) ** rng.integers(1, 12) * np.exp(-0.5 * ((place - rng.random()) / 10 ** rng.uniform(-3, 0)) ** 2)
    x /= x.sum()
    there = np.abs(np.fft.rfft(x, n) - fft.rfft(x.astype(np.longdouble), n))
    law = np.fft.rfft(x, n) ** int(rng.integers(1, 30))
    back = np.fft.irfft(law, n) - fft.irfft(law.astype(np.clongdouble), n)
    unit = EPS * math.log2(n)
    return float(there.max() / unit), float(np.abs(back).sum() / (unit * math.sqrt(2) * np.linalg.norm(np.abs(law))))


def order_error(rng: np.random.Generator) -> float:
    """Error of sums of weights times e^{itL}, in units of 2⁻⁵²·Σ|terms|, whatever the number of terms."""
    n = int(10 ** rng.uniform(1, 5))
    weight, loss = 10 ** rng.uniform(-12, 0, n), rng.normal(size=n)
    turned = np.exp(1j * rng.uniform(0, 50) * loss)
    terms = weight * turned
    truth = complex(math.fsum(terms.real), math.fsum(terms.imag))
    return max(abs(found - truth) for found in (complex(terms.sum()), complex(weight @ turned))) / weight.sum() / EPS


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    rng = np.random.default_rng(1)
    fine = True
    with mp.workdps(40):
        u = rng.uniform(-37, 37, count)
        fine &= worst(
            "ndtr(u), |u| < 37, over 1 + u²", u,
            lambda x: relative(ndtr(x), mp.ncdf(mp.mpf(x))) / (1 + x * x), "(closed form)", 8,
        )  # fmt: skip
        fine &= worst(
            "log_ndtr(u), −40 < u < 9, absolute over 1 + |log|", rng.uniform(-40, 9, count),
            lambda x: relative(log_ndtr(x), log_cdf(mp.mpf(x)), 1 + abs(log_cdf(mp.mpf(x)))), "(windows)", 32,
        )  # fmt: skip
        z = rng.uniform(-9, 9, count) - 1j * rng.uniform(0, 2.3, count)
        fine &= worst(
            "log_ndtr(x − iy), |x| < 9, y < 2.3, absolute over 1 + |log|", z,
            lambda x: relative(log_ndtr(x), log_cdf(x), 1 + abs(log_cdf(x))), "(windows)", 32,
        )  # fmt: skip
        x = 10 ** rng.uniform(-18, 2.8, count) * rng.choice([-1, 1], count)
        fine &= worst("expm1(x)", x, lambda y: relative(np.expm1(y), mp.expm1(mp.mpf(y))), "(differences)", 4)
        fine &= worst(
            "log1p(x), x > −1 + 1e-6", np.maximum(x, 1e-6 - 1), lambda y: relative(np.log1p(y), mp.log1p(mp.mpf(y))),
            "(losses)", 4,
        )  # fmt: skip
        w = 10 ** rng.uniform(-12, 2, count) * np.exp(2j * np.pi * rng.random(count))
        fine &= worst(
            "expm1(z), |z| < 100, over |z|·e^max(Re z, 0)", w,
            lambda y: relative(np.expm1(y), mp.expm1(mp.mpmathify(y)), mp.mpf(abs(y)) * mp.exp(max(y.real, 0))),
            "(transforms)", 32,
        )  # fmt: skip
        small = 10 ** rng.uniform(-12, -0.1, count) * np.exp(2j * np.pi * rng.random(count))
        fine &= worst(
            "complex log1p(z), |z| < 0.8, over |z|", small,
            lambda y: relative(complex_log1p(np.array([y]))[0], mp.log1p(mp.mpmathify(y)), mp.mpf(abs(y))),
            "(transforms)", 32,
        )  # fmt: skip

        def loss_error(case: object) -> float:
            sigma, rate, at = case
            s, q, v = mp.mpf(sigma), mp.mpf(rate), mp.mpf(at)
            a = v / s - 1 / (2 * s * s)
            truth = mp.log1p(q * mp.expm1(a))
            posterior = q * mp.exp(a - truth)
            size = abs(truth) + posterior * (abs(v) / s + 1 / s**2)
            found = log_ratio(np.array([at]), np.array(sigma), np.array(rate))[0]
            return relative(found, truth, size)

        cases = list(zip(10 ** rng.uniform(-1, 2, count), 10 ** rng.uniform(-8, -0.02, count), u / 3, strict=True))
        fine &= worst("L(u) over |L| + posterior·(|u|/σ + 1/σ²)", cases, loss_error, "(step_rounding)", 4)
    with mp.workdps(25):
        found = max(mgf_error(rng) for _ in range(min(count // 50, 40)))
        print(f"{'K(θ) of 10⁷ steps, share of what is charged':58s} {found:10.3g}   charged 1")
        fine &= found <= 1 and math.isfinite(found)
    there, back = (max(found) for found in zip(*(fft_errors(rng) for _ in range(count // 10)), strict=True))
    print(f"{'FFT of a law, over log₂ n':58s} {there:10.3g}   charged 3 (lattice)")
    print(f"{'inverse FFT, sum of errors over √2·norm·log₂ n':58s} {back:10.3g}   charged 3 (lattice)")
    found = max(order_error(rng) for _ in range(count // 10))
    print(f"{'sums of up to 10⁵ terms in any order, over Σ|terms|':58s} {found:10.3g}   assumed 16")
    return 0 if fine and max(there, back) <= 3 and found <= 16 else 1


if __name__ == "__main__":
    raise SystemExit(main())
