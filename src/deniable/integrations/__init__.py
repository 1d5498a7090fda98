"""Foreign objects in, ours out: Opacus, DpEvent, interpret, a fitted scikit-learn model."""

from __future__ import annotations

from deniable._lazy import attach

__getattr__, __all__, _ = attach(__name__, __file__, globals())  # the list is __init__.pyi
