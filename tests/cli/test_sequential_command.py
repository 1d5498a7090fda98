"""``deniable audit --stream``: stops at the line that breaks the promise."""

import io
import json

import numpy as np

from deniable.cli._app import run


def lines(mu, n, seed=0):
    rng = np.random.default_rng(seed)
    rows = [f"{value:.6f},{inside}" for _ in range(n) for value, inside in ((rng.normal(mu), 1), (rng.normal(), 0))]
    return "score,member\n" + "\n".join(rows) + "\n"


def test_a_stream_stops_where_the_promise_breaks(tmp_path, capsys, monkeypatch):
    stream = io.StringIO(lines(2.0, 500))
    monkeypatch.setattr("sys.stdin", stream)
    picture = tmp_path / "wealth.svg"
    assert run(["audit", "-", "gaussian,1", "--plot", str(picture), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["status"] == "violated"
    numbers = {number["key"]: number["value"] for number in found["sections"][0]["numbers"]}
    assert numbers["attack.pairs"] < 200
    assert stream.readline()  # the rest was not read
    assert picture.stat().st_size > 1000


def test_a_file_that_keeps_the_promise(tmp_path, capsys):
    path = tmp_path / "scores.csv"
    path.write_text(lines(0.5, 100))
    assert run(["audit", str(path), "epsilon,3", "--stream"]) == 0
    assert "Verdict: consistent at 95 % confidence after 100 pairs" in capsys.readouterr().out.replace("\u00a0", " ")


def test_a_stream_of_losses_warns(tmp_path, capsys):
    path = tmp_path / "losses.csv"
    path.write_text(lines(-2.0, 300))
    assert run(["audit", str(path), "epsilon,3", "--stream"]) == 1
    assert "is the direction right?" in " ".join(capsys.readouterr().out.split())
    assert run(["audit", str(path), "epsilon,3", "--stream", "--reverse"]) == 0


def test_a_stream_takes_the_columns_and_the_mark_that_are_named(tmp_path, capsys):
    """The options were dropped without a word."""
    path = tmp_path / "scores.csv"
    path.write_text(lines(2.0, 300).replace(",", ";").replace(".", ",").replace("score;member", "llr;y"))
    assert (
        run(["audit", str(path), "epsilon,0.1", "--stream", "--score", "llr", "--member", "y", "--decimal", ","]) == 1
    )
    assert "violated at 95 % confidence" in " ".join(capsys.readouterr().out.split())


def test_a_stream_of_too_few_scores_is_no_success(tmp_path, capsys):
    """An empty stream ended with exit code 0."""
    for pairs in (0, 3):
        (tmp_path / "scores.csv").write_text(lines(0.0, pairs))
        assert run(["audit", str(tmp_path / "scores.csv"), "epsilon,1", "--stream"]) == 1
        assert "So few scores would not show even a perfect attack" in " ".join(capsys.readouterr().out.split())
