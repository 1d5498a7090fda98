"""The local page: move noise, sampling rate, steps and prior, and see at once what an attacker can reach.

Started by ``deniable app``, which binds it to 127.0.0.1 and switches Streamlit's telemetry off.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

import deniable as dn
from deniable._check import FloatArray
from deniable._shown import shown
from deniable.report.model import Assessment

_FPR = np.geomspace(1e-6, 1.0, 121)
_TARGETS = {
    "advantage": "advantage at most",
    "tpr": "TPR at the chosen FPR at most",
    "epsilon": "ε at the chosen δ at most",
}


def main() -> None:
    """Draw the page."""
    st.set_page_config(page_title="deniable", layout="wide")
    st.header("Could an attacker tell whether a record was in the training data?")
    run, data = st.tabs(["A DP-SGD run", "A table of records"])
    with run:
        _run_page()
    with data:
        _data_page()


@st.fragment  # a moved slider redraws this page only
def _run_page() -> None:
    left, right = st.columns([1, 2], gap="large")
    with left:
        st.session_state.setdefault("log_noise", 0.0)
        noise = 10 ** st.slider("noise multiplier (power of ten)", -0.7, 2.0, step=0.005, key="log_noise")
        st.caption(f"noise multiplier **{noise:.4g}**")
        rate = 10 ** st.slider("sampling rate (power of ten)", -6.0, 0.0, -2.0, 0.05)
        st.caption(f"sampling rate **{rate:.4g}**")
        steps = int(st.number_input("steps", 1, 10_000_000, 5000, step=500))
        prior = st.slider("prior: P(the record was in)", 0.01, 0.99, 0.5, 0.01)
        fpr = 10 ** st.slider("false positive rate (power of ten)", -6.0, -0.3, -2.0, 0.1)
        delta = 10 ** st.slider("δ (power of ten)", -12.0, -2.0, -5.0, 0.5)
        _calibration(rate, steps, fpr, delta)
    with right:
        mechanism = dn.SubsampledGaussian(noise, min(rate, 1.0), steps)
        _numbers(mechanism, prior, fpr, delta)
        _downloads(lambda: dn.assess(mechanism, prior=prior, fpr=[fpr], delta=delta), "run")


def _calibration(rate: float, steps: int, fpr: float, delta: float) -> None:
    """Set a target and get the noise."""
    st.subheader("Noise for a target")
    kind = st.selectbox("target", list(_TARGETS), format_func=_TARGETS.__getitem__)
    default = {"advantage": 0.1, "tpr": 2 * fpr, "epsilon": 3.0}[kind]
    target = st.number_input("value", 0.0, value=default, format="%.6g")

    def find() -> None:
        asked: dict[str, Any] = {kind: target}
        asked |= {"fpr": fpr} if kind == "tpr" else {"delta": delta} if kind == "epsilon" else {}
        try:
            noise = dn.calibrate(lambda s: dn.SubsampledGaussian(s, min(rate, 1.0), steps), (0.2, 100.0), **asked)
        except dn.InputError as error:
            st.session_state["calibration"] = str(error)
            return
        # the slider moves in steps: the next one up is the safe side
        st.session_state["log_noise"] = min(2.0, math.ceil(math.log10(noise) / 0.005) * 0.005)
        st.session_state["calibration"] = f"smallest noise multiplier: {noise:.6g} (the slider is set just above it)"

    st.button("Find the noise", on_click=find)
    if message := st.session_state.get("calibration"):
        st.info(message)


def _numbers(mechanism: dn.Mechanism, prior: float, fpr: float, delta: float) -> None:
    bound = dn.tradeoff(mechanism)
    percent = shown(fpr, "rate", "nearest")
    cells = {
        "advantage, prior 50 %": (bound.advantage(), "rate"),
        f"accuracy, prior {shown(prior, 'rate', 'nearest')}": (bound.accuracy(prior), "rate"),
        f"TPR at FPR {percent}": (bound.tpr(fpr), "rate"),
        f"precision at FPR {percent}": (bound.precision(fpr, prior), "rate"),
        f"ε at δ = {delta:.2g}": (bound.epsilon(delta), "number"),
    }
    for column, (label, (value, unit)) in zip(st.columns(len(cells)), cells.items(), strict=True):
        column.metric(label, shown(value, "rate" if unit == "rate" else "number", "upper"))
    st.plotly_chart(_roc(bound.tpr(_FPR)), width="stretch")
    st.caption("Provable upper bounds for adding or removing one record; every step of the training is visible.")


def _roc(tpr: FloatArray) -> go.Figure:
    figure = go.Figure(
        [
            go.Scatter(x=100 * _FPR, y=100 * tpr, name="provable upper bound", line={"width": 3}),
            go.Scatter(x=100 * _FPR, y=100 * _FPR, name="guessing", line={"dash": "dot", "color": "grey"}),
        ]
    )
    figure.update_xaxes(type="log", title="false positive rate (%)", exponentformat="none")
    figure.update_yaxes(type="log", title="true positive rate (%)", exponentformat="none")
    figure.update_layout(height=430, margin={"t": 20, "b": 40}, legend={"orientation": "h", "y": 1.1})
    return figure


@st.fragment
def _data_page() -> None:
    """A table in, a profile out; whatever is uploaded, the page stays."""
    st.write("The table stays on this machine. It needs a column with two values to predict.")
    upload = st.file_uploader("CSV or Parquet", type=["csv", "parquet", "gz", "tsv"])
    target = st.text_input("column to predict")
    drop = st.text_input("columns to leave out, separated by commas")
    epsilon = st.number_input("ε of the release", 0.01, 100.0, 1.0)
    regularization = 10 ** st.slider("regularization Λ (power of ten)", -4.0, 0.0, -2.0, 0.25)
    if not st.button("Assess", disabled=upload is None):
        return
    try:
        with st.spinner("fitting, profiling and attacking"):
            made = _assess_upload(upload, target, drop, epsilon, regularization)
    except dn.InputError as error:
        st.error(str(error))
        return
    st.success(made.headline) if made.status == "consistent" else st.warning(made.headline)
    for section in made.sections:
        st.subheader(section.title)
        st.dataframe([{"number": n.label, "value": n.shown, "meaning": n.meaning} for n in section.numbers])
    _downloads(lambda: made, "table")


def _assess_upload(upload: Any, target: str, drop: str, epsilon: float, regularization: float) -> Assessment:
    suffix = "".join(Path(upload.name).suffixes[-2:]) or ".csv"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"upload{suffix}"
        path.write_bytes(upload.getvalue())
        columns = tuple(name.strip() for name in drop.split(",") if name.strip())
        made: Assessment = dn.assess(
            path, target=target or None, drop=columns, epsilon=epsilon, regularization=regularization,
            title=f"Logistic regression on {upload.name}",
        )  # fmt: skip
        return made


def _downloads(make: Callable[[], Assessment], key: str) -> None:
    """Offer the report; it is made when it is asked for."""
    one, two = st.columns(2)
    one.download_button(
        "Download the report (HTML)", lambda: make().to_html(), "report.html", "text/html", key=f"{key}-html"
    )
    two.download_button("Download the numbers (JSON)", lambda: make().to_json(), "report.json", key=f"{key}-json")


if __name__ == "__main__":
    main()
