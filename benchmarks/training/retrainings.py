"""A thousand retrainings of a few private models, each attacked as strongly as possible: results/retrainings.md.

    python benchmarks/training/retrainings.py

Every model is fitted ``TRAININGS`` times with the worst canary and as often without, with fresh noise from the
operating system. The attacker knows all other records and follows everything that was released; a second one sees the
final model only. The negative control has a tenth of the promised noise. Each estimate has an exact interval (99.5 %:
ten verdicts on five models are then all right with probability 95 %); ``by ratios`` is the mean over the likelihood
ratios with its standard error.
"""

import time
import warnings

import numpy as np
import pandas as pd
from data import load
from harness import RESULTS

import deniable as dn

TRAININGS, CONTROLS = 100, 30  # with the canary, and as many without: 1,000 in all for five models
ADVANTAGE = 0.2
CONFIDENCE = 1 - 0.05 / 10  # of each of the ten verdicts


def classes(k: int, rng: np.random.Generator):
    X = pd.DataFrame(rng.normal(size=(240, 3)), columns=list("abc")).assign(year=rng.integers(1990, 2021, 240))
    return X, np.argmax(X[["a", "b", "c"]].to_numpy() @ rng.normal(size=(3, k)) + rng.gumbel(size=(240, k)), axis=1)


def models():
    """Two classes, three, numbers (enough for a look at the level); additive, linear; years for closer looks."""
    small, rng = load("small"), np.random.default_rng(3)
    three, homes = classes(3, rng), load("houses")
    yield "two classes, additive", dn.PrivateClassifier(advantage=ADVANTAGE), small.X, small.y
    yield "two classes, linear", dn.PrivateClassifier(advantage=ADVANTAGE, model="linear"), small.X, small.y
    yield "three classes, a column of years", dn.PrivateClassifier(advantage=ADVANTAGE), *three
    yield (
        "two classes, individual filters",
        dn.PrivateClassifier(advantage=ADVANTAGE, individual_filter=True),
        small.X,
        small.y,
    )
    yield "regression", dn.PrivateRegressor(advantage=ADVANTAGE), homes.X[:1500], homes.y[:1500]


def row(name, model, X, y, share, trainings) -> str:
    attack = model.attack(X, y, n_trainings=trainings, noise_share=share, confidence=CONFIDENCE)
    found = attack.transcript.audit(CONFIDENCE).advantage()
    last = attack.final.audit(CONFIDENCE).advantage()
    exact = "{:.3f} ± {:.3f}".format(*attack.advantage()) if share == 1 else "–"
    outcomes = " / ".join(attack.verdict(seen).outcome for seen in ("transcript", "final"))
    needed = float(attack.path_mu.mean()) / attack.bound_mu if share == 1 else float("nan")
    cells = (
        f"{name}{'' if share == 1 else ', a tenth of the noise'}",
        f"{2 * trainings:,}",
        f"{ADVANTAGE}",
        exact,
        f"{found.estimate:.3f} ({found.low:.3f} to {found.high:.3f})",
        f"{last.estimate:.3f} ({last.low:.3f} to {last.high:.3f})",
        f"{needed:.1%}" if share == 1 else "–",
        outcomes,
    )
    return "| " + " | ".join(cells) + " |\n"


def main() -> None:
    out = [
        "| model | trainings | proven | transcript, by ratios | transcript, counted | final model, counted "
        "| share of μ used | verdicts |\n|---|---|---|---|---|---|---|---|\n"
    ]
    warnings.simplefilter("ignore")
    for name, model, X, y in models():
        start = time.process_time()
        fitted = model.fit(X, y)
        out.append(row(name, fitted, X, y, 1.0, TRAININGS))
        out.append(row(name, fitted, X, y, 0.1, CONTROLS))
        print(out[-1], f"{time.process_time() - start:.0f} s of CPU", flush=True)
        (RESULTS / "retrainings.md").write_text("".join(out))  # after each model: all of them take long


if __name__ == "__main__":
    main()
