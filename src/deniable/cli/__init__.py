"""The command line: each command parses, calls one public function and prints."""

from __future__ import annotations

import sys

from deniable.cli import (  # noqa: F401  (importing a command's module registers it)
    annex,
    assess,
    attack,
    audit,
    bound,
    calibrate,
    check,
    compare,
    demo,
    doctor,
    example_files,
    local_page,
    plan,
    profile,
    release,
    samplers,
    sequential,
    synthetic,
    train,
)
from deniable.cli._app import app, run

__all__ = ["app", "main"]


def main() -> None:
    """Entry point of the ``deniable`` command."""
    sys.exit(run(sys.argv[1:]))
