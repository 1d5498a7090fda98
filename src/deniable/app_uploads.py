"""The local page's way from an uploaded table to a private model."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

import deniable as dn
from deniable._optional import require
from deniable.report.annexing import KINDS
from deniable.report.model import Assessment
from deniable.tables.reading import understand_any
from deniable.tables.understanding import Understood
from deniable.workflows.training_run import Trained, train_table

_TABLES = ["csv", "tsv", "gz", "parquet", "feather", "xlsx"]
_HEIGHT = 900  # of a report on the page, in pixels
_RARE = 100  # a predicate that fits one in 100 times as many people as there are records


@dataclass(frozen=True)
class Risk:
    """A target that can be chosen: its words, a value to start with, and the other arguments of the target."""

    words: str
    start: float
    others: Callable[[float, float, int], dict[str, Any]]  # of the false positive rate, δ and the number of records

    def asked(self, kind: str, value: float, fpr: float, delta: float, n: int = 1000) -> dn.Limit:
        """The limit that is asked for; ``value`` is a percentage, but for ε."""
        return dn.Limit(**{kind: value / (1.0 if kind == "epsilon" else 100.0)} | self.others(fpr, delta, n))


RISKS = {
    "advantage": Risk("advantage at most (%)", 10.0, lambda fpr, delta, n: {}),
    "tpr": Risk("TPR at the chosen FPR at most (%)", 1.0, lambda fpr, delta, n: {"fpr": fpr}),
    "reconstruction": Risk(
        "a secret of 1,000 values named with chance at most (%)", 1.0, lambda fpr, delta, n: {"baseline": 0.001}
    ),
    "singling_out": Risk(
        "one of 1,000 records singled out with chance at most (%)", 10.0,
        lambda fpr, delta, n: {"n": n, "weight": 1 / (_RARE * n)},
    ),
    "epsilon": Risk("ε at the chosen δ at most", 3.0, lambda fpr, delta, n: {"delta": delta}),
}  # fmt: skip
_TRAINING = {  # words, smallest and largest value in %, for a model
    "advantage": ("being right about somebody's presence at even odds: advantage over a coin (%)", 1.0, 50.0),
    "tpr": ("finding members at 0.1\u00a0% wrong accusations (%)", 0.2, 20.0),
    "reconstruction": ("naming a secret of somebody that has 1,000 values (%)", 0.2, 20.0),
    "singling_out": ("singling out one person by a rare description (%)", 2.0, 50.0),
}


@st.fragment
def train_page() -> None:
    """From a table to a private model: what was understood, a target, the decision, everything to download."""
    st.write(
        "The table stays on this machine. You get a model with a proof that it reveals "
        "almost nothing about who was in the table."
    )
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
    limit = _training_target(len(table.frame))
    if st.button("Train", key="train-button"):
        st.session_state.pop("trained", None)
        try:
            with st.spinner("fitting, measuring on held-out records, writing the report", show_time=True):
                st.session_state["trained"] = _train_upload(upload, target, limit)
        except Exception as error:  # as above
            st.error(_words(error))
    if made := st.session_state.get("trained"):
        _trained(made)


def _training_target(rows: int) -> dn.Limit:
    """Let the risk be chosen from a list and its size by a slider; return the limit of a fit."""
    kind = st.selectbox("what to limit", list(_TRAINING), format_func=lambda k: _TRAINING[k][0], key="train-risk")
    _, least, most = _TRAINING[kind]
    step = 1.0 if least >= 1 else 0.1
    value = st.slider("at most (%)", least, most, RISKS[kind].start, step, format="%g", key=f"train-{kind}")
    n = 10 ** len(str(rows))  # a power of ten above the number of rows, which is not made public
    if kind == "advantage":
        st.write(f"At even odds, no attacker is right about anybody's presence more often than {50 + value / 2:g} %.")
    if kind == "singling_out":
        st.write(f"A description that fits one in {_RARE * n:,} people, read off the model, fits exactly one of up to "
                 f"{n:,} records with at most this chance.")  # fmt: skip
    return RISKS[kind].asked(kind, value, fpr=0.001, delta=0.0, n=n)


def _trained(made: Trained) -> None:
    """The downloads of a fit, and its report."""
    downloads(lambda: made.assessment, "trained")
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
    st.iframe(made.assessment.to_html(), height=_HEIGHT)


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, dn.InputError) else f"{type(error).__name__}: {error}"


@st.cache_data(max_entries=4, show_spinner="reading the table")
def _understood(name: str, content: bytes) -> Understood:
    with _written(name, content) as path:
        return understand_any(path, None, strict=False)


def _train_upload(upload: Any, target: str, limit: dn.Limit) -> Trained:
    with _written(upload.name, upload.getvalue()) as path:
        return train_table(path, target=target, limit=limit, title=f"A private model of {target} on {upload.name}")


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


def downloads(make: Callable[[], Assessment], key: str) -> None:
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
