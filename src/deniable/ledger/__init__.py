"""One account for everything that is released about the same people."""

from deniable.ledger.account import Ledger
from deniable.ledger.entry import Entry, LedgerCheck
from deniable.ledger.file import LedgerError

__all__ = ["Entry", "Ledger", "LedgerCheck", "LedgerError"]
