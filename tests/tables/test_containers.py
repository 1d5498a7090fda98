"""Whatever holds a table: one way in, the same cells, the same bytes of a fit and of a release."""

import datetime as dt
import json
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import deniable as dn
from deniable import InputError
from deniable.mechanisms.core import A_LINE
from deniable.tables import Schema, as_table, read_cells, understand
from deniable.testing import insecure_noise
from oracles.sheets import ods, xlsx

N = 240
RNG = np.random.default_rng(0)
COLUMNS = {
    "age": RNG.integers(18, 90, N),
    "wage": RNG.lognormal(8, 1, N).round(2),
    "town": RNG.choice(["Ulm", "Köln", "Rome, Texas"], N),
    "ill": RNG.choice(["yes", "no"], N),
}
FRAME = pd.DataFrame(COLUMNS)
ARROW = pa.table({name: pa.array(values.tolist()) for name, values in COLUMNS.items()})
ROWS = FRAME.to_dict("records")
NAMES = Schema({name: {} for name in COLUMNS}, target="ill")


def polars(lazy=False):
    frame = pytest.importorskip("polars").DataFrame({name: values.tolist() for name, values in COLUMNS.items()})
    return frame.lazy() if lazy else frame


def duck():
    found = pytest.importorskip("duckdb").connect()
    found.register("people", ARROW)
    return found.sql("select * from people")


def file(folder, ending, write):
    path = folder / f"people{ending}"
    content = write() if callable(write) else write
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def stata(folder):
    FRAME.to_stata(folder / "people.dta", write_index=False, version=118)
    return folder / "people.dta"


def parquet(folder):
    FRAME.to_parquet(folder / "people.parquet", index=False)
    return folder / "people.parquet"


def zipped(folder):
    FRAME.to_csv(folder / "people.csv.zip", index=False)
    return folder / "people.csv.zip"


SHEET = [list(COLUMNS), *([value.item() if hasattr(value, "item") else value for value in row] for row in FRAME.values)]
STRUCTURED = np.rec.fromarrays(list(COLUMNS.values()), names=list(COLUMNS))
KINDS = {
    "pandas": lambda _: FRAME,
    "another index": lambda _: FRAME.set_index(pd.Index(RNG.permutation(N))),
    "Polars": lambda _: polars(),
    "lazy Polars": lambda _: polars(lazy=True),
    "Arrow": lambda _: ARROW,
    "a reader of Arrow": lambda _: ARROW.to_reader(max_chunksize=50),
    "DuckDB": lambda _: duck(),
    "Dask": lambda _: pytest.importorskip("dask.dataframe").from_pandas(FRAME, npartitions=3, sort=False),
    "blocks": lambda _: [FRAME[:7], FRAME[7:]],
    "blocks of Arrow": lambda _: iter(ARROW.to_batches(max_chunksize=50)),
    "a function": lambda _: lambda: iter([polars()]),
    "a dict": lambda _: {name: values.tolist() for name, values in COLUMNS.items()},
    "a dict of arrays": lambda _: {"age": ARROW["age"], "wage": FRAME["wage"][::1], **dict([*COLUMNS.items()][2:])},
    "a structured array": lambda _: STRUCTURED,
    "records": lambda _: ROWS,
    "Parquet": parquet,
    "CSV": lambda folder: file(folder, ".csv", FRAME.to_csv(index=False)),
    "zipped": zipped,
    "Stata": stata,
    "lines of JSON": lambda folder: file(
        folder, ".jsonl", "\n".join(map(json.dumps, json.loads(FRAME.to_json(orient="records"))))
    ),
    "a workbook": lambda folder: file(folder, ".xlsx", xlsx({"people": SHEET})),
    "a spreadsheet": lambda folder: file(folder, ".ods", ods({"people": SHEET})),
}


@pytest.mark.parametrize("kind", ["BIT", "BIGNUM"])
def test_types_of_which_a_database_gives_bytes_are_refused(kind):
    """Their bytes were read as texts."""
    query = pytest.importorskip("duckdb").connect().sql(f"select '101'::{kind} as x from range(9)")
    with pytest.raises(dn.InputError, match=r"no column of Python objects, BIT or BIGNUM.*convert it"):
        dn.tables.understand(query)


def test_a_type_that_arrow_lacks_is_refused_by_its_name():
    """A BIGNUM that reached Arrow was read as the text that its bytes are."""
    held = pa.table(pytest.importorskip("duckdb").connect().sql("select '101'::BIGNUM as x from range(9)"))
    with pytest.raises(dn.InputError, match=r"of a type that Arrow lacks.*type_name=bignum.*cast it to text"):
        dn.tables.understand(held)


def in_records(text):
    """Of a text file a line is hidden, and the certificate says so."""
    text = text.replace(f"; {A_LINE}", "").replace("; a record is a line of a file", "")
    text = re.sub(r',?\s*"?[Aa] record is a line[^"\n]*"?', "", text)
    return text.replace("lines of the file", "records").replace("line of the file", "record")


def fitted(table):
    with insecure_noise(np.random.default_rng(3)):
        model = dn.PrivateClassifier(advantage=0.4, schema=NAMES, classes=["no", "yes"]).fit(table)
    return model


def released(table):
    with insecure_noise(np.random.default_rng(3)):
        return dn.release_statistics(
            table, ["mean(wage) by town", "median(age)"], advantage=0.4, schema=NAMES
        ).to_json()


@pytest.fixture(scope="module")
def expected():
    model = fitted(FRAME)
    return (
        model.predict_proba(FRAME.drop(columns="ill")),
        str(model.certificate_),
        released(FRAME),
        understand(FRAME, "ill").columns,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bytes_of_a_fit_and_of_a_release(kind, tmp_path, expected):
    made = lambda: KINDS[kind](tmp_path)  # noqa: E731  (a reader is read once)
    chances, certificate, statistics, columns = expected
    model = fitted(made())
    assert in_records(str(model.certificate_)) == certificate
    assert ("line of the file" in str(model.certificate_)) == (kind in ("CSV", "zipped", "lines of JSON"))
    assert model.predict_proba(FRAME.drop(columns="ill")).tobytes() == chances.tobytes()
    assert in_records(released(made())) == statistics
    assert understand(made(), "ill", schema=NAMES).columns == columns
    if kind not in ("a reader of Arrow", "blocks of Arrow", "blocks", "a function", "Dask"):
        assert model.predict_proba(_features(made())).tobytes() == chances.tobytes()


def _features(table):
    """A table to predict from need not lack the target, which no model reads."""
    found = as_table(table, NAMES)
    return found.drop(columns="ill")


def test_synthetic_tables_are_attacked_in_any_container():
    half = FRAME[: N // 2], FRAME[N // 2 :]
    expected = dn.attack_synthetic(half[0], *half).audit().copies.copied_members
    released = pa.table({name: pa.array(half[0][name].tolist()) for name in FRAME})
    for table in (released, released.to_reader(), half[0].to_dict("list"), lambda: iter([half[0]])):
        assert dn.attack_synthetic(table, *half).audit().copies.copied_members == expected > 100


def test_a_profile_reads_any_container(tmp_path):
    frame = pd.DataFrame({"a": RNG.uniform(-0.3, 0.3, N), "b": RNG.uniform(-0.3, 0.3, N), "y": [0, 1] * (N // 2)})
    options = {"regularization": 1e-2, "rng": 0}
    expected = dn.privacy_profile(frame[["a", "b"]].to_numpy(), frame["y"], **options).distance
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    for table in (arrow, arrow.to_reader(), frame.to_dict("list"), frame.to_records(index=False)):
        np.testing.assert_allclose(dn.privacy_profile(table, target="y", **options).distance, expected, rtol=1e-9)
    features = {"a": frame["a"].tolist(), "b": frame["b"].tolist()}
    np.testing.assert_allclose(dn.privacy_profile(features, frame["y"], **options).distance, expected, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_attacks_and_profiles_give_the_same_bytes(kind, tmp_path, attacked):
    made = {"target": "ill", "schema": NAMES}
    scores, distance = attacked
    found = dn.attack_estimator(TREE, KINDS[kind](tmp_path), n_shadows=4, method="loss", rng=0, **made)
    assert found.member_scores.tobytes() == scores.tobytes()
    table, _ = dn.tables.apart(None, "ill", as_table(FRAME))
    again = dn.attack_model(
        clone(TREE).fit(table, FRAME["ill"]),
        KINDS[kind](tmp_path),
        None,
        MEMBER,
        n_shadows=4,
        method="loss",
        rng=0,
        **made,
    )
    assert len(again.member_scores) == MEMBER.sum()
    assert dn.privacy_profile(KINDS[kind](tmp_path), **made, **LONG).distance.tobytes() == distance.tobytes()


TREE = make_pipeline(
    make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["town"]), remainder="passthrough"),
    DecisionTreeClassifier(random_state=0),
)
MEMBER = np.arange(N) % 2 == 0
LONG = {"regularization": 0.01, "mechanism": dn.OutputPerturbation(epsilon=1.0, row_bound=1e6), "rng": 0}


@pytest.fixture(scope="module")
def attacked():
    scores = dn.attack_estimator(
        TREE, FRAME.drop(columns="ill"), FRAME["ill"], n_shadows=4, method="loss", rng=0
    ).member_scores
    return scores, dn.privacy_profile(FRAME, target="ill", **LONG).distance


def test_labels_are_given_once():
    with pytest.raises(InputError, match="give it or y, not both"):
        dn.attack_estimator(TREE, FRAME, FRAME["ill"], target="ill")
    with pytest.raises(InputError, match="one label per row of X"):
        dn.attack_estimator(TREE, FRAME)
    with pytest.raises(InputError, match="did you mean 'ill'"):
        dn.attack_estimator(TREE, FRAME, target="il")


def test_the_same_records_on_both_sides_are_refused():
    """They were called consistent with any promise: equal scores on both sides show no difference."""
    X, y = RNG.normal(size=(60, 3)), RNG.integers(0, 2, 60)
    member, tree = np.arange(120) < 60, DecisionTreeClassifier().fit(X, y)
    for rows in (np.tile(X, (2, 1)), csr_array(np.tile(X, (2, 1))), pd.DataFrame(np.tile(X, (2, 1)))):
        with pytest.raises(InputError, match="members and nonmembers must hold different records"):
            dn.attack_model(tree, rows, np.tile(y, 2), member)
    once = np.vstack([X, X + 1])
    assert len(dn.attack_model(tree, once, np.tile(y, 2), member, n_shadows=4, method="loss").member_scores) == 60


def test_no_record_says_which_columns_there_are(tmp_path):
    lines = "\n".join(['{"a": 1, "b": "x"}', '["no", "object"]', '{"a": 2, "c": [1]}', "{broken"])
    path = file(tmp_path, ".jsonl", lines)
    for source in (path, [{"a": 1, "b": "x"}, {"a": 2}]):
        with pytest.raises(InputError, match=r"no header.*schema.*columns="):
            understand(source)
    for read in (
        lambda: understand(path, columns=["a", "b"], strict=False),
        lambda: understand(path, schema=Schema({"a": {}, "b": {}}), strict=False),
    ):
        found = read()
        assert [column.name for column in found.columns] == ["a", "b"]
        assert found.odd == (2, 4)


ODD = {
    "lengths": ({"a": [1, 2], "b": [1]}, "one length"),
    "a text": ({"a": "12"}, "must be a list"),
    "a matrix": ({"a": np.zeros((2, 2))}, "one cell a record"),
    "a number": (7, "must be a path, a data frame"),
    "levels": (pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])), "levels of names"),
}


@pytest.mark.parametrize("name", ODD)
def test_what_holds_no_table_is_named(name):
    table, words = ODD[name]
    with pytest.raises(InputError, match=words):
        understand(table)
    with pytest.raises((InputError, ValueError)):
        dn.release_statistics(table, "count()", advantage=0.1)


def test_types_that_arrow_lacks_are_named():
    polars = pytest.importorskip("polars")
    wide = polars.DataFrame({"a": polars.Series([1, 2], dtype=polars.Int128)})
    with pytest.raises(InputError, match="Int128"):
        understand(wide)
    with pytest.raises(InputError, match="Python objects"):
        understand(polars.DataFrame({"a": polars.Series([object()], dtype=polars.Object)}))
    duckdb = pytest.importorskip("duckdb")
    with pytest.raises(InputError, match="query fails") as refused:
        understand(duckdb.sql("select 'see Mueller'::int as a"))
    assert "Mueller" not in str(refused.value)


def test_intervals_of_a_query_are_durations():
    query = pytest.importorskip("duckdb").sql("select interval '1 month 3 days 12 hours' as a union all select null")
    assert read_cells(as_table(query)["a"]).spelled.tolist() == ["33.5", None]


def test_what_lies_below_a_mask_is_no_cell():
    hidden = np.ma.masked_array([7, 8, 9], mask=[0, 1, 0])
    assert read_cells(as_table({"a": hidden})["a"]).spelled.tolist() == ["7", None, "9"]


def test_cells_of_a_dict_keep_their_types():
    cells = [1, None, 2**62 + 1, "007", True, dt.date(2021, 4, 19), Decimal("1.10")]
    assert as_table({"a": cells})["a"].tolist() == cells
    mixed = as_table({"a": pd.Series([1, 2], index=[5, 6]), "b": ["x", "y"]})
    assert mixed.values.tolist() == [[1, "x"], [2, "y"]]


def test_a_stream_that_does_not_fit_is_not_held():
    """The reader yields batch after batch; no two are alive at a time, beside what is written."""
    alive = []

    def batches():
        for i in range(40):
            batch = pa.record_batch({"x": np.full(30_000, float(i))})
            alive.append(pa.total_allocated_bytes())
            yield batch

    table = as_table(pa.RecordBatchReader.from_batches(pa.schema({"x": pa.float64()}), batches()))
    assert len(table) == 1_200_000
    assert max(alive) - alive[0] < 5e6
    assert table["x"].iloc[[0, -1]].tolist() == [0.0, 39.0]


def test_a_set_has_no_order_and_is_no_column():
    for cells in ({1, 2, 3}, frozenset("ab")):
        with pytest.raises(InputError, match="must be a list"):
            as_table({"a": cells})
