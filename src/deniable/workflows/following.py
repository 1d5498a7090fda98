"""A DP-SGD run followed while it trains: how the bound grows, and the assessment at its end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from deniable._check import InputError, integer, number
from deniable._search import bisect_integers
from deniable._shown import shown
from deniable.accounting import tradeoff
from deniable.integrations import from_opacus, require_poisson
from deniable.limits import Limit
from deniable.mechanisms import Composition, Mechanism, SubsampledGaussian, parts_of
from deniable.planning import as_limit
from deniable.report import Assessment, Number, Section, Series
from deniable.workflows.assessing import assess

_MOST_STEPS = 2**24


@dataclass(frozen=True)
class Progress:
    """What any attacker can reach at most from the steps so far: provable upper bounds."""

    steps: int
    advantage: float
    tpr: float


class OpacusCallback:
    """Follows an Opacus run: call it after every step or epoch, and ask for the assessment at the end.

    ::

        follow = deniable.workflows.OpacusCallback(engine, every=500)
        for epoch in range(epochs):
            ...                                # train; whatever a training loop hands to its hooks is ignored
            follow()
            if follow.steps_left(advantage=0.2) < len(loader):  # the next epoch would pass the limit
                break
        follow.assessment().to_html("report.html")

    The run is what the engine's accountant has recorded, so nothing is missed between two calls. Stopping early because
    a bound is reached costs nothing: the bound does not depend on the data. Decisions that do depend on them (stopping
    for a validation score, more noise after a look at the loss) are different: the bounds followed here hold for noise,
    rates and steps that were fixed beforehand. A run that stops because of what it saw has the bound of its whole
    schedule.

    Parameters
    ----------
    engine
        Opacus's ``PrivacyEngine`` (or one of its accountants), after ``make_private``.
    every
        A new point is computed when at least this many steps have passed since the last one (about 10 ms each).
    fpr
        False positive rate at which the true positive rate is followed.
    loader
        The data loader that ``make_private`` returned. If it is given, a run whose batches are shuffled rather than
        Poisson-sampled is refused: it has a different bound, and the accountant cannot tell the difference.

    Examples
    --------
    See ``make_private``.
    """

    def __init__(self, engine: Any, *, every: int = 1, fpr: float = 0.01, loader: Any = None) -> None:
        if not any(hasattr(engine, name) for name in ("accountant", "history")):
            raise InputError(f"engine must be Opacus's PrivacyEngine or an accountant, got {type(engine).__name__}")
        require_poisson(loader)
        self.engine = engine
        self.every = integer("every", every, at_least=1)
        self.fpr = number("fpr", fpr, above=0.0, at_most=1.0)
        self.progress: list[Progress] = []

    def __call__(self, *_: Any, **__: Any) -> Progress:
        """Return the bounds now, or the last ones while fewer than ``every`` steps have passed since."""
        run = from_opacus(self.engine)
        steps = _steps(run)
        if not self.progress or steps >= self.progress[-1].steps + self.every:
            self._add(run)
        return self.progress[-1]

    def steps_left(self, *, advantage: float | None = None, limit: Limit | Mechanism | None = None) -> int:
        """Return how many more steps, at the last step's noise and rate, meet a limit: see :func:`deniable.calibrate`.

        It takes some tenths of a second: ask once an epoch.
        """
        *before, last = parts_of(from_opacus(self.engine))
        assert isinstance(last, SubsampledGaussian)
        goal = as_limit(advantage, limit)

        def meets(more: Any) -> bool:
            return goal.is_met(tradeoff(Composition([*before, replace(last, steps=last.steps + int(more))])))

        above = 1
        while above < _MOST_STEPS and meets(above):
            above *= 2
        return int(bisect_integers(meets, 0, above)[0])

    def assessment(self, **options: Any) -> Assessment:
        """Return the assessment of the run so far, with how the bound grew; options are those of :func:`assess`."""
        run = from_opacus(self.engine)
        if not self.progress or self.progress[-1].steps < _steps(run):
            self._add(run)
        made = assess(run, **options)
        return replace(made, sections=(*made.sections, self._section()))

    def _add(self, run: Mechanism) -> None:
        bound = tradeoff(run)
        self.progress.append(Progress(_steps(run), bound.advantage(), bound.tpr(self.fpr)))

    def _section(self) -> Section:
        percent = shown(self.fpr, "rate", "nearest")
        lines = {
            "advantage": [100 * point.advantage for point in self.progress],
            f"TPR at FPR {percent}": [100 * point.tpr for point in self.progress],
        }
        last = self.progress[-1].steps
        picture = Series(
            "progress", "Every step adds to what can be learnt about a record.", "steps", "provable upper bound (%)",
            [float(point.steps) for point in self.progress], lines,
            alt=f"The provable advantage and true positive rate at FPR {percent} while {last:,} steps ran.",
        )  # fmt: skip
        return Section(
            "progress",
            "How the bound grew",
            "Provable upper bounds on what any attacker can reach from the steps up to each point.",
            (Number("progress.steps", "Steps", float(last), "Recorded so far.", "exact", unit="count"),),
            series=(picture,),
        )


def _steps(run: Mechanism) -> int:
    return sum(getattr(part, "steps", 0) for part in parts_of(run))
