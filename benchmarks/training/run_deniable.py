"""deniable's PrivateClassifier and PrivateRegressor, default settings.

``deniable`` finds every range privately and pays for it. ``deniable_declared`` is told the ranges that every rival is
told (the smallest and largest value of each column), so that like is compared with like.
"""

import sys

from harness import run

import deniable as dn


def fit(data, train, test, advantage, declared, seed):
    ranges = data.ranges if declared == "all" else data.declared
    options = {"advantage": advantage, "ranges": ranges}
    if data.task == "regression":
        if declared == "all":
            options["target_range"] = (float(data.y.min()), float(data.y.max()))
        model = dn.PrivateRegressor(**options).fit(data.X.iloc[train], data.y[train])
        return model.predict(data.X.iloc[test]), None, None
    model = dn.PrivateClassifier(**options).fit(data.X.iloc[train], data.y[train])
    return model.predict(data.X.iloc[test]), model.predict_proba(data.X.iloc[test]), model.classes_


if __name__ == "__main__":
    told = "--declared" in sys.argv
    rest = [a for a in sys.argv[1:] if a != "--declared"]
    if told:
        run("deniable_declared", lambda data: {"ranges as for rivals": "all"}, fit, rest)
    else:
        # the digits' 17 grey levels are declared: nobody has to look at data to know them
        run("deniable", lambda data: {"ranges known to all" if data.declared else "private ranges": "known"}, fit, rest)
