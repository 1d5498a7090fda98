"""Imports that only some users need: a missing one fails with the line that mends it."""

from __future__ import annotations

import importlib
from types import ModuleType

# top-level module → the extra of deniable that installs it
EXTRA_OF = {
    "cloudpickle": "dask",
    "dask": "dask",
    "distributed": "dask",
    "flint": "proof",
    "jinja2": "report",
    "joblib": "training",
    "matplotlib": "report",
    "narwhals": "tables",
    "opacus": "torch",
    "opendp": "release",
    "pandas": "records",
    "pyarrow": "records",
    "python_calamine": "tables",
    "sklearn": "training",
    "skops": "release",
    "streamlit": "app",
    "torch": "torch",
}

# rooms with an extra that installs all they need
EXTRA_OF_ROOM = {"noise": "release", "releases": "release", "statistics": "tables", "training": "training"}


def require(module: str, *, purpose: str) -> ModuleType:
    """Import ``module`` or raise ``ImportError`` naming the ``purpose`` and the install line."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise missing(error, purpose) from error


def missing(error: ImportError, purpose: str, extra: str | None = None) -> ImportError:
    """Return the error to raise instead of ``error``: who needs the module, and the line that installs it.

    ``extra`` installs all that ``purpose`` needs; by default the one that installs the module is named. What no extra
    installs is no matter of installing: ``error`` itself is returned.
    """
    name = (error.name or "").partition(".")[0]
    if name not in EXTRA_OF:
        return error
    line = f"pip install 'deniable[{extra or EXTRA_OF[name]}]'"
    return ImportError(f"{purpose} needs {name}, which is not installed; run: {line}", name=error.name)
