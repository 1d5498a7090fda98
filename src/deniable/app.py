"""The local page: move noise, sampling rate, steps and prior, and see at once what an attacker can reach.

Started by ``deniable app``, which binds it to 127.0.0.1 and switches Streamlit's telemetry off.
"""

from __future__ import annotations

import sys
import warnings
from base64 import b64encode
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

import deniable as dn
from deniable._shown import shown
from deniable.report import Curve, roc_curve, roc_picture

_STYLE = """<style>text {{ font: 12px sans-serif; fill: {ink}; }} .grid {{ stroke: {ink}; stroke-opacity: .25; }}
.line {{ fill: none; stroke: #2f80d0; stroke-width: 3; }}
.line.guess {{ stroke: {ink}; stroke-width: 1.6; stroke-dasharray: 2 4; }}</style>"""


# kinds of limits that can be chosen: their words, a value to start with (in percent, but for ε), and what goes with it
_RISKS: dict[str, tuple[str, float, Callable[[float, float], dict[str, float]]]] = {
    "advantage": ("advantage at most (%)", 10.0, lambda fpr, delta: {}),
    "tpr": ("TPR at the chosen FPR at most (%)", 1.0, lambda fpr, delta: {"fpr": fpr}),
    "reconstruction": (
        "a secret of 1,000 values named with chance at most (%)", 1.0, lambda fpr, delta: {"baseline": 0.001}
    ),
    "singling_out": (
        "one of 1,000 records singled out with chance at most (%)", 10.0,
        lambda fpr, delta: {"n": 1000, "weight": 1e-5},
    ),
    "epsilon": ("ε at the chosen δ at most", 3.0, lambda fpr, delta: {"delta": delta}),
}  # fmt: skip


def main() -> None:
    """Draw the page."""
    here = str(Path(__file__).parent)  # Streamlit puts it first, where ``statistics`` of ours hides Python's own
    sys.path[:] = [folder for folder in sys.path if folder != here]
    st.set_page_config(page_title="deniable", layout="wide")
    st.header("Could an attacker tell whether a record was in the training data?")
    st.html("<style>[data-testid=stMainBlockContainer] { padding-top: 2rem; }</style>")
    answers, dials = st.columns([2, 1], gap="large")  # on a phone one below the other
    with dials:
        noise = _dial("noise multiplier", "noise", 0.2, 100.0, 1.0)
        rate = _dial("sampling rate", "rate", 1e-6, 1.0, 0.01)
        steps = int(st.number_input("steps", 1, 10_000_000, 5000, step=500))
        person = int(st.number_input("records of a person, in or out together", 1, 1000, 1, key="person"))
        prior = st.slider("prior: how likely the record was in, before any attack (%)", 1, 99, 50) / 100
        fpr = _dial("false positive rate (%)", "fpr", 1e-4, 50.0, 1.0) / 100
        delta = 10.0 ** st.select_slider("δ", range(-12, -1), -5, format_func="1e{}".format)
        _calibration(rate, steps, person, fpr, delta)
    with answers:
        mechanism = dn.SubsampledGaussian(noise, rate, steps, person)
        try:
            _numbers(_curve(noise, rate, steps, person), prior, fpr, delta)
        except dn.InputError as error:
            st.error(str(error))
        st.download_button(
            "Download the report",
            lambda: dn.assess(mechanism, prior=prior, fpr=[fpr], delta=delta, meta={"date": date.today()}).to_html(),
            "report.html", "text/html", on_click="ignore",
        )  # fmt: skip


def _dial(label: str, key: str, low: float, high: float, start: float) -> float:
    """A slider over powers of ten with a field beside it for an exact value; the field is what counts."""
    options = _steps(low, high)
    slider, field = f"{key}-slider", f"{key}-field"
    st.session_state.setdefault(slider, start)
    st.session_state.setdefault(field, start)

    def to_field() -> None:
        st.session_state[field] = st.session_state[slider]

    def to_slider() -> None:
        st.session_state[slider] = min(options, key=lambda option: abs(np.log(option / st.session_state[field])))

    wide, narrow = st.columns([2, 1], vertical_alignment="bottom")
    wide.select_slider(label, options, key=slider, on_change=to_field, format_func="{:g}".format)
    exact: float = narrow.number_input(
        f"{label}, exactly", low, high, key=field, on_change=to_slider, format="%.6g", label_visibility="collapsed"
    )
    return exact


def _steps(low: float, high: float) -> list[float]:
    """Three-digit numbers from ``low`` to ``high``, each about 2.3 % above the one before."""
    exponents = np.arange(round(100 * np.log10(low)), round(100 * np.log10(high)) + 1) / 100
    return sorted({float(f"{min(max(10.0**e, low), high):.3g}") for e in exponents})


def _curve(*run: Any) -> dn.Tradeoff:
    """The curve of a run; that of the last one is kept, with what was found on it."""
    if st.session_state.get("run") != run:
        st.session_state["run"], st.session_state["curve"] = run, dn.tradeoff(dn.SubsampledGaussian(*run))
    curve: dn.Tradeoff = st.session_state["curve"]
    return curve


def _calibration(rate: float, steps: int, person: int, fpr: float, delta: float) -> None:
    """Set a target and get the noise."""
    st.subheader("Noise for a target")
    kind = st.selectbox("target", list(_RISKS), format_func=lambda name: _RISKS[name][0])
    _, usual, others = _RISKS[kind]
    start = 200 * fpr if kind == "tpr" else usual
    target = st.number_input("value", 0.0, value=start, format="%.6g", key=f"target-{kind}")

    def find() -> None:
        try:
            most = target / (1.0 if kind == "epsilon" else 100.0)
            limit = dn.Limit(**{kind: most, **others(fpr, delta)})  # type: ignore[arg-type]
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                noise = dn.calibrate(lambda s: dn.SubsampledGaussian(s, rate, steps, person), (0.2, 100.0), limit=limit)
        except dn.InputError as error:
            st.session_state["calibration"] = str(error)
            return
        st.session_state["noise-slider"] = next((s for s in _steps(0.2, 100.0) if s >= noise), 100.0)
        st.session_state["noise-field"] = noise
        least = f"smallest noise multiplier: {shown(noise, 'number', 'upper', 7)}"
        st.session_state["calibration"] = "; ".join([least, *(str(one.message) for one in said)])

    st.button("Find the noise", on_click=find)
    if message := st.session_state.get("calibration"):
        st.info(message)


def _numbers(curve: dn.Tradeoff, prior: float, fpr: float, delta: float) -> None:
    """The numbers, then the ROC; ε comes last, since it may take seconds."""
    cells = [column.empty() for column in st.columns(5)]
    percent, label = shown(fpr, "rate", "nearest"), f"ε at δ = {delta:g}"
    rates = {
        "advantage, prior 50\u00a0%": curve.advantage(),
        f"accuracy, prior {shown(prior, 'rate', 'nearest')}": curve.accuracy(prior),
        f"TPR at FPR {percent}": curve.tpr(fpr),
        f"precision at FPR {percent}": curve.precision(fpr, prior),
    }
    for cell, (name, value) in zip(cells, rates.items(), strict=False):
        cell.metric(name, shown(value, "rate", "upper"))
    cells[-1].metric(label, "…")
    st.html(_roc(roc_curve("bound", "provable upper bound", curve)))
    st.write(
        f"Unit: {curve.assumptions.line}. Provable upper bounds, each rounded up; the attacker sees every step of the "
        "training. TPR: the share of members that he finds; FPR: the share of non-members that he wrongly accuses."
    )
    cells[-1].metric(label, shown(curve.epsilon(delta), "number", "upper"))


def _roc(curve: Curve) -> str:
    """The picture of a report as an image: Streamlit lets no drawing through."""
    picture = roc_picture((curve,))
    assert picture is not None
    style = _STYLE.format(ink="#fafafa" if st.context.theme.type == "dark" else "#31333f")
    drawing = picture.svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).replace(">", f">{style}", 1)
    source = f"data:image/svg+xml;base64,{b64encode(drawing.encode()).decode()}"
    words = "ROC on logarithmic axes: the provable upper bound (line) and guessing (dots)"
    return f'<img src="{source}" alt="{words}" style="width: 100%; max-width: 46rem">'


if __name__ == "__main__":
    main()
