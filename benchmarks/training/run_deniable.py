"""deniable's PrivateClassifier and PrivateRegressor, default settings: no tuning, no choice by held-out data.

``deniable`` finds every range privately and pays for it (the digits' 17 grey levels are declared: nobody has to look at
data to know them). ``deniable_declared`` (``--declared``) is told the ranges that every rival is told, the smallest and
largest value of each column, so that like is compared with like; ``deniable_linear`` (``--linear``) likewise, with
``model="linear"``.
"""

import sys

from harness import run

import deniable as dn

LINEAR = "--linear" in sys.argv


def fit(data, train, test, advantage, declared, seed):
    ranges = data.declared
    if declared == "all" and ranges is None:
        ranges = {name: span for name, span in data.ranges.items() if span[0] < span[1]}
    options = {"advantage": advantage, "ranges": ranges, "model": "linear" if LINEAR else "additive"}
    if data.task == "regression":
        if declared == "all":
            options["target_range"] = (float(data.y.min()), float(data.y.max()))
        model = dn.PrivateRegressor(**options).fit(data.X.iloc[train], data.y[train])
        return model.predict(data.X.iloc[test]), None, None
    model = dn.PrivateClassifier(**options).fit(data.X.iloc[train], data.y[train])
    return model.predict(data.X.iloc[test]), model.predict_proba(data.X.iloc[test]), model.classes_


if __name__ == "__main__":
    rest = [a for a in sys.argv[1:] if a not in ("--declared", "--linear")]
    if LINEAR:
        run("deniable_linear", lambda data: {"ranges as for rivals": "all"}, fit, rest)
    elif "--declared" in sys.argv:
        run("deniable_declared", lambda data: {"ranges as for rivals": "all"}, fit, rest)
    else:
        run("deniable", lambda data: {"ranges known to all" if data.declared else "private ranges": "known"}, fit, rest)
