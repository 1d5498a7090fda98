"""DP-EBM of interpret-core 0.7.8 with its Gaussian DP accounting, default settings.

Target: its bins and its rounds are two Gaussian mechanisms with μ₁ = μ(0.1·ε, δ/2) and μ₂ = μ(0.9·ε, δ/2), so the fit
is √(μ₁² + μ₂²)-GDP, which is less than μ(ε, δ). ε is chosen so that this sum is exactly the target's μ (δ = 1e-6):
more than its own conversion would allow it. It is given the exact smallest and largest value of every column and of the
target, the list of categories, the number of records and, as it takes no blanks, medians of the training part to fill
them with; it pays for none of these. It has no multiclass.
"""

import numpy as np
import pandas as pd
from data import Dataset
from harness import DELTA, gdp, gdp_mu, run
from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor
from scipy.optimize import brentq


def epsilon(advantage: float) -> float:
    mu = gdp(advantage)
    return float(
        brentq(lambda e: np.hypot(gdp_mu(0.1 * e, DELTA / 2), gdp_mu(0.9 * e, DELTA / 2)) - mu, 0.1, 50, xtol=1e-10)
    )


def settings(data: Dataset):
    if data.task == "classification" and len(np.unique(data.y)) > 2:
        return {}
    return {"default": {}}


def fit(data, train, test, advantage, parameters, seed):
    frame = data.X.copy()
    kinds = []
    for name, column in frame.items():
        numeric = pd.api.types.is_numeric_dtype(column)
        kinds.append("continuous" if numeric else "nominal")
        if numeric:
            frame[name] = column.fillna(column.iloc[train].median())
        else:
            frame[name] = column.astype(object).where(column.notna(), "missing").astype(str)
    bounds = {i: data.ranges[name] for i, name in enumerate(frame) if name in data.ranges}
    common = {
        "epsilon": epsilon(advantage), "delta": DELTA, "composition": "gdp", "privacy_bounds": bounds,
        "feature_types": kinds, "n_jobs": 1, "random_state": seed,
    }  # fmt: skip
    if data.task == "regression":
        limits = {"privacy_target_min": float(data.y.min()), "privacy_target_max": float(data.y.max())}
        model = DPExplainableBoostingRegressor(**common, **limits).fit(frame.iloc[train], data.y[train])
        return model.predict(frame.iloc[test]), None, None
    model = DPExplainableBoostingClassifier(**common).fit(frame.iloc[train], data.y[train])
    return model.predict(frame.iloc[test]), model.predict_proba(frame.iloc[test]), model.classes_


if __name__ == "__main__":
    run("interpret_dp_ebm", settings, fit)
