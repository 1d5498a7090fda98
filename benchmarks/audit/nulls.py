"""How often every verdict that an audit prints is false where nothing leaks, and how often true leaks are found.

python benchmarks/audit/nulls.py null [simulations [word]]      share of false alarms, its 95 % interval and the level
python benchmarks/audit/nulls.py power [simulations [word]]     share of leaks found

With a word only the rows that hold it.

Both need nothing but public functions, so that a former version can be measured beside: PYTHONPATH=…/src.
"""

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest

import deniable as dn
from deniable.audit import audit_one_run, check_promise

Draw = Callable[[np.random.Generator], Any]
Make = Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]
BESIDE = (False, ""), (True, ", with a reference")
REFUSED = (dn.InputError,)  # scores that are called reversed


def shows(audit: Any) -> bool:
    return max(audit.advantage().low, audit.epsilon().low, audit.mu().low) > 0


def scores(kind: str, m: int, n: int, shift: float = 0.0) -> Draw:
    """Scores of m members and n others."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        if kind == "tied":
            return rng.integers(0, 3, m) * 1.0, rng.integers(0, 3, n) * 1.0
        return rng.normal(shift, 1, m), rng.normal(0, 1, n)

    return draw


def leaks(draw: Draw) -> Draw:
    return lambda rng: shows(dn.audit_scores(*draw(rng)))


def violates(draw: Draw, promise: Any) -> Draw:
    curve = dn.tradeoff(promise)
    return lambda rng: dn.audit_scores(*draw(rng)).compare(curve).violated


def excludes(draw: Draw, row: int) -> Draw:
    """One row of the table alone: its interval leaves out guessing."""
    guesses = (0.001, 0.01, 0.1, 0.5)

    def alarmed(rng: np.random.Generator) -> bool:
        audit = dn.audit_scores(*draw(rng), direction="larger")
        interval = audit.auc() if row == 3 else audit.tpr(guesses[row])
        return interval.resolvable and guesses[row] not in interval

    return alarmed


def response(m: int, n: int) -> Draw:
    p = 1 / (1 + np.exp(-1))
    return lambda rng: ((rng.random(m) < p).astype(float), (rng.random(n) > p).astype(float))


def far_tail(m: int, n: int) -> Draw:
    """Attains (1, 0)-DP at one rate only, 1 %: the extreme scores are e times as likely for members."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        return tuple(rng.random(size) + (rng.random(size) < rate) for size, rate in ((m, 0.01 * np.e), (n, 0.01)))

    return draw


def called_reversed(draw: Draw) -> Draw:
    def alarmed(rng: np.random.Generator) -> bool:
        try:
            said = dn.audit_scores(*draw(rng)).warnings
        except REFUSED:
            return True
        return any("direction" in one for one in said)

    return alarmed


def sequential(pairs: int, size: int, shift: float, drift: float) -> Draw:
    def draw(rng: np.random.Generator) -> bool:
        q = dn.SequentialAudit(dn.GaussianDP(1.0))
        for _ in range(pairs // size):
            moved = drift * rng.normal()
            q.update(rng.normal(shift, 1, size) + moved, rng.normal(0, 1, size) + moved)
            if q.violated:
                return True
        return False

    return draw


def sequential_response(pairs: int, said: Callable[[Any], bool]) -> Draw:
    drawn = response(1, 1)

    def draw(rng: np.random.Generator) -> bool:
        q = dn.SequentialAudit(dn.PureDP(1.0))
        for _ in range(pairs):
            q.update(*drawn(rng))
            if said(q):
                return True
        return False

    return draw


def sequential_reversed(rng: np.random.Generator) -> bool:
    q = dn.SequentialAudit(dn.PureDP(1.0))
    q.update(rng.normal(size=200), rng.normal(size=200))
    return bool(q.verdict().warnings)


def people(n: int, rng: np.random.Generator) -> pd.DataFrame:
    age = rng.normal(45, 15, n).round()
    return pd.DataFrame(
        {
            "age": age,
            "town": rng.choice(["Oslo", "Roma", "Bern"], n, p=[0.6, 0.3, 0.1]),
            "income": np.exp(rng.normal(10 + age / 100, 0.5)).round(2),
            "ill": rng.choice(["yes", "no"], n),
        }
    )


def coarse(n: int, rng: np.random.Generator) -> pd.DataFrame:
    return pd.DataFrame(rng.random((n, 4)) < 0.4, columns=list("abcd"))


def heavy(n: int, rng: np.random.Generator) -> pd.DataFrame:
    return pd.DataFrame({"income": np.exp(rng.normal(0, 2, n)), "age": rng.normal(size=n)})


def released(
    make: Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame], n: int, reference: bool, table: Any
) -> Draw:
    def draw(rng: np.random.Generator) -> bool:
        members, others, known = (table(n, rng) for _ in range(3))
        found = dn.attack_synthetic(make(members, rng), members, others, known if reference else None, rng=0)
        return shows(found.audit())

    return draw


def copies(k: int) -> Make:
    return lambda members, rng: pd.concat([members[:k], people(len(members) - k, rng)], ignore_index=True)


def near(share: float) -> Make:
    def make(members: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        rows = members.iloc[rng.integers(len(members), size=len(members))].reset_index(drop=True)
        return rows.assign(income=rows["income"] * np.exp(share * rng.normal(size=len(rows))))

    return make


def one_run(m: int, shift: float, of: str = "epsilon", tied: bool = False) -> Draw:
    def draw(rng: np.random.Generator) -> bool:
        inside = rng.random(m) < 0.5
        noise = rng.integers(0, 3, m) if tied else rng.normal(size=m)
        audit = audit_one_run(noise + shift * inside, inside)
        return bool(audit.warnings) if of == "warnings" else getattr(audit, of)().low > 0

    return draw


def one_run_violates(m: int) -> Draw:
    p, curve = 1 / (1 + np.exp(-1)), dn.tradeoff(dn.PureDP(1.0))

    def draw(rng: np.random.Generator) -> bool:
        inside = rng.random(m) < 0.5
        return audit_one_run((rng.random(m) < p) == inside, inside).compare(curve).violated

    return draw


def checked(rng: np.random.Generator) -> bool:
    def release(inside: bool) -> float:
        return inside + rng.laplace()

    return check_promise(release, dn.PureDP(1.0), trials=200, confidence=0.95).verdict.violated


def fresh(members: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return people(len(members), rng)


def others(members: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return coarse(len(members), rng)


def heavy_others(members: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return heavy(len(members), rng)


GAUSSIAN = dn.GaussianDP(1.0)
PURE = dn.PureDP(1.0)
FEW = (1, 300), (1, 5000), (3, 1000), (1000, 3), (20, 1000)
NULL: list[tuple[str, Draw, float]] = [  # what, simulation, level
    *((f"scores that say nothing, {n} each: leaks", leaks(scores("normal", n, n)), 0.05) for n in (50, 200, 1000)),
    *((f"scores that say nothing, {m:,} of {n:,}: leaks", leaks(scores("normal", m, n)), 0.05) for m, n in FEW),
    ("three tied scores, 200 each: leaks", leaks(scores("tied", 200, 200)), 0.05),
    ("three tied scores, 3 of 1,000: leaks", leaks(scores("tied", 3, 1000)), 0.05),
    *(
        (f"scores that say nothing, 1,000 each: {row} alone", excludes(scores("normal", 1000, 1000), i), 0.05)
        for i, row in enumerate(("TPR at 0.1 %", "TPR at 1 %", "TPR at 10 %", "AUC"))
    ),
    ("scores that say nothing, 200 each: called reversed", called_reversed(scores("normal", 200, 200)), 0.05),
    ("scores that say nothing, 3 of 1,000: called reversed", called_reversed(scores("normal", 3, 1000)), 0.05),
    *(
        (
            f"Gaussian that attains its promise, {m:,} of {n:,}: violated",
            violates(scores("normal", m, n, 1), GAUSSIAN),
            0.05,
        )
        for m, n in ((500, 500), (1, 300), (3, 1000), (1000, 3), (100, 1000))
    ),
    *(
        (
            f"randomised response that attains its promise, {m:,} of {n:,}: violated",
            violates(response(m, n), PURE),
            0.05,
        )
        for m, n in ((500, 500), (3, 1000), (100, 1000))
    ),
    ("an ε of 1 attained at FPR 1 % only, 1,000 each: violated", violates(far_tail(1000, 1000), PURE), 0.05),
    ("any time, 200 pairs: violated", sequential(200, 10, 1.0, 0.0), 0.05),
    ("any time, the attack changes between calls: violated", sequential(200, 10, 1.0, 100.0), 0.05),
    (
        "any time, randomised response, 200 pairs one by one: violated",
        sequential_response(200, lambda q: q.violated),
        0.05,
    ),
    ("any time, 200 pairs that say nothing: called reversed", sequential_reversed, 0.001),
    ("a Laplace count, checked 200 times: promise broken", checked, 0.05),
    ("one run, 200 canaries: an ε", one_run(200, 0.0), 0.05),
    ("one run, 200 canaries, three tied scores: an ε", one_run(200, 0.0, tied=True), 0.05),
    ("one run, 200 canaries: a μ", one_run(200, 0.0, "mu"), 0.05),
    ("one run, 200 canaries: an advantage", one_run(200, 0.0, "advantage"), 0.05),
    ("one run, 200 canaries: called reversed", one_run(200, 0.0, "warnings"), 0.001),
    ("one run of a randomised response that attains its promise, 200: violated", one_run_violates(200), 0.05),
    ("a table of others, 200: leaks", released(fresh, 200, False, people), 0.05),
    ("a table of others, 200, with a reference: leaks", released(fresh, 200, True, people), 0.05),
    ("a table of others, heavy tails, 200: leaks", released(heavy_others, 200, False, heavy), 0.05),
    ("four yes-or-no columns, 200, with a reference: leaks", released(others, 200, True, coarse), 0.05),
]

BROKEN = violates(scores("normal", 500, 500, 1.0), dn.GaussianDP(0.5))
POWER: list[tuple[str, Draw, int]] = [
    *(
        (f"Gaussian scores, μ = {mu}, 500 each: leaks", leaks(scores("normal", 500, 500, mu)), 1)
        for mu in (0.2, 0.3, 0.5)
    ),
    ("Gaussian, μ = 1, 500 each, 0.5 promised: violated", BROKEN, 1),
    ("any time, 100 pairs, μ = 2 where 1 is promised: violated", sequential(100, 10, 2.0, 0.0), 4),
    ("one run, 200 canaries, shift 1: an ε", one_run(200, 1.0), 1),
    *(
        (f"{k} exact copies in 1,000{words}: leaks", released(copies(k), 1000, known, people), 10)
        for k in (10, 15, 30, 100)
        for known, words in BESIDE
    ),
    *(
        (f"incomes moved by {share:g}, 300{words}: leaks", released(near(share), 300, known, people), 10)
        for share in (0.1, 0.3)
        for known, words in BESIDE
    ),
]


def counted(draw: Draw, simulations: int) -> tuple[int, int, int]:
    """Return alarms, scores that were refused, and simulations."""
    alarms = refused = 0
    for seed in range(simulations):
        try:
            alarms += bool(draw(np.random.default_rng([seed, 7])))
        except REFUSED:
            refused += 1
    return alarms, refused, simulations


def main() -> None:
    what, simulations, word = sys.argv[1], int((sys.argv[2:] or ["2000"])[0]), " ".join(sys.argv[3:])
    warnings.simplefilter("ignore")
    if what == "null":
        print("| nothing leaks, or no more than promised | n | false alarms | 95 % interval | level | refused |")
        print("|---|---|---|---|---|---|")
        for name, draw, level in (row for row in NULL if word in row[0]):
            alarms, refused, n = counted(draw, simulations)
            low, high = binomtest(alarms, n).proportion_ci(0.95)
            within = f"{low:.2%} to {high:.2%}" + (" **above**" if low > level else "")
            print(f"| {name} | {n} | {alarms / n:.2%} | {within} | {level:.1%} | {refused / n:.2%} |", flush=True)
        return
    print("| a leak | n | found |\n|---|---|---|")
    for name, draw, part in (row for row in POWER if word in row[0]):
        alarms, _, n = counted(draw, max(40, simulations // part))
        print(f"| {name} | {n} | {alarms / n:.1%} |", flush=True)


if __name__ == "__main__":
    main()
