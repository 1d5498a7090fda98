"""Time and error of deniable and its peers on six DP-SGD runs, and who tells the truth about FPR 1e-5.

    python benchmarks/accounting/peers.py --peers .venv-peers/bin/python
    python benchmarks/accounting/peers.py --ours         # deniable and the attack alone; writes nothing

Every tool gets a process of its own with one thread. Truth of the advantage: the transform inverted with 30 digits
(below; none of deniable's code). Truth at FPR 1e-5: a likelihood-ratio attack that is played out. Writes
results/peers.json, results/peers.md and docs/images/peers.svg. riskcal's calibration to TPR 1e-4 takes minutes, so that
it is run separately, with ``--slow``, and kept in results/peers_slow.json.
"""

import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import mpmath as mp
import numpy as np
from peers_worker import FPR, RUNS, TARGET_TPR, TOOLS

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from oracles.likelihood_ratio import simulate  # noqa: E402

mpl.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

OURS = "deniable"
RESULTS = Path(__file__).resolve().parent / "results"
SLOW = RESULTS / "peers_slow.json"


def true_advantage(sigma, rate, steps):
    """TV = 1 − (1/π)·∫₀^∞ Re[M(½ + it)^T]/(t² + ¼) dt with M(½ + it) = ∫ √(pq)·e^{itL}, by two trapezoid rules.

    The rule in t with spacing π/40 is off by at most 2·e^{−40}; the one in u ~ N(0, 1) converges just as fast, with a
    spacing that keeps 2π·(πσ)/h above 90.
    """
    if rate == 1:
        return mp.erf(mp.sqrt(mp.mpf(steps) / 8) / mp.mpf(sigma))
    s, q = mp.mpf(sigma), mp.mpf(rate)
    spacing = min(mp.mpf(sigma) * mp.pi**2 / 45, mp.mpf(1) / 8)
    nodes = [spacing * k for k in range(int(-13 / spacing), int((13 + 1 / s) / spacing))]
    loss = [mp.log1p(q * mp.expm1(u / s - 1 / (2 * s**2))) for u in nodes]
    weight = [spacing * mp.npdf(u) * mp.exp(x / 2) for u, x in zip(nodes, loss, strict=True)]
    step = mp.pi / 40
    total, k = mp.mpf(0), 0
    while True:
        t = k * step
        value = sum(w * mp.expj(t * x) for w, x in zip(weight, loss, strict=True)) ** steps / (t**2 + mp.mpf(1) / 4)
        total += mp.re(value) * (mp.mpf(1) / 2 if k == 0 else 1)
        if abs(value) < mp.mpf(10) ** -18:
            return 1 - total * step / mp.pi
        k += 1


def upwards(noise, digits):
    """A noise with so many digits, rounded up: what is printed keeps the target."""
    return math.ceil(noise * 10**digits) / 10**digits


def worker(python, tool, job):
    """Run one tool in its own process."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [python, str(Path(__file__).with_name("peers_worker.py")), tool, job]
    return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def attack(sigma, count, rng):
    """Play the attack on σ, q = 0.01, T = 5000 just below FPR 1e-5; sampled where its threshold is typical."""
    w = np.expm1(1 / sigma**2)
    typical = 4.26 / np.sqrt(5000 * w)  # the mean loss then lies about 4.26 standard deviations up
    return simulate(sigma, 0.01, 5000, 0.9 * FPR, sampled_rate=typical, count=count, rng=rng)


def measure(peers_python):
    slow = json.loads(SLOW.read_text()) if SLOW.exists() else None
    with mp.workdps(30):
        truth = {run: float(true_advantage(*run)) for run in RUNS}
    rows = []
    for tool in TOOLS:
        for row in worker(sys.executable if tool == OURS else peers_python, tool, "curves"):
            run = (row["sigma"], row["rate"], row["steps"])
            row["error"] = None if row["advantage"] is None else abs(row["advantage"] - truth[run])
            rows.append(row)
    played = attack(1.0, 40_000, 1)
    calibration = {
        "calibrate_advantage": {
            OURS: worker(sys.executable, OURS, "calibrate_advantage"),
            "riskcal 1.5.1": worker(peers_python, "riskcal 1.5.1", "calibrate_advantage"),
        },
        "calibrate_tpr": {OURS: worker(sys.executable, OURS, "calibrate_tpr"), "riskcal 1.5.1": slow},
    }
    for found in calibration["calibrate_tpr"].values():
        if found is not None:
            there = attack(found["value"], 20_000, 2)
            found["attack"] = {"fpr": there.fpr, "tpr": there.tpr, "tpr_error": there.tpr_error}
    return {
        "truth": [[*run, value] for run, value in truth.items()],
        "rows": rows,
        "attack": {"fpr": played.fpr, "fpr_error": played.fpr_error, "tpr": played.tpr, "tpr_error": played.tpr_error},
        "calibration": calibration,
    }


def table(result):
    """The tables in results/peers.md."""
    ours = {(r["sigma"], r["rate"], r["steps"]): r for r in result["rows"] if r["tool"] == OURS}
    lines = [
        "# Measured against its peers",
        "",
        "Six DP-SGD runs, one thread, medians of CPU time, all in one run of `benchmarks/accounting/peers.py` (it says "
        "how the peers' environment is made). Advantage at prior ½ from the parameters of the run; the error is "
        "against an inversion with 30 digits that shares no code with the package. *Faster* and *closer* are the "
        "peer's time and error over deniable's; an error of deniable below one rounding (1.1e-16) counts as that.",
        "",
        "| σ, q, T | tool | CPU time (ms) | error | faster | closer | TPR at FPR 1e-5 |",
        "|---|---|---|---|---|---|---|",
    ]
    for run in ours:
        for row in (r for r in result["rows"] if (r["sigma"], r["rate"], r["steps"]) == run):
            title = f"{run[0]:g}, {run[1]:g}, {run[2]}"
            rate = "–" if row.get("tpr") is None else f"{row['tpr']:.6g}"
            if row["error"] is None:
                lines.append(f"| {title} | {row['tool']} | – | {row['failure']} | – | – | – |")
                continue
            faster = row["seconds"] / ours[run]["seconds"]
            closer = row["error"] / max(ours[run]["error"], 1.1e-16)
            ratio = ("–", "–") if row["tool"] == OURS else (f"{faster:.0f}×", f"{closer:.1g}×")
            time = f"{1000 * row['seconds']:.3g}"
            lines.append(
                f"| {title} | {row['tool']} | {time} | {row['error']:.1e} | {ratio[0]} | {ratio[1]} | {rate} |"
            )
    played = result["attack"]
    lines += [
        "",
        "![Time against error](../../../docs/images/peers.svg)",
        "",
        "## Who is right about FPR 1e-5?",
        "",
        "The last column need not be believed: the likelihood-ratio attack on σ = 1, q = 0.01, T = 5000 was played out "
        "(importance sampling). At a measured false positive rate of "
        f"{played['fpr']:.3g} ± {played['fpr_error']:.1g} it caught {played['tpr']:.4g} ± {played['tpr_error']:.1g} of "
        "the members (one standard error). A tool that says less at FPR 1e-5 is refuted; one that says less than 1e-5 "
        "is beaten by accusing at random.",
        "",
        "## Calibration of σ for q = 0.01, T = 5000",
        "",
        "| target | tool | CPU time (s) | σ | attack played out at that σ: TPR (FPR) |",
        "|---|---|---|---|---|",
    ]
    for job, title in (
        ("calibrate_advantage", "advantage 0.1"),
        ("calibrate_tpr", f"TPR {TARGET_TPR:g} at FPR {FPR:g}"),
    ):
        for tool, found in result["calibration"][job].items():
            if found is None:
                lines.append(f"| {title} | {tool} | not run | – | – |")
                continue
            there = found.get("attack")
            seen = f"{there['tpr']:.3g} ± {there['tpr_error']:.1g} ({there['fpr']:.2g})" if there else "–"
            lines.append(f"| {title} | {tool} | {found['seconds']:.3g} | {upwards(found['value'], 5):.5f} | {seen} |")
    return "\n".join(lines) + "\n"


def plot(result, path):
    axes = plt.subplots(figsize=(6.4, 4.4), layout="constrained")[1]
    for tool in TOOLS:
        rows = [r for r in result["rows"] if r["tool"] == tool and r["error"] is not None]
        axes.loglog(
            [1000 * r["seconds"] for r in rows],
            [max(r["error"], 1.1e-16) for r in rows],
            "o" if tool != OURS else "*",
            markersize=9 if tool == OURS else 6,
            label=tool,
        )
    axes.set(xlabel="CPU time for the advantage of one run (ms)", ylabel="error of the advantage")
    axes.legend(fontsize="small")
    axes.figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--peers", default=str(ROOT / ".venv-peers/bin/python"), help="Python of the peers' environment"
    )
    parser.add_argument("--slow", action="store_true", help="only riskcal's calibration to a TPR")
    parser.add_argument("--ours", action="store_true", help="only deniable and the attack")
    arguments = parser.parse_args()
    if arguments.ours:
        with mp.workdps(30):
            for row in worker(sys.executable, OURS, "curves"):
                error = abs(row["advantage"] - float(true_advantage(row["sigma"], row["rate"], row["steps"])))
                print(f"error {error:.1e}, {1000 * row['seconds']:.3g} ms, TPR at 1e-5 {row['tpr']:.6g}", flush=True)
        played = attack(1.0, 40_000, 1)
        print(f"attack: TPR {played.tpr:.6f} ± {played.tpr_error:.6f} at FPR {played.fpr:.3g}")
        sigma = worker(sys.executable, OURS, "calibrate_tpr")["value"]
        there = attack(sigma, 20_000, 2)
        print(f"noise {upwards(sigma, 4):.4f}: attack finds {there.tpr:.3g} ± {there.tpr_error:.1g}")
        return
    if arguments.slow:
        found = worker(arguments.peers, "riskcal 1.5.1", "calibrate_tpr")
        SLOW.write_text(json.dumps(found) + "\n")
        return
    result = measure(arguments.peers)
    (RESULTS / "peers.json").write_text(json.dumps(result, indent=1) + "\n")
    (RESULTS / "peers.md").write_text(table(result))
    plot(result, ROOT / "docs/images/peers.svg")


if __name__ == "__main__":
    main()
