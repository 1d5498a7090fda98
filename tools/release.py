"""The two steps of a release that change files.

    python tools/release.py 0.3.0                              # version and date, everywhere
    python tools/release.py --hash dist/deniable-0.3.0.tar.gz  # the sdist's hash, into the conda recipe

The first wants a changelog with something under "Unreleased". Afterwards: commit, tag vX.Y.Z, and set the next
``.dev0`` version in pyproject.toml.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def changed(text: str, pattern: str, new: str) -> str:
    """Return the text with the one match of a pattern replaced."""
    found, count = re.subn(pattern, lambda _: new, text, flags=re.MULTILINE)
    if count != 1:
        raise SystemExit(f"{pattern} must match once, matches {count} times")
    return found


def dated(changelog: str, version: str, day: datetime.date) -> str:
    """Return the changelog with what was unreleased under the version and its date."""
    head, body = re.split(r"^## \[Unreleased\]\n", changelog, flags=re.MULTILINE)
    if not re.match(r"\s*###", body):
        raise SystemExit("CHANGELOG.md has nothing under Unreleased")
    return f"{head}## [Unreleased]\n\n## [{version}] - {day.isoformat()}\n{body}"


def hashed(recipe: str, sdist: Path) -> str:
    """Return the recipe with the hash of the sdist, which has to be of the recipe's version."""
    version = re.search(r'version: "(.+)"', recipe)[1]
    if sdist.name != f"deniable-{version}.tar.gz":
        raise SystemExit(f"the recipe is of {version}, the sdist is {sdist.name}")
    return changed(recipe, r"sha256: .*", f'sha256: "{hashlib.sha256(sdist.read_bytes()).hexdigest()}"')


def main() -> None:
    """Do one of the two."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", nargs="?")
    parser.add_argument("--hash", type=Path, metavar="SDIST")
    options = parser.parse_args()
    recipe = ROOT / "recipe" / "recipe.yaml"
    if options.hash is not None:
        recipe.write_text(hashed(recipe.read_text(), options.hash))
        return
    version, today = options.version or "", datetime.datetime.now(datetime.UTC).date()
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise SystemExit(f"the version must be X.Y.Z, got {version!r}")
    for path, pattern, new in (
        (ROOT / "pyproject.toml", r'^version = ".*"', f'version = "{version}"'),
        (ROOT / "CITATION.cff", r"^version: .*", f"version: {version}"),
        (ROOT / "CITATION.cff", r"^date-released: .*", f"date-released: {today.isoformat()}"),
        (recipe, r'^  version: ".*"', f'  version: "{version}"'),
        (recipe, r"sha256: .*", f'sha256: "{"0" * 64}"  # python tools/release.py --hash fills it in'),
    ):
        path.write_text(changed(path.read_text(), pattern, new))
    changelog = ROOT / "CHANGELOG.md"
    changelog.write_text(dated(changelog.read_text(), version, today))


if __name__ == "__main__":
    main()
