"""Random mechanisms against every check, until the time or the number of configurations is used up.

    make fuzz                                   # ten minutes on all cores
    make fuzz ARGS="--minutes 60 --seed 7"
    make fuzz ARGS="--laws newer"               # Laplace, discrete noise, persons, allocation, …
    make fuzz ARGS="--laws broad --limit 5"     # very many: a few questions each, mostly to the youngest engines
    make fuzz ARGS="--laws lean --limit 0.5"    # as many as can be: one check each, in one process; --resume goes on
    PYTHONPATH=tests python -m fuzz --configs 1 --seed 12345 --jobs 1     # one configuration again

Configuration number k of a run with --seed s has the seed s + k and depends on nothing else. Every one runs in a
process of its own with a limit of CPU time; what it had checked by then counts, and it is reported as slow.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from fuzz import batch
from fuzz.checks import BALL, DRAWN, Ledger, check
from fuzz.isolated import isolated
from fuzz.mechanisms import shown

MOST_BYTES = 500_000_000
_CHUNK = {"gaussian": 2, "newer": 2, "broad": 25}  # configurations that a worker takes at a time
_WRITTEN = 20.0  # seconds between two summaries


def one(seed: int, limit: float, oracle: str, laws: str) -> dict[str, Any]:
    """Run one configuration and return what became of it, as plain data."""
    found = isolated(lambda report: check(seed, report, oracle, laws=laws), limit)
    ledger, place = (found.value, "the end") if found.status == "done" else (Ledger(), "the start")
    if found.status != "done" and found.partial:
        ledger, place = found.partial[-1]
    violations = [list(entry) for entry in ledger.violations]
    counts = Counter(ledger.counts)
    counts["no exception"] += 1
    counts["memory"] += 1
    if found.status in ("raised", "died"):
        last = str(found.value).strip().splitlines()
        violations.append(["no exception", f"{found.status} {place}", " | ".join(last[-6:])])
    if found.peak_bytes > MOST_BYTES:
        violations.append(["memory", f"{found.status} {place}", f"{found.peak_bytes / 1e6:.0f} MB"])
    return {
        "seed": seed,
        "status": found.status,
        "place": place,
        "seconds": round(found.cpu_seconds, 3),
        "mb": round(found.peak_bytes / 1e6),
        "counts": dict(counts),
        "violations": violations,
    }


def several(seeds: list[int], limit: float, oracle: str, laws: str) -> list[dict[str, Any]]:
    return [one(seed, limit, oracle, laws) for seed in seeds]


def summary(rows: list[dict[str, Any]], first: int, limit: float, laws: str = "gaussian") -> dict[str, Any]:
    """Counts a check, violations with a line that reproduces each, quantiles of CPU time."""
    counts: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    violations = []
    for row in rows:
        counts.update(row["counts"])
        for name, asked, found in row["violations"]:
            failed[name] += 1
            violations.append(
                {
                    "seed": row["seed"],
                    "check": name,
                    "asked": asked,
                    "found": found,
                    "mechanism": shown(DRAWN[laws](row["seed"])),
                    "reproduce": "PYTHONPATH=tests python -m fuzz --configs 1 --jobs 1 "
                    f"--laws {laws} --seed {row['seed']}",
                }
            )
    seconds = np.array([row["seconds"] for row in rows] or [0.0])
    slow = [row for row in rows if row["status"] == "slow"]
    return {
        "laws": laws,
        "first_seed": first,
        "configurations": len(rows),
        "finished": sum(row["status"] == "done" for row in rows),
        "slow": len(slow),
        "limit_seconds": limit,
        "asked_of_ball_arithmetic": counts.pop(BALL, 0),
        "configurations_with_a_violation": sum(bool(row["violations"]) for row in rows),
        "checks": {name: {"run": counts[name], "violated": failed[name]} for name in sorted(counts | failed)},
        "cpu_seconds": {str(p): float(np.quantile(seconds, p)) for p in (0.5, 0.95, 0.99, 1.0)},
        "peak_mb": max((row["mb"] for row in rows), default=0),
        "violations": violations,
        "slow_seeds": [[row["seed"], row["place"]] for row in slow],
    }


def lines(found: dict[str, Any]) -> list[str]:
    """The summary for a person."""
    head = (
        f"{found['configurations']} configurations from seed {found['first_seed']}: {found['finished']} finished, "
        f"{found['slow']} stopped at {found['limit_seconds']:g} s of CPU time, "
        f"{found['asked_of_ball_arithmetic']} asked of ball arithmetic, "
        f"{found['configurations_with_a_violation']} with a violation"
    )
    times = ", ".join(f"{100 * float(p):g} %: {x:.2f}" for p, x in found["cpu_seconds"].items())
    rows = [f"  {entry['violated']:6d} of {entry['run']:8d}  {name}" for name, entry in found["checks"].items()]
    return [head, f"CPU seconds {times}; peak memory {found['peak_mb']} MB", "violated, of, check:", *rows]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="stop after this long (default 10)")
    parser.add_argument("--configs", type=int, help="stop after this many configurations")
    parser.add_argument("--seed", type=int, help="seed of the first configuration (default: a random one, printed)")
    parser.add_argument("--jobs", type=int, default=-1, help="processes (default: all cores)")
    parser.add_argument("--limit", type=float, default=20.0, help="CPU seconds per configuration (default 20)")
    parser.add_argument(
        "--oracle", choices=("sometimes", "always", "never"), default="sometimes", help="the ball engine"
    )
    parser.add_argument("--laws", choices=tuple(DRAWN), default="gaussian", help="which mechanisms (default gaussian)")
    parser.add_argument("--resume", action="store_true", help="--laws lean: go on from the summary in --out")
    parser.add_argument("--out", type=Path, default=Path("out/fuzz.json"), help="summary as JSON")
    given = parser.parse_args(arguments)
    first = secrets.randbelow(10**9) if given.seed is None else given.seed
    most = given.configs if given.configs is not None else sys.maxsize
    if given.laws == "lean":
        return batch.run(first, most, given.minutes, given.limit, given.out, given.resume)
    print(f"seed {first}", flush=True)
    end = time.monotonic() + 60 * given.minutes
    rows: list[dict[str, Any]] = []

    def chunks() -> Any:
        chunk = _CHUNK[given.laws]
        for start in range(0, most, chunk):
            if time.monotonic() > end:
                return
            yield list(range(first + start, first + min(start + chunk, most)))

    def write() -> dict[str, Any]:
        found = summary(rows, first, given.limit, given.laws)
        given.out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
        return found

    given.out.parent.mkdir(parents=True, exist_ok=True)
    written = time.monotonic()
    with Parallel(n_jobs=given.jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs") as workers:
        for done in workers(delayed(several)(seeds, given.limit, given.oracle, given.laws) for seeds in chunks()):
            rows += done
            for row in done:
                for name, asked, found in row["violations"]:
                    print(f"VIOLATED seed {row['seed']}: {name}; {asked}; {found}"[:600], flush=True)
            if time.monotonic() > written + _WRITTEN:
                write()
                written = time.monotonic()
    found = write()
    print("\n".join(lines(found)))
    return 1 if found["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
