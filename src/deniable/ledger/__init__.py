"""One account for everything that is released about the same people."""

from deniable.ledger.account import FILTER, Ledger, LedgerCheck
from deniable.ledger.file import Entry, LedgerError

__all__ = ["FILTER", "Entry", "Ledger", "LedgerCheck", "LedgerError"]
