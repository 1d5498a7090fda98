"""Promise: of two neighbouring tables the noisy sums differ by what is charged, and every other byte is the same.

Each way to a private result is recorded on a table as people have it, and its noisy answers are replayed on neighbours
that differ in spelling, format, order, extremes, words and classes.
"""

import datetime as dt
import logging
import math
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import deniable as dn
from deniable.synthesis import pairs as made_pairs
from deniable.tables import schema
from deniable.training import clipping, fitting, levels, pairs
from deniable.workflows.train import train_table
from guarantees.replay import Recorded, Replayed, replayed

N = 80
RNG = np.random.default_rng(0)
ROWS = [
    {
        "age": str(age),
        "income": f"{income:,.2f}" if i % 5 else f"{income:.0f}",
        "town": town,
        "joined": f"20{10 + i % 10}-0{1 + i % 9}-1{i % 10}",
        "who": f"p{i // 2}",
        "ill": "yes" if age > 50 else "no",
    }
    for i, (age, income, town) in enumerate(
        zip(RNG.integers(18, 90, N), RNG.lognormal(10, 0.5, N), RNG.choice(["Ulm", "Rome", "7"], N), strict=True)
    )
]
NEIGHBOURS = {
    "spelling": {"age": " 45.0 "},
    "plus": {"age": "+45"},
    "decimal comma": {"income": "1,5"},
    "marks of other countries": {"income": "1.234,56"},
    "an odd text": {"age": "see Mueller file 4711"},
    "an empty cell": {"age": ""},
    "n.a.": {"age": "n.a."},
    "a date of another format": {"joined": "19.04.2021"},
    "year 1": {"joined": "0001-01-01"},
    "a large number": {"income": "-1e308"},
    "infinity": {"income": "inf"},
    "a fraction": {"age": "45.5"},
    "a flag": {"town": "TRUE"},
    "a new word": {"town": "Mueller's own"},
    "a number among words": {"town": "7.0"},
    "a new class": {"ill": "HIV"},
    "a class spelled otherwise": {"ill": " yes"},
    "no class": {"ill": ""},
    "a person spelled otherwise": {"who": " p1"},
    "a currency": {"income": "€ 1,200.50", "age": "12 %"},
    "a time": {"age": "12:30", "joined": "2021-04-19T02:00+02:00"},
    "a date among numbers": {"age": "2021-04-19"},
    "a number among dates": {"joined": "7"},
    "leading zeros": {"age": "007", "town": "07", "who": "007"},
    "nothing at all": dict.fromkeys(["age", "income", "town", "joined", "ill"], ""),
    "words everywhere": dict.fromkeys(["age", "income", "town", "joined", "ill"], "see Mueller"),
}


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch):
    monkeypatch.setattr(fitting, "STEPS", 10)  # each fit is repeated for every neighbour
    asked = (pairs, "_HOPELESS", 0.0), (pairs, "_FALSE", 1e12), (clipping, "INFORMATIVE", 0.0), (levels, "TOLD", 0.0)
    for module, name, value in asked:
        monkeypatch.setattr(module, name, value)  # with so few records, too: what is asked where there are many
    monkeypatch.setattr(made_pairs, "STEPS", (3, 5))
    monkeypatch.setattr(made_pairs, "MODEL_ROWS", 2000)


def classifier(frame, **options):
    model = dn.PrivateClassifier(**{"advantage": 0.1, "classes": ["no", "yes"]} | options)
    return {"model": model.fit(frame.drop(columns=["ill"]), frame["ill"]), "certificate": str(model.certificate_)}


def regressor(frame, **options):
    model = dn.PrivateRegressor(**{"advantage": 0.1, "target_range": (0, 100)} | options)
    return {"model": model.fit(frame.drop(columns=["age"]), frame["age"]), "certificate": str(model.certificate_)}


def table(frame, path, **options):
    frame.to_csv(path, index=False)
    options = {"target": "ill", "advantage": 0.1, "classes": ["no", "yes"], "holdout": 0.0} | options
    made = train_table(path, **options)
    page = "\n".join([made.public.to_json(), made.public.to_text(), made.public.to_html()])
    return {"model": made.model, "remarks": made.remarks, "page": page}


ASKED = ["count() by town", "mean(income) by ill", "mean(age)", "median(age)", "mean(joined)"]


def statistics(source, **options):
    made = dn.release_statistics(source, ASKED, advantage=0.1, **options)
    return {
        "rows": made.to_csv(),
        "certificate": str(made.certificate),
        "account": made.certificate.uses,
        "all": str(made),
    }


def statistics_of_a_file(frame, path):
    frame.to_csv(path, index=False)
    return statistics(path)


def synthesizer(source, **options):
    model = dn.PrivateSynthesizer(**{"advantage": 0.1} | options).fit(source)
    made = {"model": model, "certificate": str(model.certificate_), "marginals": model.marginals_}
    return made | {"rows": model.sample(50, rng=0), "interval": model.intervals({"age": (20, 40), "ill": "yes"})}


def synthesizer_of_a_file(frame, path):
    frame.to_csv(path, index=False)
    return synthesizer(path, targets="ill")


SCHEMA = dn.Schema(
    {
        "age": {"kind": "whole", "range": (18, 90), "missing": [45]},
        "income": {"range": (0, 1e5), "unit": "€"},
        "town": {"categories": ["Ulm", "Rome", "07"], "kind": "code"},
        "joined": {"kind": "date", "order": "month"},
        "ill": {"kind": "yes/no"},
    },
    target="ill",
    person="who",
    decimal=".",
    missing=["see Mueller"],
)
RUNS = {
    "classifier": lambda frame, _: classifier(frame.drop(columns=["who"])),
    "classifier of persons": lambda frame, _: classifier(frame, group="who"),
    "regressor": lambda frame, _: regressor(frame.drop(columns=["who"])),
    "weak classifier, all found": lambda frame, _: classifier(
        frame, advantage=WEAK, classes="discover", categories="discover"
    ),
    "weak classifier, pairs": lambda frame, _: classifier(frame, advantage=WEAK, interactions=2, group="who"),
    "weak regressor": lambda frame, _: regressor(frame, advantage=WEAK),
    "train_table": lambda frame, path: table(frame, path, drop=["who"]),
    "weak train_table": lambda frame, path: table(frame, path, advantage=WEAK, classes=None),
    "weak train_table of persons": lambda frame, path: table(frame, path, advantage=WEAK, classes=None, group="who"),
    "weak train_table of numbers": lambda frame, path: table(frame, path, target="age", advantage=WEAK, classes=None),
    "train_table of persons": lambda frame, path: table(frame, path, group="who"),
    "train_table by a schema": lambda frame, path: table(frame, path, target=None, classes=None, schema=SCHEMA),
    "release_statistics by a schema": lambda frame, _: statistics(frame, schema=SCHEMA),
    "release_statistics": lambda frame, _: statistics(frame),
    "release_statistics of a file": statistics_of_a_file,
    "synthesizer": lambda frame, _: synthesizer(frame.drop(columns=["who"]), targets="ill"),
    "synthesizer of a file": synthesizer_of_a_file,
    "weak synthesizer": lambda frame, _: synthesizer(frame, advantage=WEAK, targets=["ill", "town"]),
    "weak synthesizer of persons": lambda frame, _: synthesizer(frame, advantage=WEAK, group="who", targets="ill"),
    "synthesizer by a schema": lambda frame, _: synthesizer(frame, schema=SCHEMA),
    "weak synthesizer by a schema": lambda frame, _: synthesizer(frame, advantage=WEAK, schema=SCHEMA),
}
WEAK = 0.95  # where kinds, words and classes stand out of the noise of so few records
MU = {"": 2 * norm.ppf(0.55), "weak": 2 * norm.ppf((1 + WEAK) / 2)}  # of an advantage of 0.1, and of η = 0.05
MORE = 1 + 1e-6  # discovered words add a failure, which is not μ


def pair(change):
    """The table and its neighbour, to which a record (or person) is added."""
    return pd.DataFrame(ROWS), pd.DataFrame([{**ROWS[3], "who": "p99", **change}, *ROWS])


@pytest.mark.parametrize("run", RUNS)
def test_a_neighbour_moves_the_sums_by_what_is_charged_and_nothing_else(run, tmp_path):
    frame, charged = pd.DataFrame(ROWS), MU["weak" if run.startswith("weak") else ""] * MORE
    recorded = Recorded(lambda frame: RUNS[run](frame, tmp_path / "people.csv"), frame)
    assert "error" not in recorded.left  # two errors would be equal, too
    found = {name: recorded.replay(pair(change)[1]) for name, change in NEIGHBOURS.items()}
    assert {name: one for name, one in found.items() if one.differ or one.mu > charged} == {}
    assert recorded.replay(frame[::-1].reset_index(drop=True)) == Replayed(0.0, {})  # order leaves no trace


def test_a_replaced_record_moves_a_table_by_the_figure_for_it():
    frame = pd.DataFrame(ROWS)
    recorded, wrong = Recorded(statistics, frame), {}
    most = dn.release_statistics(frame, ASKED, advantage=0.1).certificate.replacement.of.mu
    for name, change in NEIGHBOURS.items():
        found = recorded.replay(pd.DataFrame([*ROWS[:3], {**ROWS[3], **change}, *ROWS[4:]]))
        if found.differ or not found.mu <= most:
            wrong[name] = found
    assert wrong == {}
    assert MU[""] < most < 2 * MU[""]


TYPED = {  # cells of other types, as frames, blocks and folders hold them
    "a float among texts": {"income": 3.0},
    "a whole number": {"income": 10**17 + 1, "age": 45},
    "a truth value": {"ill": True, "town": False},
    "bytes": {"town": b"Ulm", "income": b"1,5"},
    "a lone surrogate": {"town": "\ud800"},
    "a text of a surrogate's escape": {"town": repr("\ud800")},
    "a text with a zero": {"town": "Ulm\0"},
    "nanoseconds": {"joined": pd.Timestamp(1)},
    "a date": {"joined": dt.date(2021, 4, 19)},
    "a time": {"joined": dt.datetime(2021, 4, 19, 2)},
    "a decimal": {"income": Decimal("0.30"), "age": Fraction(1, 3)},
    "a list": {"town": [1, 2]},
    "nobody": {"who": None},
    "nobody's text": {"who": "n/a"},
    "a person by a number": {"who": 10**17 + 1},
}
LOCAL = dn.Schema({"income": {"decimal": ","}, "town": {"kind": "code"}, "joined": {"kind": "date"}}, person="who")
ODD_ROWS = [
    {**row, "town": ["007", "7", repr("\ud800"), "a\0x"][i % 4], "income": ["1,5", "1.234,5", "12  345"][i % 3]}
    for i, row in enumerate(ROWS)
]


def of_blocks(frame):
    model = dn.PrivateClassifier(advantage=0.1, classes=["no", "yes"], schema=LOCAL)
    return {"model": model.fit([frame[:40], frame[40:]], target="ill"), "certificate": str(model.certificate_)}


def of_objects(frame):
    model = dn.PrivateClassifier(advantage=0.1, classes=["no", "yes"], schema=LOCAL)
    return {"model": model.fit(frame.drop(columns=["ill"]), frame["ill"]), "certificate": str(model.certificate_)}


@pytest.mark.parametrize("run", [of_blocks, of_objects])
def test_a_cell_of_another_type_moves_nothing_else(run):
    frame = pd.DataFrame(ODD_ROWS).astype(object)
    recorded, wrong = Recorded(run, frame), {}
    assert "error" not in recorded.left
    for name, change in TYPED.items():
        added = pd.DataFrame(
            {key: pd.Series([cell], dtype=object) for key, cell in ({**ODD_ROWS[3], "who": "p99"} | change).items()}
        )
        found = recorded.replay(pd.concat([added, frame], ignore_index=True))
        if found.differ or found.mu > MU[""] * MORE:
            wrong[name] = found
    assert wrong == {}


def of_listed_targets(table):
    frame, targets = table
    model = dn.PrivateClassifier(advantage=0.1, classes=[False, True]).fit(frame[["age"]], targets)
    amounts = dn.PrivateRegressor(advantage=0.1, target_range=(0, 9)).fit(
        frame[["age"]], [2.0 + one for one in targets]
    )
    return {"model": model, "certificate": str(model.certificate_), "amounts": amounts}


def test_a_target_in_a_list_moves_no_other():
    frame = pd.DataFrame(ROWS)
    targets = [row["ill"] == "yes" for row in ROWS]
    recorded = Recorded(of_listed_targets, (frame, targets))
    assert "error" not in recorded.left
    for her in (True, 2, 0.5, np.float64(0)):
        found = recorded.replay((pd.DataFrame([ROWS[3], *ROWS]), [her, *targets]))
        assert not found.differ
        assert found.mu <= math.hypot(MU[""], MU[""]) * MORE


def test_targets_with_a_gap_are_read_as_the_others():
    frame, targets = pd.DataFrame(ROWS)[["age"]], pd.Series([row["ill"] == "yes" for row in ROWS])
    kinds = ("bool", "boolean", "bool[pyarrow]", "category", "object")
    fits = [
        Recorded(lambda y: {"m": dn.PrivateClassifier(classes=[False, True]).fit(frame, y)}, targets.astype(kind))
        for kind in kinds
    ]
    assert all(fit.replay(targets.astype(kind)) == Replayed(0.0, {}) for fit in fits for kind in kinds)


ODD_CELLS = ["\ud800", [1, 2], {"a": 1}, {1}, b"\xff", 10**400, np.datetime64(10**17, "s"), object(), 1 + 2j]


def test_no_cell_ends_a_training():
    frame = pd.DataFrame(ROWS).drop(columns=["who"]).astype(object)

    def run(frame):
        made = train_table(frame, target="ill", advantage=0.1, classes=["no", "yes"], holdout=0.0)
        return {"model": made.model, "remarks": made.remarks, "page": made.public.to_json()}

    recorded = Recorded(run, frame)
    for cell in ODD_CELLS:
        added = pd.DataFrame({name: pd.Series([cell], dtype=object) for name in frame})
        found = recorded.replay(pd.concat([added, frame], ignore_index=True))
        assert (found.differ, found.mu <= MU[""] * MORE) == ({}, True), cell


@pytest.mark.parametrize("run", ["classifier of persons", "train_table of persons", "release_statistics by a schema"])
@pytest.mark.parametrize(("mine", "hers"), [("7", "007"), ("AB", "ab"), ("A-1", "A\u20101"), ("ann", "Ann\u200b")])
def test_people_who_share_a_label_have_the_bound_of_a_replaced_person(run, mine, hers, tmp_path):
    frame = pd.DataFrame([{**ROWS[3], "who": mine}, *ROWS])
    other = pd.DataFrame([{**ROWS[5], "who": hers, "income": "0", "ill": "yes", "age": "89"}] * 50)
    recorded = Recorded(lambda frame: RUNS[run](frame, tmp_path / "people.csv"), frame)
    found = recorded.replay(pd.concat([other, frame], ignore_index=True))
    assert found.differ == {}
    assert found.mu <= 2 * MU[""]


def test_a_record_of_nobody_moves_nothing(tmp_path):
    recorded = Recorded(
        lambda frame: RUNS["train_table of persons"](frame, tmp_path / "people.csv"), pd.DataFrame(ROWS)
    )
    for nobody in ("", "n/a", "NaN"):
        assert recorded.replay(pair({"who": nobody})[1]) == Replayed(0.0, {})


def test_there_are_enough_neighbours():
    assert len(NEIGHBOURS) * len(RUNS) >= 300


def warned(frame):
    warnings.warn(f"{frame['town'].nunique()} different texts", UserWarning, stacklevel=2)
    return classifier(frame)


def printed(frame):
    print("records:", len(frame))
    return classifier(frame)


def logged(frame):
    logging.getLogger("deniable").warning("income up to %s", frame["income"].max())
    return classifier(frame)


def failed(frame):
    classifier(frame)
    raise ValueError(f"cannot read {frame['town'].max()}")


@pytest.mark.parametrize("leak", [warned, printed, logged, failed])
def test_negative_control_a_message_about_the_records_is_seen(leak):
    frame, neighbour = pair({"town": "Zanzibar", "income": "99999"})
    assert replayed(leak, frame, neighbour).differ


def test_negative_control_texts_by_their_first_spelling_are_seen(monkeypatch):
    read = schema.read_cells

    def by_first_spelling(raw, form):
        index, distinct = pd.factorize(pd.Series(raw, dtype=object))
        return read(np.array([str(value) for value in distinct], dtype=object)[index])

    frame = pd.DataFrame(ROWS).assign(town=pd.Series([1, "Ulm", 1.0, True] * (N // 4), dtype=object))
    other = pd.concat([frame[:1].assign(town=True), frame], ignore_index=True)
    assert replayed(towns_alone, frame, other).mu <= MU[""]
    monkeypatch.setattr(schema, "read_cells", by_first_spelling)
    assert replayed(towns_alone, frame, other).mu > 10 * MU[""]


def towns_alone(frame):
    return classifier(frame[["town", "ill"]])
