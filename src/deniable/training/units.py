"""Whose presence is hidden: records, or persons with several records that share the weight of one."""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable._check import integer
from deniable.noise.queries import Units
from deniable.tables.persons import persons_of

HEAVIEST = 5040  # divisible by 1 … 10: a person's records share it in whole numbers


def units_of(owners: Any, records: int) -> Units:
    """Return weights with which each person's records count as at most one.

    A person with m records gets ⌊5040 / max(m, ``records``)⌋ for each, so that the whole numbers never sum to more
    than 5040: any sum of contributions of norm ≤ 1 changes by at most as much as for one record (triangle
    inequality). ``records`` above 1 lets records of persons with fewer count equally.
    """
    records = integer("records_per_person", records, at_least=1)
    index, labels = persons_of(owners)
    sizes = np.bincount(index)
    weights = HEAVIEST // np.maximum(sizes, records)
    return Units("person", weights[index].astype(np.float64), HEAVIEST, index, labels)
