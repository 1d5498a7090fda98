"""Draw the three pictures of docs/concepts.md: ``python tools/concept_pictures.py``.

Every number in them is computed here; the draws of the attack are seeded.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer

import deniable as dn

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "images"
RUN = dn.SubsampledGaussian(1.0, 0.01, 5000)
EPSILON = 10.0


def play(member: np.ndarray, other: np.ndarray, rate: float, n: int = 5000) -> dn.audit.ScoreAudit:
    """The best attack on norm-Laplace noise: which of two models is nearer to what was released."""
    rng, scores = np.random.default_rng(0), []
    for centre in (member, other):
        noise = rng.normal(size=(n, centre.size))
        noise *= (rng.gamma(centre.size, 1 / rate, n) / np.linalg.norm(noise, axis=1))[:, None]
        far, near = (np.linalg.norm(centre + noise - one, axis=1) for one in (other, member))
        scores.append(rate * (far - near))
    return dn.audit_scores(*scores)


def one_curve() -> Figure:
    """The curve of a run, and the numbers that can be read off it."""
    t = dn.tradeoff(RUN)
    fpr, low = np.linspace(0.0, 1.0, 201), np.geomspace(1e-5, 1.0, 100)
    tpr = t.tpr(fpr)
    figure, (whole, tail) = plt.subplots(1, 2, figsize=(8.4, 4.0), layout="constrained")
    whole.plot(fpr, tpr, label="every attack lies below")
    whole.plot(fpr, fpr, ":", color="grey", label="guessing")
    at = int(np.argmax(tpr - fpr))
    whole.annotate("", (fpr[at], tpr[at]), (fpr[at], fpr[at]), arrowprops={"arrowstyle": "<->", "color": "C1"})
    whole.text(fpr[at] + 0.02, fpr[at] + 0.22, f"advantage\n{t.advantage():.3f}", color="C1")
    delta = t.delta(1.0, direction="remove")
    line = fpr[delta + np.e * fpr <= 1.0]
    whole.plot(line, delta + np.e * line, "--", color="C2", label=f"ε = 1, δ = {delta:.3f}")
    tail.loglog(low, t.tpr(low))
    tail.loglog(low, low, ":", color="grey")
    secret = "\nalso for a secret\nof 1,000 values"  # guessed blindly with chance 0.001
    for x, name, place in ((1e-3, secret, (-92, 20)), (1e-5, "", (10, -4))):
        tail.plot(x, t.tpr(x), "o", color="C3")
        tail.annotate(
            f"{t.tpr(x):.2g} at FPR {x:g}{name}", (x, t.tpr(x)), place, textcoords="offset points", color="C3"
        )
    for ax in (whole, tail):
        ax.set(xlabel="false positive rate", ylabel="true positive rate")
    whole.legend(loc="lower right")
    return figure


def bound_profile_attack() -> Figure:
    """Three answers about one released model: for every data set, for these records, of one attack."""
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X /= np.linalg.norm(X, axis=1).max()
    p = dn.privacy_profile(X, y, regularization=1e-2, mechanism=dn.OutputPerturbation(epsilon=EPSILON), rng=0)
    each = p.advantage()
    worst = int(np.argmax(each))
    top = f"the most exposed: {each[worst]:.2%}"
    found = play(p.optimum, p.leave_one_out([worst])[0], p.rate).advantage()
    bound = dn.tradeoff(dn.PureDP(EPSILON)).advantage()
    figure, ax = plt.subplots(figsize=(8.4, 2.6), layout="constrained")
    ax.plot([bound], [2], "|", color="C3", markersize=30, markeredgewidth=3)
    ax.annotate(f"at most {bound:.2%}", (bound, 2), (-10, -4), textcoords="offset points", ha="right", color="C3")
    spread = 1 + np.random.default_rng(0).uniform(-0.2, 0.2, len(each))
    ax.plot(each, spread, ".", color="C0", markersize=3)
    ax.annotate(top, (each[worst], 1), (8, -4), textcoords="offset points", color="C0")
    ax.plot([found.low, found.high], [0, 0], color="C1", linewidth=3)
    ax.annotate(f"at least {found.low:.1%}", (found.high, 0), (8, -4), textcoords="offset points", color="C1")
    attacked = "attack on the most exposed,\n95 % interval"
    ax.set_yticks([0, 1, 2], [attacked, f"profile of {len(each)} records", f"bound, ε = {EPSILON:.0f}"])
    ax.set(xscale="log", xlabel="advantage of the attacker", ylim=(-0.6, 2.6), xlim=(each.min() / 1.5, 1.3))
    return figure


def games() -> Figure:
    """What differs between the two worlds, and who has to tell them apart."""
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 2.6), layout="constrained")
    for ax, title, other in zip(axes, ("add or remove", "replace"), (None, "C0"), strict=True):
        for row, world, person in ((1, "in", "C3"), (0, "out", other)):
            ax.text(-0.7, row, f"world “{world}”", ha="right", va="center")
            ax.plot(range(4), [row] * 4, "o", color="grey", markersize=11)
            if person is not None:
                ax.plot([4], [row], "o", color=person, markersize=11)
            ax.annotate("", (6.3, 0.5), (4.7, row), arrowprops={"arrowstyle": "->", "color": "grey"})
        ax.text(6.4, 0.5, "what was\nreleased\n→ in or out?", va="center")
        ax.set(title=title, xlim=(-3.2, 9.2), ylim=(-0.6, 1.6))
        ax.axis("off")
    return figure


def main() -> None:
    """Write the pictures into docs/images."""
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "deniable"})  # small files, the same each time
    for draw in (one_curve, bound_profile_attack, games):
        draw().savefig(FOLDER / f"{draw.__name__}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
