"""CPU seconds of `pip install` into a fresh environment, and of the first import: the times of docs/dependencies.md.

python -m build --wheel; python benchmarks/install_times.py dist/*.whl      # every extra but PyTorch's
git archive --prefix old/ 127a311 | tar x -C /tmp; python benchmarks/install_times.py /tmp/old app dask  # an old one

Downloads are not counted: an installation of all that is asked for fills pip's cache first. Pip compiles bytecode.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from install_sizes import EXTRAS


def cpu_seconds(*words: str) -> float:
    before = os.times()
    subprocess.run(words, check=True, cwd=tempfile.gettempdir())
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def installed(what: str) -> tuple[float, float]:
    """Return the CPU seconds of installing ``what`` and the least ones of three imports."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        install = cpu_seconds(python, "-m", "pip", "install", "--quiet", "--quiet", "--disable-pip-version-check", what)
        return install, min(cpu_seconds(python, "-c", "import deniable") for _ in range(3))


if __name__ == "__main__":
    project, *extras = [sys.argv[1], *(sys.argv[2:] or EXTRAS[1:])]
    path = str(Path(project).resolve())
    installed(f"{path}[{','.join(extras)}]")
    for extra in ("", *extras):
        install, load = installed(f"{path}[{extra}]" if extra else path)
        print(f"| {f'`{extra}`' if extra else 'core'} | {install:.0f} | {load:.2f} |", flush=True)
