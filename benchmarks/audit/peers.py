"""Attacks on fitted models, here and by others: same targets, as many shadow models. AUC and TPR with intervals, time.

Five tables, five kinds of models, 16 shadow models. SACRO-ML (2.0.1, LiRA "online-carlini"), Privacy Meter (its
repository: RMIA with the coefficient tuned as there) and auditors that turn scores into ε (JAX Privacy 2.0.0, Privacy
Estimates 0.1.0) live in environments of their own, so there are steps that share a folder; each goes on where it
stopped:

    python benchmarks/audit/peers.py ours FOLDER [adult.parquet location30.npz mnist.npz]      # with deniable
    python benchmarks/audit/peers.py sacro FOLDER                 # with sacroml
    python benchmarks/audit/peers.py meter FOLDER CLONE           # with a clone of privacytrustlab/ml_privacy_meter
    python benchmarks/audit/peers.py jax FOLDER                   # with jax-privacy
    python benchmarks/audit/peers.py estimates FOLDER             # with privacy-estimates
    python benchmarks/audit/peers.py table FOLDER                 # with deniable
"""

import contextlib
import io
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

SHADOWS, RECORDS, POPULATION = 16, 2200, 500
DELTA = 1e-5


def models() -> dict[str, Any]:
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.tree import DecisionTreeClassifier

    return {
        "logistic regression": LogisticRegression(C=100, max_iter=200, tol=1e-3),
        "tree": DecisionTreeClassifier(random_state=0),
        "forest of 100": RandomForestClassifier(100, random_state=0),
        "boosting": HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=15, random_state=0),
        "net": MLPClassifier((64,), max_iter=40, random_state=0),
    }


def tables(files: list[str]) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    from sklearn.datasets import load_digits
    from sklearn.preprocessing import StandardScaler

    from oracles.credit_table import credit_table

    rng = np.random.default_rng(0)
    X, y = credit_table(RECORDS + POPULATION)
    yield "credit", StandardScaler().fit_transform(X), y
    X, y = load_digits(return_X_y=True)
    yield "digits", X / 16, y
    for file in files:
        if file.endswith(".parquet"):
            import pandas as pd

            frame = pd.read_parquet(file).drop(columns=["split", "fnlwgt"]).sample(RECORDS + POPULATION, random_state=0)
            y = frame.pop("income").astype(str).str.contains(">50K").to_numpy().astype(int)
            yield "adult", StandardScaler().fit_transform(pd.get_dummies(frame).astype(float).to_numpy()), y
            continue
        with np.load(file) as data:
            names = ("x", "y") if "x" in data.files else ("x_train", "y_train")
            rows, labels = (data[name] for name in names)
        if rows.ndim == 2 and rows.shape[1] > 100:  # a hundred of the columns, the 14 largest classes
            largest = np.argsort(-np.bincount(labels))[:14]
            rows, labels = rows[:, rng.permutation(rows.shape[1])[:100]], labels.copy()
            rows, labels = rows[np.isin(labels, largest)], labels[np.isin(labels, largest)]
        keep = rng.permutation(len(labels))[: RECORDS + POPULATION]
        X, y = rows[keep].astype(float), np.unique(labels[keep], return_inverse=True)[1]
        if X.ndim == 3:  # images: means of 2 × 2 pixels
            X = X.reshape(len(X), X.shape[1] // 2, 2, X.shape[2] // 2, 2).mean(axis=(2, 4)).reshape(len(X), -1) / 255
        yield Path(file).stem, X, y


def ours(folder: Path, files: list[str]) -> None:
    import deniable as dn
    from deniable.audit.shadow import train_models

    for data, X, y in tables(files):
        n = len(y) - POPULATION
        member = np.random.default_rng(1).random(n) < 0.5
        for name, model in models().items():
            path = folder / f"{data}-{name}.npz"
            if path.exists():
                continue
            fitted = model.fit(X[:n][member], y[:n][member])
            start = time.process_time()
            found = dn.attack_model(fitted, X[:n], y[:n], member, n_shadows=SHADOWS, rng=2)
            taken = time.process_time() - start
            scores = np.empty(n)
            scores[found.details["member_records"]] = found.member_scores
            scores[found.details["nonmember_records"]] = found.nonmember_scores
            # for Privacy Meter: the target, a model of the other half, reference models; the last rows are in none
            rest = np.random.default_rng(3).random((SHADOWS, n)) < 0.5
            halves = np.vstack([member, ~member, rest])
            halves = np.hstack([halves, np.zeros((len(halves), POPULATION), bool)])
            seeds = [0, *range(1, len(halves))]
            start = time.process_time()
            signal = train_models(model, X, y, "classification", halves, seeds)
            training = time.process_time() - start
            np.savez(path, X=X[:n], y=y[:n], member=member, scores=scores, seconds=taken, method=found.method,
                     signal=1 / (1 + np.exp(-signal)), halves=halves, training=training)  # fmt: skip
            print(f"{path.stem}: {found.method}, {taken:.1f} s", flush=True)


def cells(folder: Path, done: str) -> Iterator[tuple[Path, dict[str, np.ndarray]]]:
    for path in sorted(folder.glob("*.npz")):
        if path.stem.count(".") or path.with_suffix(f".{done}").exists():
            continue
        with np.load(path) as data:
            yield path.with_suffix(f".{done}"), dict(data)


def keep(path: Path, scores: np.ndarray, seconds: float) -> None:
    with path.open("wb") as file:
        np.savez(file, scores=scores, seconds=seconds)
    print(path.name, f"{seconds:.1f} s", flush=True)


def sacro(folder: Path) -> None:
    import logging

    from sacroml.attacks.likelihood_attack import LIRAAttack
    from sacroml.attacks.target import Target

    logging.disable(logging.CRITICAL)
    for path, cell in cells(folder, "sacro"):
        X, y, member = cell["X"], cell["y"], cell["member"]
        model = models()[path.stem.split("-", 1)[1]].fit(X[member], y[member])
        target = Target(model=model, X_train=X[member], y_train=y[member], X_test=X[~member], y_test=y[~member])
        attack = LIRAAttack(
            output_dir=str(folder / "sacro" / path.stem),
            write_report=False,
            n_shadow_models=SHADOWS,
            mode="online-carlini",
            report_individual=True,
        )
        start = time.process_time()
        with contextlib.redirect_stdout(io.StringIO()):
            attack.attack(target)
        seconds = time.process_time() - start
        scores = np.empty(len(y))
        scores[np.concatenate([np.flatnonzero(member), np.flatnonzero(~member)])] = attack.result["member_prob"]
        keep(path, scores, seconds)


def meter(folder: Path, clone: str) -> None:
    import logging

    sys.path.insert(0, clone)
    from attacks import run_rmia, tune_offline_a

    for path, cell in cells(folder, "meter"):
        n = len(cell["y"])
        signals, halves = np.clip(cell["signal"].T, 1e-10, 1.0), cell["halves"].T
        start = time.process_time()
        population = signals[n:]
        share, _, _ = tune_offline_a(0, signals[:n], population, halves[:n], logging.getLogger("meter"))
        scores = run_rmia(0, signals[:n], population, halves[:n], SHADOWS // 2, share)
        keep(path, scores, time.process_time() - start + float(cell["training"]))


def jax(folder: Path) -> None:
    from jax_privacy.auditing import CanaryScoreAuditor, Split

    for path, cell in cells(folder, "jax"):
        auditor = CanaryScoreAuditor(cell["scores"][cell["member"]], cell["scores"][~cell["member"]])
        start = time.process_time()
        all_of_them = auditor.epsilon_clopper_pearson(0.05, DELTA)
        half = auditor.epsilon_clopper_pearson(0.05, DELTA, threshold_strategy=Split(seed=0))
        keep(path, np.array([all_of_them, half]), time.process_time() - start)


def estimates(folder: Path) -> None:
    from privacy_estimates import AttackResults, compute_eps_lo

    for path, cell in cells(folder, "estimates"):
        scores, member = cell["scores"], cell["member"]
        chosen = np.random.default_rng(0).random(len(scores)) < 0.5  # half chooses the threshold, half is counted
        values = np.unique(scores[chosen])
        inside, outside = (np.sort(scores[chosen & side]) for side in (member, ~member))
        tpr, fpr = (1 - np.searchsorted(side, values, side="right") / len(side) for side in (inside, outside))
        start = time.process_time()
        found = []
        for threshold in (values[np.argmax(tpr - fpr)], values[np.argmax(np.log(tpr + 2e-3) - np.log(fpr + 2e-3))]):
            guess = scores[~chosen] > threshold
            count = AttackResults.from_guesses_and_labels(guess.astype(int), member[~chosen].astype(int))
            found.append(float(compute_eps_lo(count, DELTA, 0.05, "beta")))
        keep(path, np.array(found), time.process_time() - start)


def table(folder: Path) -> None:
    import deniable as dn

    def shown(scores: np.ndarray, member: np.ndarray) -> list[str]:
        audit = dn.audit_scores(scores[member], scores[~member])
        cells = [f"{audit.auc().estimate:.3f}"]
        for fpr in (0.01, 0.001):
            rate = audit.tpr(fpr)
            low, high = 100 * rate.low, 100 * rate.high
            cells.append(
                f"{100 * rate.estimate:.1f} ({low:.1f} to {high:.1f})" if rate.resolvable else "not resolvable"
            )
        return cells

    print(
        "| data, model | tool | AUC | TPR at FPR 1 % (%) | TPR at FPR 0.1 % (%) | seconds |\n|---|---|---|---|---|---|"
    )
    epsilons = []
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as data:
            cell = dict(data)
        member, name = cell["member"], path.stem.replace("-", ", ")
        rows = [(f"deniable ({cell['method']})", cell["scores"], cell["seconds"])]
        for tool, label in (("sacro", "SACRO-ML"), ("meter", "Privacy Meter")):
            other = path.with_suffix(f".{tool}")
            if other.exists():
                with np.load(other) as data:
                    rows.append((label, data["scores"], data["seconds"]))
        for label, scores, seconds in rows:
            print(f"| {name} | {label} | " + " | ".join(shown(scores, member)) + f" | {float(seconds):.1f} |")
        found = {}
        for tool in ("jax", "estimates"):
            other = path.with_suffix(f".{tool}")
            if other.exists():
                with np.load(other) as data:
                    found[tool] = data["scores"]
        if len(found) == 2:
            audit = dn.audit_scores(cell["scores"][member], cell["scores"][~member])
            epsilons.append((name, audit.epsilon(DELTA).low, *found["jax"], *found["estimates"]))
    if epsilons:
        print(
            "\n| same scores | deniable | JAX Privacy, all | JAX Privacy, half | Privacy Estimates, advantage | ratio |"
        )
        print("|---|---|---|---|---|---|")
        for name, *values in epsilons:
            print(f"| {name} | " + " | ".join(f"{value:.2f}" for value in values) + " |")


if __name__ == "__main__":
    where = Path(sys.argv[2])
    where.mkdir(parents=True, exist_ok=True)
    if sys.argv[1] == "ours":
        ours(where, sys.argv[3:])
    elif sys.argv[1] == "meter":
        meter(where, sys.argv[3])
    else:
        {"sacro": sacro, "jax": jax, "estimates": estimates, "table": table}[sys.argv[1]](where)
