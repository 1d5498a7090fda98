"""What the figure scripts share: the data folder, and the comparison with the numbers of the papers.

A figure script defines ``make(reduced) -> (matplotlib figure, {name: number})``; reproduce.py draws it.
``expected.json`` beside it says for each script and number where the expected number comes from (``source``) and either
``value`` and ``tolerance`` or ``between: [low, high]`` (either end may be null). ``reduced_tolerance`` replaces the
tolerance at the reduced size; ``full_only: true`` compares at full size only; ``erratum`` marks a number that the paper
prints otherwise (``printed``).
"""

import importlib.util
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

_SOURCES = {
    "adult": "UCI Adult: https://archive.ics.uci.edu/dataset/2/adult; the rows of adult.data, then of adult.test, with "
    "the columns of adult.names (age, ..., native-country), income, and split (train or test)",
    "mnist": "MNIST: http://yann.lecun.com/exdb/mnist, or sklearn.datasets.fetch_openml('mnist_784')",
    "cifar10": "CIFAR-10: https://www.cs.toronto.edu/~kriz/cifar.html",
    "location30": "Location-30, from the Foursquare check-ins of https://sites.google.com/site/yangdingqi/home",
}

Numbers = Mapping[str, float]


class Skip(Exception):  # noqa: N818  (not an error)
    """The figure cannot be drawn here, for a reason that the message explains and mends."""


def scripts() -> list[Path]:
    """Return the scripts of all figures."""
    return sorted(path for path in HERE.glob("*/*.py") if "def make(" in path.read_text())


def loaded(script: Path) -> Callable[[bool], tuple[Any, Numbers]]:
    """Return the function of a script that draws its figure; the script's folder may be imported from, and this one."""
    sys.path[:0] = [folder for folder in (str(script.parent), str(HERE)) if folder not in sys.path]
    spec = importlib.util.spec_from_file_location(f"{script.parent.name}_{script.stem}", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.make


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


def _range(entry: Mapping[str, Any], reduced: bool) -> tuple[float, float]:
    if "between" in entry:
        low, high = entry["between"]
        return (float("-inf") if low is None else low), (float("inf") if high is None else high)
    tolerance = entry.get("reduced_tolerance", entry["tolerance"]) if reduced else entry["tolerance"]
    return entry["value"] - tolerance, entry["value"] + tolerance
