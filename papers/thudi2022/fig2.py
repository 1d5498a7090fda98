"""Thudi et al., Figure 2: accuracy of any attacker at even odds, ours (theirs) against Erlingsson and Sablayrolles."""

import matplotlib.pyplot as plt
import numpy as np

import deniable as dn


def bounds(epsilon):
    return {
        "Theorem 1": dn.bounds.positive_accuracy(epsilon, prior=0.5)[1],
        "Erlingsson et al.": dn.bounds.erlingsson(epsilon),
        "Sablayrolles et al.": dn.bounds.sablayrolles(epsilon, prior=0.5),
        "Yeom et al.": dn.bounds.yeom(epsilon),
    }


def make(reduced):
    epsilon = np.linspace(0, 5, 51 if reduced else 501)
    curves = bounds(epsilon)
    # Beyond the paper: the same ε as a Gaussian mechanism at δ = 1e-5, whose exact curve is known.
    gaussian = [
        dn.calibrate(dn.GaussianDP, bracket=(1e-3, 10.0), limit=dn.Limit(epsilon=e, delta=1e-5))
        for e in epsilon[epsilon >= 0.1]
    ]
    figure, ax = plt.subplots(figsize=(5.2, 4.0), layout="constrained")
    for (label, accuracy), style in zip(curves.items(), ("-", "--", "-.", ":"), strict=True):
        ax.plot(epsilon, accuracy, style, label=label)
    exact = [dn.tradeoff(dn.GaussianDP(mu)).accuracy(0.5) for mu in gaussian]
    ax.plot(epsilon[epsilon >= 0.1], exact, lw=1, color="black", label="ours: Gaussian, (ε, 1e-5)-DP, exact")
    ax.set(xlabel="ε", ylabel="accuracy bound", title="Membership accuracy at even odds", ylim=(0.49, 1.01))
    ax.legend(fontsize=8)

    theirs = curves.pop("Theorem 1")
    numbers = {f"ours_at_{e}": float(bounds(e)["Theorem 1"]) for e in (1, 2)}
    numbers |= {f"erlingsson_at_{e}": float(bounds(e)["Erlingsson et al."]) for e in (1, 2)}
    numbers |= {f"sablayrolles_at_{e}": float(bounds(e)["Sablayrolles et al."]) for e in (1, 2)}
    numbers["largest_excess_over_older_bounds"] = float(max(np.max(theirs - older) for older in curves.values()))
    return figure, numbers
