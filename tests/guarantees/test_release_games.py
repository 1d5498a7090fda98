"""Membership games against real releases: the optimal attacker of each record; a tenth of the noise is caught."""

import math

import pytest

from oracles.scripts import loaded

games = loaded("benchmarks/noise/games.py")

ETA, RELEASES = 0.1, 150
LUCK = 4.5 * math.sqrt(0.25 / RELEASES)  # for the largest of fourteen records in each of a dozen games


@pytest.mark.parametrize("bound", list(games.CASES))
def test_no_attacker_gains_more_than_eta_and_a_tenth_of_the_noise_is_caught(bound):
    for name, algorithm in games.CASES[bound].items():
        gain, *_ = games.played(algorithm, bound, ETA, RELEASES)
        assert gain <= ETA + LUCK, name
    weak = games.trimmed if bound == "direct" else games.CASES[bound]["means"]
    caught, *_ = games.played(weak, bound, ETA, 400, weaker=10.0)
    assert caught > ETA, bound
