"""Fields whose type names their check."""

from dataclasses import dataclass
from typing import Annotated

import pytest

from deniable import InputError
from deniable.mechanisms.fields import Checked, real, whole


@dataclass(frozen=True)
class Range(Checked):
    low: Annotated[float, real(above=0.0)]
    high: Annotated[float, real(above=0.0)]
    steps: Annotated[int, whole()] = 1
    name: str = ""

    def _check_together(self) -> None:
        if not self.low < self.high:
            raise InputError(f"low must be below high, got {self.low:g} and {self.high:g}")


@dataclass(frozen=True)
class Longer(Range):
    extra: Annotated[int, whole(2)] = 2


def test_each_field_is_kept_as_its_check_returns_it():
    kept = Longer(1, 2, steps=3.0, extra=4.0)
    assert (kept.low, kept.steps, kept.extra) == (1.0, 3, 4)
    assert [type(value) for value in (kept.low, kept.steps, kept.extra)] == [float, int, int]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"low": float("nan")}, "low must be above 0, got nan"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"steps": True}, "steps must be a whole number"),
        ({"extra": 1}, "extra must be at least 2"),
        ({"low": 3}, "low must be below high"),
    ],
)
def test_a_field_out_of_its_rule_is_refused_by_name(fields, message):
    with pytest.raises(InputError, match=message):
        Longer(**{"low": 1, "high": 2, **fields})
