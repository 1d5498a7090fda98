"""A column has one name, whatever holds the table and whoever asks: a text without blanks around it."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import deniable as dn
from deniable.tables import draft_schema, name_of, open_table, understand
from oracles.sheets import xlsx

pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({" sp ": RNG.normal(size=300), "y": RNG.choice(["a", "b"], 300)})


def _written(ending):
    def held(folder):
        path = folder / f"n.{ending}"
        if ending == "xlsx":
            path.write_bytes(xlsx({"people": [list(FRAME), *FRAME.values.tolist()]}))
        else:
            write = {"csv": FRAME.to_csv, "parquet": FRAME.to_parquet}.get(ending, FRAME.to_feather)
            write(path, **{} if ending == "feather" else {"index": False})
        return path

    return held


CONTAINERS = {
    "pandas": lambda _: FRAME,
    "polars": lambda _: pl.from_pandas(FRAME),
    "arrow": lambda _: pa.Table.from_pandas(FRAME),
    "dict": lambda _: {name: FRAME[name] for name in FRAME},
    "blocks": lambda _: [FRAME[:100], FRAME[100:]],
    "records": lambda _: FRAME.to_dict("records"),
    **{ending: _written(ending) for ending in ("csv", "parquet", "feather", "xlsx")},
}
SCHEMAS = [dn.Schema({name: {"range": (-3, 3)}, "y": {}}, target=" y") for name in ("sp", " sp ")]


def _fitted(data, schema, name):
    model = dn.PrivateClassifier(schema=schema, classes=["a", "b"]).fit(data)
    assert np.array_equal(model.predict(FRAME[[" sp "]]), model.predict(FRAME[[" sp "]].set_axis(["sp"], axis=1)))
    return model.feature_names_in_.tolist()


ENTRIES = {
    "open": lambda data, schema, name: list(open_table(data, schema).frame.columns)[:1],
    "check": lambda data, schema, name: [c.name for c in understand(data, "y ", schema=schema).columns],
    "draft": lambda data, schema, name: ["sp"] * ('[columns."sp"]' in draft_schema(data, "y ", schema=schema)),
    "fit": _fitted,
    "statistics": lambda data, schema, name: [
        *dn.release_statistics(data, [f'mean("{name}")'], advantage=0.1, schema=schema).statistics[0].columns
    ],
    "synthesis": lambda data, schema, name: (
        dn.PrivateSynthesizer(schema=schema, targets=" y ").fit(data).feature_names_in_.tolist()[:1]
    ),
}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("container", CONTAINERS)
def test_blanks_around_a_name_are_none_of_it(container, entry, tmp_path):
    for schema, name in zip(SCHEMAS, (" sp ", "sp"), strict=True):
        assert ENTRIES[entry](CONTAINERS[container](tmp_path), schema, name) == ["sp"]


@pytest.mark.parametrize(
    "made",
    [
        open_table,
        lambda frame: open_table([frame]),
        lambda frame: dn.PrivateClassifier().fit(frame, RNG.choice([0, 1], 300)),
        lambda frame: dn.release_statistics(frame, "count()", advantage=0.1),
        lambda frame: dn.Schema({name: {} for name in frame}),
    ],
)
def test_two_columns_that_are_called_alike_are_refused(made):
    for names in (["a", " a"], [0, "0"]):
        with pytest.raises(dn.InputError, match="more than once"):
            made(pd.DataFrame(np.zeros((300, 2)), columns=names))


def test_whole_numbers_are_names_and_the_table_of_an_array_has_the_names_of_its_places():
    array = RNG.normal(size=(300, 2))
    for key in (0, "0", np.int64(0), 0.0):
        schema = dn.Schema({key: {"range": (-3, 3)}})
        assert list(schema.columns) == [name_of(key)] == ["0"]
        for table in (array, pd.DataFrame(array)):
            model = dn.PrivateRegressor(schema=schema, target_range=(-3, 3)).fit(table, array[:, 1])
            assert not hasattr(model, "feature_names_in_")  # scikit-learn's rule: then arrays and frames may follow
            assert model.columns_[0].name == "0"
            assert len(model.predict(array)) == len(model.predict(table))
            released = dn.release_statistics(table, ['mean("0")'], advantage=0.1, schema=schema)
            assert released.ranges["0"] == (-3, 3)
            assert dn.PrivateSynthesizer(schema=schema).fit(table).feature_names_in_.tolist() == ["0", "1"]


def test_a_whole_number_above_a_column_of_a_sheet_has_no_point(tmp_path):
    (tmp_path / "t.xlsx").write_bytes(xlsx({"people": [[2024.0, "a"], [1.5, 1], [2.5, 2]]}))
    assert list(open_table(tmp_path / "t.xlsx").frame.columns) == ["2024", "a"]
    assert list(open_table(pd.DataFrame({2024.0: [1], "a": [1]})).frame.columns) == ["2024", "a"]
