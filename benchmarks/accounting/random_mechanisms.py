"""How long a question takes and how narrow the answer is, over one seeded set of random mechanisms.

    OMP_NUM_THREADS=1 python benchmarks/accounting/random_mechanisms.py --label main --out table.json

Each mechanism is asked from scratch, in a process of its own, for its advantage, the TPR at 14 FPR and ε at δ = 1e-5;
the time is CPU time of that one thread. Lower bounds are asked afterwards and not timed. ``--table a.json b.json``
prints recorded runs as one Markdown table. The set is that of the fuzz (``tests/fuzz/mechanisms.py``).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import deniable as dn

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from fuzz.isolated import isolated
from fuzz.mechanisms import random_mechanism, shown

FPR = np.array([0.5, 0.2, 0.1, 0.05, 0.02, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10])
DELTA = 1e-5
NARROW = 1e-6
FIRST_SEED = 300_000


def ask(seed: int, report: Any) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    mechanism = random_mechanism(seed)
    start = time.process_time()
    t = dn.tradeoff(mechanism)
    high = float(t.advantage())
    rates = t.tpr(FPR)
    epsilon = float(t.epsilon(DELTA))
    seconds = time.process_time() - start
    report({"seconds": seconds})
    low = float(t.advantage(side="lower"))
    with np.errstate(all="ignore"):
        width = np.max(rates / t.tpr(FPR, side="lower") - 1)
    return {"seconds": seconds, "advantage": high - low, "tpr": float(width), "epsilon": epsilon}


def measure(count: int, limit: float, label: str, out: Path | None) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for seed in range(FIRST_SEED, FIRST_SEED + count):
        found = isolated(lambda report, seed=seed: ask(seed, report), limit)
        row = {"seed": seed, "mechanism": shown(random_mechanism(seed)), "status": found.status}
        row |= {"peak_mb": round(found.peak_bytes / 2**20)}
        if found.status == "done":
            row |= found.value
        else:  # the time of the question, if that much was answered
            row |= found.partial[0] if found.partial else {"seconds": found.cpu_seconds}
            row["why"] = str(found.value)[-300:]
        rows.append(row)
        if out:
            found = {"label": label, "summary": summary(rows, limit), "rows": rows}
            out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
        print(
            f"{seed} {row['status']} {row['seconds']:.2f} s, width {row.get('tpr', float('nan')):.1e}", file=sys.stderr
        )
    return rows


def summary(rows: list[dict[str, Any]], limit: float) -> dict[str, Any]:
    seconds = np.array([min(row["seconds"], limit) for row in rows])
    # a mechanism without an answer counts as an infinite width
    width = np.array([row.get("tpr", np.inf) for row in rows])
    width = np.where(np.isnan(width), np.inf, width)
    return {
        "mechanisms": len(rows),
        "limit_seconds": limit,
        "answered": sum(row["status"] == "done" for row in rows),
        "slow": sum(row["status"] == "slow" for row in rows),
        "failed": sum(row["status"] in ("raised", "died") for row in rows),
        "seconds": {name: float(np.quantile(seconds, p)) for name, p in QUANTILES.items()},
        "tpr_width": {name: float(np.quantile(width, p, method="higher")) for name, p in QUANTILES.items()},
        "tpr_width_at_most_1e-6": float(np.mean(width <= NARROW)),
        "peak_mb": max(row["peak_mb"] for row in rows),
    }


QUANTILES = {"median": 0.5, "95 %": 0.95, "largest": 1.0}


def table(files: list[Path]) -> str:
    found = [json.loads(file.read_text()) for file in files]
    common = set.intersection(*({row["seed"] for row in f["rows"]} for f in found))
    for f in found:  # a run that was ended early is compared on what it has
        f["summary"] = summary([row for row in f["rows"] if row["seed"] in common], f["summary"]["limit_seconds"])
    lines = [("", *(f["label"] for f in found)), ("---", *("---" for _ in found))]

    def add(name: str, pick: Any) -> None:
        lines.append((name, *(str(pick(f["summary"])) for f in found)))

    add("mechanisms", lambda s: s["mechanisms"])
    add("over the limit of CPU time", lambda s: f"{s['slow']} (limit {s['limit_seconds']:g} s)")
    add("failed", lambda s: s["failed"])
    for name in QUANTILES:
        add(f"CPU seconds, {name}", lambda s, name=name: f"{s['seconds'][name]:.2f}")
    for name in QUANTILES:
        add(f"relative width of the TPR, {name}", lambda s, name=name: f"{s['tpr_width'][name]:.1e}")
    add("width at most 1e-6", lambda s: f"{100 * s['tpr_width_at_most_1e-6']:.1f} %")
    add("peak memory, MB", lambda s: s["peak_mb"])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--limit", type=float, default=60.0, help="CPU seconds per mechanism")
    parser.add_argument("--label", default="this tree")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path, nargs="+", help="print recorded runs side by side, run nothing")
    given = parser.parse_args()
    if given.table:
        print(table(given.table))
        return
    rows = measure(given.count, given.limit, given.label, given.out)
    print(json.dumps(summary(rows, given.limit), indent=1))


if __name__ == "__main__":
    main()
