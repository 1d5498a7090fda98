"""The benchmark of statistics measures what the library releases, and compares answers that share their draws."""

import importlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import deniable as dn

RANGES = {"x": (-5.0, 5.0), "y": (-5.0, 5.0), "g": ["a", "b"]}
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"x": RNG.normal(size=80), "y": RNG.normal(size=80), "g": np.repeat(["a", "b"], 40)})


@pytest.fixture
def table(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks" / "noise")
    return importlib.import_module("statistics_table")


@pytest.mark.parametrize("bound", ["auto", "direct"])
def test_what_is_recorded_of_a_half_is_what_the_public_call_releases(table, bound):
    made = {}
    with table.certified_once(made) as draws:
        draws["half"] = np.random.default_rng(1)
        kept = dn.release_statistics(FRAME, "median(x)", eta=0.02, ranges=RANGES, bound=bound, rng=0)
    public = dn.release_statistics(FRAME, "median(x)", eta=0.02, ranges=RANGES, bound=bound, rng=0)
    assert str(kept.certificate) == str(public.certificate)
    assert kept.certificate.n_train == 40
    (one,), (other,) = kept.rows[0], public.rows[0]
    assert (one.noise, one.sampling) == (other.noise, other.sampling)
    half = np.random.default_rng(1)
    chosen = np.sort(FRAME["x"].to_numpy()[np.sort(half.permutation(80)[:40])])[19]
    assert one.value == pytest.approx(chosen + half.normal() * made["half"].noise_scale[0])


def test_a_half_that_cannot_be_certified_is_what_the_public_call_says(table):
    values, turned, _ = table.released(FRAME, RANGES, 1e-4, "trimmed mean", "auto", 2, [3], {})
    assert turned == 0  # all records stand, as they do for a user
    assert table.released(FRAME, RANGES, 1e-4, "trimmed mean", "direct", 2, [3], {})[0] is None
    assert np.isfinite(values).all()


def test_the_same_answer_differs_from_itself_by_nothing(table):
    made, seed = {}, [5]
    auto, turned, _ = table.released(FRAME, RANGES, 0.02, "median", "auto", 4, seed, made)
    direct, *_ = table.released(FRAME, RANGES, 0.02, "median", "direct", 4, seed, made)
    assert turned == 4
    assert auto == direct
    own, other = (table.squares(values, [0.0], 1.0) for values in (auto, [*direct, [9.0]]))
    assert table.ratio(own, other, True) == (1.0, 0.0)
    assert table.ratio(own, other, False)[1] > 0


def test_noise_of_one_size_is_compared_with_the_normals_that_the_library_drew(table):
    values, turned, normals = table.released(FRAME, RANGES, 0.1, "histogram", "auto", 4, [7], {})
    assert turned == 0
    same = table.paired_normals("histogram", normals, 4, np.random.default_rng(0))(10)
    mu = 2 * table.ndtri(0.6)
    truth = table.truths(FRAME, RANGES)["histogram"]
    assert np.array(values) - truth == pytest.approx(same * np.sqrt(2) / mu)
