"""LeBlond et al., Figure 3: the ball that holds A(y_i), with A(x) and A_wc(y_i) at its ends, and our certified ball."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import deniable as dn
from deniable.records import worst_case_sphere

sys.path.append(str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parent))
import _adult
import _common


def make(reduced):
    X, y = _adult.adult()
    figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.6), layout="constrained")
    numbers = {}
    panels = ((1.0, "largest |A_wc − A(y)|"), (1.0, "median |A_wc − A(y)|"), (1e-2, "largest |A_wc − A(y)|, Λ = 0.01"))
    for ax, (regularization, title) in zip(axes, panels, strict=True):
        profile = dn.privacy_profile(X, y, regularization=regularization)
        ball = worst_case_sphere(X, y, regularization=regularization)
        centre, radius, worst = ball.centre, ball.radius, ball.worst_case
        gap = np.linalg.norm(worst - profile.leave_one_out(), axis=1)
        i = int(np.argsort(gap)[len(gap) // 2 if title.startswith("median") else -1])
        unit = radius[i]
        points = {"A(x)": profile.optimum, "A_wc(y)": worst[i], "A(y), ours": profile.leave_one_out()[i]}
        ax.add_patch(plt.Circle((0, 0), 1, fill=False, color="grey"))
        for (name, point), marker in zip(points.items(), "os*", strict=True):
            ax.plot(*((point - centre[i]) / unit), marker, ms=9 if marker == "*" else 6, label=name)
        ax.set(title=title, xlim=(-1.6, 1.6), ylim=(-1.6, 1.6), aspect="equal", xlabel=f"in units of r = {unit:.2g}")
        ax.legend(fontsize=7)

        inside = np.linalg.norm(centre - profile.leave_one_out(), axis=1) - profile.radius()
        at = f"at_{regularization:g}"
        numbers[f"outside_the_ball_{at}"] = float(np.sum(inside > radius * (1 + 1e-9)))
        numbers[f"base_off_the_surface_{at}"] = float(
            np.max(np.abs(np.linalg.norm(centre - profile.optimum, axis=1) / radius - 1))
        )
        numbers[f"our_ball_over_theirs_{at}"] = float(np.max(profile.radius() / radius))
        numbers[f"distance_over_its_bound_2r_{at}"] = float(np.max(profile.distance / (2 * radius)))
    return figure, numbers


if __name__ == "__main__":
    _common.main(__file__, make)
