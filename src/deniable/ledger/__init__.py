"""One account for everything that is released about the same people."""

from deniable.ledger.account import Ledger, LedgerCheck
from deniable.ledger.file import Entry, LedgerError

__all__ = ["Entry", "Ledger", "LedgerCheck", "LedgerError"]
