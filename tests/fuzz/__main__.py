"""Random mechanisms, one check each, until the time or the number of configurations is used up.

    make fuzz                                   # ten minutes on all cores
    make fuzz ARGS="--minutes 60 --seed 7"
    PYTHONPATH=tests python -m fuzz --configs 1 --seed 12345 --jobs 1     # one configuration again

Configuration number k of a run with --seed s has the seed s + k and depends on nothing else. A batch of them runs in a
forked child; each ends at a limit of CPU time, and a child that dies is replaced and goes on behind that seed.
"""

import argparse
import json
import resource
import secrets
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from fuzz.checks import Ledger, check, check_of
from fuzz.isolated import isolated
from fuzz.mechanisms import shown
from fuzz.samplers import laws_of, random_mechanism, sampler_of, seconds_of

MOST_BYTES = 500_000_000
_BATCH = 50
_GRACE = 10  # seconds of CPU time until a child that does not end a configuration by itself is killed
_REPEAT_SECONDS = 60.0


class Stopped(BaseException):
    """A configuration has used up its CPU time. Not an Exception, so that no engine takes it for its own fault."""


def configurations(seeds: Sequence[int], limit: float, ask: Callable[[int], Ledger] = check) -> list[dict[str, Any]]:
    """One row a seed; a violation is repeated in a child of its own."""
    rows: list[dict[str, Any]] = []
    while len(rows) < len(seeds):
        left = list(seeds[len(rows) :])
        found = isolated(lambda report, left=left: _several(left, limit, ask, report), 10 * _GRACE * len(left))
        rows += found.partial
        if len(rows) < len(seeds) and (not found.partial or found.status != "done"):
            status = "killed" if found.status == "slow" else found.status
            violations = [] if status == "killed" else [["no exception", status, str(found.value)[-600:]]]
            rows.append(_row(seeds[len(rows)], status, found.cpu_seconds, Counter(), violations))
    for row in rows:
        if row["violations"]:
            alone = isolated(lambda _, seed=row["seed"]: ask(seed), _REPEAT_SECONDS)
            again = alone.status in ("raised", "died") or (alone.status == "done" and bool(alone.value.violations))
            row["alone"] = "repeated" if again else alone.status
    return rows


def _several(seeds: list[int], limit: float, ask: Callable[[int], Ledger], report: Callable[[Any], None]) -> None:
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
                ledger = ask(seed)
                counts, violations = ledger.counts, [list(entry) for entry in ledger.violations]
            except Exception as error:
                status, violations = "raised", [["no exception", type(error).__name__, str(error)[:600]]]
            finally:
                armed = False
        except Stopped:  # while it was asked, or just as it was done
            armed, status = False, "stopped"
        signal.setitimer(signal.ITIMER_PROF, 0)
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
    """Sums over configurations: what ran, what was stopped, what was found, by law, sampler and check."""

    def __init__(self, first: int, limit: float) -> None:
        self.first, self.limit, self.seconds = first, limit, 0.0
        self.by: dict[str, dict[str, Counter[str]]] = {key: defaultdict(Counter) for key in ("law", "sampler", "check")}
        self.statuses: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.violations: list[dict[str, Any]] = []

    def add(self, row: dict[str, Any]) -> None:
        seed, status, mechanism = row["seed"], row["status"], random_mechanism(row["seed"])
        self.statuses[status] += 1
        for key, names in (("law", laws_of(mechanism)), ("sampler", [sampler_of(seed)]), ("check", [check_of(seed)])):
            for name in names:
                self.by[key][name][status] += 1
        self.counts.update(row["counts"])
        self.seconds += row["seconds"]
        if row["violations"]:
            again = f"PYTHONPATH=tests python -m fuzz --configs 1 --jobs 1 --seed {seed}"
            found = {"seed": seed, "found": row["violations"], "alone": row.get("alone"), "mechanism": shown(mechanism)}
            self.violations.append(found | {"reproduce": again})
            for name, asked, said in row["violations"]:
                print(f"VIOLATED seed {seed} ({row.get('alone')} alone): {name}; {asked}; {said}"[:700], flush=True)

    def as_dict(self) -> dict[str, Any]:
        return {
            "first_seed": self.first, "limit_seconds": self.limit, "configurations": self.statuses.total(),
            "statuses": dict(self.statuses), "cpu_seconds": round(self.seconds, 4), "checks": dict(self.counts),
            "by": {key: {name: dict(found) for name, found in sorted(of.items())} for key, of in self.by.items()},
            "violations": self.violations,
        }  # fmt: skip

    def lines(self) -> Iterator[str]:
        total = self.statuses.total()
        said = ", ".join(f"{number} {status}" for status, number in self.statuses.items())
        yield f"{total} configurations from seed {self.first}: {said}; {len(self.violations)} violated"
        yield f"{self.seconds / max(total, 1):.3g} CPU seconds each"
        for key, of in self.by.items():
            for name, found in sorted(of.items()):
                yield f"  {key:8} {found.total():7d}, done {found['done']:7d}  {name}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="stop after this long (default 10)")
    parser.add_argument("--configs", type=int, default=sys.maxsize, help="stop after this many configurations")
    parser.add_argument("--seed", type=int, help="seed of the first configuration (default: a random one, printed)")
    parser.add_argument("--jobs", type=int, default=-1, help="processes (default: all cores)")
    parser.add_argument("--limit", type=float, default=2.0, help="CPU seconds per configuration (default 2)")
    parser.add_argument("--out", type=Path, default=Path("out/fuzz.json"), help="summary as JSON")
    given = parser.parse_args(arguments)
    first = secrets.randbelow(10**9) if given.seed is None else given.seed
    print(f"seed {first}", flush=True)
    end, tally = time.monotonic() + 60 * given.minutes, Tally(first, given.limit)

    def batches() -> Iterator[range]:
        for start in range(0, given.configs, _BATCH):
            if time.monotonic() > end:
                return
            yield range(first + start, first + min(start + _BATCH, given.configs))

    given.out.parent.mkdir(parents=True, exist_ok=True)
    with Parallel(n_jobs=given.jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs") as workers:
        for rows in workers(delayed(configurations)(seeds, given.limit) for seeds in batches()):
            for row in rows:
                tally.add(row)
            given.out.write_text(json.dumps(tally.as_dict(), indent=1, ensure_ascii=False) + "\n")
    print("\n".join(tally.lines()), flush=True)
    return 1 if tally.violations else 0


if __name__ == "__main__":
    sys.exit(main())
