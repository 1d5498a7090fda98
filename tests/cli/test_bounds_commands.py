"""``deniable bound`` and ``plan``: numbers, JSON, pictures, exit codes and one-line errors."""

import json

import pytest

import deniable as dn
from deniable.cli._app import run

BOUND = ["bound", "epsilon,2,1e-5", "--prior", "0.01", "--fpr", "0.001"]
PLAN = ["plan", "dpsgd,?,1,10", "--records", "1000", "--precision", "0.3", "--fpr", "1e-3"]


def test_bound_prints_what_the_library_computes(capsys):
    assert run([*BOUND, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["advantage"] == pytest.approx(dn.bounds.advantage(2, delta=1e-5), rel=1e-12)
    assert found["accuracy"] == pytest.approx(dn.bounds.accuracy(2, delta=1e-5, prior=0.01), rel=1e-12)
    most = dn.bounds.positive_accuracy(2, prior=0.01, delta=1e-5, fpr=0.001)[1]
    assert found["precision"] == pytest.approx(most, rel=1e-12)
    assert run(BOUND) == 0
    assert "6.955 %" in capsys.readouterr().out


def test_a_plan_is_printed_on_the_safe_side(capsys):
    rates = [0.03, 0.05, 0.1]
    assert run([*PLAN, "--delta", "1e-6", *(word for rate in rates for word in ("--rate", str(rate)))]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    plan = dn.planning.plan_subsampling(
        1000, 0.3, 1e-3, batch_size=1000, epochs=10, rates=rates, delta=1e-6, noise_multipliers=(0.2, 200.0)
    )
    headings = {"noise_multiplier": "noise", "precision_without_thinning": "even", "precision_from_dp": "from_ε",
                "epsilon": "ε", "pool_epsilon": "pool_ε"}  # fmt: skip
    for index, line in enumerate(lines[: len(rates)]):
        printed = dict(zip(head.split(), line.split(), strict=True))
        assert float(printed["T"]) == rates[index]
        assert float(printed["right"]) <= 0.3
        for name, heading in headings.items():
            exact = getattr(plan, name)[index]
            assert exact <= float(printed[heading]) <= exact * 1.001, name
        assert plan.sample_rate[index] * (1 - 1e-5) <= float(printed["q"]) <= plan.sample_rate[index]
    explained = {line.split()[0] for line in lines[len(rates) :]}
    assert explained == set(head.split())  # every column is explained
    assert max(map(len, [head, *lines])) <= 80


def test_a_plan_without_any_answer_is_exit_code_1(capsys):
    assert run([*PLAN, "--rate", "0.29", "--high", "0.5"]) == 1


@pytest.mark.parametrize("line", [BOUND, ["bound", "gaussian,1"]])
@pytest.mark.parametrize("name", ["picture.svg", "picture.png"])
def test_pictures(line, name, tmp_path, capsys):
    assert run([*line, "--plot", str(tmp_path / name)]) == 0
    head = (tmp_path / name).read_bytes()[:300]
    assert head.startswith(b"\x89PNG") if name.endswith("png") else b"<?xml" in head


@pytest.mark.parametrize(
    ("words", "limit", "name", "value"),
    [
        ("dpsgd,10,0.001,?", "advantage=0.1", "steps", 6_284_875),
        ("dpsgd,?,0.01,5000", "epsilon=0.001,delta=1e-5", "noise_multiplier", 1219.248),
        ("laplace,?", "advantage=0.00001", "scale", 49_999.75),
        ("gaussian,?", "advantage=0.9999999", "mu", 10.65345),
        ("allocation,100,1,?", "advantage=0.9", "epochs", 108_221),
        ("gradient-descent,10,?,0.05,1,0.5", "advantage=0.2", "steps", 26),
        ("gradient-descent,10,100,0.05,1,?", "advantage=0.2", "step_size", 1.498396),
    ],
)
def test_calibrate_looks_as_far_as_needed(words, limit, name, value, capsys):
    assert run(["calibrate", words, "--limit", limit, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found[name] == pytest.approx(value, rel=1e-6)
    assert found["limit_decides"]


@pytest.mark.parametrize(
    ("words", "advantage", "value"),
    [("dpsgd,?,0.0001,1000", 0.3, 1e-18), ("dpsgd,100,?,1", 0.5, 1.0), ("shuffled,?,10,1", 0.999, None)],
)
def test_calibrate_says_where_the_limit_does_not_decide(words, advantage, value, capsys):
    assert run(["calibrate", words, "--advantage", str(advantage), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["limit_decides"] is (value is None)
    if value is None:
        return
    assert value in (said["searched"] if value != 1.0 else said.values())
    assert run(["calibrate", words, "--advantage", str(advantage)]) == 0
    assert "The limit does not decide" in capsys.readouterr().out
