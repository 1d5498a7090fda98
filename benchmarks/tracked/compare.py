"""Compare a run of the tracked benchmarks with the last recorded one, as ratios to the yardstick of the same run.

    python benchmarks/tracked/compare.py out/bench.json             # exit code 1 on a loss beyond noise
    python benchmarks/tracked/compare.py out/bench.json --record    # add it to the history, and write history.md

A loss: a time more than ``SLOWER`` times the recorded ratio, or a bracket more than ``WIDER`` times as wide.
"""

import argparse
import datetime
import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
HISTORY = HERE / "history.json"  # every record, oldest first
PAGE = HERE / "history.md"
SHOWN = 6  # records on the page
SLOWER, WIDER = 2.0, 1.5  # a shared machine moves minima by up to about a half
NEGLIGIBLE = 1e-12  # widths at rounding level move with the platform


def read(path: Path) -> dict[str, dict[str, float | None]]:
    """Return for each benchmark its least time over the yardstick's, and its width."""
    found = {entry["name"]: entry for entry in json.loads(path.read_text())["benchmarks"]}
    unit = found.pop("test_yardstick")["stats"]["min"]
    return {
        name.removeprefix("test_"): {"time": entry["stats"]["min"] / unit, "width": entry["extra_info"].get("width")}
        for name, entry in found.items()
    }


def losses(now: dict[str, dict[str, float | None]], before: dict[str, dict[str, float | None]]) -> list[str]:
    """Return a line for everything that became slower or wider than noise explains."""
    found = []
    for name, was in before.items():
        if name not in now:
            found.append(f"{name}: not measured any more")
            continue
        ratio = now[name]["time"] / was["time"]
        if not ratio <= SLOWER:
            found.append(f"{name}: {ratio:.2f} times the recorded time")
        if was["width"] is not None and not now[name]["width"] <= max(WIDER * was["width"], NEGLIGIBLE):
            found.append(f"{name}: width {now[name]['width']:.2g}, recorded {was['width']:.2g}")
    return found


def page(history: list[dict[str, Any]]) -> str:
    """Return the history as tables."""
    shown = history[-SHOWN:]

    def table(title: str, about: str, key: str) -> str:
        heads = ["what", *(record["date"] for record in shown)]
        rows = [f"## {title}", "", about, "", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
        for name in history[-1]["values"]:
            found = [record["values"].get(name, {}).get(key) for record in shown]
            if found[-1] is not None:
                rows.append(f"| {name} | {' | '.join('' if x is None else format(x, '.2g') for x in found)} |")
        return "\n".join(rows) + "\n"

    head = (
        "# Tracked benchmarks\n\nWritten by `make bench ARGS=--record`; `make bench` compares with the last record and "
        f"fails on a time above {SLOWER:g} times or\na width above {WIDER:g} times that. "
        "Compared with others: [evidence](../../docs/evidence.md).\n\n"
    )
    times = "CPU times from scratch, as multiples of a fixed piece of NumPy work measured in the same run."
    widths = "(upper − lower)/upper of an advantage or a rate, upper − lower of δ and of an audit's advantage."
    return head + table("Times", times, "time") + "\n" + table("Widths", widths, "width")


def main() -> int:
    """Compare or record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", type=Path)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    now = read(options.measured)
    history = json.loads(HISTORY.read_text())
    if options.record:
        history.append({"date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M}", "values": now})
        HISTORY.write_text(json.dumps(history, indent=1) + "\n")
        PAGE.write_text(page(history))
        return 0
    before = history[-1]["values"]
    for name, value in now.items():
        was = before.get(name)
        print(f"{name:<48}" + ("new" if was is None else f"{value['time'] / was['time']:.2f} times the recorded time"))
    found = losses(now, before)
    print("\n".join(["", *found] if found else ["", "no loss"]))
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
