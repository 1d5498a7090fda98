"""Bounds on single records at the ends of double precision."""

import numpy as np

from deniable.records.typical import SampledTypical


def test_losses_beyond_the_range_of_doubles():
    sure = SampledTypical(np.full((1000, 1), 800.0), 0.95)  # e^800·1e-310 is far above 1
    assert sure.tpr(1e-310, "upper")[0] == 1
    assert sure.tpr(0.0, "upper")[0] < 0.05
