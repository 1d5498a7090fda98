"""What an attacker can do: the trade-off between true and false positives of any membership attack.

Two worlds: H0, the record was *out* (law Q of the release), and H1, it was *in* (law P). An attack is a test;
its false positive rate is Q(S), its true positive rate P(S). Everything deniable knows about leakage is a
:class:`Tradeoff`: upper bounds on what every attack reaches and, where known, lower bounds on what the best one does.

Every public number passes through :func:`sane`: whatever an engine does inside (NaN, overflow, no memory), what leaves
is in range and on its side, or it is the trivial bound. Some names are
for other packages of deniable only: ``docs/api_pages.py`` lists them.

Directions, as peers name them: ``"remove"`` is the hockey stick of in against out, H_γ(P‖Q), and the ROC with out as
the null hypothesis; ``"add"`` exchanges the two worlds. ``"both"`` (the meaning in DP) is the larger of the two.
"""

from __future__ import annotations

from deniable._lazy import attach

__getattr__, __all__, _ = attach(__name__, __file__, globals())  # the list is __init__.pyi
