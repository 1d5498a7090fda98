"""One training run with canaries: what is shown here, and by the published implementation of the same bounds.

A DP-SGD run with ε = 4 at δ = 1e-5 is simulated as an attacker sees it who knows every noisy gradient: canaries with
gradients of the clipping norm in directions of their own (what ``GradientCanaries`` puts into an Opacus run). A second
kind of scores is of memorised canaries: a fifth of those that are in stands out, the others do not.

JAX Privacy (2.0.0, ``jax_privacy.auditing``) lives in an environment of its own, so there are three steps that share a
folder:

    python benchmarks/audit/one_run.py scores FOLDER [runs]        # with deniable
    python benchmarks/audit/one_run.py theirs FOLDER               # with jax-privacy
    python benchmarks/audit/one_run.py table FOLDER                # with deniable

and "errors" prints how often the limit is too high where the truth is known.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

DELTA, EPSILON, RATE, STEPS = 1e-5, 4.0, 0.05, 200
SIZES = (500, 2000)
PILOTS = 2  # which fifth is the pilot is chance: our limits are averaged over so many (the ordered bound has no pilot)


def errors(runs: int = 300, m: int = 500, epsilon: float = 1.0) -> None:
    """Print how often either auditor's ε is above the truth, for two ε-DP mechanisms; with jax-privacy or deniable."""
    try:
        from jax_privacy.auditing import CanaryScoreAuditor

        def limit(values, included):
            return CanaryScoreAuditor(values[included], values[~included]).epsilon_one_run(0.05, 1e-12)
    except ImportError:
        from deniable.audit import audit_one_run

        def limit(values, included):
            return audit_one_run(values, included).epsilon().low

    for name in ("randomised response", "Laplace noise"):
        wrong = 0
        for seed in range(runs):
            rng = np.random.default_rng(seed)
            included = rng.random(m) < 0.5
            if name == "Laplace noise":
                values = included + rng.laplace(scale=1 / epsilon, size=m)
            else:
                right = rng.random(m) < 1 / (1 + np.exp(-epsilon))
                values = np.where(right, included, ~included) + 1e-3 * rng.normal(size=m)
            wrong += limit(values, included) > epsilon
        print(f"{name}: above the truth in {wrong} of {runs} runs; 5 % are permitted")


def scores(folder: Path, runs: int) -> None:
    import deniable as dn
    from deniable.audit import attack_transcript

    noise = dn.calibrate(
        lambda sigma: dn.SubsampledGaussian(sigma, RATE, STEPS), bracket=(0.3, 20), epsilon=EPSILON, delta=DELTA
    )
    mechanism = dn.SubsampledGaussian(noise, RATE, STEPS)
    print(mechanism)
    for seed in range(runs):
        for m in SIZES:
            rng = np.random.default_rng([seed, m])
            included = rng.random(m) < 0.5
            known = attack_transcript(mechanism, n=m, rng=rng)
            gradient = np.where(included, known.member_scores, known.nonmember_scores)
            memorised = np.where(included & (rng.random(m) < 0.2), 5.0, 0.0) + rng.normal(size=m)
            for kind, values in (("gradient canaries, ε = 4", gradient), ("a fifth is memorised", memorised)):
                np.savez(folder / f"{kind}-{m:05d}-{seed}.npz", scores=values, included=included)


def each(folder: Path):
    for path in sorted(folder.glob("*.npz")):
        kind, m, _ = path.stem.rsplit("-", 2)
        with np.load(path) as data:
            yield path, kind, int(m), data["scores"], data["included"]


def theirs(folder: Path) -> None:
    from jax_privacy.auditing import Bonferroni, CanaryScoreAuditor, Split

    ways = {"all thresholds": Bonferroni(), "half of it": Split(seed=0)}
    for path, _, _, values, included in each(folder):
        if path.with_suffix(".theirs").exists():
            continue
        auditor = CanaryScoreAuditor(values[included], values[~included])
        lines = []
        for name, way in ways.items():
            for bound, call in (("steinke", auditor.epsilon_one_run), ("gaussian", auditor.epsilon_one_run_fdp)):
                start = time.process_time()
                found = float(call(0.05, DELTA, threshold_strategy=way))
                lines.append(f"{bound},{name},{found},{time.process_time() - start}")
        path.with_suffix(".theirs").write_text("\n".join(lines))
        print(path.stem, flush=True)


def table(folder: Path) -> None:
    from deniable.audit import audit_one_run

    rows: dict[tuple[str, int], dict[str, list[float]]] = {}
    times: dict[str, float] = {}
    for path, kind, m, values, included in each(folder):
        found = rows.setdefault((kind, m), {})
        for bound, label in (("ordered", "steinke"), ("gaussian", "gaussian")):
            start = time.process_time()
            lows = [
                audit_one_run(values, included, rng=pilot).epsilon(DELTA, bound=bound).low for pilot in range(PILOTS)
            ]
            times["deniable"] = times.get("deniable", 0.0) + (time.process_time() - start) / PILOTS
            found.setdefault(f"{label}, deniable", []).append(float(np.mean(lows)))
        for line in path.with_suffix(".theirs").read_text().splitlines():
            bound, name, low, seconds = line.split(",")
            times[name] = times.get(name, 0.0) + float(seconds)
            found.setdefault(f"{bound}, {name}", []).append(float(low))
    names = list(next(iter(rows.values())))
    print("| canaries | m | " + " | ".join(names) + " |\n|---" * 1 + "|---" * (len(names) + 1) + "|")
    for (kind, m), found in rows.items():
        print(f"| {kind} | {m:,} | " + " | ".join(f"{np.mean(found[name]):.2f}" for name in names) + " |")
    print({name: round(seconds, 1) for name, seconds in times.items()}, "s of CPU time, all files")


if __name__ == "__main__":
    if sys.argv[1] == "errors":
        sys.exit(errors())
    where = Path(sys.argv[2])
    where.mkdir(parents=True, exist_ok=True)
    if sys.argv[1] == "scores":
        scores(where, int(sys.argv[3]) if len(sys.argv) > 3 else 8)
    else:
        {"theirs": theirs, "table": table}[sys.argv[1]](where)
