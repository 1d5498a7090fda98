"""deniable's PrivateClassifier and PrivateRegressor, default settings: no tuning, no choice by held-out data.

``deniable`` finds every range privately and pays for it (the digits' 17 grey levels are declared: nobody has to look at
data to know them). ``deniable_declared`` (``--declared``) is told the ranges that every rival is told, the smallest and
largest value of each column, so that like is compared with like; whole numbers from 0 to 1 are yes/no columns.
``deniable_linear`` (``--linear``) likewise, with ``model="linear"``. Ranges are found privately with ``--alone``
(``interactions=0``: no pairs of columns).
"""

import sys

from harness import run

import deniable as dn

VARIANTS = {  # option of the command line: method, options of the estimator
    "--declared": ("deniable_declared", {}),
    "--linear": ("deniable_linear", {"model": "linear"}),
    "--alone": ("deniable_alone", {"interactions": 0}),
}
CHOSEN = next((name for name in VARIANTS if name in sys.argv), None)
METHOD, OPTIONS = VARIANTS.get(CHOSEN, ("deniable", {}))
TOLD = CHOSEN in ("--declared", "--linear")


def settings(data):
    if TOLD:
        return {"ranges as for rivals": None}
    return {"ranges known to all" if data.declared else "private ranges": None}


def fit(data, train, test, advantage, parameters, seed):
    ranges = data.declared
    if TOLD and ranges is None:
        ranges = {name: span for name, span in data.ranges.items() if span[0] < span[1]}
    frame = data.X
    if TOLD:
        flags = [c for c in frame.select_dtypes("integer") if frame[c].isin((0, 1)).all()]
        frame, ranges = frame.astype(dict.fromkeys(flags, bool)), {c: ranges[c] for c in ranges if c not in flags}
    options = {"advantage": advantage, "ranges": ranges, **OPTIONS}
    if data.task == "regression":
        if TOLD:
            options["target_range"] = (float(data.y.min()), float(data.y.max()))
        model = dn.PrivateRegressor(**options).fit(frame.iloc[train], data.y[train])
        return model.predict(frame.iloc[test]), None, None
    model = dn.PrivateClassifier(**options).fit(frame.iloc[train], data.y[train])
    return model.predict(frame.iloc[test]), model.predict_proba(frame.iloc[test]), model.classes_


if __name__ == "__main__":
    run(METHOD, settings, fit, [a for a in sys.argv[1:] if a not in VARIANTS])
