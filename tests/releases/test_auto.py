"""``bound="auto"``, shapes without units, errors, and membership games played out."""

import numpy as np
import pytest

import deniable as dn
from deniable.releases import Histogram, Mean

RNG = np.random.default_rng(8)
X = RNG.normal(size=(400, 2)) + [10.0, -3.0]


def test_auto_takes_the_least_noise_and_shows_the_table():
    many = np.random.default_rng(1).normal(size=(4000, 2))
    wide = np.hstack([many, many + many[::-1]])  # more numbers than thousands of runs are made for
    r = dn.release(Mean(), wide, advantage=0.2, rng=0)
    assert r.certificate.bound == "swap"
    assert [row.bound for row in r.alternatives] == ["swap"]
    heavy = np.append(RNG.normal(size=99), 60.0)  # one outlier decides the swap noise of a mean, too much for "direct"
    r = dn.release(Mean(), heavy, advantage=0.2, rng=0)
    assert r.certificate.bound == "swap"
    assert r.noise_scale <= dn.release(Mean(), heavy, advantage=0.2, rng=0, bound="direct").noise_scale
    even = np.linspace(0.0, 1.0, 200)
    r = dn.release(Mean(), even, advantage=0.2, rng=0)
    assert {row.bound for row in r.alternatives} == {"swap", "direct"}
    chosen = [row for row in r.alternatives if row.chosen]
    assert chosen[0].noise == min(row.noise for row in r.alternatives)
    assert chosen[0].noise == pytest.approx(float(r.noise_scale))
    assert r.certificate.advantage <= 0.2


def test_auto_falls_back_to_centre_for_many_outputs_of_many_records():
    many = np.random.default_rng(0).normal(size=5000)
    r = dn.release(lambda part: np.quantile(part, np.linspace(0.1, 0.9, 5)), many, advantage=0.2, rng=0)
    assert r.certificate.bound == "centre"


@pytest.mark.parametrize("bound", ["swap", "centre"])
def test_units_do_not_matter(bound):
    """A column times 100 gets the same noise in its standard deviations, and so does the other."""
    plain, scaled = (
        dn.release(Mean(), X * [1.0, c], advantage=0.2, bound=bound, rng=0).noise_scale for c in (1.0, 100.0)
    )
    np.testing.assert_allclose(scaled, plain * [1.0, 100.0], rtol=1e-6)


def test_a_rare_bin_does_not_set_the_noise_of_a_histogram():
    """The best of three shapes: the shape by the mean spread alone needs several times the noise."""
    values = np.append(RNG.normal(size=1999), 9.0)
    edges = (-10.0, -2.0, -1.0, 0.0, 1.0, 2.0, 8.0, 10.0)
    r = dn.release(Histogram(edges), values, advantage=0.2, bound="swap")
    in_counts = float(np.sqrt(np.mean(r.noise_scale**2))) * 1000
    assert in_counts < 4.0


def test_errors_intervals_and_table():
    r = dn.release(Mean(), X, advantage=0.2, bound="swap")
    expected = X.std(axis=0) / np.sqrt(400)  # of a half, without replacement
    np.testing.assert_allclose(r.sampling_error, expected, rtol=1e-6)
    np.testing.assert_allclose(r.standard_error, np.hypot(r.noise_scale, expected), rtol=1e-9)
    np.testing.assert_allclose(r.population_error, np.hypot(r.noise_scale, expected * np.sqrt(2)), rtol=1e-6)
    low, high = r.interval(0.9)
    np.testing.assert_allclose((high - low) / 2, 1.6448536 * r.standard_error, rtol=1e-6)
    frame = r.to_frame()
    assert list(frame.columns) == ["value", "noise", "standard_error", "low", "high"]
    np.testing.assert_array_equal(frame["value"], r.value)
    assert len(r.plot().get_yticks()) == 2
    with pytest.raises(dn.InputError, match="'data', 'population'"):
        r.interval(of="world")


def test_intervals_cover_the_value_on_all_records():
    covered = [
        np.all((lo <= X.mean(axis=0)) & (X.mean(axis=0) <= hi))
        for lo, hi in (dn.release(Mean(), X, advantage=0.2, bound="swap").interval(0.975) for _ in range(30))
    ]
    assert np.mean(covered) > 0.85


@pytest.mark.parametrize("kind", ["outlier", "duplicates", "heavy tails"])
@pytest.mark.parametrize("bound", ["direct", "swap", "centre"])
def test_membership_games_are_not_won_by_more_than_promised(kind, bound):
    """The attacker of each record knows the law of the mean with and without it from 20,000 halves of his own and plays
    4,000 fresh games; with a tenth of the noise he wins more than was promised."""
    column = {
        "outlier": np.append(RNG.normal(size=39), 12.0),
        "duplicates": np.repeat(RNG.normal(size=20), 2),
        "heavy tails": np.random.default_rng(3).standard_t(2, size=40),
    }[kind]
    eta, n = 0.1, len(column)
    r = dn.release(
        Mean(), column, advantage=2 * eta, bound=bound, rng=0, n_resamples=2048 if bound == "direct" else None
    )
    rng = np.random.default_rng(1)

    def play(games, scale):
        member = np.argsort(rng.random((games, n)), axis=1) < n // 2
        return member, member @ column / (n // 2) + scale * rng.normal(size=games)

    def gain(scale):
        worst = 0.0
        known, seen = play(20_000, scale)
        member, released = play(4_000, scale)
        edges = np.quantile(seen, np.linspace(0, 1, 41)[1:-1])
        cells, asked = np.searchsorted(edges, seen), np.searchsorted(edges, released)
        for record in range(n):
            balance = np.bincount(cells, weights=np.where(known[:, record], 1.0, -1.0), minlength=40)
            worst = max(worst, float(np.mean((balance[asked] > 0) == member[:, record])) - 0.5)
        return worst

    luck = 4 * 0.5 / np.sqrt(4_000)
    assert gain(float(r.noise_scale)) <= eta + luck
    if bound != "centre":  # whose noise is several times what it needs
        assert gain(float(r.noise_scale) / 10) > eta
