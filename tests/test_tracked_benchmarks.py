"""The comparison of tracked benchmarks sees a loss, and only a loss."""

import json

import pytest

from oracles.scripts import loaded


@pytest.fixture(scope="module")
def compare():
    return loaded("benchmarks/tracked/compare.py")


def test_no_change_is_no_loss(compare):
    history = json.loads(compare.HISTORY.read_text())
    assert compare.losses(history[-1]["values"], history[-1]["values"]) == []
    assert compare.PAGE.read_text() == compare.page(history)
    assert [record["date"] for record in history] == sorted(record["date"] for record in history)


def test_slower_wider_or_missing_is_a_loss(compare):
    before = {"a": {"time": 1.0, "width": 1e-9}, "b": {"time": 1.0, "width": None}}
    assert len(compare.losses({"a": {"time": 2.1, "width": 1e-9}, "b": before["b"]}, before)) == 1
    assert len(compare.losses({"a": {"time": 1.0, "width": 2e-9}, "b": before["b"]}, before)) == 1
    assert len(compare.losses({"a": {"time": 1.0, "width": float("nan")}, "b": before["b"]}, before)) == 1
    assert len(compare.losses({"a": before["a"]}, before)) == 1
    assert compare.losses({"a": {"time": 0.1, "width": 1e-12}, "b": {"time": 1.9, "width": None}}, before) == []
