"""Break one line of the package after the other and note which test finds it: a table in tools/mutations.json.

.venv/bin/python tools/mutations.py            # all of tools/mutations.toml
.venv/bin/python tools/mutations.py ledger     # those whose words hold "ledger"; the others keep their row

Each edit is made in a copy of HEAD (a git worktree). The tests that the edit names are run first, the fast ones before
the slow ones, then all tests in the same order; the first failure is noted. An edit whose line is gone, or stands
twice, stops everything before anything is run. An hour or two of CPU time in all.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tools" / "mutations.json"
FAST, SLOW = "not slow and not browser", "slow and not browser"
LONGEST = 3600  # seconds that a run of tests may take: what hangs has been noticed
FAILED = re.compile(r"^(?:FAILED|ERROR) ([^\s\[]+)", re.M)


def checked(tree: Path, edits: list[dict[str, Any]]) -> None:
    """Stop where a line is not found exactly once."""
    counts = {edit["what"]: (tree / "src/deniable" / edit["file"]).read_text().count(edit["old"]) for edit in edits}
    if wrong := [f"{what}: its line stands {count} times" for what, count in counts.items() if count != 1]:
        sys.exit("\n".join(wrong))


def stages(edit: dict[str, Any]) -> Iterator[tuple[str, str, list[str]]]:
    """Return the name of the part, the selection and the files of one run of tests after the other."""
    for files in ([f"tests/{path}" for path in edit["tests"]], ["tests"]):
        yield "fast", FAST, files
        yield "slow", SLOW, files


def found(tree: Path, edit: dict[str, Any]) -> dict[str, Any]:
    """Return the row of one edit: which test failed first, and of which part it is."""
    row = {key: edit[key] for key in ("what", "file")}
    for part, marks, files in stages(edit):
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider", "-m", marks, *files]
        environment = os.environ | {"PYTHONPATH": str(tree / "src")}
        try:
            run = subprocess.run(
                command, cwd=tree, env=environment, capture_output=True, text=True, timeout=LONGEST, check=False
            )
        except subprocess.TimeoutExpired:
            return row | {"part": part, "test": "a run of tests did not end"}
        if test := FAILED.search(run.stdout):
            return row | {"part": part, "test": test[1].removeprefix("tests/")}
        if run.returncode not in (0, 5):  # 5: nothing was selected
            sys.exit(f"{edit['what']}: pytest ended with code {run.returncode}\n{run.stdout}{run.stderr}")
    return row | {"part": "none", "test": None}


def main(words: list[str]) -> None:
    """Break what the words name, or everything, and write the table anew after each."""
    edits = tomllib.loads((ROOT / "tools" / "mutations.toml").read_text())["mutation"]
    known = json.loads(TABLE.read_text()) if TABLE.exists() else []
    rows = {row["what"]: row for row in known if row["what"] in {edit["what"] for edit in edits}}
    commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, text=True).strip()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", tree], cwd=ROOT, check=True)
        try:
            checked(tree, edits)
            for edit in [edit for edit in edits if all(word in edit["what"] for word in words)]:
                file = tree / "src/deniable" / edit["file"]
                whole = file.read_text()
                file.write_text(whole.replace(edit["old"], edit["new"]))
                row = rows[edit["what"]] = found(tree, edit) | {"date": f"{date.today()}", "commit": commit}
                file.write_text(whole)
                print(f"{row['part']:5} {row['what']}: {row['test']}", flush=True)
                lines = [json.dumps(rows[one["what"]], ensure_ascii=False) for one in edits if one["what"] in rows]
                TABLE.write_text("[\n" + ",\n".join(lines) + "\n]\n")
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
