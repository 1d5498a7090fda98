"""What is done with a source (fit, attack, bound, compare), one adapter a kind of source; ``report`` shows it."""

from deniable.workflows.assessing import assess
from deniable.workflows.comparing import alike, compare
from deniable.workflows.following import OpacusCallback

__all__ = ["OpacusCallback", "alike", "assess", "compare"]
