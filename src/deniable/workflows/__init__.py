"""What is done with a source (fit, attack, bound, compare), one adapter a kind of source; ``report`` shows it."""

from deniable.workflows.assessing import alike, assess, compare
from deniable.workflows.following import OpacusCallback
from deniable.workflows.verifying import Verification, verify

__all__ = ["OpacusCallback", "Verification", "alike", "assess", "compare", "verify"]
