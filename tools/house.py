"""What the accountant consists of, as docs/decisions/007 states it: ``python tools/house.py [--at REVISION]``.

Files, lines, named numeric constants, files that mention both σ and q (anywhere, and outside comments and texts), and
files of the package that mention Laplace noise. The second form counts at another revision, to compare with. A word is
counted, not a meaning: the ``rate`` of a test counts as a q, and the σ of any Gaussian as that of the noise.
"""

import argparse
import ast
import io
import re
import subprocess
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOM = "src/deniable/accounting/"
SIGMA = re.compile(r"σ|\bsigma\b|\bnoise_multiplier\b")
RATE = re.compile(r"\bq\b|\brate\b|\bsample_rate\b")


def sources(revision: str | None) -> dict[str, str]:
    """Return the text of every module of the package, by its path."""
    if revision is None:
        paths = (ROOT / "src/deniable").rglob("*.py")
        return {path.relative_to(ROOT).as_posix(): path.read_text() for path in paths}

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True).stdout

    names = git("ls-tree", "-r", "--name-only", revision, "src/deniable").split()
    return {name: git("show", f"{revision}:{name}") for name in names if name.endswith(".py")}


def constants(text: str) -> int:
    """Count the names in capitals that a module gives to numbers."""
    found = 0
    for node in ast.parse(text).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        names = [one for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]
        value = ast.unparse(node.value) if isinstance(node, ast.Assign) else ""
        found += sum(name.id.isupper() for name in names) if re.search(r"\d", value) else 0
    return found


def bare(text: str) -> str:
    """Return the words of a module that are neither comments nor texts."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return " ".join(token.string for token in tokens if token.type not in (tokenize.COMMENT, tokenize.STRING))


def mention(texts: dict[str, str]) -> list[str]:
    """Return the files that mention σ and q both."""
    return [name for name, text in texts.items() if SIGMA.search(text) and RATE.search(text)]


def report(texts: dict[str, str]) -> str:
    """Return the figures as lines."""
    room = {name: text for name, text in texts.items() if name.startswith(ROOM)}
    lines = {name: len(text.splitlines()) for name, text in room.items()}
    code = mention({name: bare(text) for name, text in room.items()})
    rooms = ", ".join(
        f"{sum(name.startswith(f'{ROOM}{part}/') for name in code)} in {part}/"
        for part in ("steps", "transform", "engines")
    )
    laplace = sorted(n.removeprefix("src/deniable/") for n, text in texts.items() if re.search(r"\bLaplace\(", text))
    return "\n".join(
        [
            f"files {len(room)}, lines {sum(lines.values()):,}, the longest {max(lines.values())}",
            f"numeric constants with a name {sum(map(constants, room.values()))}",
            f"files that mention σ and q {len(mention(room))} of {len(room)}; in code {len(code)}: {rooms}",
            f"package: files {len(texts)}, lines {sum(len(text.splitlines()) for text in texts.values()):,}, "
            f"the longest {max(len(text.splitlines()) for text in texts.values())}",
            f"files that make or name Laplace(…): {', '.join(laplace)}",
        ]
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--at", metavar="REVISION")
    print(report(sources(parser.parse_args().at)))
