"""LeBlond et al., Figure 3: the ball and the half-space that hold A(y_i), with A(x) and A_wc(y_i) at the ball's ends.

The records are the paper's two, the one whose plane is nearest to the centre and the one with the largest
|A_wc − A(y)|; the caption and §5.2 disagree on which of them is left. The plane is ours, from self-concordance (the
text does not define that of Zhou et al.). Third: the second at Λ = 0.01, where A_wc is no approximation (erratum E14).
"""

import _adult
import matplotlib.pyplot as plt
import numpy as np
from spheres import worst_case_sphere

import deniable as dn


def make(reduced):
    X, y = _adult.adult()
    figure, axes = plt.subplots(1, 3, figsize=(10.5, 4.0), layout="constrained")
    numbers = {}
    panels = ((1.0, "plane nearest to the centre"), (1.0, "largest |A_wc − A(y)|"), (1e-2, "the same at Λ = 0.01"))
    for ax, (regularization, title) in zip(axes, panels, strict=True):
        profile = dn.privacy_profile(X, y, regularization=regularization)
        ball = worst_case_sphere(X, y, regularization=regularization)
        centre, radius, worst = ball.centre, ball.radius, ball.worst_case
        gap = np.linalg.norm(worst - profile.leave_one_out(), axis=1)
        i = int(np.argmin(ball.reach) if title.startswith("plane") else np.argmax(gap))
        unit = radius[i]
        points = {"A(x)": profile.optimum, "A_wc(y)": worst[i], "A(y), ours": profile.leave_one_out()[i]}
        ax.add_patch(plt.Circle((0, 0), 1, fill=False, color="grey"))
        along = (worst[i] - profile.optimum) / (2 * unit)
        at, half = (2 * ball.reach[i] - 1) * along, 1.5 * np.array([-along[1], along[0]])
        ax.plot(*zip(at - half, at + half, strict=True), "k--", lw=0.8, label="half-space (ours), A(x)'s side")
        for (name, point), marker in zip(points.items(), "os*", strict=True):
            ax.plot(*((point - centre[i]) / unit), marker, ms=9 if marker == "*" else 6, label=name)
        ax.set(title=title, xlim=(-1.6, 1.6), ylim=(-1.6, 1.6), aspect="equal", xlabel=f"in units of r = {unit:.2g}")

        inside = np.linalg.norm(centre - profile.leave_one_out(), axis=1) - profile.radius()
        at = f"at_{regularization:g}"
        numbers[f"outside_the_ball_{at}"] = float(np.sum(inside > radius * (1 + 1e-9)))
        numbers[f"base_off_the_surface_{at}"] = float(
            np.max(np.abs(np.linalg.norm(centre - profile.optimum, axis=1) / radius - 1))
        )
        numbers[f"our_ball_over_theirs_{at}"] = float(np.max(profile.radius() / radius))
        ahead = np.sum((profile.leave_one_out() - profile.optimum) * (worst - profile.optimum), axis=1)
        beyond = ahead - (ball.reach * 2 * radius + profile.radius()) * 2 * radius
        numbers[f"beyond_the_plane_{at}"] = float(np.sum(beyond > 1e-9 * radius**2))
        numbers[f"nearest_plane_{at}"] = float(2 * ball.reach.min() - 1)
        numbers[f"distance_over_its_bound_2r_{at}"] = float(np.max(profile.distance / (2 * radius)))
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
    return figure, numbers
