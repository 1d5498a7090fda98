"""Tails made by rare jumps, against closed forms and against the plain inversion."""

from __future__ import annotations

import numpy as np
import pytest

import deniable as dn
from deniable.accounting.inversion import contour
from deniable.accounting.jumps import jump_contour
from deniable.accounting.loss import PrivacyLoss
from deniable.accounting.nodes import TooSlowError
from oracles.composed_losses import one_step


def loss_of(*phase) -> PrivacyLoss:
    return PrivacyLoss.of([dn.SubsampledGaussian(*phase)])


@pytest.mark.parametrize(("phase", "threshold"), [((1.0, 0.01, 1), 2.0), ((0.3, 1e-6, 1), 2.0), ((1.0, 0.01, 1), 0.5)])
def test_one_step_closed_form(phase, threshold):
    """One step is the hardest case for a transform: the law of the loss has an edge."""
    exact = one_step(*phase[:2], threshold)
    tails = jump_contour(loss_of(*phase), threshold, 1e-13, 1 << 13).tails(np.array([threshold, 1.2 * threshold]))
    for value, error, truth in (
        (tails.out_above, tails.out_error, exact.out),
        (tails.in_above, tails.in_error, exact.inside),
        (tails.stick, tails.stick_error, exact.stick),
    ):
        assert abs(value[0] - float(truth)) <= error[0] <= 1e-7 * value[0]
    further = one_step(*phase[:2], 1.2 * threshold)
    assert abs(tails.out_above[1] - float(further.out)) <= tails.out_error[1]


@pytest.mark.parametrize(("phase", "threshold"), [((0.41, 6.28e-5, 1937), 2.0), ((1.41, 1.7e-3, 2407), 2.0)])
def test_agrees_with_plain_inversion_where_both_converge(phase, threshold):
    at = np.array([threshold])
    mine = jump_contour(loss_of(*phase), threshold, 1e-13, 1 << 13).tails(at)
    plain = contour(loss_of(*phase), "right", threshold, 1e-11, 1 << 15).tails(at)
    assert abs(mine.out_above - plain.out_above) <= mine.out_error + plain.out_error
    assert abs(mine.stick - plain.stick) <= mine.stick_error + plain.stick_error
    assert mine.out_error < 1e-5 * mine.out_above


@pytest.mark.parametrize("threshold", [0.01, 0.0, -1.0])
def test_no_gap_no_claim(threshold):
    with pytest.raises(TooSlowError):
        jump_contour(loss_of(1.03, 4.16e-5, 31), threshold, 1e-13, 1 << 13)
