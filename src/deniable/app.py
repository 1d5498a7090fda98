"""The local page: move noise, sampling rate, steps and prior, and see at once what an attacker can reach.

Started by ``deniable app``, which binds it to 127.0.0.1 and switches Streamlit's telemetry off.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import deniable as dn
from deniable._check import FloatArray
from deniable._optional import require
from deniable._shown import shown
from deniable.report.annexing import KINDS
from deniable.report.figures import roc_figure, series_figure
from deniable.report.model import Assessment, Section
from deniable.report.sections import plain_words
from deniable.report.text import cell_text, threat_model
from deniable.report.training_run import Trained, train_table
from deniable.tables.reading import understand_any
from deniable.tables.understanding import Understood

_T = TypeVar("_T")
_FPR = np.geomspace(1e-6, 1.0, 121)
_TABLES = ["csv", "tsv", "gz", "parquet", "feather", "xlsx"]
_RARE = 100  # a predicate that fits one in 100 times as many people as there are records


@dataclass(frozen=True)
class _Risk:
    """A target that can be chosen: its words, a value to start with, and the other arguments of the target."""

    words: str
    start: float
    others: Callable[[float, float, int], dict[str, Any]]  # of the false positive rate, δ and the number of records

    def asked(self, kind: str, value: float, fpr: float, delta: float, n: int = 1000) -> dict[str, Any]:
        return {kind: value / (1.0 if kind == "epsilon" else 100.0)} | self.others(fpr, delta, n)


_RISKS = {
    "advantage": _Risk("advantage at most (%)", 10.0, lambda fpr, delta, n: {}),
    "tpr": _Risk("TPR at the chosen FPR at most (%)", 1.0, lambda fpr, delta, n: {"fpr": fpr}),
    "reconstruction": _Risk(
        "a secret of 1,000 values named with chance at most (%)", 1.0, lambda fpr, delta, n: {"baseline": 0.001}
    ),
    "singling_out": _Risk(
        "one of 1,000 records singled out with chance at most (%)", 10.0,
        lambda fpr, delta, n: {"n": n, "weight": 1 / (_RARE * n)},
    ),
    "epsilon": _Risk("ε at the chosen δ at most", 3.0, lambda fpr, delta, n: {"delta": delta}),
}  # fmt: skip
_TRAINING = {  # words, smallest and largest value in %, for a model
    "advantage": ("being right about somebody's presence more often than by a coin: advantage (%)", 1.0, 50.0),
    "tpr": ("finding members at 0.1\u00a0% wrong accusations (%)", 0.2, 20.0),
    "reconstruction": ("naming a secret of somebody that has 1,000 values (%)", 0.2, 20.0),
    "singling_out": ("singling out one person by a rare description (%)", 2.0, 50.0),
}


def main() -> None:
    """Draw the page."""
    st.set_page_config(page_title="deniable", layout="wide")
    st.header("Could an attacker tell whether a record was in the training data?")
    run, data, train = st.tabs(["A DP-SGD run", "A table of records", "A private model"])
    with run:
        _run_page()
    with data:
        _data_page()
    with train:
        _train_page()


@st.fragment  # a moved slider redraws this page only
def _run_page() -> None:
    left, right = st.columns([1, 2], gap="large")
    with left:
        noise = _dial("noise multiplier", "noise", 0.2, 100.0, 1.0)
        rate = _dial("sampling rate", "rate", 1e-6, 1.0, 0.01)
        steps = int(st.number_input("steps", 1, 10_000_000, 5000, step=500))
        person = int(st.number_input("records of a person, in or out together", 1, 1000, 1, key="person"))
        prior = st.slider("prior: how likely the record was in, before any attack (%)", 1, 99, 50) / 100
        fpr = _dial("false positive rate (%)", "fpr", 1e-4, 50.0, 1.0) / 100
        delta = 10.0 ** st.select_slider("δ", range(-12, -1), -5, format_func="1e{}".format)
        _calibration(rate, steps, person, fpr, delta)
    with right:
        mechanism = dn.SubsampledGaussian(noise, rate, steps, person)
        try:
            _numbers(_worker(noise, rate, steps, person), person, prior, fpr, delta)
        except dn.InputError as error:
            st.error(str(error))
        _downloads(lambda: dn.assess(mechanism, prior=prior, fpr=[fpr], delta=delta), "run")


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


@dataclass(frozen=True)
class _Worker:
    """A trade-off and the one thread that asks it: it remembers what was costly to find, and is no place for two."""

    tradeoff: dn.Tradeoff
    thread: ThreadPoolExecutor

    def ask(self, question: Callable[[dn.Tradeoff], _T]) -> Future[_T]:
        return self.thread.submit(question, self.tradeoff)


@st.cache_resource(max_entries=64, show_spinner=False)
def _worker(noise: float, rate: float, steps: int, person: int) -> _Worker:
    curve = dn.tradeoff(dn.SubsampledGaussian(noise, rate, steps, person))
    return _Worker(curve, ThreadPoolExecutor(max_workers=1))


def _calibration(rate: float, steps: int, person: int, fpr: float, delta: float) -> None:
    """Set a target and get the noise."""
    st.subheader("Noise for a target")
    kind = st.selectbox("target", list(_RISKS), format_func=lambda name: _RISKS[name].words)
    start = 200 * fpr if kind == "tpr" else _RISKS[kind].start
    target = st.number_input("value", 0.0, value=start, format="%.6g", key=f"target-{kind}")

    def find() -> None:
        asked = _RISKS[kind].asked(kind, target, fpr, delta)
        try:
            noise = dn.calibrate(lambda s: dn.SubsampledGaussian(s, rate, steps, person), (0.2, 100.0), **asked)
        except dn.InputError as error:
            st.session_state["calibration"] = str(error)
            return
        st.session_state["noise-slider"] = next((s for s in _steps(0.2, 100.0) if s >= noise), 100.0)
        st.session_state["noise-field"] = noise
        st.session_state["calibration"] = f"smallest noise multiplier: {shown(noise, 'number', 'upper', 7)}"

    st.button("Find the noise", on_click=find)
    if message := st.session_state.get("calibration"):
        st.info(message)


def _numbers(worker: _Worker, person: int, prior: float, fpr: float, delta: float) -> None:
    """The numbers, each on the page as soon as it is known, then the ROC; ε may come after it where it is slow."""
    cells = [column.empty() for column in st.columns(5)]
    chart, words = st.empty(), st.empty()
    percent = shown(fpr, "rate", "nearest")
    rates: dict[str, Callable[[dn.Tradeoff], float]] = {
        "advantage, prior 50\u00a0%": lambda t: t.advantage(),
        f"accuracy, prior {shown(prior, 'rate', 'nearest')}": lambda t: t.accuracy(prior),
        f"TPR at FPR {percent}": lambda t: t.tpr(fpr),
        f"precision at FPR {percent}": lambda t: t.precision(fpr, prior),
    }
    for cell, (label, question) in zip(cells, rates.items(), strict=False):
        cell.metric(label, shown(_known(worker.ask(question), cell, label), "rate", "upper"))
    label = f"ε at δ = {delta:g}"
    curve = _known(worker.ask(lambda t: t.sketch().tpr(_FPR)), cells[-1], label)
    accused, found, _ = _known(worker.ask(lambda t: plain_words(t, [fpr]).rows[0]), cells[-1], label)
    epsilon = worker.ask(lambda t: t.epsilon(delta))

    def show_epsilon() -> None:
        cells[-1].metric(label, shown(_known(epsilon, cells[-1], label), "number", "upper"))

    ready = wait([epsilon], timeout=0.08).done  # while a slow one is sought, the picture is drawn
    if ready:
        show_epsilon()
    chart.plotly_chart(_roc(curve), width="stretch")
    unit = "one record" if person == 1 else f"a person with all of {person} records"
    words.write(
        f"Provable upper bounds, each rounded up, for adding or removing {unit}; the attacker sees every step of "
        f"the training. In plain words: an attacker who wrongly accuses {accused} non-members finds {found} members."
    )
    if not ready:
        show_epsilon()


def _known(answer: Future[_T], cell: DeltaGenerator, label: str) -> _T:
    """Return the answer; the ``cell`` shows dots meanwhile, and a newer change need not wait for it."""
    try:
        while True:
            try:
                return answer.result(timeout=0.1)
            except TimeoutError:
                cell.metric(label, "…")  # Streamlit starts anew here if something was moved
    finally:
        answer.cancel()


def _roc(tpr: FloatArray) -> go.Figure:
    figure = go.Figure(
        [
            go.Scatter(x=100 * _FPR, y=100 * tpr, name="provable upper bound", line={"width": 3}),
            go.Scatter(x=100 * _FPR, y=100 * _FPR, name="guessing", line={"dash": "dot", "color": "grey"}),
        ]
    )
    figure.update_xaxes(type="log", title="false positive rate (%)", exponentformat="none", dtick=1)
    figure.update_yaxes(type="log", title="true positive rate (%)", exponentformat="none", dtick=1)
    figure.update_layout(height=430, margin={"t": 20, "b": 40}, legend={"orientation": "h", "y": 1.1})
    ink = "#fafafa" if st.context.theme.type == "dark" else "#31333f"  # Streamlit's own grey is too faint to read
    for axis in (figure.update_xaxes, figure.update_yaxes):
        axis(tickfont_color=ink, title_font_color=ink)
    return figure


@st.fragment
def _train_page() -> None:
    """From a table to a private model: what was understood, a target, the decision, everything to download."""
    st.write("The table stays on this machine. You get a model from which nobody can tell who was in the table.")
    upload = st.file_uploader("the table", type=_TABLES, key="train-file")
    if upload is None:
        return
    try:
        table = _understood(upload.name, upload.getvalue())
    except Exception as error:  # whatever a stranger's file does, the page stays and says what happened
        st.error(_words(error))
        return
    st.write(f"**What was understood**: {len(table.frame):,} rows, {len(table.columns)} columns")
    st.dataframe(
        [{"column": c.name, "kind": c.kind, "missing": f"{100 * c.missing:.2g} %" if c.missing else "",
          "what was understood": c.reason or "; ".join(c.notes)} for c in table.columns],
        hide_index=True,
    )  # fmt: skip
    for problem in table.problems:
        st.error(problem)
    names = [c.name for c in table.columns]
    target = st.selectbox("what to predict", names, index=len(names) - 1, key="train-target")
    goal = _training_target(len(table.frame))
    if st.button("Train", key="train-button"):
        st.session_state.pop("trained", None)
        try:
            with st.spinner("fitting, measuring on held-out records, writing the report", show_time=True):
                st.session_state["trained"] = _train_upload(upload, target, goal)
        except Exception as error:  # as above
            st.error(_words(error))
    if made := st.session_state.get("trained"):
        _trained(made)


def _training_target(rows: int) -> dict[str, Any]:
    """Let the risk be chosen from a list and its size by a slider; return the target of a fit."""
    kind = st.selectbox("what to limit", list(_TRAINING), format_func=lambda k: _TRAINING[k][0], key="train-risk")
    _, least, most = _TRAINING[kind]
    step = 1.0 if least >= 1 else 0.1
    value = st.slider("at most (%)", least, most, _RISKS[kind].start, step, format="%g", key=f"train-{kind}")
    n = 10 ** len(str(rows))  # a power of ten above the number of rows, which is not made public
    if kind == "advantage":
        st.write(f"Nobody will be right about anybody's presence more often than {50 + value / 2:g} % of the time.")
    if kind == "singling_out":
        st.write(f"A description that fits one in {_RARE * n:,} people, read off the model, fits exactly one of up to "
                 f"{n:,} records with at most this chance.")  # fmt: skip
    return _RISKS[kind].asked(kind, value, fpr=0.001, delta=0.0, n=n)


def _trained(made: Trained) -> None:
    """The decision, usefulness and the downloads of a fit."""
    _decision(made.assessment)
    if made.usefulness is not None:
        st.code("\n".join(made.usefulness.lines()), language=None)
    _downloads(lambda: made.assessment, "trained")
    model, annex = st.columns(2)
    model.download_button(
        "Download the model (skops)", lambda: _model_file(made), "model.skops", "application/octet-stream",
        key="trained-model", on_click="ignore",
    )  # fmt: skip
    kind = annex.selectbox("annex for", KINDS, key="trained-kind")
    annex.download_button(
        "Download the annex", lambda: made.assessment.annex(kind),
        f"{kind}.json" if kind == "dp-registry" else f"{kind}.md", "text/plain", key="trained-annex", on_click="ignore",
    )  # fmt: skip


def _decision(made: Assessment) -> None:
    """What the policy says, in its colour, with every rule and what would change it."""
    decision = made.decision
    if decision is None:
        return
    box = {"good": st.success, "bad": st.error}.get(made.tone, st.warning)
    box(f"**{decision.outcome.capitalize()}** ({decision.policy.name}). {decision.reason}")
    rows = [
        f"- {'→ ' if rule.key == decision.decided_by else ''}*{rule.outcome}*: {rule.why}" for rule in decision.rules
    ]
    st.write("\n".join(rows))
    if decision.changes:
        st.write("**What would change it**\n" + "\n".join(f"- {change}" for change in decision.changes))
    st.write("**How the numbers relate**\n" + "\n".join(f"- {sentence}" for sentence in decision.relation))


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, dn.InputError) else f"{type(error).__name__}: {error}"


@st.cache_data(max_entries=4, show_spinner="reading the table")
def _understood(name: str, content: bytes) -> Understood:
    with _written(name, content) as path:
        return understand_any(path, None, strict=False)


def _train_upload(upload: Any, target: str, goal: dict[str, Any]) -> Trained:
    with _written(upload.name, upload.getvalue()) as path:
        return train_table(path, target=target, title=f"A private model of {target} on {upload.name}", **goal)


def _model_file(made: Trained) -> bytes:
    skops: Any = require("skops.io", purpose="writing a .skops model")
    return bytes(skops.dumps(made.model))


@contextmanager
def _written(name: str, content: bytes) -> Iterator[Path]:
    """An uploaded file in a folder of its own, for as long as it is read."""
    suffix = "".join(Path(name).suffixes[-2:]) or ".csv"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"upload{suffix}"
        path.write_bytes(content)
        yield path


@st.fragment
def _data_page() -> None:
    """A table in, a profile out; whatever is uploaded, the page stays."""
    st.write("The table stays on this machine. It needs a column with two values to predict.")
    upload = st.file_uploader("CSV or Parquet", type=["csv", "parquet", "gz", "tsv"])
    target = st.text_input("column to predict")
    drop = st.text_input("columns to leave out, separated by commas")
    epsilon = st.number_input("ε of the release", 0.01, 100.0, 1.0)
    regularization = 10.0 ** st.select_slider("regularization Λ", range(-4, 1), -2, format_func="1e{}".format)
    if st.button("Assess", disabled=upload is None):
        st.session_state.pop("table", None)
        st.session_state.pop("table-error", None)
        try:
            with st.spinner("fitting, profiling and attacking"):
                st.session_state["table"] = _assess_upload(upload, target, drop, epsilon, regularization)
        except Exception as error:  # whatever a stranger's file does, the page stays and says what happened
            st.session_state["table-error"] = upload.name if upload else "", _words(error)
    name, words = st.session_state.get("table-error", ("", ""))
    if words and upload is not None and upload.name == name:  # until another file or another press
        st.error(words)
    if made := st.session_state.get("table"):
        _assessment(made)


def _assessment(made: Assessment) -> None:
    st.subheader(made.title)
    _decision(made)
    st.write(made.headline)
    _downloads(lambda: made, "table")
    if roc := roc_figure(made):
        st.plotly_chart(go.Figure(roc), width="stretch", key="table-roc")
    for section in made.sections:
        _section(section)
    st.subheader("The game in which these numbers hold")
    st.write("\n".join(f"- **{name}**: {text}" for name, text in threat_model(made)))
    st.subheader("What this does not cover")
    st.write("\n".join(f"- {item}" for item in (*made.not_covered, *made.warnings)))


def _section(section: Section) -> None:
    st.subheader(section.title)
    st.write(section.summary)
    st.table(
        [{"number": n.label, "value": n.shown, "what it is": n.kind, "meaning": n.meaning} for n in section.numbers]
    )
    for series in section.series:
        st.plotly_chart(go.Figure(series_figure(series)), width="stretch", key=series.key)
        st.write(series.title)
    for grid in section.grids:
        st.write(f"**{grid.title}**")
        st.table([dict(zip(grid.columns, map(cell_text, row), strict=True)) for row in grid.rows])


def _assess_upload(upload: Any, target: str, drop: str, epsilon: float, regularization: float) -> Assessment:
    with _written(upload.name, upload.getvalue()) as path:
        columns = tuple(name.strip() for name in drop.split(",") if name.strip())
        made: Assessment = dn.assess(
            path, target=target or None, drop=columns, epsilon=epsilon, regularization=regularization,
            title=f"Logistic regression on {upload.name}",
        )  # fmt: skip
        return made


def _downloads(make: Callable[[], Assessment], key: str) -> None:
    """Offer the report; it is made when it is asked for."""
    page, numbers = st.columns(2)
    page.download_button(
        "Download the report (HTML)", lambda: make().to_html(), "report.html", "text/html",
        key=f"{key}-html", on_click="ignore",
    )  # fmt: skip
    numbers.download_button(
        "Download the numbers (JSON)", lambda: make().to_json(), "report.json", "application/json",
        key=f"{key}-json", on_click="ignore",
    )  # fmt: skip


if __name__ == "__main__":
    main()
