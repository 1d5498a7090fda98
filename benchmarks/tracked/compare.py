"""Compare a run of the tracked benchmarks with the last recorded one, as ratios to the yardstick of the same run.

    python benchmarks/tracked/compare.py out/bench.json             # exit code 1 on a loss beyond noise
    python benchmarks/tracked/compare.py out/bench.json --record    # make it the recorded one, and write the page

A loss: a time more than ``SLOWER`` times the recorded ratio, or a bracket more than ``WIDER`` times as wide.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

HERE = Path(__file__).resolve().parent
RECORD = HERE / "recorded.json"
PAGE = HERE.parents[1] / "docs" / "benchmarks.md"
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


def page(now: dict[str, dict[str, float | None]]) -> str:
    """Return the page of the site."""
    rows = [
        f"| {name} | {value['time']:.3g} | {'' if value['width'] is None else format(value['width'], '.2g')} |"
        for name, value in now.items()
    ]
    head = (
        "# Tracked benchmarks\n\nWritten by `make bench ARGS=--record`; `make bench` compares with it and fails on a "
        f"time above {SLOWER:g} times or a width\nabove {WIDER:g} times what is recorded. Times are from scratch, as "
        "multiples of a fixed piece of NumPy work measured in the same\nrun; widths are relative: (upper − "
        "lower)/upper of a bound, the length of the interval of an audit.\n\n| what | time | width |\n|---|---|---|\n"
    )
    return head + "\n".join(rows) + "\n"


def main() -> int:
    """Compare or record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", type=Path)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    now = read(options.measured)
    if options.record:
        RECORD.write_text(json.dumps(now, indent=1) + "\n")
        PAGE.write_text(page(now))
        return 0
    before = json.loads(RECORD.read_text())
    for name, value in now.items():
        was = before.get(name)
        print(f"{name:<48}" + ("new" if was is None else f"{value['time'] / was['time']:.2f} times the recorded time"))
    found = losses(now, before)
    print("\n".join(["", *found] if found else ["", "no loss"]))
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
