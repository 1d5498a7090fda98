"""Machines without extended precision (Windows, Apple silicon): the same bounds, proven with plain doubles.

A subprocess replaces ``numpy.longdouble`` before deniable is imported. Its brackets and radii must hold the truth:
exact sums for randomised response, and what the other precision certifies for the rest.
"""

import json
import subprocess
import sys

import mpmath
import numpy as np
import pytest

SCRIPT = """
import json, sys
import numpy as np
if sys.argv[1] == "double":
    np.longdouble, np.clongdouble = np.float64, np.complex128
import deniable as dn
from deniable.accounting.steps.finite_law import LONG_EPS

curves = {
    "randomized response": dn.RandomizedResponse(0.3, steps=200),
    "allocation": dn.RandomAllocation(1.0, 8),
    "discrete": dn.mechanisms.DiscreteLaplace(3.0, steps=5),
    "sampled": dn.SubsampledGaussian(1.0, 0.02, 300),
}
found = {"eps": LONG_EPS, "curves": {}}
for name, mechanism in curves.items():
    t = dn.tradeoff(mechanism)
    found["curves"][name] = {
        side: [t.advantage(side=side), t.tpr(1e-3, side), t.delta(0.5, side=side)] for side in ("lower", "upper")
    }
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3)) / 4
y = np.where(X[:, 0] + 0.1 * rng.normal(size=60) > 0, 1, -1)
p = dn.privacy_profile(X, y, regularization=0.05, mechanism=dn.OutputPerturbation(epsilon=1.0), rng=0)
found["optima"], found["radii"] = p.leave_one_out().tolist(), p.radius().tolist()
found["advantage"] = {side: p.advantage(side).tolist() for side in ("lower", "upper")}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def both():
    made = {}
    for precision in ("double", "long"):
        run = subprocess.run([sys.executable, "-c", SCRIPT, precision], capture_output=True, text=True, check=True)
        made[precision] = json.loads(run.stdout)
    return made


def test_the_switch_switches(both):
    assert both["double"]["eps"] == np.finfo(np.float64).eps
    assert both["long"]["eps"] == float(np.finfo(np.longdouble).eps)


def test_brackets_hold_what_the_other_precision_certifies(both):
    for name, plain in both["double"]["curves"].items():
        extended = both["long"]["curves"][name]
        lower, upper = np.array(plain["lower"]), np.array(plain["upper"])
        assert np.all(upper >= np.array(extended["lower"])), name
        assert np.all(lower <= np.array(extended["upper"])), name
        assert np.all(upper - lower <= 1e-3 * upper), name  # and they say something


def test_randomized_response_against_exact_sums(both):
    with mpmath.workdps(60):
        epsilon, n = mpmath.mpf(0.3), 200
        p = 1 / (1 + mpmath.exp(-epsilon))
        terms = [(mpmath.binomial(n, k), p**k * (1 - p) ** (n - k), p ** (n - k) * (1 - p) ** k) for k in range(n + 1)]
        truth = {
            0: mpmath.fsum(c * max(a - b, 0) for c, a, b in terms),
            2: mpmath.fsum(c * max(a - mpmath.exp(mpmath.mpf(0.5)) * b, 0) for c, a, b in terms),
        }
        for precision in both:
            sides = both[precision]["curves"]["randomized response"]
            for place, value in truth.items():
                assert mpmath.mpf(sides["lower"][place]) <= value <= mpmath.mpf(sides["upper"][place])


def test_certified_radii_hold_the_other_optimum(both):
    gap = np.linalg.norm(np.array(both["double"]["optima"]) - np.array(both["long"]["optima"]), axis=1)
    radii = np.array(both["double"]["radii"])
    assert np.all(gap <= radii + np.array(both["long"]["radii"]))
    assert radii.max() < 1e-6
    for low, high in (("double", "long"), ("long", "double")):
        assert np.all(np.array(both[low]["advantage"]["lower"]) <= np.array(both[high]["advantage"]["upper"]))
