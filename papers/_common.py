"""What the figure scripts share: command line, data folder, comparison with the numbers of the papers.

A figure script defines ``make(reduced) -> (matplotlib figure, {name: number})`` and ends with
``_common.main(__file__, make)``. ``expected.json`` beside it says for each script and number where the expected number
comes from (``source``) and either ``value`` and ``tolerance`` or ``between: [low, high]`` (either end may be null).
``reduced_tolerance`` replaces the tolerance at the reduced size; ``full_only: true`` compares at full size only;
``erratum`` marks a number that the paper prints otherwise (``printed``).
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from PIL import Image

HERE = Path(__file__).resolve().parent
SKIPPED = 77  # the exit code by which test harnesses know a skip from a success and a failure

_SOURCES = {
    "adult": "UCI Adult: https://archive.ics.uci.edu/dataset/2/adult; the rows of adult.data, then of adult.test, with "
    "the columns of adult.names (age, ..., native-country), income, and split (train or test)",
    "mnist": "MNIST: http://yann.lecun.com/exdb/mnist, or sklearn.datasets.fetch_openml('mnist_784')",
    "cifar10": "CIFAR-10: https://www.cs.toronto.edu/~kriz/cifar.html",
    "location30": "Location-30, from the Foursquare check-ins of https://sites.google.com/site/yangdingqi/home",
}

Numbers = Mapping[str, float]
Make = Callable[[bool], tuple[Any, Numbers]]


class Skip(Exception):  # noqa: N818  (not an error)
    """The figure cannot be drawn here, for a reason that the message explains and mends."""


def dataset(name: str) -> Path:
    """Return the path of a file in the data folder; raise ``Skip`` with where to get it if it is absent."""
    folder = Path(os.environ.get("DENIABLE_DATA", HERE.parents[1] / "shared" / "datasets"))
    if (folder / name).exists():
        return folder / name
    source = next((text for key, text in _SOURCES.items() if name.startswith(key)), "see docs/papers")
    raise Skip(f"{name} is not in {folder}; put it there or set DENIABLE_DATA. {source}")


def compare(script: str | Path, numbers: Numbers, reduced: bool) -> list[str]:
    """Return one line per number that disagrees with ``expected.json`` beside the script, or is missing."""
    path = Path(script).resolve()
    expected = json.loads((path.parent / "expected.json").read_text()).get(path.stem, {})
    wrong = [f"{name}: measured {numbers[name]:g}, expected.json has no entry" for name in set(numbers) - set(expected)]
    for name, entry in expected.items():
        if reduced and entry.get("full_only"):
            continue
        low, high = _range(entry, reduced)
        if name not in numbers:
            wrong.append(f"{name}: expected, but the script does not measure it")
        elif not low <= numbers[name] <= high:
            wrong.append(f"{name}: measured {numbers[name]:g}, expected {low:g} to {high:g} ({entry['source']})")
    return wrong


def main(script: str, make: Make) -> None:
    """Parse the command line, draw the figure, print its numbers and how they compare; leave the process."""
    mpl.use("Agg")
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "deniable"})  # small files, the same each time
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--out", type=Path, help="write the figure here (.svg, .png or .pdf)")
    parser.add_argument("--reduced", action="store_true", help="the small size of the test suite")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    options = parser.parse_args()
    start = time.perf_counter()
    try:
        figure, numbers = make(options.reduced)
    except Skip as why:
        print(f"skipped: {why}", file=sys.stderr)
        sys.exit(SKIPPED)
    if options.out:
        _save(figure, options.out)
    if options.json:
        print(json.dumps({name: float(value) for name, value in numbers.items()}, indent=2))
    else:
        print("\n".join(f"{name:<40} {value:.6g}" for name, value in numbers.items()))
    wrong = compare(script, numbers, options.reduced)
    name = f"{Path(script).resolve().parent.name}/{Path(script).stem}"
    print(f"{name}: {time.perf_counter() - start:.1f} s, {len(wrong)} disagreements", *wrong, sep="\n", file=sys.stderr)
    sys.exit(1 if wrong else 0)


def _save(figure: Any, path: Path) -> None:
    """Write the figure, the same each time; a .png with 64 colours, which keeps the gallery small."""
    figure.savefig(path, dpi=90, metadata=None if path.suffix == ".png" else {"Date": None})
    if path.suffix == ".png":
        with Image.open(path) as image:
            image.convert("RGB").quantize(64).save(path, optimize=True)


def _range(entry: Mapping[str, Any], reduced: bool) -> tuple[float, float]:
    if "between" in entry:
        low, high = entry["between"]
        return (float("-inf") if low is None else low), (float("inf") if high is None else high)
    tolerance = entry.get("reduced_tolerance", entry["tolerance"]) if reduced else entry["tolerance"]
    return entry["value"] - tolerance, entry["value"] + tolerance
