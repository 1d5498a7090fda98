"""deniable: could an attacker tell whether a person's record was in the training data?

The public names are listed in ``__all__``; ``help(deniable.assess)`` is a good start. Further names are in the rooms:
``deniable.mechanisms.tuned``. Names are imported when first used, so that ``import deniable`` stays quick; one whose
libraries are missing says which line installs them.
"""

from __future__ import annotations

from typing import Any

from deniable._lazy import attach

_found, __all__, _ROOMS = attach(__name__, __file__, globals())  # the list is __init__.pyi


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # slow to import, and rarely asked for

        return version("deniable")
    return _found(name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS, *(name for name in globals() if name.startswith("__"))})
