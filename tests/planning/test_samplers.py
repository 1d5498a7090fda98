"""The least noise for each way of drawing batches."""

import dataclasses
import json
import math

import pytest

import deniable as dn
from deniable.cli._app import run
from deniable.planning import samplers

SAMPLERS = ["poisson", "truncated", "allocation", "without-replacement", "shuffled"]


@pytest.fixture(scope="module")
def plan():
    """The rows that are quick to find: those that need no curve of replacing."""
    with pytest.MonkeyPatch.context() as patch:
        makers, known = samplers._makers, samplers._known_adjacencies
        patch.setattr(samplers, "_makers", lambda *run: {k: v for k, v in makers(*run).items() if k[0] != "w"})
        patch.setattr(samplers, "_known_adjacencies", lambda mechanism: known(mechanism)[:1])
        return dn.planning.plan_samplers(40, 20, 1, advantage=0.2)


def test_every_row_meets_the_target_and_hardly_less_noise_does_not(plan):
    for row in plan.rows:
        exact = dn.tradeoff(row.mechanism, adjacency=row.adjacency).advantage()
        assert exact * (1 - 1e-9) <= row.leakage <= min(exact * 1.001, 0.2)
        assert row.advantage == row.leakage >= row.attained
        assert row.mechanism.noise_multiplier == row.noise_multiplier
        less = dataclasses.replace(row.mechanism, noise_multiplier=row.noise_multiplier * 0.999)
        assert dn.tradeoff(less, adjacency=row.adjacency).advantage() > 0.2


def test_runs_are_the_ones_that_were_asked_about():
    runs = {name: make(2.0) for name, make in samplers._makers(200, 60, 2, None).items()}  # 4 batches an epoch
    assert runs == {
        "poisson": dn.SubsampledGaussian(2.0, 0.3, 8),
        "truncated": dn.TruncatedPoisson(2.0, 0.3, 8, 60 + math.ceil(6 * math.sqrt(60 * 0.7)), 200),
        "allocation": dn.RandomAllocation(2.0, 4, 2),
        "without-replacement": dn.WithoutReplacement(2.0, 60, 200, 8),
        "shuffled": dn.ShuffledBatches(2.0, 4, 2),
    }
    assert list(runs) == SAMPLERS


def test_where_every_batch_is_all_records_all_samplers_need_the_same_noise():
    rows = dn.planning.plan_samplers(40, 40, 2, advantage=0.5).rows
    assert {row.sampler for row in rows} == {*SAMPLERS} - {"truncated"}
    for adjacency in samplers.ADJACENCIES:
        noises = [row.noise_multiplier for row in rows if row.adjacency == adjacency]
        assert max(noises) <= min(noises) * (1 + 1e-4)


@pytest.mark.parametrize("name", SAMPLERS)
def test_only_adjacencies_with_a_bound_are_listed(name):
    mechanism = samplers._makers(200, 60, 2, None)[name](2.0)
    for adjacency in samplers.ADJACENCIES:
        if adjacency in samplers._known_adjacencies(mechanism):
            assert dn.tradeoff(mechanism, adjacency=adjacency) is not None
        else:
            with pytest.raises(ValueError, match="no bound for this pair of worlds"):
                dn.tradeoff(mechanism, adjacency=adjacency)


def test_a_person_of_several_records_needs_more_noise(plan, monkeypatch):
    makers, known = samplers._makers, samplers._known_adjacencies
    monkeypatch.setattr(samplers, "_makers", lambda *run: {k: makers(*run)[k] for k in ("poisson", "allocation")})
    monkeypatch.setattr(samplers, "_known_adjacencies", lambda mechanism: known(mechanism)[:1])
    one = {row.sampler: row.noise_multiplier for row in plan.rows}
    for row in dn.planning.plan_samplers(40, 20, 1, records_per_person=2, advantage=0.2).rows:
        assert one[row.sampler] < row.noise_multiplier < 2.2 * one[row.sampler]
        assert dn.tradeoff(row.mechanism).advantage() <= 0.2
        assert isinstance(row.mechanism, dn.SubsampledGaussian if row.sampler == "poisson" else dn.mechanisms.Grouped)


def test_the_least_noise_comes_first(plan):
    for adjacency in ("add-remove", "replace"):
        noise = [row.noise_multiplier for row in plan.rows if row.adjacency == adjacency]
        assert noise == sorted(noise)
    assert [row.sampler for row in plan.rows][-1] == "shuffled"
    assert len(plan.rows) == 4


def test_the_command_prints_the_same(plan, capsys, monkeypatch):
    asked = {}
    monkeypatch.setattr("deniable.planning.plan_samplers", lambda *run, **rest: asked.update(rest, run=run) or plan)
    words = ["plan", "dpsgd,?,0.5,2", "--records", "40", "--advantage", "0.2"]
    assert run([*words, "--json"]) == 0
    rest = {
        "records_per_person": 1,
        "noise_multipliers": (0.01, 1e6),
        "limit": dn.Limit(advantage=0.2),
    }
    assert asked == rest | {"run": (40, 20, 1)}
    told = json.loads(capsys.readouterr().out)
    assert [row["noise_multiplier"] for row in told["rows"]] == [row.noise_multiplier for row in plan.rows]


def test_the_end_of_a_range_that_decides_is_named(capsys):
    plan = dn.planning.plan_samplers(40, 40, 1, advantage=0.9, noise_multipliers=(2.0, 3.0))
    assert not any(row.limit_decides for row in plan.rows)
    assert {row.noise_multiplier for row in plan.rows} == {2.0}
    assert run(["plan", "dpsgd,?,1,1", "--records", "40", "--advantage", "0.9", "--low", "2", "--high", "3"]) == 0
    assert "less noise was not tried" in capsys.readouterr().out


def test_noise_out_of_range_is_infinite(monkeypatch, capsys):
    makers = samplers._makers
    monkeypatch.setattr(samplers, "_makers", lambda *run: {"shuffled": makers(*run)["shuffled"]})
    plan = dn.planning.plan_samplers(40, 20, 1, advantage=0.2, noise_multipliers=(0.5, 0.6))
    (row,) = plan.rows
    assert row.noise_multiplier == math.inf
    assert row.leakage > 0.2
    words = ["plan", "dpsgd,?,0.5,2", "--records", "40", "--advantage", "0.2"]
    assert run([*words, "--low", "0.5", "--high", "0.6"]) == 1
    assert any(line.startswith("shuffled") and "> 0.6" in line for line in capsys.readouterr().out.splitlines())
