"""Two steps by convolution: the law of the loss has a sharp edge, which is hard on transforms and on grids."""

from __future__ import annotations

import numpy as np
import pytest

import deniable as dn
from deniable.accounting.composed import InvertedTradeoff
from deniable.accounting.loss import PrivacyLoss
from oracles.composed_losses import two_steps


@pytest.mark.parametrize(
    ("sigma", "rate", "threshold"),
    [
        (2.46165725534756, 0.001112471163633523, -2.2e-7),
        (2.46165725534756, 0.001112471163633523, 0.00623),
        (0.5, 0.1, 1.3),
        (30.0, 1e-4, 2e-6),
    ],
)
def test_transforms_of_two_steps(sigma, rate, threshold):
    truth = two_steps(sigma, rate, threshold)
    found = InvertedTradeoff(PrivacyLoss.of([dn.SubsampledGaussian(sigma, rate, 2)]))._tails(np.array([threshold]))
    for value, error, exact in (
        (found.out_above, found.out_error, truth.out),
        (found.in_above, found.in_error, truth.inside),
        (found.stick, found.stick_error, truth.stick),
    ):
        assert abs(value[0] - float(exact)) <= error[0] + 1e-14
        assert error[0] < 1e-9
