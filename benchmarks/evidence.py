"""The figures of README and docs/evidence.md: run again, compared with what is recorded, and written as a page.

    python benchmarks/evidence.py                  # run again what takes seconds; exit code 1 if a figure moved
    python benchmarks/evidence.py --only release   # rows whose command contains the word
    python benchmarks/evidence.py --record         # keep figures that moved, and for all the day and the commit
    python benchmarks/evidence.py --page           # only write docs/evidence.md from evidence.json

evidence.json has a row a claim. ``figure`` names its ``numbers``. A number is the largest match (``take``: "first",
"last", "min") of ``pattern`` in what the command prints. It moved if it is more than ``within`` from the recorded
value, or worse than ``times`` this value (widths, errors and times: only larger is worse). Rows without ``cpu_s`` take
hours or need other tools in environments of their own: they keep their day.
"""

import argparse
import datetime
import json
import re
import resource
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ROWS, PAGE = ROOT / "benchmarks" / "evidence.json", ROOT / "docs" / "evidence.md"
TAKE = {"max": max, "min": min, "first": lambda found: found[0], "last": lambda found: found[-1]}
HEAD = """# Evidence

A row is a measurement: a claim, its figure, the command that repeats it, day and commit. `make evidence` repeats rows
marked ✓ and fails if a figure moved; the others take hours or need other tools.

**Times** are CPU seconds of one thread, *warm*: after the imports and one small call. A new process also pays the
imports: 0.1 s for `import deniable`, 1 to 3 s for what reads tables. A time that trebled has moved. ± is one standard
error.
"""


def page(rows: list[dict[str, Any]]) -> str:
    """Return docs/evidence.md."""
    lines, before = [HEAD], {"section": None, "command": None}
    for row in rows:
        if row["section"] != before["section"]:
            lines += ["", *before.get("pictures", []), "", f"## {row['section']}", ""]
            lines += ["| claim | figure | command | measured |", "|---|---|---|---|"]
        values = {name: number["value"] for name, number in row.get("numbers", {}).items()}
        figure = re.sub(r"(\de[+-])0", r"\1", row["figure"].format(**values))
        links = "".join(f" ([{name}](../{to}))" for name, to in row.get("see", {}).items())
        script = "same" if row["command"] == before["command"] else f"`{row['command']}`{links}"
        day = f"{row['day']}, {row['commit']}{'✓' if 'cpu_s' in row else ''}"
        lines.append(f"| {row['claim']} | {figure} | {script} | {day} |")
        before = row
    return re.sub(r"\n{3,}", "\n\n", "\n".join([*lines, "", *before.get("pictures", [])])) + "\n"


def measured(row: dict[str, Any], output: str) -> dict[str, float]:
    """Return the numbers of a row as its command printed them."""
    found = {}
    for name, number in row["numbers"].items():
        seen = [float(one.replace(",", "")) for one in re.findall(number["pattern"], output, re.MULTILINE)]
        if not seen:
            raise SystemExit(f"{row['command']} printed no {name} ({number['pattern']}):\n{output[-2000:]}")
        found[name] = TAKE[number.get("take", "max")](seen)
    return found


def moved(number: dict[str, Any], now: float) -> bool:
    """Return whether a figure is no longer what is recorded."""
    if "within" in number:
        return not abs(now - number["value"]) <= number["within"]
    return not now <= number["times"] * number["value"]


def said(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command here."""
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def run(command: str) -> tuple[str, float]:
    """Return what a command of this repository prints, and its CPU seconds."""
    script, *arguments = shlex.split(command)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = said(sys.executable, str(ROOT / script), *arguments)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{command} failed:\n{done.stderr[-2000:]}")
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Run, compare, record or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="rows whose command contains this")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    rows = json.loads(ROWS.read_text())
    commit = said("git", "rev-parse", "--short=8", "HEAD").stdout.strip()
    found, total = [], 0.0
    outputs: dict[str, tuple[str, float]] = {}
    for row in [] if options.page else [one for one in rows if "cpu_s" in one and options.only in one["command"]]:
        output, spent = outputs[row["command"]] = outputs.get(row["command"]) or run(row["command"])
        total = sum(seconds for _, seconds in outputs.values())
        print(f"{row['command']}  ({spent:.0f} CPU s)", flush=True)
        for name, now in measured(row, output).items():
            number = row["numbers"][name]
            bad = moved(number, now)
            print(f"  {'MOVED' if bad else 'holds'}  {name}: {now:g}, recorded {number['value']:g}", flush=True)
            found += [f"{row['claim']}: {name} is {now:g}, recorded {number['value']:g}"] if bad else []
            if options.record and bad:
                number["value"] = now
        if options.record:
            row |= {"day": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}", "commit": commit, "cpu_s": round(spent)}
    if options.record:
        ROWS.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(page(rows))
    kept = sorted({f"{row['day']}  {row['command']}" for row in rows if "cpu_s" not in row})
    if not options.page:
        print(
            "\nNot run here, of their day:", *kept, "", *(found or ["no figure moved"]), f"{total:.0f} CPU s", sep="\n"
        )
    return 1 if found and not options.record else 0


if __name__ == "__main__":
    raise SystemExit(main())
