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
    coverage,
    demo,
    doctor,
    exact,
    example_files,
    game,
    local_page,
    plan,
    plan_run,
    profile,
    release,
    samplers,
    sequential,
    sphere,
    synthesize,
    synthetic,
    train,
    unlearn,
)
from deniable.cli._app import app, run

__all__ = ["app", "main"]


def main() -> None:
    """Entry point of the ``deniable`` command."""
    sys.exit(run(sys.argv[1:]))
