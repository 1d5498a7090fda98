"""Everything that one guarantee says about membership, side by side with older bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from deniable._check import number
from deniable._shown import shown
from deniable.bounds.membership import accuracy, advantage, negative_accuracy, positive_accuracy, positive_advantage
from deniable.bounds.mip import mip_from_dp
from deniable.bounds.prior_work import erlingsson, humphries, sablayrolles, yeom
from deniable.curves import EVERY_CASE, ApproximateTradeoff
from deniable.risks import replaced

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Range = tuple[float, float]
_RATES = (0.1, 0.01, 0.001)  # false positive rates at which the summary states true positive rates


@dataclass(frozen=True)
class BoundSummary:
    """What an (ε, δ) guarantee means for an attacker with a prior; upper bounds that some mechanism attains.

    ``positive_accuracy`` and ``negative_accuracy`` are (lower, upper). For δ > 0 without a stated ``fpr`` they are
    None: there is no bound. ``reconstruction`` is the largest chance of guessing a record's secret that blind guessing
    finds with chance ``baseline``; ``advantage_replacing`` the advantage where records are replaced, not added or
    removed; ``tpr`` pairs of a false positive rate and the largest true positive rate. ``eta`` is that of membership
    inference privacy (Izzo et al.) if the guarantee is for replacing a record, ``positive_advantage`` 2·(precision −
    prior), for pure DP. ``prior_work`` holds older bounds by author: accuracies at prior ½ (Yeom, Erlingsson), the
    advantage (Humphries) and the positive accuracy (Sablayrolles); those for pure DP only where δ = 0.

    Examples
    --------
    See ``summary``.
    """

    epsilon: float
    delta: float
    prior: float
    fpr: float | None
    advantage: float
    accuracy: float
    positive_accuracy: Range | None
    negative_accuracy: Range | None
    advantage_replacing: float = 1.0
    baseline: float = 0.001
    reconstruction: float = 1.0
    prior_work: dict[str, float] = field(default_factory=dict, hash=False)
    tpr: tuple[tuple[float, float], ...] = ()
    eta: float = 0.5
    positive_advantage: float | None = None

    def lines(self) -> list[str]:
        """Return the summary in words, one fact per line."""
        where = "for any attack" if self.fpr is None else f"at FPR {_percent(self.fpr, 'nearest')}"
        prior = f"prior {_percent(self.prior, 'nearest')}"
        facts = [
            f"advantage at even odds        at most {_percent(self.advantage)}",
            f"accuracy at {prior:<17} at most {_percent(self.accuracy)}",
        ]
        if self.positive_accuracy is None or self.negative_accuracy is None:
            facts.append(
                "right when it says 'in'       no bound for delta above 0 unless a false positive rate is stated"
            )
        else:
            for word, (low, high) in (("in", self.positive_accuracy), ("out", self.negative_accuracy)):
                claim = f"right when it says '{word}'"
                facts.append(f"{claim:<29} between {_percent(low, 'lower')} and {_percent(high)}, {where}, {prior}")
        for rate, found in self.tpr:
            claim = f"TPR at FPR {_percent(rate, 'nearest')}"
            facts.append(f"{claim:<29} at most {_percent(found)}")
        facts.append(f"gain over guessing, η (MIP)   at most {_percent(self.eta)}, if ε is for replacing a record")
        if self.positive_advantage is not None:
            facts.append(f"positive advantage            at most {_percent(self.positive_advantage)}")
        secret = f"secret, blind guess {_percent(self.baseline, 'nearest')}"
        facts += [
            f"advantage, record replaced    at most {_percent(self.advantage_replacing)}",
            f"{secret:<29} guessed at most {_percent(self.reconstruction)}",
        ]
        facts += [f"{author.capitalize():<29} {_percent(value)}" for author, value in self.prior_work.items()]
        return facts

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the bounds on the positive accuracy against the prior (Thudi et al., figures 3 and 5)."""
        from deniable._plot import new_axes

        axes = ax if ax is not None else new_axes()
        priors = np.linspace(0.001, 0.999, 400)
        axes.plot(priors, priors, ":", color="grey", label="guessing from the prior")
        if self.positive_accuracy is not None:
            low, high = positive_accuracy(self.epsilon, prior=priors, delta=self.delta, fpr=self.fpr)
            axes.fill_between(priors, low, high, alpha=0.3, label=f"ε = {self.epsilon:g}, δ = {self.delta:g}")
            axes.plot([self.prior], [self.positive_accuracy[1]], "o", label=f"prior {self.prior:g}")
        if self.delta == 0:
            axes.plot(priors, sablayrolles(self.epsilon, prior=priors), "--", label="Sablayrolles et al.")
        at = "" if self.fpr is None else f" at FPR {self.fpr:g}"
        axes.set(xlabel="prior P(in)", ylabel=f"P(in | attack says in){at}", xlim=(0, 1), ylim=(0, 1))
        axes.legend()
        return axes


def summary(
    epsilon: float, *, delta: float = 0.0, prior: float = 0.5, fpr: float | None = None, baseline: float = 0.001
) -> BoundSummary:
    """Return all bounds that (``epsilon``, ``delta``)-DP gives for an attacker with this ``prior``.

    State the false positive rate ``fpr`` to bound precision when δ > 0, and the chance of guessing a secret of a record
    blindly as ``baseline``.

    Parameters
    ----------
    epsilon
        ε ≥ 0 of the guarantee, in nats; infinity is allowed.
    delta
        δ in [0, 1].
    prior
        π = P(in) before the attack, in (0, 1).
    fpr
        False positive rate in [0, 1] of the attacks whose precision is bounded; needed only where δ > 0.
    baseline
        Chance of guessing a secret of a record blindly, in [0, 1].

    Returns
    -------
    BoundSummary
        All bounds, each rounded to its safe side.

    Raises
    ------
    InputError
        If a value is NaN or outside its range.

    Examples
    --------
    >>> import deniable as dn
    >>> found = dn.bounds.summary(1.0, prior=0.1)
    >>> isinstance(found, dn.bounds.BoundSummary), round(found.accuracy, 3)
    (True, 0.9)
    """
    eps, dlt = number("epsilon", epsilon, at_least=0.0), number("delta", delta, at_least=0.0, at_most=1.0)
    pi = number("prior", prior, above=0.0, below=1.0)
    blind = number("baseline", baseline, at_least=0.0, at_most=1.0, hint="it is the chance of guessing right blindly")
    worst = ApproximateTradeoff(eps, dlt, holds_for=EVERY_CASE)
    bounded = dlt == 0 or fpr is not None
    older = {"humphries": humphries(eps, delta=dlt), "erlingsson": erlingsson(eps, delta=dlt)}
    if dlt == 0:
        older |= {"yeom": yeom(eps), "sablayrolles": sablayrolles(eps, prior=pi)}
    return BoundSummary(
        epsilon=eps,
        delta=dlt,
        prior=pi,
        fpr=fpr,
        advantage=float(advantage(eps, delta=dlt)),
        accuracy=float(accuracy(eps, delta=dlt, prior=pi)),
        positive_accuracy=_range(positive_accuracy(eps, prior=pi, delta=dlt, fpr=fpr)) if bounded else None,
        negative_accuracy=_range(negative_accuracy(eps, prior=pi, delta=dlt, fpr=fpr)) if bounded else None,
        advantage_replacing=replaced(worst, any_mechanism=True).advantage(),
        baseline=blind,
        reconstruction=worst.reconstruction(blind),
        tpr=tuple(
            (rate, float(worst.tpr(rate))) for rate in dict.fromkeys((*_RATES, *(() if fpr is None else (fpr,))))
        ),
        prior_work={author: float(value) for author, value in older.items()},
        eta=float(mip_from_dp(eps, delta=dlt)),
        positive_advantage=float(positive_advantage(eps, prior=pi)) if dlt == 0 else None,
    )


def _range(pair: tuple[object, object]) -> Range:
    low, high = pair
    return float(np.asarray(low)), float(np.asarray(high))


def _percent(value: float, side: str = "upper") -> str:
    return shown(value, "rate", side).replace("\u00a0", " ")
