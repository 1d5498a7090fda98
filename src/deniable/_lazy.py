"""A package's public names, each written once: its stub ``__init__.pyi`` is the list, for people and for Python."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deniable._optional import EXTRA_OF_ROOM, missing


def attach(package: str, file: str, names: dict[str, Any]) -> tuple[Callable[[str], Any], list[str], list[str]]:
    """Return ``__getattr__`` of a package, its names, and its modules that are offered, from the stub beside ``file``.

    A name is imported when it is first used and kept in ``names``; one whose libraries are missing says which line
    installs them.
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    homes = {one.name: str(node.module) for node in stub.body if isinstance(node, ast.ImportFrom) for one in node.names}
    modules = sorted(name for name, home in homes.items() if home == package)

    def found(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = f"{package}.{name}" if name in modules else homes[name]
        try:
            module = importlib.import_module(home)
        except ImportError as error:
            raise missing(error, f"{package}.{name}", EXTRA_OF_ROOM.get(home.split(".")[1])) from error
        names[name] = module if name in modules else getattr(module, name)
        return names[name]

    return found, sorted(homes.keys() - set(modules)), modules
