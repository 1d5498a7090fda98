"""A second, rigorous computation of the same numbers, in ball arithmetic: for those who want to check them.

It shares no numerics with :mod:`deniable.accounting`. Nothing but ``deniable bound --proof`` and the tests calls it.
"""

from deniable.proof.comparison import Proof, ProvenNumber, enclosure, prove

__all__ = ["Proof", "ProvenNumber", "enclosure", "prove"]
