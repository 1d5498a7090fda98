"""``tune=True``: every trial and every score is paid for, and what wins is worth it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import deniable as dn
from deniable.training import fitting
from oracles.replayed_fits import Recording, Replay, squared_shift

pytestmark = pytest.mark.filterwarnings("ignore::deniable.training.TrainingWarning")


def people(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    frame["c"] = rng.choice(["x", "y"], n)
    return frame, (frame["a"] * frame["b"] + 0.3 * rng.normal(size=n) > 0).to_numpy().astype(int)


def by_use(shift: dict[str, float], model) -> list[tuple[float, float]]:
    """(what the neighbour moved, what was paid) for each use: a trial's choice and score belong to the trial."""
    return [
        (sum(v for label, v in shift.items() if label == use.name or label.startswith(f"{use.name}, ")), use.mu**2)
        for use in model.certificate_.uses
    ]


def moved(kind: str) -> list[tuple[str, list[tuple[float, float]]]]:
    """Fit with and without the unit that stands last, for a few units: what each moved, use by use."""
    out = []
    for turn in range(0, 240, 48):
        frame, y = people(240, 0)
        order = np.roll(np.arange(240), turn)
        frame, y = frame.iloc[order].reset_index(drop=True), y[order]
        y[-2:] = 1 - y[-2:]  # wrong labels leave the deepest trace
        options = {"advantage": 0.9, "tune": True}
        model, kept = dn.PrivateClassifier, np.arange(240) < 239
        if kind == "regression":
            model, y = dn.PrivateRegressor, 100.0 * y + np.arange(240)
            y[-1] = 1e9
        if kind == "persons":
            options |= {"group": "who", "records_per_person": 2, "limit": dn.GaussianDP(8.0), "advantage": None}
            frame, kept = frame.assign(who=np.arange(240) // 2), np.arange(240) < 238
        recorded = Recording(turn // 48)
        fitted = model(**options)._fit(frame, y, recorded)
        replay = Replay(recorded)
        model(**options)._fit(frame[kept], y[kept], replay)
        shift = squared_shift(recorded, replay)
        assert sum(shift.values()) > 0
        in_fits = recorded.tossed["who fits the trials"][-1]
        out.append(("fits" if in_fits else "scores", by_use(shift, fitted)))
        assert len(fitted.trials_) == 3
        assert sum(trial.chosen for trial in fitted.trials_) == 1
        assert all(0 <= trial.error <= 1 for trial in fitted.trials_)
        assert sum("trial" in use.name for use in fitted.certificate_.uses) == 3
        assert "3 trials, fitted to some records and scored on others" in str(fitted.certificate_)
        total = sum(v for v, _ in by_use(shift, fitted))
        assert total == pytest.approx(sum(shift.values()))  # no channel without a use
        assert total <= fitted.record_tradeoffs_.mu[-1] ** 2 * (1 + 1e-9) <= fitted.certificate_.mu**2 * (1 + 1e-8)
    return out


@pytest.mark.parametrize("kind", ["classification", "regression", "persons"])
def test_no_neighbour_moves_a_trial_further_than_paid_for(kind, monkeypatch):
    monkeypatch.setattr(fitting, "STEPS", 20)
    monkeypatch.setattr(fitting, "FITTED", 0.5)
    found = moved(kind)
    assert {part for part, _ in found} == {"fits", "scores"}
    for _, uses in found:
        assert all(shift <= price * (1 + 1e-9) for shift, price in uses)
    assert max(shift / price for part, uses in found if part == "scores" for shift, price in uses[-4:-1]) > 0.9


def test_a_score_with_half_its_noise_is_caught(monkeypatch):
    monkeypatch.setattr(fitting, "STEPS", 20)
    monkeypatch.setattr(fitting, "FITTED", 0.5)

    class Quiet(Recording):
        def channel(self, label, sd, times):
            return super().channel(label, sd / 2 if label.endswith(", score") else sd, times)

    class QuietReplay(Replay):
        def channel(self, label, sd, times):
            return super().channel(label, sd / 2 if label.endswith(", score") else sd, times)

    found = moved_unchecked(Quiet, QuietReplay)
    assert max(shift / price for shift, price in found) > 2


def moved_unchecked(source, answers) -> list[tuple[float, float]]:
    frame, y = people(240, 0)
    out = []
    for turn in range(0, 240, 48):
        y[-1] = 1 - y[-1]
        recorded = source(turn)
        fitted = dn.PrivateClassifier(advantage=0.9, tune=True)._fit(frame, y, recorded)
        replay = answers(recorded)
        dn.PrivateClassifier(advantage=0.9, tune=True)._fit(frame[:-1], y[:-1], replay)
        out += by_use(squared_shift(recorded, replay), fitted)
    return out


def test_what_only_pairs_can_see_is_found():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (8_000, 4))
    y = rng.random(8_000) < 1 / (1 + np.exp(-6 * X[:, 0] * X[:, 1]))
    fit = {"advantage": 0.2}
    plain = dn.PrivateClassifier(**fit).fit(X[:6000], y[:6000])
    tuned = dn.PrivateClassifier(**fit, tune=True).fit(X[:6000], y[:6000])
    assert [trial.model for trial in tuned.trials_ if trial.chosen] == ["additive with pairs"]
    assert (0, 1) in [pair.names for pair in tuned.model_.pairs]
    scores = [roc_auc_score(y[6000:], model.decision_function(X[6000:])) for model in (plain, tuned)]
    assert scores[1] > scores[0] + 0.15
    assert tuned.tradeoff_.advantage() <= 0.2
    assert not hasattr(plain, "trials_")


def test_where_records_are_too_few_no_trial_is_made_or_paid_for():
    frame, y = people(240, 2)
    model = dn.PrivateClassifier(advantage=0.1, tune=True).fit(frame, y)
    assert model.trials_ == ()
    assert not any("trial" in use.name for use in model.certificate_.uses)
    one = dn.PrivateClassifier(advantage=0.95, tune=True).fit(frame[["a"]], y)
    assert [trial.model for trial in one.trials_] == ["additive", "linear"]


def test_attacks_follow_the_trials(monkeypatch):
    monkeypatch.setattr(fitting, "STEPS", 8)
    frame, y = people(240, 4)
    model = dn.PrivateClassifier(advantage=0.9, tune=True).fit(frame, y)
    attack = model.attack(frame, y, n_trainings=20)
    assert np.all(attack.path_mu <= attack.bound_mu)
    assert attack.path_mu.mean() > 0.8 * attack.bound_mu
    assert not attack.verdict().violated
