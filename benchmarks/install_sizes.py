"""Packages and disk space that each extra brings, from what is installed: the table of docs/dependencies.md.

python benchmarks/install_sizes.py      # in an environment that has the extras; whole blocks of 4 KiB, without bytecode
git show 127a311:pyproject.toml > old.toml; python benchmarks/install_sizes.py old.toml   # core of another version
"""

import sys
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

EXTRAS = ("", "release", "records", "training", "report", "tables", "app", "proof", "dask", "all")


def size(name: str) -> int:
    files = (Path(entry.locate()) for entry in metadata.distribution(name).files or ())
    return sum(-(-path.stat().st_size // 4096) * 4096 for path in files if path.suffix != ".pyc" and path.is_file())


def needed(name: str, extras: tuple[str, ...], seen: set[tuple[str, tuple[str, ...]]]) -> set[str]:
    for line in metadata.distribution(name).requires or ():
        asked = Requirement(line)
        key = (canonicalize_name(asked.name), ("", *sorted(asked.extras)))
        if key not in seen and (not asked.marker or any(asked.marker.evaluate({"extra": one}) for one in extras)):
            seen.add(key)
            needed(*key, seen)
    return {found for found, _ in seen} - {"deniable"}


def core_of(project: Path) -> set[str]:
    found: set[str] = set()
    for line in tomllib.loads(project.read_text())["project"]["dependencies"]:
        asked = Requirement(line)
        found |= {canonicalize_name(asked.name)} | needed(asked.name, ("", *asked.extras), set())
    return found


if __name__ == "__main__":
    for file in sys.argv[1:]:
        names = core_of(Path(file))
        print(f"| core of {file} | {len(names)} | {sum(map(size, names | {'deniable'})) / 2**20:.0f} |")
    for extra in EXTRAS:
        names = needed("deniable", ("", extra), set())
        mebibytes = sum(map(size, names | {"deniable"})) / 2**20
        print(f"| {f'`{extra}`' if extra else 'core'} | {len(names)} | {mebibytes:.0f} |")
