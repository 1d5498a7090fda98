"""The --plot option: checked before the work, drawn after it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from deniable._files import check_writable
from deniable.cli._app import write


def checked_picture(path: Path | None) -> Path | None:
    """Return ``path`` if a picture can be written there, or None if none was asked for."""
    return None if path is None else check_writable("--plot", path, suffixes=(".svg", ".png"))


def draw(result: Any, path: Path | None) -> None:
    """Write ``result.plot()`` to ``path``, if there is one; no window is opened."""
    if path is None:
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    result.plot(ax=figure.subplots())
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix[1:].lower(), dpi=150)
    write(path, buffer.getvalue())
