"""Made-up tables at the same risk: this package's and others', each in its own environment, in limited CPU time.

    python benchmarks/synthesis/run.py --out results.jsonl --tables adult,churn --seeds 3
    python benchmarks/synthesis/run.py --out results.jsonl --rival own-aim --only-rivals
    python benchmarks/synthesis/run.py --out results.jsonl --rival opendp-aim=/path/to/python --seconds 600

Rivals get every domain (words, quantiles) from the real records for nothing. "noise": the sum of squared noise of a
Gaussian mechanism with the asked advantage, rho = mu^2 / 2. "proof": the rho for which zero-concentrated privacy, all
that they prove, bounds the advantage.
"""

import argparse
import json
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import aim
from measures import measured
from scipy.optimize import brentq
from scipy.stats import norm

from tables import Cells, halves, load

HERE = Path(__file__).parent


def budgets(advantage: float) -> dict[str, float]:
    """Return rho at equal noise and at equal proof."""
    import deniable as dn

    mu = 2 * norm.ppf((1 + advantage) / 2)
    proof = brentq(lambda rho: dn.tradeoff(dn.ZeroConcentratedDP(rho)).advantage() - advantage, 1e-5, mu**2)
    return {"noise": mu**2 / 2, "proof": float(proof)}


def ours(train, target: str | None, advantage: float, rows: int):
    """Return made-up rows and the CPU seconds of fit and rows."""
    import deniable as dn

    started = time.process_time()
    made = dn.PrivateSynthesizer(advantage=advantage, targets=target or ()).fit(train)
    table = made.sample(rows)
    return table, time.process_time() - started


def rivals(name: str, python: str, train, seed: int, rho: float, rows: int, seconds: int):
    """Return a rival's rows and CPU seconds; raises `subprocess.CalledProcessError`."""
    if name == "own-aim":
        started = time.process_time()
        return aim.made(train, rho, rows, seed), time.process_time() - started
    cells = Cells(train)
    codes, sizes = cells.encode(train)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        codes.to_csv(place / "codes.csv", index=False)
        (place / "sizes.json").write_text(json.dumps(sizes))
        files = [place / "codes.csv", place / "sizes.json", rho, rows, place / "made.csv"]
        command = [python, HERE / "rival.py", name, *files]
        limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))  # noqa: E731
        done = subprocess.run([str(c) for c in command], preexec_fn=limit, check=True, capture_output=True, text=True)
        import pandas as pd

        made = pd.read_csv(place / "made.csv")
    return cells.decode(made, train, seed), json.loads(done.stdout.splitlines()[-1])["cpu"]


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--out", type=Path, required=True)
    ask.add_argument("--tables", default="adult,churn,credit,crash,election")
    ask.add_argument("--seeds", type=int, default=3)
    ask.add_argument("--advantage", type=float, default=0.1)
    ask.add_argument("--rival", action="append", default=[], metavar="own-aim or TOOL-METHOD=PYTHON")
    ask.add_argument("--seconds", type=int, default=900)
    ask.add_argument("--only-rivals", action="store_true")
    asked = ask.parse_args()
    warnings.simplefilter("ignore")
    rho = budgets(asked.advantage)
    for name in asked.tables.split(","):
        table, target = load(name)
        for seed in range(asked.seeds):
            train, test = halves(table, seed)
            rows = 4 * len(train)
            tasks = [] if asked.only_rivals else [("deniable", "target"), ("deniable", "no target")]
            tasks += [(rival, kind) for rival in asked.rival for kind in rho]
            for tool, kind in tasks:
                found = {"table": name, "seed": seed, "tool": tool.split("=")[0], "kind": kind}
                try:
                    if tool == "deniable":
                        made, cpu = ours(train, target if kind == "target" else None, asked.advantage, rows)
                    else:
                        made, cpu = rivals(*tool.partition("=")[::2], train, seed, rho[kind], rows, asked.seconds)
                    found |= measured(made, train, test, target) | {"cpu": cpu}
                except subprocess.CalledProcessError as error:
                    late = error.returncode in (-signal.SIGXCPU, -signal.SIGKILL)
                    said = error.stderr.strip().splitlines() or [str(error)]
                    found["stopped"] = f"after {asked.seconds} CPU s" if late else " ".join(said[-3:])[-300:]
                with asked.out.open("a") as kept:
                    kept.write(json.dumps(found) + "\n")
                print(json.dumps(found), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
