"""LiRA here against SACRO-ML's, on the same target models, the same splits and as many shadow models.

Differences are taken target by target, with a 95 % t-interval over the targets: random splits of the same records, so
the interval speaks about splits, not about other data sets.

SACRO-ML lives in an environment of its own, so there are three steps that share a folder:

    python benchmarks/audit/sacro_lira.py ours FOLDER [location30.npz] [mnist.npz]     # with deniable
    python benchmarks/audit/sacro_lira.py theirs FOLDER                    # with sacroml (2.0.1)
    python benchmarks/audit/sacro_lira.py table FOLDER                     # with deniable

The first two can be interrupted, and go on where they stopped.
"""

import contextlib
import io
import sys
import time
from pathlib import Path

import numpy as np

METHODS = ("loss", "calibrated", "lira-offline", "rmia", "lira")
MODES = ("offline", "online-carlini")


def model():
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=100, max_iter=200, tol=1e-3)


def ours(folder: Path, files: list[str]) -> None:
    from sklearn.datasets import load_digits

    import deniable as dn

    X, y = load_digits(return_X_y=True)
    tasks = {"digits": (X / 16, y, 64, 60)}  # records, labels, shadows, targets
    for file in files:
        with np.load(file) as data:
            names = ("x", "y") if "x" in data.files else ("x_train", "y_train")
            rows, labels = (data[name] for name in names)
        keep = np.random.default_rng(0).permutation(len(labels))[:1500]
        X, y = rows[keep].astype(float), np.unique(labels[keep], return_inverse=True)[1]
        if X.ndim == 3:  # images: means of 2 × 2 pixels
            X = X.reshape(len(X), X.shape[1] // 2, 2, X.shape[2] // 2, 2).mean(axis=(2, 4)).reshape(len(X), -1) / 255
        tasks[Path(file).stem] = (X, y, 32, 20)
    for name, (X, y, shadows, targets) in tasks.items():
        for seed in range(targets):
            path = folder / f"{name}-{seed:02d}.npz"
            if path.exists():
                continue
            found: dict[str, np.ndarray] = {"X": X, "y": y, "shadows": np.array(shadows)}
            start = time.perf_counter()
            for method in METHODS:
                scores = dn.attack_estimator(model(), X, y, method=method, n_shadows=shadows, rng=seed)
                values = np.empty(len(y))
                values[scores.details["member_records"]] = scores.member_scores
                values[scores.details["nonmember_records"]] = scores.nonmember_scores
                found[f"deniable {method}"] = values
            member = np.zeros(len(y), dtype=bool)
            member[scores.details["member_records"]] = True
            np.savez(path, member=member, **found)
            print(f"{name} target {seed}: {time.perf_counter() - start:.1f} s for all methods", flush=True)


def theirs(folder: Path) -> None:
    import logging

    from sacroml.attacks.likelihood_attack import LIRAAttack
    from sacroml.attacks.target import Target

    logging.disable(logging.CRITICAL)
    for path in sorted(folder.glob("*-??.npz")):
        if (folder / f"{path.stem}.sacro.npz").exists():
            continue
        with np.load(path) as data:
            X, y, member, shadows = data["X"], data["y"], data["member"], int(data["shadows"])
        found = {}
        start = time.perf_counter()
        for mode in MODES:
            target = Target(
                model=model().fit(X[member], y[member]),
                X_train=X[member], y_train=y[member], X_test=X[~member], y_test=y[~member],
            )  # fmt: skip
            where = folder / "sacro" / path.stem  # both modes read the same shadow models
            attack = LIRAAttack(
                output_dir=str(where), write_report=False, n_shadow_models=shadows, mode=mode, report_individual=True
            )
            with contextlib.redirect_stdout(io.StringIO()):
                attack.attack(target)
            values = np.empty(len(y))
            values[np.concatenate([np.flatnonzero(member), np.flatnonzero(~member)])] = attack.result["member_prob"]
            found[f"SACRO-ML {mode}"] = values
        np.savez(folder / f"{path.stem}.sacro.npz", **found)
        print(f"{path.stem}: {time.perf_counter() - start:.1f} s for both modes", flush=True)


def table(folder: Path) -> None:
    from scipy.special import stdtrit

    import deniable as dn

    print("| data | attack | AUC | TPR at FPR 1 % | TPR: ours (LiRA) minus this one, paired | targets |")
    print("|---|---|---|---|---|---|")
    for name in sorted({path.stem[:-3] for path in folder.glob("*-??.npz")}):
        rates: dict[str, list[tuple[float, float]]] = {}
        for path in sorted(folder.glob(f"{name}-??.npz")):
            theirs = folder / f"{path.stem}.sacro.npz"
            if not theirs.exists():
                continue
            member = np.load(path)["member"]
            for file in (path, theirs):
                with np.load(file) as data:
                    for attack in data.files:
                        if attack.startswith(("deniable", "SACRO")):
                            audit = dn.audit_scores(data[attack][member], data[attack][~member])
                            rates.setdefault(attack, []).append((audit.auc().estimate, audit.tpr(0.01).estimate))
        own = np.array(rates.get("deniable lira", []))
        for attack, values in rates.items():
            auc, tpr = np.mean(values, axis=0)
            gain = 100 * (own - np.array(values))[:, 1]
            half = stdtrit(len(gain) - 1, 0.975) * gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.nan
            paired = "" if attack == "deniable lira" else f"{gain.mean():+.2f} ± {half:.2f} points"
            print(f"| {name} | {attack} | {auc:.4f} | {100 * tpr:.2f} % | {paired} | {len(values)} |")


if __name__ == "__main__":
    folder = Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    if sys.argv[1] == "ours":
        ours(folder, sys.argv[3:])
    else:
        {"theirs": theirs, "table": table}[sys.argv[1]](folder)
