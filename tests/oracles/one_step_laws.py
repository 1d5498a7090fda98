"""One-step laws written down a second time, by outcomes and densities: nothing here comes from the accounting.

Hockey sticks of two steps are the mean of one step's closed form, H_γ(P², Q²) = E_P[H_{γ/r}(P, Q)] with r the other
step's likelihood ratio: a sum over atoms, and an integral over outcomes where the law is continuous.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from scipy.integrate import quad
from scipy.special import ndtr, ndtri

from deniable import mechanisms


@dataclass(frozen=True, eq=False)
class OneStepLaw:
    """P and Q: atoms (log p/q, p, q), and a density part on outcomes x in an interval."""

    mechanism: mechanisms.Mechanism
    sample: Callable  # (rng, inside, shape) -> losses of that many draws
    atoms: list = field(default_factory=list)
    interval: tuple = (0.0, 0.0)
    p: Callable = None
    q: Callable = None
    kinks: Callable = lambda log_gamma: []  # outcomes at which one step's H at γ/r(x) has a kink
    one_step: Callable = None  # (log γ, direction) -> H in closed form, where the law is not discrete

    def _expected(self, weight, value, points=()):
        """Σ weight·value(log p/q): ``weight`` is 0 for P and 1 for Q."""
        total = math.fsum(atom[1 + weight] * value(atom[0]) for atom in self.atoms)
        low, high = self.interval
        if high > low:
            density = self.q if weight else self.p
            ends = [low, *sorted(x for x in points if low < x < high), high]
            for a, b in pairwise(ends):
                found = quad(
                    lambda x: density(x) * value(math.log(self.p(x) / self.q(x))), a, b, epsabs=1e-14, epsrel=1e-13
                )
                total += found[0]
        return total

    def hockey_stick(self, log_gamma, direction):
        if self.one_step is not None:
            return self.one_step(log_gamma, direction)
        gamma = math.exp(log_gamma)
        pairs = [(p, q) if direction == "remove" else (q, p) for _, p, q in self.atoms]
        return math.fsum(max(p - gamma * q, 0.0) for p, q in pairs)

    def two_steps(self, log_gamma, direction):
        sign, weight = (1, 0) if direction == "remove" else (-1, 1)
        return self._expected(
            weight, lambda loss: self.hockey_stick(log_gamma - sign * loss, direction), self.kinks(sign * log_gamma)
        )

    def moments(self, c):
        """K, K′ and K″ at c."""
        total, mean, square = (self._expected(1, lambda x, k=k: math.exp(c * x) * x**k) for k in range(3))
        return math.log(total), mean / total, square / total - (mean / total) ** 2

    @property
    def scale(self):
        """Standard deviation of the loss."""
        return math.sqrt(self.moments(0.0)[2])


def _sampled(plain, rate):
    """H of a step that is made at a rate, from H of the step: P = (1 − q)·Q + q·P₁."""

    def hockey_stick(log_gamma, direction):
        gamma = math.exp(log_gamma)
        if direction == "add":  # H_γ(Q‖P) = 1 − γ + γ·H_{1/γ}(P‖Q)
            return 1 - gamma + gamma * hockey_stick(-log_gamma, "remove")
        moved = (gamma - 1 + rate) / rate
        return rate * plain(math.log(moved)) if moved > 0 else 1 - gamma

    return hockey_stick


def _laplace(scale, sensitivity, rate):
    eps = sensitivity / scale

    def plain(log_gamma):
        if log_gamma >= eps:
            return 0.0
        return 1 - math.exp(log_gamma) if log_gamma <= -eps else 1 - math.exp((log_gamma - eps) / 2)

    def out(x):
        return math.exp(-abs(x) / scale) / (2 * scale)

    def inside(x):
        return (1 - rate) * out(x) + rate * math.exp(-abs(x - sensitivity) / scale) / (2 * scale)

    def sample(rng, world, shape):
        x = rng.laplace(0, scale, shape)
        if world:
            x = x + sensitivity * (rng.random(shape) < rate)
        return np.log(1 - rate + rate * np.exp((np.abs(x) - np.abs(x - sensitivity)) / scale))

    ends = [math.log(1 - rate + rate * math.exp(e)) for e in (-eps, eps)]
    masses = [0.5, math.exp(-eps) / 2]
    atoms = [(loss, q * math.exp(loss), q) for loss, q in zip(ends, masses, strict=True)]

    def kinks(log_gamma):
        found = []
        for end in ends:  # one step's H has kinks at its largest and smallest loss
            plain_loss = (math.exp(log_gamma - end) - 1 + rate) / rate
            if plain_loss > 0:
                found.append((scale * math.log(plain_loss) + sensitivity) / 2)
        return found

    return OneStepLaw(
        mechanisms.Laplace(scale, sensitivity, sample_rate=rate),
        sample,
        atoms,
        (0.0, sensitivity),
        inside,
        out,
        kinks,
        _sampled(plain, rate),
    )


def _bounded_range(eps):
    """Losses ℓ in (−ε, ε) with density ½·e^{−ε/2 − ℓ/2}/(1 − e^{−ε}) under Q: x is the loss."""
    size = -math.expm1(-eps)

    def plain(log_gamma):
        if log_gamma >= eps:
            return 0.0
        return 1 - math.exp(log_gamma) if log_gamma <= -eps else (1 - math.exp((log_gamma - eps) / 2)) ** 2 / size

    def sample(rng, world, shape):  # under P the density is ½·e^{−ε/2 + ℓ/2}/(1 − e^{−ε})
        u = rng.random(shape)
        loss = -eps - 2 * np.log1p(-u * size)
        return -loss if world else loss

    return OneStepLaw(
        mechanisms.BoundedRange(eps),
        sample,
        [],
        (-eps, eps),
        lambda x: math.exp((x - eps) / 2) / (2 * size),
        lambda x: math.exp((-x - eps) / 2) / (2 * size),
        lambda log_gamma: [log_gamma - eps, log_gamma + eps],
        _sampled(plain, 1.0),
    )


def _discrete(mechanism, p, q):
    """Masses of the same outcomes."""
    p, q = np.asarray(p), np.asarray(q)
    loss = np.log(p) - np.log(q)

    def sample(rng, world, shape):
        mass = p if world else q
        return rng.choice(loss, size=shape, p=mass / mass.sum())

    return OneStepLaw(mechanism, sample, list(zip(loss, p, q, strict=True)))


def _on_integers(mechanism, log_mass, moved, rate):
    """Noise on the integers from −80 to 80, moved, at a rate."""
    x = np.arange(-80, 81)
    mass = np.exp([log_mass(k) for k in range(-80 - moved, 81)])
    mass /= math.fsum(mass)
    q, shifted = mass[moved:], mass[: x.size]
    keep = (q > 1e-200) & (shifted > 1e-200)
    return _discrete(mechanism, ((1 - rate) * q + rate * shifted)[keep], q[keep])


def _response(eps, categories):
    mass = np.full(categories, 1.0)
    mass[0] = math.exp(eps)
    mass /= mass.sum()
    return _discrete(mechanisms.RandomizedResponse(eps, categories), mass, np.roll(mass, 1))


def _without_replacement(sigma, batch, n_records):
    """Symmetric: P₀ = (1 − q)·N(0) + q·N(μ) against N(0) where u = μ/2 + |x| and x > 0, exchanged where x < 0."""
    mu, rate = 2 / sigma, batch / n_records
    nobody = float(ndtr(-mu / 2))  # of N(0), where the loss is positive
    same = (1 - rate) * (1 - 2 * nobody)

    def ratio(u):
        return 1 - rate + rate * np.exp(mu * u - mu**2 / 2)

    def out(x):
        u = mu / 2 + abs(x)
        return math.exp(-(u**2) / 2) / math.sqrt(2 * math.pi) * (1.0 if x > 0 else float(ratio(u)))

    def sample(rng, world, shape):
        share, uniform = rng.random(shape), rng.random(shape)
        parts = np.cumsum([nobody, (1 - rate) * nobody, rate * (1 - nobody)])
        u = -ndtri(uniform * nobody)  # N(0) beyond μ/2
        u = np.where(share >= parts[1], mu - ndtri(uniform * (1 - nobody)), u)
        loss = np.where(share < parts[2], np.log(ratio(u)) * np.where(share < parts[0], 1, -1), 0.0)
        return -loss if world else loss

    def place(log_gamma):
        return math.log1p(math.expm1(log_gamma) / rate) / mu + mu / 2

    def hockey_stick(log_gamma, direction):
        gamma = math.exp(log_gamma)
        if log_gamma < 0:
            return 1 - gamma + gamma * hockey_stick(-log_gamma, direction)
        u = place(log_gamma)
        return float((1 - rate) * ndtr(-u) + rate * ndtr(mu - u) - gamma * ndtr(-u))

    reach = 9 + mu / 2
    return OneStepLaw(
        mechanisms.WithoutReplacement(sigma, batch, n_records),
        sample,
        [(0.0, same, same)],
        (-reach, reach),
        lambda x: out(-x),
        out,
        lambda log_gamma: [0.0, math.copysign(place(abs(log_gamma)) - mu / 2, log_gamma)],
        hockey_stick,
    )


LAWS = {
    "laplace": _laplace(2.0, 1.0, 1.0),
    "laplace, little noise": _laplace(0.4, 1.0, 1.0),
    "laplace, sampled": _laplace(1.0, 1.0, 0.2),
    "bounded range": _bounded_range(0.8),
    "bit": _response(0.7, 2),
    "category": _response(1.1, 5),
    "discrete laplace": _on_integers(mechanisms.DiscreteLaplace(1.5, 2), lambda x: -abs(x) / 1.5, 2, 1.0),
    "discrete laplace, sampled": _on_integers(
        mechanisms.DiscreteLaplace(0.8, 1, sample_rate=0.3), lambda x: -abs(x) / 0.8, 1, 0.3
    ),
    "discrete gaussian": _on_integers(mechanisms.DiscreteGaussian(2.0), lambda x: -(x**2) / 8, 1, 1.0),
    "discrete gaussian, little noise": _on_integers(mechanisms.DiscreteGaussian(0.4), lambda x: -(x**2) / 0.32, 1, 1.0),
    "discrete gaussian, sampled": _on_integers(
        mechanisms.DiscreteGaussian(1.5, 2, sample_rate=0.4), lambda x: -(x**2) / 4.5, 2, 0.4
    ),
    "without replacement": _without_replacement(1.5, 2, 5),
    "finite pair": _discrete(
        mechanisms.FinitePair([0.2, 0.5, 0.3], [0.3, 0.55, 0.15]), [0.2, 0.5, 0.3], [0.3, 0.55, 0.15]
    ),
}
