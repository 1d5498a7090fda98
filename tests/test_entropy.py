"""Unseeded draws of a test are its own and come again, in whatever order tests run."""

import os
import secrets

import numpy as np
import pytest

from entropy import Entropy


def draws():
    return os.urandom(8), secrets.randbelow(2**60), np.random.default_rng().random(), np.random.random()  # noqa: NPY002


@pytest.fixture(scope="module")
def shared():
    return draws()


@pytest.fixture
def entropy(request):
    """The stream of this run."""
    found = os.urandom
    assert isinstance(found, Entropy)
    yield found
    found.begin(request.node.nodeid)


def test_a_test_draws_the_same_again_and_another_test_something_else(entropy):
    found = []
    for name in ("one", "two", "one"):
        entropy.begin(name)
        found.append([draws(), draws()])
    assert found[0] == found[2]
    assert len({draw for pair in found[:2] for four in pair for draw in four}) == 16


def test_a_shared_fixture_changes_nothing_for_the_test_that_asks_first(entropy):
    entropy.begin("one")
    alone = [draws(), draws()]
    entropy.begin("one")
    first = draws()
    with entropy.of_fixture("shared"):
        inner = draws()
    assert [first, draws()] == alone
    assert inner not in alone


def test_a_shared_fixture_has_a_stream_of_its_own(shared, entropy):
    entropy.begin("tests/test_entropy.py shared 0")
    assert draws() == shared
