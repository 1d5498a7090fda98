"""The command line: each command parses, calls one public function and prints."""

from __future__ import annotations

import sys

# isort: off
from deniable.cli import (  # noqa: F401  (importing a command's module registers it, in the order of the help)
    _app,
    train,
    predict,
    publish,
    synthesize,
    bound,
    calibrate,
    plan,
    compare,
    attack,
    audit,
    profile,
    assess,
    annex,
    ledger,
    verify,
    check,
    local_page,
    doctor,
    example_files,
)

# isort: on
from deniable.cli._app import app

__all__ = ["app", "main"]


def main() -> None:
    """Entry point of the ``deniable`` command."""
    sys.exit(_app.run(sys.argv[1:]))
