"""Composed privacy losses in 50-digit arithmetic: slow, short, and sharing nothing with the library.

``inversion`` sums the transform on any vertical line with mpmath; ``two_steps`` convolves one-step closed forms.
"""

from functools import cache
from typing import NamedTuple

import mpmath as mp


class Tails(NamedTuple):
    """out(L > ℓ), in(L > ℓ) and H_{e^ℓ}(in‖out)."""

    out: mp.mpf
    inside: mp.mpf
    hockey_stick: mp.mpf


def inversion(phases, threshold, c=0.5, digits=18):
    """Invert on Re w = c. ``phases``: (σ, q, T) each. The sum runs until its terms are below 10^−digits."""
    with mp.workdps(50):
        threshold, c = mp.mpf(threshold), mp.mpf(c)
        margin = min(abs(c), abs(c - 1))
        period = 2.4 * digits / margin + abs(threshold)  # aliases fall like e^{−margin·period}
        h = 2 * mp.pi / period
        columns = [_column(mp.mpf(s), mp.mpf(q), c) for s, q, _ in phases]
        steps = [int(t) for *_, t in phases]
        turns = [[mp.expj(h * loss) for loss in losses] for _, losses in columns]
        terms = [list(weights) for weights, _ in columns]
        sums = [mp.mpf(0)] * 3
        k = 0
        while True:
            transform = mp.mpf(1)
            for column, count in zip(terms, steps, strict=True):
                transform *= mp.fsum(column) ** count
            w = mp.mpc(c, k * h)
            value = transform * mp.exp(-w * threshold) / (2 if k == 0 else 1)
            sums = [
                sums[0] + (value / w).real,
                sums[1] + (value * mp.exp(threshold) / (w - 1)).real,
                sums[2] + (value * mp.exp(threshold) / (w * (w - 1))).real,
            ]
            if k > 8 and abs(value) < mp.mpf(10) ** -digits * abs(sums[0]):
                break
            k += 1
            assert k < 20_000, "the oracle is for transforms that decay"
            terms = [
                [a * b for a, b in zip(column, turn, strict=True)] for column, turn in zip(terms, turns, strict=True)
            ]
        out, inside, hockey_stick = (2 * value / period for value in sums)
        if c < 1:
            inside, hockey_stick = 1 + inside, (1 + hockey_stick if c > 0 else 1 - mp.exp(threshold) + hockey_stick)
        return Tails(1 + out if c < 0 else out, inside, hockey_stick)


def _column(sigma, rate, c):
    """Weights φ(u)·r^c·spacing and losses on a trapezoid grid fine enough for 25 digits and more."""
    spacing = 2 * mp.pi * min(sigma * 2, mp.mpf(4)) / 110
    low, high = mp.mpf(-15), 15 + max(c, mp.mpf(1)) / sigma
    weights, losses = [], []
    for k in range(int((high - low) / spacing) + 1):
        u = low + k * spacing
        loss = mp.log1p(rate * mp.expm1(u / sigma - 1 / (2 * sigma**2)))
        weights.append(spacing * mp.npdf(u) * mp.exp(c * loss))
        losses.append(loss)
    return weights, losses


def one_step(sigma, rate, threshold):
    """Closed form of one step."""
    with mp.workdps(50):
        sigma, rate, threshold = mp.mpf(sigma), mp.mpf(rate), mp.mpf(threshold)
        gamma = mp.exp(threshold)
        if gamma <= 1 - rate:
            return Tails(mp.mpf(1), mp.mpf(1), 1 - gamma)
        u = sigma * mp.log((gamma - 1 + rate) / rate) + 1 / (2 * sigma)
        out = mp.ncdf(-u)
        inside = (1 - rate) * out + rate * mp.ncdf(1 / sigma - u)
        return Tails(out, inside, inside - gamma * out)


def two_steps(sigma, rate, threshold):
    """Two equal steps: the closed form of one averaged over the outcome of the other."""
    with mp.workdps(30):
        s, q, threshold = mp.mpf(sigma), mp.mpf(rate), mp.mpf(threshold)

        def loss(u):
            return mp.log1p(q * mp.expm1(u / s - 1 / (2 * s**2)))

        # the other step is certain to exceed what is left once L(u) > ℓ − log(1 − q): a kink
        rest = mp.exp(threshold) / (1 - q)
        kink = s * mp.log((rest - 1 + q) / q) + 1 / (2 * s) if rest > 1 - q else mp.mpf(-12)
        points = sorted({mp.mpf(-12), *(p for p in (kink - 1, kink, kink + 1) if -12 < p < 12 + 1 / s), 12 + 1 / s})
        for extra in range(-10, int(12 + 1 / s), 2):
            points.append(mp.mpf(extra))
        points = sorted(set(points))

        @cache
        def other(u):
            return one_step(sigma, rate, threshold - loss(u))

        def averaged(pick):
            def f(u):
                tail = other(u)
                inside = (1 - q) * mp.npdf(u) + q * mp.npdf(u - 1 / s)
                return mp.npdf(u) * tail.out if pick == "out" else inside * tail.inside

            return mp.quad(f, points)

        out, inside = averaged("out"), averaged("in")
        return Tails(out, inside, inside - mp.exp(threshold) * out)
