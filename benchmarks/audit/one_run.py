"""One training run with canaries: what is shown here, and by the published implementation of the same bounds.

A DP-SGD run with ε = 4 at δ = 1e-5 is simulated as an attacker sees it who knows every noisy gradient: canaries with
gradients of the clipping norm in directions of their own. A second
kind of scores is of memorised canaries: a fifth of those that are in stands out, the others do not.

JAX Privacy (2.0.0, ``jax_privacy.auditing``) lives in an environment of its own, so there are three steps that share a
folder:

    python benchmarks/audit/one_run.py scores FOLDER [runs]        # with deniable
    python benchmarks/audit/one_run.py theirs FOLDER               # with jax-privacy
    python benchmarks/audit/one_run.py table FOLDER                # with deniable

and "errors" prints how often the limit is too high where the truth is known, "independent FOLDER" what order statistics
of independent losses would show (Xiang et al. 2025, arXiv:2509.08704), and how often they err where losses are not
independent.
"""

import sys
import time
from pathlib import Path

import numpy as np

DELTA, EPSILON, RATE, STEPS = 1e-5, 4.0, 0.05, 200
SIZES = (500, 2000)
PILOTS = 2  # which fifth is the pilot is chance: our limits are averaged over so many (the ordered bound has no pilot)


def p_value_if_independent(mu: float, m: int, r: int, wrong: int) -> float:
    """P(at most ``wrong`` of the ``r`` most confident of m guesses wrong), if privacy losses were independent.

    Given its loss L a guess is wrong with probability 1/(1 + e^|L|); |L| of the k-th most confident is an order
    statistic of m independent draws under μ-GDP; Chernoff's bound for the sum of as many independent errors.
    """
    from scipy import special, stats

    x = np.linspace(-7, 7, 401)
    weight = stats.norm.pdf(x) / stats.norm.pdf(x).sum()
    loss = np.abs(mu * x + mu**2 / 2)  # under the law with the record; |L| has the same law under the other
    order = np.argsort(-loss)
    above = np.cumsum(weight[order]) - weight[order] / 2  # probability of a larger |L|
    k = np.arange(1, r + 1)
    density = stats.beta.logpdf(np.clip(above, 1e-15, 1 - 1e-15), k[:, None], m - k[:, None] + 1)
    mass = np.exp(density) * weight[order]
    v = mass @ special.expit(-loss[order]) / mass.sum(axis=1)
    if wrong >= v.sum():
        return 1.0
    t = -np.geomspace(1e-3, 40, 60)[:, None]
    return float(np.exp(np.min(np.log1p(v * np.expm1(t)).sum(axis=1) - t[:, 0] * wrong)))


def independent(folder: Path, draws: int = 200_000, m: int = 500, mu: float = 1.0) -> None:
    """Print μ shown and false alarms of order statistics of independent losses, and of the bound here."""
    from deniable._search import bisect
    from deniable.audit import audit_one_run

    def exceeds(level: float, values: np.ndarray, included: np.ndarray, share: int) -> bool:
        """Return whether μ = ``level`` is refuted: all canaries guessed (1), or the top tenth guessed to be in (10)."""
        down, size = included[np.argsort(-values)], len(values)
        r = size // share
        wrong = np.sum(~down[:r]) if share > 1 else np.sum(~down[: size // 2]) + np.sum(down[size // 2 :])
        return p_value_if_independent(level, size, r, int(wrong)) <= 0.05

    def shown(values: np.ndarray, included: np.ndarray, share: int) -> float:
        return float(bisect(lambda x: exceeds(float(x), values, included, share), 0, 8, relative=1e-2)[0])

    rows: dict[tuple[str, int], list[tuple[float, ...]]] = {}
    for path, kind, size, values, included in each(folder):
        if int(path.stem.rsplit("-", 1)[1]) < 8:
            found = *(shown(values, included, share) for share in (1, 10)), audit_one_run(values, included).mu().low
            rows.setdefault((kind, size), []).append(found)
    for (kind, size), each_run in rows.items():
        every, tenth, here = np.mean(each_run, axis=0)
        print(
            f"{kind}, {size}: mu {every:.2f} (all), {tenth:.2f} (a tenth) if independent, {here:.2f} here", flush=True
        )
    # one |L| for all canaries, drawn with the law of a μ-GDP pair; given it, randomised response: each record has μ-GDP
    rng = np.random.default_rng(0)
    right = 1 / (1 + np.exp(-np.abs(mu * rng.normal(size=draws) + mu**2 / 2)))
    for r in (m, m // 10):
        few, many = -1, r  # errors of which the first are refuted
        while many - few > 1:
            middle = (few + many) // 2
            few, many = (middle, many) if p_value_if_independent(mu, m, r, middle) <= 0.05 else (few, middle)
        share = np.mean(rng.binomial(r, 1 - right) <= few)
        print(
            f"one loss for all, mu = {mu:g}, {m} canaries, {r} guesses: above the truth in {100 * share:.1f} % of runs"
        )


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

    sys.path.append(str(Path(__file__).resolve().parents[2] / "papers"))
    from known_laws import attack_transcript

    noise = dn.calibrate(
        lambda sigma: dn.SubsampledGaussian(sigma, RATE, STEPS),
        bracket=(0.3, 20),
        limit=dn.Limit(epsilon=EPSILON, delta=DELTA),
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
    import deniable as dn
    from deniable.audit import audit_one_run

    rows: dict[tuple[str, int], dict[str, list[float]]] = {}
    times: dict[str, float] = {}
    for path, kind, m, values, included in each(folder):
        found = rows.setdefault((kind, m), {})
        for bound, label in (("ordered", "steinke"), ("gaussian", "gaussian")):
            start = time.process_time()
            made = [audit_one_run(values, included, rng=pilot) for pilot in range(PILOTS)]
            if bound == "ordered":
                lows = [run.epsilon(DELTA).low for run in made]
            else:
                lows = [dn.tradeoff(dn.GaussianDP(run.mu().low)).epsilon(DELTA) for run in made]
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
        {"theirs": theirs, "table": table, "independent": independent}[sys.argv[1]](where)
