"""Check a mechanism's promise by running it: a sequential audit with a learned attack, within a time budget.

For tests: :func:`promise` decorates a function that returns one release, with the record or without it, and makes it a
test that fails if the releases contradict the promise. ``pytest_deniable`` adds command-line options and a summary.

The attack is learned from some of the releases, of any kind: which score tells the two worlds apart?
"""

from __future__ import annotations

import functools
import inspect
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypedDict, Unpack

import numpy as np

from deniable._check import FloatArray, InputError, function, integer, number
from deniable._notebook import Textual
from deniable.audit.fixed_sample import PILOT
from deniable.audit.sequential import SequentialAudit, SequentialVerdict
from deniable.audit.supermartingale import GAMMAS, loudest
from deniable.audit.verdict import promised_curve
from deniable.curves import Tradeoff
from deniable.mechanisms import Mechanism

ScoreFunction = Callable[[Sequence[Any]], FloatArray]

_BINS = 16  # bins of a projection, equally full, in which the two worlds are counted
_MOST_VALUES = 64  # up to this many different releases, each is counted on its own


def learn_attack(
    member: Sequence[Any], nonmember: Sequence[Any], delta: FloatArray
) -> tuple[str, Callable[[Sequence[Any]], FloatArray]]:
    """Return the attack with the strongest evidence against a promise with H_γ = ``delta``: its name and its score.

    Each is learned on one half of the releases and judged on the other; the winner learns from all.
    """
    half = len(member) // 2
    learners = _LEARNERS if _rows(list(member) + list(nonmember)) is not None else _LEARNERS[:1]
    scores = [learn(member[:half], nonmember[:half]) for _, learn in learners] if half > 1 else []
    strength = [loudest(score(member[half:]), score(nonmember[half:]), delta) for score in scores]
    name, learn = learners[int(np.argmax(strength)) if strength else -1]
    return name, learn(member, nonmember)


def _rows(releases: Sequence[Any]) -> FloatArray | None:
    """Return releases as rows of finite numbers, or None if they are something else or differ in shape."""
    try:
        rows = np.stack([np.ravel(np.asarray(release, dtype=np.float64)) for release in releases])
    except (TypeError, ValueError):
        return None
    return np.nan_to_num(rows, nan=-1e30, posinf=1e30, neginf=-1e30)  # values that are not finite are evidence, too


def _learn_values(member: Sequence[Any], nonmember: Sequence[Any]) -> ScoreFunction:
    """Log ratio of how often each value was released in the two worlds; unseen ones count for neither."""
    inside, outside = (Counter(map(_key, side)) for side in (member, nonmember))
    if len(inside | outside) > _MOST_VALUES:
        return lambda releases: np.zeros(len(releases))
    ratio = {key: np.log((inside[key] + 0.5) / (outside[key] + 0.5)) for key in inside | outside}
    return lambda releases: np.array([ratio.get(_key(release), 0.0) for release in releases], dtype=np.float64)


def _learn_direction(member: Sequence[Any], nonmember: Sequence[Any]) -> ScoreFunction:
    """Fisher's linear discriminant."""
    direction = _discriminant(_certain(member), _certain(nonmember))
    return lambda releases: _certain(releases) @ direction


def _learn_bins(member: Sequence[Any], nonmember: Sequence[Any]) -> ScoreFunction:
    """Log ratio of the counts in bins of the discriminant: also finds differences within a band."""
    direction = _discriminant(_certain(member), _certain(nonmember))
    inside, outside = _certain(member) @ direction, _certain(nonmember) @ direction
    edges = np.unique(np.quantile(np.concatenate([inside, outside]), np.linspace(0, 1, _BINS + 1)[1:-1]))
    counts = [np.bincount(np.searchsorted(edges, side), minlength=len(edges) + 1) + 0.5 for side in (inside, outside)]
    ratio = np.log(counts[0]) - np.log(counts[1])
    return lambda releases: np.asarray(ratio[np.searchsorted(edges, _certain(releases) @ direction)])


def _learn_spread(member: Sequence[Any], nonmember: Sequence[Any]) -> ScoreFunction:
    """Log ratio of Gaussians with mean and variance per coordinate: also finds noise that depends on the data."""
    (m1, s1), (m0, s0) = (_moments(_certain(side)) for side in (member, nonmember))

    def score(releases: Sequence[Any]) -> FloatArray:
        x = _certain(releases)
        found = ((x - m0) / s0) ** 2 / 2 + np.log(s0) - ((x - m1) / s1) ** 2 / 2 - np.log(s1)
        return np.asarray(found.sum(axis=1), dtype=np.float64)

    return score


_LEARNERS: tuple[tuple[str, Callable[[Sequence[Any], Sequence[Any]], ScoreFunction]], ...] = (
    ("how often each value is released", _learn_values),
    ("bins of the linear discriminant", _learn_bins),
    ("two Gaussians", _learn_spread),
    ("linear discriminant", _learn_direction),
)


def _certain(releases: Sequence[Any]) -> FloatArray:
    rows = _rows(releases)
    if rows is None:  # the attack was learned from numbers of one shape
        raise InputError("release must return numbers or arrays of one shape every time, or something else every time")
    return rows


def _moments(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    spread = rows.std(axis=0)
    return rows.mean(axis=0), np.maximum(spread, 1e-6 * max(float(spread.max()), 1e-300))


def _discriminant(inside: FloatArray, outside: FloatArray) -> FloatArray:
    """Return (S + ridge)⁻¹(mean in − mean out), S the pooled covariance."""
    centred = np.concatenate([inside - inside.mean(axis=0), outside - outside.mean(axis=0)])
    covariance = centred.T @ centred / len(centred)
    ridge = 1e-3 * np.trace(covariance) / len(covariance) + 1e-300
    shift = inside.mean(axis=0) - outside.mean(axis=0)
    return np.asarray(np.linalg.solve(covariance + ridge * np.eye(len(covariance)), shift))


def _key(release: Any) -> str:
    return repr(release.tolist() if hasattr(release, "tolist") else release)


TRIALS, SECONDS, CONFIDENCE = 1000, 60.0, 0.999
_CHUNK = 10  # releases of each world between two looks at the clock and the capital


class PromiseBroken(AssertionError):  # noqa: N818  (what failed is the promise, not the program)
    """Releases contradict the promise.

    Examples
    --------
    See ``promise``.
    """


class NothingChecked(AssertionError):  # noqa: N818
    """Too few releases for even a perfect attack to contradict the promise: the check says nothing.

    Examples
    --------
    See ``promise``.
    """


@dataclass(frozen=True)
class PromiseCheck(Textual):
    """What a check of a promise found.

    Attributes
    ----------
    verdict
        Of the sequential audit.
    attack
        What the attack looked at; it was learned from ``pilot`` releases in each world, which the verdict does not use.
    pilot, trials
        Releases in each world from which the attack was learned, and releases in all.
    seconds
        Time taken.
    could_have_found
        Power: with as many releases, a randomised response with this ε or more would be found to break the promise at
        least about half of the time. None if not even ε = 20 would have been, or if the promise is broken.
    audit
        The sequential audit: judges other promises, gives lower limits, plots the wealth.

    Examples
    --------
    See ``promise``.
    """

    verdict: SequentialVerdict
    attack: str
    pilot: int
    trials: int
    seconds: float
    could_have_found: float | None
    audit: SequentialAudit = field(repr=False, compare=False)

    def _text(self) -> str:
        found = f"{self.verdict}; attack: {self.attack}; {self.trials} releases in each world"
        if self.verdict.violated:
            return found
        power = "nothing" if self.could_have_found is None else f"an ε of {self.could_have_found:.2g} or more"
        return f"{found} could have found {power}"


_limits: ContextVar[tuple[int, float]] = ContextVar("limits", default=(TRIALS, SECONDS))


@contextmanager
def limits(trials: int | None, seconds: float | None) -> Iterator[None]:
    """Change the default budget of checks made in this context; budgets given to a decorator take precedence."""
    token = _limits.set((TRIALS if trials is None else trials, SECONDS if seconds is None else seconds))
    try:
        yield
    finally:
        _limits.reset(token)


class CheckOptions(TypedDict, total=False):
    """How a promise is checked, as :func:`check_promise` takes it."""

    score: Callable[[Any], float] | None
    trials: int | None
    seconds: float | None
    confidence: float


def check_promise(
    release: Callable[[bool], Any],
    mechanism: Mechanism | Tradeoff,
    *,
    score: Callable[[Any], float] | None = None,
    trials: int | None = None,
    seconds: float | None = None,
    confidence: float = CONFIDENCE,
) -> PromiseCheck:
    """Run a mechanism repeatedly on two neighbouring inputs and look for a contradiction of its promise.

    Parameters
    ----------
    release
        Returns one fresh release: ``release(True)`` with the record, ``release(False)`` without it. Numbers or arrays
        of one shape, or anything with a ``repr`` that is compared as it is.
    mechanism
        The promise, a mechanism or a trade-off.
    score
        The attack, if a good one is known: larger says "with the record" (best: the likelihood ratio). By default one
        is learned in the first fifth of the budget: how often each value is released, a linear discriminant, its bins,
        or two Gaussians, whichever separates best; the verdict rests on the other releases.
    trials
        Largest number of releases in each world (default 1,000).
    seconds
        Time budget (default 60): the check ends after it even if trials are left, and at once when the promise is
        broken.
    confidence
        1 − the probability that a true promise is ever called broken (0.999: one build in a thousand).

    Returns
    -------
    PromiseCheck
        It never proves the promise: other neighbours or better attacks may break it.

    Raises
    ------
    InputError
        If a budget or the confidence is outside its range, or releases cannot be scored.

    Examples
    --------
    See ``promise``.
    """
    curve = promised_curve(mechanism, "mechanism")
    asked = _limits.get()
    trials = integer("trials", asked[0] if trials is None else trials, at_least=10)
    budget = number("seconds", asked[1] if seconds is None else seconds, above=0.0)
    function("release", release, "True or False, whether the record is in, to what is released")
    if score is not None:
        function("score", score, "what is released to a number")
    audit = SequentialAudit(mechanism, confidence)
    start = time.monotonic()

    def more(most: int, until: float) -> tuple[list[Any], list[Any]]:
        """Return releases from both worlds, in turn, until there are enough or time is up; at least one from each."""
        member: list[Any] = []
        nonmember: list[Any] = []
        while not member or (len(member) < most and time.monotonic() - start < until):
            member.append(release(True))
            nonmember.append(release(False))
        return member, nonmember

    pilot, name = 0, "the given score"
    scored: Callable[[Sequence[Any]], Any]
    if score is None:
        first = more(int(PILOT * trials), PILOT * budget)
        pilot, (name, scored) = len(first[0]), learn_attack(*first, curve.hockey_stick(GAMMAS))
    else:
        scored = lambda releases: [float(score(release)) for release in releases]  # noqa: E731
    made = pilot
    while made < trials and time.monotonic() - start < budget and not audit.violated:
        member, nonmember = more(min(_CHUNK, trials - made), budget)
        audit.update(scored(member), scored(nonmember))
        made += len(member)
    taken = time.monotonic() - start
    power = None if audit.violated else audit.could_find()
    return PromiseCheck(audit.verdict(), name, pilot, made, taken, power, audit)


def promise(
    mechanism: Mechanism | Tradeoff, **options: Unpack[CheckOptions]
) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Turn a function that returns a release into a test of its promise; the parameters are :func:`check_promise`'s.

    The function's first argument says whether the record is in; further ones are pytest fixtures. The
    decorated function takes the fixtures only and keeps what it found as ``deniable_check``. It fails with
    ``PromiseBroken`` if releases contradict the promise, and with ``NothingChecked`` if there were too few releases (or
    too little time) to contradict it by any attack.

    Parameters
    ----------
    mechanism
        What the function promises, a mechanism such as ``dn.PureDP(1)`` or a trade-off.
    options
        ``score``, ``trials``, ``seconds``, ``confidence`` of :func:`check_promise`; ``--deniable-trials`` and
        ``--deniable-seconds`` of pytest change the defaults.

    Returns
    -------
    callable
        A decorator, which returns a test function for pytest.

    Raises
    ------
    InputError
        If a budget or the confidence is outside its range; at the first call.

    Examples
    --------
    >>> import numpy as np
    >>> from deniable.mechanisms import PureDP
    >>> ages, noise = np.array([31, 45, 27, 62]), np.random.default_rng(0)
    >>> @promise(PureDP(1.0), trials=300)
    ... def test_count_of_the_old(inside):
    ...     rows = ages if inside else ages[:-1]
    ...     return np.sum(rows > 40) + noise.laplace(scale=1.0)
    >>> test_count_of_the_old()
    >>> test_count_of_the_old.deniable_check.verdict.outcome
    'consistent'
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., None]:
        parameters = list(inspect.signature(function).parameters.values())
        if not parameters or parameters[0].name == "self":
            raise InputError(
                f"{function.__name__} must be a plain function (not a method) whose first argument "
                "says whether the record is in"
            )

        @functools.wraps(function)
        def test(**fixtures: Any) -> None:
            found = check_promise(lambda inside: function(inside, **fixtures), mechanism, **options)
            test.deniable_check = found  # type: ignore[attr-defined]
            if found.verdict.violated:
                raise PromiseBroken(str(found))
            if found.verdict.outcome == "inconclusive" and found.verdict.p_value > 2 * (1 - found.audit.confidence):
                raise NothingChecked(f"{found}; raise trials or seconds")

        test.__signature__ = inspect.Signature(parameters[1:])  # type: ignore[attr-defined]
        test.deniable_promise = True  # type: ignore[attr-defined]
        return test

    return decorate
