"""The membership ROC as a display object in scikit-learn's convention: ``from_…``, ``plot(ax=)``, ``ax_``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from deniable._check import InputError, Seed
from deniable._plot import new_axes
from deniable.accounting import tradeoff
from deniable.audit import AttackScores, ScoreAudit, attack_estimator, audit_scores
from deniable.curves import Tradeoff
from deniable.mechanisms import Mechanism

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class MembershipRocDisplay:
    """True against false positive rate of a membership attack, or of the bound on all attacks, in percent, log–log.

    Use :meth:`from_scores`, :meth:`from_tradeoff` or :meth:`from_estimator`; each draws and returns the display. Give
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

    ax_: Axes
    figure_: Any
    line_: Any

    def __init__(self, *, roc: Tradeoff | ScoreAudit, name: str | None = None) -> None:
        self.roc = roc
        self.name = name

    def plot(self, ax: Axes | None = None, *, name: str | None = None, **kwargs: Any) -> MembershipRocDisplay:
        """Draw on ``ax`` (fresh axes if None) and return the display; ``kwargs`` are those of a matplotlib line."""
        self.ax_ = ax if ax is not None else new_axes()
        self.figure_ = self.ax_.figure
        first = len(self.ax_.lines)
        self.roc.plot(ax=self.ax_, label=name or self.name or _default_name(self.roc))
        self.line_ = self.ax_.lines[first]
        if kwargs:
            self.line_.set(**kwargs)
            self.ax_.legend()
        return self

    @classmethod
    def from_scores(
        cls,
        member: ArrayLike,
        nonmember: ArrayLike,
        *,
        confidence: float = 0.95,
        **kwargs: Any,
    ) -> MembershipRocDisplay:
        """Draw what an attack's scores show (larger means member); ``kwargs`` are those of :meth:`plot`."""
        return cls(roc=audit_scores(member, nonmember, confidence)).plot(**kwargs)

    @classmethod
    def from_tradeoff(cls, bound: Tradeoff | Mechanism, **kwargs: Any) -> MembershipRocDisplay:
        """Draw the upper bound on every attack, from a trade-off or a mechanism."""
        if not isinstance(bound, Tradeoff | Mechanism):
            raise InputError(f"bound must be a trade-off or a mechanism, got {type(bound).__name__}")
        return cls(roc=bound if isinstance(bound, Tradeoff) else tradeoff(bound)).plot(**kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        method: Any = "lira",
        n_shadows: int = 64,
        rng: Seed = None,
        **kwargs: Any,
    ) -> MembershipRocDisplay:
        """Attack clones of ``estimator`` with shadow models and draw the result. See :func:`attack_estimator`.

        Unlike scikit-learn's displays this trains ``n_shadows`` models: membership is about how a model was trained.
        """
        scores: AttackScores = attack_estimator(estimator, X, y, method=method, n_shadows=n_shadows, rng=rng)
        return cls(roc=scores.audit(), name=f"{method} on {type(estimator).__name__}").plot(**kwargs)


def _default_name(roc: Tradeoff | ScoreAudit) -> str:
    return "provable upper bound" if isinstance(roc, Tradeoff) else f"measured, {100 * roc.confidence:g} % intervals"
