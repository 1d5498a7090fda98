"""What the figures share: two and six numeric columns of Adult as the paper scales them."""

import _common
import numpy as np
import pandas as pd
from matplotlib import colormaps

TWO = ["age", "education-num"]  # the first and fifth columns
SIX = ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"]  # all numeric ones
MOST_EXPOSED = 24238  # the paper's y_max is i = 24239 (Figure 7), counted from one


def adult(columns=TWO, rows=None):
    """Rows of adult.data, standardised, divided by the largest norm (footnote 2), and labels; the first ``rows``."""
    table = pd.read_parquet(_common.dataset("adult.parquet"))
    table = table[table["split"] == "train"]
    X = table[columns].to_numpy(float)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X /= np.linalg.norm(X, axis=1).max()
    return X[:rows], np.where(table["income"].str.startswith(">50K"), 1.0, -1.0)[:rows]


def relative_error(points, profile):
    """|A_guess(y_i) − A(y_i)| / |A(x) − A(y_i)|."""
    return np.linalg.norm(points - profile.leave_one_out(), axis=1) / profile.distance


def draw_around(centre, beta, count, rng):
    """``count`` models with density ∝ e^(−β‖M − centre‖): Gamma(d, 1/β) radius, uniform direction (erratum E12)."""
    direction = rng.standard_normal((count, centre.size))
    radius = rng.gamma(centre.size, 1 / beta, (count, 1))
    return centre + radius * direction / np.linalg.norm(direction, axis=1, keepdims=True)


def sampled_losses(profile, beta, models, records=slice(None)):
    """The paper's eq. 9, signed: β(|A(y_i) − M| − |A(x) − M|), (models, records), without cancellation."""
    steps, noise = profile.leave_one_out()[records] - profile.optimum, models - profile.optimum
    size = np.linalg.norm(noise, axis=1).reshape(-1, *[1] * (steps.ndim - 1))
    gap = profile.distance[records] ** 2 - 2 * noise @ steps.T
    return beta * gap / (size + np.sqrt(np.maximum(size**2 + gap, 0.0)))


def separation(clouds):
    """Spread of the means of the data sets' models over what chance would give: 1 where no one can tell them apart."""
    within = clouds.var(axis=1, ddof=1).sum(axis=-1).mean()
    between = clouds.mean(axis=1).var(axis=0, ddof=1).sum()
    return float(np.sqrt(clouds.shape[1] * between / within))


def draw_clouds(ax, clouds):
    """Models of all rows as black crosses, those of the 50 neighbouring data sets as circles of their own colours."""
    for cloud, colour in zip(clouds[1:], colormaps["turbo"](np.linspace(0, 1, len(clouds) - 1)), strict=True):
        ax.plot(*cloud.T, "o", ms=1.5, alpha=0.5, color=colour, rasterized=True)
    ax.plot(*clouds[0].T, "kx", ms=4, rasterized=True)
    ax.title.set_fontsize(9)
    ax.tick_params(labelsize=6)
