"""The step of a release that changes files.

    python tools/release.py 0.3.0  # version and date, everywhere
    python tools/release.py 0.3.0 --repository https://github.com/OWNER/deniable  # and in all links

It wants a changelog with something under "Unreleased". Afterwards: commit, tag vX.Y.Z, and set the next
``.dev0`` version in pyproject.toml.
"""

import argparse
import datetime
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


LINKING = [  # files with links to the repository
    *(ROOT / name for name in ("pyproject.toml", "CITATION.cff", "README.md", "SECURITY.md", "CODE_OF_CONDUCT.md")),
    ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml",
]


def repository() -> str:
    """Return where the repository is, as pyproject.toml has it."""
    found = re.search(r'^Repository = "(https://[^"]+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert found
    return found[1]


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


def main() -> None:
    """Write version, date and the links to the repository."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version")
    parser.add_argument("--repository", help="where issues and private reports go; default: as it stands")
    options = parser.parse_args()
    version, today = options.version, datetime.datetime.now(datetime.UTC).date()
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise SystemExit(f"the version must be X.Y.Z, got {version!r}")
    for path, pattern, new in (
        (ROOT / "pyproject.toml", r'^version = ".*"', f'version = "{version}"'),
        (ROOT / "CITATION.cff", r"^version: .*", f"version: {version}"),
        (ROOT / "CITATION.cff", r"^date-released: .*", f"date-released: {today.isoformat()}"),
    ):
        path.write_text(changed(path.read_text(), pattern, new))
    changelog = ROOT / "CHANGELOG.md"
    changelog.write_text(dated(changelog.read_text(), version, today))
    now = repository()
    for path in LINKING:
        path.write_text(path.read_text().replace(now, options.repository or now))
    print(f"Issues and private reports go to {options.repository or now}: is that yours?")


if __name__ == "__main__":
    main()
