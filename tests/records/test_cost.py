"""The cost model: what it promises about itself, and the command that prints it."""

from __future__ import annotations

import json

import pytest

import deniable.cli  # noqa: F401  (registers the commands)
from deniable import InputError
from deniable.cli._app import run
from deniable.records.cost import profile_cost, retraining_cost


def test_work_grows_with_rows_and_columns_and_is_shared_by_workers():
    small, large = profile_cost(10**6, 20), profile_cost(10**7, 20)
    assert 9 < large.read_bytes / small.read_bytes <= 10
    assert large.cpu_seconds > small.cpu_seconds
    assert profile_cost(10**6, 40).cpu_seconds > small.cpu_seconds
    many = profile_cost(10**7, 20, workers=10)
    assert many.cpu_seconds == large.cpu_seconds
    assert large.seconds / 10 < many.seconds < large.seconds / 5
    assert large.wire_bytes == 0 < many.wire_bytes < many.read_bytes


def test_workers_without_a_task_do_not_help():
    assert profile_cost(10**5, 20, workers=64).seconds == profile_cost(10**5, 20, workers=1).seconds


@pytest.mark.parametrize("bad", [{"rows": 0}, {"columns": 0}, {"workers": 0}, {"row_group": 0}])
def test_refuses(bad):
    with pytest.raises(InputError, match=next(iter(bad))):
        profile_cost(**({"rows": 10, "columns": 2} | bad))


def test_models_share_workers_and_the_array_of_all_signals_grows():
    alone, many = retraining_cost(3000, 48, 0.066), retraining_cost(3000, 48, 0.066, workers=5)
    assert alone.seconds == alone.cpu_seconds == many.cpu_seconds == pytest.approx(48 * 0.066)
    assert many.seconds == pytest.approx(10 * 0.066)  # the last round is not full
    assert alone.wire_bytes == 0 < many.wire_bytes
    large = retraining_cost(10**6, 10**4, 1.0)
    assert large.memory > 2 * 8e10
    with pytest.raises(InputError, match="training"):
        retraining_cost(3000, 48, float("nan"))


def test_the_command_for_models(capsys):
    line = ["plan-run", "--rows", "50000", "--columns", "30", "--models", "10000", "--workers", "64"]
    assert run([*line, "--training", "4"]) == 0
    said = capsys.readouterr().out
    assert "10,000 models on halves of 50,000 records × 30 columns, 64 at a time" in said
    assert "10.5 min" in said
    assert run([*line, "--training", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["models"] == 10_000
    assert run(line) == 2
    assert "--models and --training go together" in capsys.readouterr().err


def test_the_command(capsys):
    assert run(["plan-run", "--rows", "1e9", "--columns", "100", "--workers", "64"]) == 0
    said = capsys.readouterr().out
    assert "1,000,000,000 records × 100 columns, 64 at a time" in said
    assert run(["plan-run", "--rows", "1e9", "--columns", "100", "--workers", "64", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["workers"] == 64
    assert run(["plan-run", "--rows", "0", "--columns", "100"]) == 2
