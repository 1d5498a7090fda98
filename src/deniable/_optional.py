"""Imports that only some users need: a missing one fails with the line that mends it."""

from __future__ import annotations

import importlib
from types import ModuleType


def require(module: str, *, extra: str | None = None, package: str | None = None, purpose: str) -> ModuleType:
    """Import ``module`` or raise ``ImportError`` naming the ``purpose`` and the install line.

    ``extra`` names one of deniable's extras, ``package`` a distribution outside them.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        line = f"pip install 'deniable[{extra}]'" if extra else f"pip install {package or module}"
        raise ImportError(f"{purpose} needs {module.partition('.')[0]}, which is not installed; run: {line}") from error
