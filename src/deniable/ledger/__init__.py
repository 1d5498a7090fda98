"""One account for everything that is released about the same people."""

from deniable.ledger.account import Entry, Ledger, LedgerCheck
from deniable.ledger.file import LedgerError

__all__ = ["Entry", "Ledger", "LedgerCheck", "LedgerError"]
