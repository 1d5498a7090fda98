"""The membership ROC as a display object in scikit-learn's convention: ``from_…``, ``plot(ax=)``, ``ax_``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from deniable._plot import new_axes
from deniable.accounting import tradeoff
from deniable.audit import ScoreAudit, audit_scores
from deniable.curves import Tradeoff
from deniable.mechanisms import Mechanism

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class MembershipRocDisplay:
    """True against false positive rate of a membership attack, or of the bound on all attacks, in percent, log–log.

    Use :meth:`from_scores` or :meth:`from_tradeoff`; each draws and returns the display. Give
    the ``ax_`` of one display to the next to draw an attack below its bound::

        bound = MembershipRocDisplay.from_tradeoff(GaussianDP(1.0))
        MembershipRocDisplay.from_scores(members, others, ax=bound.ax_)

    Parameters
    ----------
    roc
        A trade-off (the upper bound is drawn) or an audit (the measured curve with its pointwise intervals).
    name
        Label in the legend.

    Attributes
    ----------
    ax_, figure_, line_
        The matplotlib axes, figure and line; set by :meth:`plot`.

    Examples
    --------
    >>> import deniable as dn
    >>> display = dn.integrations.MembershipRocDisplay(roc=dn.tradeoff(dn.GaussianDP(0.5)))
    >>> axes = display.plot().ax_
    """

    def __init__(self, *, roc: Tradeoff | ScoreAudit, name: str | None = None) -> None:
        self.roc, self.name = roc, name

    def plot(self, ax: Axes | None = None, *, name: str | None = None, **kwargs: Any) -> MembershipRocDisplay:
        """Draw on ``ax`` (fresh axes if None) and return the display; ``kwargs`` are those of a matplotlib line."""
        measured = isinstance(self.roc, ScoreAudit) and f"measured, {100 * self.roc.confidence:g} % intervals"
        self.ax_ = new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure
        first = len(self.ax_.lines)
        self.roc.plot(ax=self.ax_, label=name or self.name or measured or "provable upper bound")
        self.line_ = self.ax_.lines[first]
        if kwargs:
            self.line_.set(**kwargs)
            self.ax_.legend()
        return self

    @classmethod
    def from_scores(cls, member: ArrayLike, nonmember: ArrayLike, **kwargs: Any) -> MembershipRocDisplay:
        """Draw what an attack's scores show (larger means member); ``kwargs`` are those of :meth:`plot`.

        For other confidence than 95 %, or for shadow models: ``MembershipRocDisplay(roc=audit).plot()``.
        """
        return cls(roc=audit_scores(member, nonmember)).plot(**kwargs)

    @classmethod
    def from_tradeoff(cls, bound: Tradeoff | Mechanism, **kwargs: Any) -> MembershipRocDisplay:
        """Draw the upper bound on every attack, from a trade-off or a mechanism."""
        return cls(roc=bound if isinstance(bound, Tradeoff) else tradeoff(bound)).plot(**kwargs)
