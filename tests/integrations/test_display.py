"""The display object follows scikit-learn's convention and draws the library's numbers."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import deniable as dn

Display = dn.integrations.MembershipRocDisplay


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def scores():
    rng = np.random.default_rng(0)
    return rng.normal(1.0, 1.0, 400), rng.normal(0.0, 1.0, 400)


@pytest.mark.parametrize("bound", [dn.GaussianDP(1.0), dn.tradeoff(dn.GaussianDP(1.0))])
def test_a_bound_is_drawn_in_percent(bound):
    shown = Display.from_tradeoff(bound)
    x, y = shown.line_.get_data()
    np.testing.assert_allclose(y / 100, dn.tradeoff(dn.GaussianDP(1.0)).tpr(x / 100), rtol=1e-12)
    assert shown.figure_ is shown.ax_.figure
    assert shown.line_.get_label() == "provable upper bound"


def test_an_attack_is_drawn_below_its_bound_on_the_same_axes(scores):
    bound = Display.from_tradeoff(dn.GaussianDP(1.0), linestyle="--")
    attack = Display.from_scores(*scores, ax=bound.ax_, name="mine", color="red")
    assert attack.ax_ is bound.ax_
    assert bound.line_.get_linestyle() == "--"
    assert attack.line_.get_color() == "red"
    assert [text.get_text() for text in bound.ax_.get_legend().get_texts()] == [
        "provable upper bound", "guessing", "mine",
    ]  # fmt: skip
    audit = dn.audit_scores(*scores)
    x, y = attack.line_.get_data()
    np.testing.assert_allclose(y[-1] / 100, audit.evidence.full.tpr(x[-1] / 100))
    assert len(attack.ax_.collections) == 1  # the intervals


def test_plot_may_be_called_again(scores):
    shown = Display(roc=dn.audit_scores(*scores, confidence=0.9)).plot()
    first = shown.ax_
    assert shown.plot() is shown
    assert shown.ax_ is not first
    assert shown.line_.get_label() == "measured, 90 % intervals"
