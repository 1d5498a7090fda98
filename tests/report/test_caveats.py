"""What a report warns of follows from whether the curve counts tuning in."""

from __future__ import annotations

import pytest

import deniable as dn
from deniable.report.sections import NOT_COVERED, TUNING_WARNING, caveats

RUN = dn.GaussianDP(0.1)
KEPT = dn.tuned(RUN, trials=5)


@pytest.mark.parametrize("source", [KEPT, dn.tradeoff(KEPT)])
def test_tuning_that_is_counted_is_not_said_to_be_left_out(source):
    report = dn.assess(source)
    assert report.warnings == ()
    assert not any("hyperparameters" in line for line in report.not_covered)
    assert any(line.startswith("Other choices that looked at the data") for line in report.not_covered)
    assert any(note.startswith("Tuning is counted in: a random number of runs") for note in report.assumptions.notes)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_of_a_composition_the_part_that_is_not_tuned_is_warned_of(adjacency):
    assert caveats(dn.tradeoff(KEPT, adjacency=adjacency))[1] == ()
    assert caveats(dn.tradeoff(KEPT + KEPT, adjacency=adjacency))[1] == ()
    not_covered, (warning,) = caveats(dn.tradeoff(KEPT + RUN, adjacency=adjacency))
    assert warning.startswith("Hyperparameter tuning on the same data is included for those parts")
    assert not_covered == NOT_COVERED


@pytest.mark.parametrize("source", [RUN, dn.tradeoff(RUN)])
def test_other_curves_warn_that_tuning_is_not_included(source):
    assert dn.assess(source).warnings == (TUNING_WARNING,)
