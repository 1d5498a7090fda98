"""1,000 retrainings of each of a few private models, attacked as strongly as possible: results/retrainings.md.

    python benchmarks/training/retrainings.py

Every model is fitted ``TRAININGS`` times with the worst canary (of 200 rows, each with every class or a far target) and
as often without, with fresh noise from the operating system. One attacker knows all other records and follows
everything that was released; a second one sees the final model only. The negative control has a tenth of the promised
noise.

The rule, fixed before any run: five models and two attackers are ten verdicts on the promised noise. All ten are to be
right with probability 1 − ``ERROR`` = 99 %, so each is made at 1 − ``ERROR``/10 = 99.9 % (Bonferroni), within which an
audit accounts for all thresholds that it tries (``ScoreAudit.compare``). One verdict "violated" on the promised noise,
one history in which the canary needs more than the proven μ, or a control that is not caught on its transcript fails
the script. It runs all models once, to the end; none is repeated for its outcome. Intervals have the same level.
``by ratios`` is the mean over the likelihood ratios with its standard error.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from data import load
from harness import RESULTS

import deniable as dn

sys.path += [str(Path(__file__).resolve().parents[2] / folder) for folder in ("tests", "papers")]
from known_laws import ratio_advantage

from guarantees.attacked_fits import attacked, worst

TRAININGS, CONTROLS = 500, 100  # with the canary, and as many without
ADVANTAGE = 0.2
ERROR, VERDICTS = 0.01, 10
CONFIDENCE = 1 - ERROR / VERDICTS
HEADER = (
    "| model | trainings | proven | transcript, by ratios | transcript, counted | final model, counted "
    "| share of μ needed: mean, largest | verdicts (p) |\n|---|---|---|---|---|---|---|---|\n"
)


def classes(k: int, rng: np.random.Generator):
    X = pd.DataFrame(rng.normal(size=(240, 3)), columns=list("abc")).assign(year=rng.integers(1990, 2021, 240))
    return X, np.argmax(X[["a", "b", "c"]].to_numpy() @ rng.normal(size=(3, k)) + rng.gumbel(size=(240, k)), axis=1)


def models():
    """Two classes, three, numbers (enough for a look at the level); additive, linear; years for closer looks."""
    small, rng = load("small"), np.random.default_rng(3)
    three, homes = classes(3, rng), load("houses")
    yield "two classes, additive", dn.PrivateClassifier(advantage=ADVANTAGE, classes=["no", "yes"]), small.X, small.y
    yield (
        "two classes, linear",
        dn.PrivateClassifier(advantage=ADVANTAGE, model="linear", classes=["no", "yes"]),
        small.X,
        small.y,
    )
    yield "three classes, a column of years", dn.PrivateClassifier(advantage=ADVANTAGE, classes=[0, 1, 2]), *three
    yield "regression", dn.PrivateRegressor(advantage=ADVANTAGE), homes.X[:1500], homes.y[:1500]


def canaries(X, y, regression):
    targets = [y.min() - 10 * y.std(), y.max() + 10 * y.std()] if regression else np.unique(y)
    return [(X.iloc[[i]], np.array([target])) for i in range(200) for target in targets]


def row(name, model, X, y, share, trainings) -> tuple[str, bool]:
    """Return a line of the table, and whether it is as it has to be."""
    canary = worst(model, (X, y), canaries(X, y, isinstance(model, dn.PrivateRegressor)))
    attack, fitted = attacked(model, (X, y), canary, trainings, share), model.fit(X, y)
    audits = [scores.audit(CONFIDENCE) for scores in (attack.transcript, attack.final)]
    found = [audit.advantage() for audit in audits]
    verdicts = [audit.compare(fitted.tradeoff_) for audit in audits]
    needed = attack.mu / fitted.certificate_.mu
    kept = share == 1
    cells = (
        f"{name}{'' if kept else ', a tenth of the noise'}",
        f"{2 * trainings:,}",
        f"{ADVANTAGE}",
        "{:.3f} ± {:.3f}".format(*ratio_advantage(attack.transcript)) if kept else "–",
        *(f"{each.estimate:.3f} ({each.low:.3f} to {each.high:.3f})" for each in found),
        f"{needed.mean():.1%}, {needed.max():.1%}" if kept else "–",
        " / ".join(f"{verdict.outcome} ({verdict.p_value:.2g})" for verdict in verdicts),
    )
    good = not any(v.violated for v in verdicts) and bool(needed.max() <= 1) if kept else verdicts[0].violated
    return "| " + " | ".join(cells) + " |\n", good


def main() -> None:
    out, good = [HEADER], []
    warnings.simplefilter("ignore")
    for name, model, X, y in models():
        start = time.process_time()
        for share, trainings in ((1.0, TRAININGS), (0.1, CONTROLS)):
            line, as_it_must = row(name, model, X, y, share, trainings)
            out.append(line)
            good.append(as_it_must)
        print(*out[-2:], f"{time.process_time() - start:.0f} s of CPU", flush=True)
        (RESULTS / "retrainings.md").write_text("".join(out))  # after each model: all of them take long
    sys.exit(0 if all(good) else "a verdict is not what it has to be")


if __name__ == "__main__":
    main()
