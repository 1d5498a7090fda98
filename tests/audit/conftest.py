"""A table that several tests of this folder share."""

import pytest

from oracles.credit_table import credit_table


@pytest.fixture(scope="session")
def credit():
    return credit_table()
