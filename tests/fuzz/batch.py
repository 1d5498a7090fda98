"""Many configurations in one forked child, each ended by its CPU time; and a tally of them that can be resumed."""

from __future__ import annotations

import json
import resource
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.checks import BALL, Ledger
from fuzz.isolated import isolated
from fuzz.lean import laws_of, lean_mechanism, sampler_of, seconds_of
from fuzz.mechanisms import shown
from fuzz.menu import check_of, lean_check

BATCH = 100
MOST_BYTES = 500_000_000
_GRACE = 10  # seconds of CPU time until a child that does not end a configuration by itself is killed
_BINS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # of the histogram of CPU seconds
_REPEAT_SECONDS = 60.0
Check = Callable[[int, Callable[[Any], None]], Ledger]


class Stopped(BaseException):
    """A configuration has used up its CPU time. Not an Exception, so that no engine takes it for its own fault."""


def configurations(seeds: Sequence[int], limit: float, ask: Check = lean_check) -> list[dict[str, Any]]:
    """One row a seed. A child that dies or needs too much memory is replaced, and goes on behind that seed."""
    rows: list[dict[str, Any]] = []
    while len(rows) < len(seeds):
        left = list(seeds[len(rows) :])
        found = isolated(lambda report, left=left: _several(left, limit, ask, report), 10 * _GRACE * len(left))
        rows += found.partial
        if len(rows) < len(seeds) and (not found.partial or found.status != "done"):
            seed = seeds[len(rows)]
            slow = found.status == "slow"
            violations = [] if slow else [["no exception", found.status, str(found.value)[-600:]]]
            rows.append(_row(seed, "killed" if slow else found.status, found.cpu_seconds, Counter(), violations))
    for row in rows:
        if row["violations"]:
            alone = isolated(lambda report, seed=row["seed"]: ask(seed, report), _REPEAT_SECONDS)
            again = alone.status in ("raised", "died") or (alone.status == "done" and bool(alone.value.violations))
            row["alone"] = "repeated" if again else alone.status
    return rows


def _several(seeds: list[int], limit: float, ask: Check, report: Callable[[Any], None]) -> None:
    armed = False

    def stop(*_: object) -> None:
        if armed:
            raise Stopped

    signal.signal(signal.SIGPROF, stop)
    before = _peak()
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    for seed in seeds:
        most = seconds_of(seed, limit)
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + most) + _GRACE, hard))
        begun, status, counts, violations = time.process_time(), "done", Counter[str](), []
        try:
            try:
                signal.setitimer(signal.ITIMER_PROF, most, 0.05)
                armed = True
                ledger = ask(seed, lambda _: None)
                counts, violations = ledger.counts, [list(entry) for entry in ledger.violations]
            except Exception as error:
                status, violations = "raised", [["no exception", type(error).__name__, str(error)[:600]]]
            finally:
                armed = False
        except Stopped:  # while it was asked, or just as it was done
            armed, status = False, "stopped"
        signal.setitimer(signal.ITIMER_PROF, 0)
        counts["no exception"] += 1
        counts["memory"] += 1
        large = _peak() - before > MOST_BYTES
        if large:
            violations.append(["memory", status, f"{(_peak() - before) / 1e6:.0f} MB"])
        report(_row(seed, status, time.process_time() - begun, counts, violations))
        if large:
            return


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _row(seed: int, status: str, seconds: float, counts: Counter[str], violations: list[list[str]]) -> dict[str, Any]:
    return {"seed": seed, "status": status, "seconds": seconds, "counts": dict(counts), "violations": violations}


class Tally:
    """Sums over configurations, kept as JSON: what ran, what was stopped, what was found, by law, sampler and check."""

    def __init__(self, first: int, limit: float) -> None:
        self.first, self.next, self.limit = first, first, limit
        self.statuses: Counter[str] = Counter()
        self.by: dict[str, dict[str, Counter[str]]] = {key: defaultdict(Counter) for key in ("law", "sampler", "check")}
        self.counts: Counter[str] = Counter()
        self.seconds, self.histogram = 0.0, np.zeros(len(_BINS) + 1, int)
        self.violations: list[dict[str, Any]] = []
        self.killed: list[int] = []

    def add(self, row: dict[str, Any]) -> None:
        seed, status = row["seed"], row["status"]
        mechanism = lean_mechanism(seed)
        self.next = max(self.next, seed + 1)
        self.statuses[status] += 1
        for key, names in (("law", laws_of(mechanism)), ("sampler", [sampler_of(seed)]), ("check", [check_of(seed)])):
            for name in names:
                self.by[key][name][status] += 1
        self.counts.update(row["counts"])
        self.seconds += row["seconds"]
        self.histogram[int(np.searchsorted(_BINS, row["seconds"]))] += 1
        if status == "killed":
            self.killed.append(seed)
        if row["violations"]:
            again = f"PYTHONPATH=tests python -m fuzz --laws lean --configs 1 --jobs 1 --seed {seed}"
            found = {"seed": seed, "found": row["violations"], "alone": row.get("alone"), "mechanism": shown(mechanism)}
            self.violations.append(found | {"reproduce": again})

    def as_dict(self) -> dict[str, Any]:
        total = sum(self.statuses.values())
        ends = [f"<= {b:g} s" for b in _BINS] + [f"> {_BINS[-1]:g} s"]
        return {
            "laws": "lean",
            "first_seed": self.first,
            "next_seed": self.next,
            "limit_seconds": self.limit,
            "configurations": total,
            "statuses": dict(self.statuses),
            "cpu_seconds": round(self.seconds, 4),
            "cpu_seconds_per_configuration": round(round(self.seconds, 4) / max(total, 1), 4),
            "histogram": dict(zip(ends, self.histogram.tolist(), strict=True)),
            "asked_of_ball_arithmetic": self.counts[BALL],
            "by": {key: {name: dict(found) for name, found in sorted(of.items())} for key, of in self.by.items()},
            "expected": dict(self.counts),
            "violations": self.violations,
            "killed_seeds": self.killed,
        }

    @classmethod
    def of(cls, path: Path) -> Tally:
        """Go on from a summary."""
        kept = json.loads(path.read_text())
        tally = cls(kept["first_seed"], kept["limit_seconds"])
        tally.next, tally.statuses, tally.counts = (
            kept["next_seed"],
            Counter(kept["statuses"]),
            Counter(kept["expected"]),
        )
        for key, found in kept["by"].items():
            tally.by[key] = defaultdict(Counter, {name: Counter(counts) for name, counts in found.items()})
        tally.seconds, tally.histogram = kept["cpu_seconds"], np.array(list(kept["histogram"].values()))
        tally.violations, tally.killed = kept["violations"], kept["killed_seeds"]
        return tally

    def lines(self) -> list[str]:
        found = self.as_dict()
        done, total = self.statuses["done"], found["configurations"]
        head = (
            f"{total} configurations, seeds {self.first} to {self.next - 1}: {done} finished, "
            f"{self.statuses['stopped']} stopped at {self.limit:g} s of CPU time, {self.statuses['killed']} killed, "
            f"{found['asked_of_ball_arithmetic']} answered by ball arithmetic, "
            f"{len(self.violations)} with a violation; {found['cpu_seconds_per_configuration']:g} s of CPU time each"
        )
        tables = [
            f"  {key:8} {sum(counts.values()):7d}, finished {counts['done']:7d}  {name}"
            for key, of in self.by.items()
            for name, counts in sorted(of.items())
        ]
        return [head, *tables]


def run(first: int, most: int, minutes: float, limit: float, out: Path, resume: bool = False) -> int:
    """Batches in one process until time or number is used up; the tally is written behind each batch."""
    tally = Tally.of(out) if resume and out.exists() else Tally(first, limit)
    end, begun = time.monotonic() + 60 * minutes, sum(tally.statuses.values())
    out.parent.mkdir(parents=True, exist_ok=True)
    print(f"seed {tally.next}", flush=True)
    while time.monotonic() < end and (left := most - (sum(tally.statuses.values()) - begun)) > 0:
        for row in configurations(range(tally.next, tally.next + min(BATCH, left)), tally.limit):
            tally.add(row)
            for name, asked, found in row["violations"]:
                print(f"VIOLATED seed {row['seed']} ({row['alone']} alone): {name}; {asked}; {found}"[:700], flush=True)
        written = out.with_suffix(".part")
        written.write_text(json.dumps(tally.as_dict(), indent=1, ensure_ascii=False) + "\n")
        written.replace(out)
    print("\n".join(tally.lines()), flush=True)
    return 1 if tally.violations else 0
