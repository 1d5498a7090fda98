"""Nothing that an algorithm says on the secret half leaves; played as attacks, with the seal removed as control."""

import ctypes
import logging
import os
import sys
import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.linear_model import Lasso

import deniable as dn
from deniable.noise.silence import sealed
from deniable.releases import ReleaseError, secret_half
from deniable.releases.resampling import Population

DATA = np.random.default_rng(0).normal(size=12)
DATA[0] = 50.0
GAMES = 24
WAYS = {
    "warning": lambda text: warnings.warn(text, stacklevel=1),
    "stubborn warning": lambda text: (warnings.simplefilter("always"), warnings.warn(text, stacklevel=1)),
    "print": print,
    "stderr": lambda text: print(text, file=sys.stderr),
    "kept stream": lambda text: print(text, file=sys.__stdout__),
    "descriptor": lambda text: os.write(2, text.encode()),
    "compiled": lambda text: ctypes.CDLL(None).puts(text.encode()),
    "log": lambda text: logging.getLogger("algorithm").log(99, text),
}


class Saying:
    """A mean that says something where the outlier is in its part, after the 40 runs of the resampling."""

    def __init__(self, say):
        self.say, self.runs = say, 0

    def __call__(self, part):
        self.runs += 1
        if self.runs > 80 and part.max() > 40:
            self.say("the outlier is here")
        return part.mean()


@pytest.fixture
def truths(monkeypatch):
    """Which secret halves hold the outlier, in turn."""
    drawn, draw = [], Population.secret_subset

    def watched(self):
        rows = draw(self)
        drawn.append(0 in rows)
        return rows

    monkeypatch.setattr(Population, "secret_subset", watched)
    return drawn


def heard(way, capfd, caplog):
    """Whether anything was said in one release."""
    caplog.clear()
    capfd.readouterr()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dn.release(Saying(WAYS[way]), DATA, advantage=0.6, bound="centre", n_resamples=40, rng=0)
    told = [w for w in caught if "outlier" in str(w.message)]
    ctypes.CDLL(None).fflush(None)
    return bool(told or "outlier" in "".join(capfd.readouterr()) or caplog.records)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("open_room", [False, True])
def test_what_an_algorithm_says_tells_nothing(way, open_room, truths, capfd, caplog, monkeypatch):
    if open_room:  # negative control
        monkeypatch.setattr(secret_half, "sealed", nullcontext)
    guesses = [heard(way, capfd, caplog) for _ in range(8 if open_room else 4)]
    if open_room:
        assert guesses == truths
    else:
        assert not any(guesses)


def test_warnings_of_lasso_do_not_tell_who_trained(truths, monkeypatch):
    """One record makes two columns alike, so that the descent does not converge; before: 48 games of 48 won."""
    rng = np.random.default_rng(1)
    X = np.repeat(np.array([[1.0, 1.0], [1.0, -1.0]]), 10, axis=0) + 0.01 * rng.normal(size=(20, 2))
    X[0] = [400.0, 399.0]
    y = rng.normal(size=20)

    def warned():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = dn.MembershipPrivate(
                Lasso(alpha=1e-3, max_iter=8), advantage=0.8, bound="centre", n_resamples=40, random_state=0
            )
            model.fit(X, y)
        return len(caught)

    counts = [warned() for _ in range(GAMES)]
    assert len(set(counts)) == 1  # the attacker hears the same whoever trained, so he can but guess
    guesses = np.random.default_rng(2).random(GAMES) < 0.5
    assert binomtest(int(np.sum(guesses == np.array(truths))), GAMES).proportion_ci(0.999).low <= 0.5
    monkeypatch.setattr(secret_half, "sealed", nullcontext)
    truths.clear()
    counts = np.array([warned() for _ in range(GAMES)])
    won = int(np.sum((counts > counts.min()) == np.array(truths)))
    assert binomtest(won, GAMES).proportion_ci(0.999).low > 0.5  # negative control


@pytest.mark.parametrize("failure", [ValueError, SystemExit])
def test_a_failure_on_the_secret_half_says_nothing(failure):
    def fail(text):
        raise failure(f"see Mueller, {text}")

    def outcome():
        try:
            return dn.release(Saying(fail), DATA, advantage=0.6, bound="centre", n_resamples=40, rng=0)
        except ReleaseError as error:
            return error

    failed = [found for found in (outcome() for _ in range(8)) if isinstance(found, ReleaseError)]
    assert failed  # all but one game in 256
    for error in failed:
        assert "withheld" in str(error)
        assert (error.__cause__, error.__context__) == (None, None)


def test_an_error_of_a_random_part_names_no_cell():
    def fail(part):
        raise ValueError("could not convert 'see Mueller file 4711'")

    with pytest.raises(ReleaseError, match="with ValueError; nothing was released") as caught:
        dn.release(fail, np.arange(40.0), advantage=0.6, bound="centre", n_resamples=40, rng=0)
    assert "Mueller" not in str(caught.value)


def test_what_was_said_before_appears_and_what_is_said_after_does(capfd):
    print("before", end="")
    with sealed():
        print("inside", end="")
        os.write(1, b"inside")
    print("after")
    assert capfd.readouterr().out == "beforeafter\n"
    with pytest.warns(UserWarning, match="after"):
        warnings.warn("after", stacklevel=1)
    assert logging.root.manager.disable == logging.NOTSET
