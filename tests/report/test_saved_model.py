"""``assess`` warns where its released model is of no use, and saves it with hardened noise of the promised scale."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable.cli._app import run
from deniable.noise.laws import NormLaplaceNoise
from deniable.report.saved_model import noise_scale


def test_a_useless_release_is_said_first_and_training_is_offered(capsys):
    assert run(["assess", "breast-cancer", "--epsilon", "0.1", "--attack-samples", "200", "--seed", "0"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.index("of no use") < out.index("NOT MEET")
    assert "deniable train breast-cancer --target target --advantage 0.05" in out
    assert dn.assess("digits-3-8", epsilon=20.0, regularization=0.1, rng=0, n_samples=200).alert == ""


def test_the_saved_model_takes_raw_rows_and_predicts(tmp_path, capsys):
    import skops.io

    rng = np.random.default_rng(0)
    n = 3000
    frame = pd.DataFrame({"a": rng.uniform(-1, 1, n), "b": rng.uniform(-1, 1, n), "c": rng.choice(["u", "v"], n)})
    frame["y"] = np.where(frame["a"] + (frame["c"] == "u") > 0.5, "ill", "well")
    frame.to_csv(tmp_path / "data.csv", index=False)
    place = tmp_path / "model.skops"
    words = ["assess", str(tmp_path / "data.csv"), "--target", "y", "--epsilon", "50", "--attack-samples", "200"]
    assert run([*words, "--save-model", str(place), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["alert"] == ""
    content = place.read_bytes()
    model = skops.io.loads(content, trusted=skops.io.get_untrusted_types(data=content))
    assert np.mean(model.predict(frame.drop(columns="y")) == frame["y"]) > 0.85
    assert set(model.predict_proba(frame.drop(columns="y")).sum(axis=1).round(9)) == {1.0}
    assert run([*words, "--save-model", str(tmp_path / "second.skops"), "--seed", "0"]) == 0
    assert (tmp_path / "second.skops").read_bytes() != content  # the seed is never that of the noise


def test_noise_covers_an_inexact_fit():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 3)) / 2
    y = np.where(rng.random(400) < 0.5, 1.0, -1.0)
    f = dn.privacy_profile(X, y, regularization=0.1, mechanism=dn.OutputPerturbation(epsilon=1.0)).optimum
    exact = noise_scale(X, y, f, epsilon=1.0, regularization=0.1)
    assert 2 / (400 * 0.1) <= exact <= 2 / (400 * 0.1) * (1 + 1e-6)
    moved = noise_scale(X, y, f + 1e-7, epsilon=1.0, regularization=0.1)
    assert moved >= 2 / (400 * 0.1) + 2 * np.linalg.norm([1e-7] * 3)
    with pytest.raises(dn.InputError, match="closely enough"):
        noise_scale(X, y, f + 0.1, epsilon=1.0, regularization=0.1)


def test_released_noise_has_the_promised_mean_radius():
    scale = 0.37
    drawn = [NormLaplaceNoise(scale, np.ones(4)).perturb(np.zeros(4)) for _ in range(300)]
    radius = np.linalg.norm(drawn, axis=1)
    assert radius.mean() == pytest.approx(4 * scale, abs=5 * 2 * scale / np.sqrt(300))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["assess", "breast-cancer", "--epsilon", "1", "--save-model", "model.pkl"], "--save-model must end in .skops"),
        (
            ["assess", "--noise-multiplier", "1", "--sample-rate", "0.1", "--steps", "9", "--save-model", "m.skops"],
            "--save-model goes with data",
        ),
    ],
)
def test_bad_places_are_refused_first(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(words) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
