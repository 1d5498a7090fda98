"""What a Gaussian release may spend under a mechanism as limit: nobody finds more, in the same pair of worlds."""

import pytest

import deniable as dn
from deniable.integrations.jax_privacy import meant
from deniable.planning import AsTellingAs, budget

STEP = dn.SubsampledGaussian(1.0, 1.0, 4)


@pytest.mark.parametrize("limit", [STEP, dn.GaussianDP(2.0), meant(STEP, "event"), STEP + meant(STEP, "zero-out")])
def test_a_limit_for_adding_or_removing_is_the_budget(limit):
    spent = budget(AsTellingAs(limit))
    assert dn.tradeoff(spent.mechanism()).advantage() <= dn.tradeoff(limit, adjacency="add-remove").advantage()


@pytest.mark.parametrize("worlds", ["replace", "zero-out"])
def test_a_limit_for_other_worlds_is_no_budget_for_adding_or_removing(worlds):
    """Taken as one, a limit of 0.38 on replaced records released what tells them with an advantage of 0.51."""
    only = meant(STEP, worlds, alone=True)
    for limit in (only, only + only):
        with pytest.raises(dn.InputError, match=rf"for adding or removing a record, not .*\({worlds}\)"):
            budget(AsTellingAs(limit))
        with pytest.raises(dn.InputError, match="for adding or removing a record"):
            dn.release_statistics({"a": [1.0, 2.0]}, "mean(a)", limit=limit, ranges={"a": (0, 3)})
