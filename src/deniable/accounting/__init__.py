"""Composed privacy losses: from a mechanism to its trade-off."""

from __future__ import annotations

from deniable._lazy import attach

__getattr__, __all__, _ = attach(__name__, __file__, globals())  # the list is __init__.pyi
