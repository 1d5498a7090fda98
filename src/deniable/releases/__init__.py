"""Any algorithm on a secret half of the records: couplings, the least noise that certifies a target, certificates."""

from __future__ import annotations

from deniable._lazy import attach

__getattr__, __all__, _ = attach(__name__, __file__, globals())  # the list is __init__.pyi
