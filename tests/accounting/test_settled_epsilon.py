"""ε keeps δ(ε) ≤ δ for any object of the same mechanism, also where several curves are put together."""

import numpy as np
import pytest

import deniable as dn
from deniable.curves import BracketTradeoff, SmallestTradeoff

RUN = dn.SubsampledGaussian(1.0, 0.05, 40)


def smallest():
    return SmallestTradeoff((dn.tradeoff(RUN), dn.tradeoff(dn.GaussianDP(0.6))))


def bracket():
    return BracketTradeoff(dn.tradeoff(RUN), dn.tradeoff(dn.GaussianDP(0.01)))


MAKERS = {
    "smallest": smallest,
    "bracket": bracket,
    "told": lambda: dn.tradeoff(dn.SubsampledGaussian(0.05, 0.01, 50)),
    "sharp": lambda: dn.tradeoff(dn.SubsampledGaussian(0.08, 1e-6, 3) + dn.SubsampledGaussian(1.0, 0.02, 100)),
    "mixture": lambda: dn.tradeoff(dn.GaussianDP(0.7) + dn.PureDP(0.3)),
    "allocation": lambda: dn.tradeoff(dn.RandomAllocation(1.0, 30, 2)),
}


@pytest.mark.parametrize("name", MAKERS)
def test_epsilon_holds_on_a_fresh_object_asked_otherwise(name):
    delta = np.array([0.3, 3e-2, 1e-3, 2e-5])
    for direction in ("both", "add"):
        found = MAKERS[name]().epsilon(delta, direction)
        fresh = MAKERS[name]()
        finite = np.isfinite(found)
        assert np.all(fresh.delta(found[finite], direction) <= delta[finite])
        for epsilon, allowed in zip(found[finite], delta[finite], strict=True):
            assert fresh.delta(float(epsilon), direction) <= allowed
