"""What is understood of tables as people have them: each column's kind, what is told, and that no value is kept."""

import gzip
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable.tables import understand
from deniable.tables.files import open_table
from deniable.training import TrainingWarning

N = 60


def file_of(folder, cells, *, separator=",", name="people.csv", encoding="utf-8"):
    """Write columns of texts without any quoting that they do not need."""
    path = folder / name
    frame = pd.DataFrame({"y": [0, 1] * (N // 2)} | cells)
    data = frame.to_csv(index=False, sep=separator).encode(encoding)
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def column(folder, cells, schema=None, **options):
    found = understand(file_of(folder, {"x": cells}, **options), "y", schema=schema)
    (made,) = found.columns
    return made, found


def every(*values):
    return [values[i % len(values)] for i in range(N)]


NUMBERS = [f"{17 * i % 71 + 0.25 * (i % 3)}" for i in range(N)]


FORMS = [
    (NUMBERS, "number", 0.0),
    (["?" if i == 5 else cell for i, cell in enumerate(NUMBERS)], "number", 0.0),
    (["n.v." if i % 9 == 4 else cell for i, cell in enumerate(NUMBERS)], "number", 0.0),
    ([f"{i + 1},{100 + i},000" for i in range(N)], "number", 1_100_000),
    ([f"{i},{i % 10}5" for i in range(N)], "number", 0.05),
    ([f"{i + 1}.{100 + i}.000,5" for i in range(N)], "number", 1_100_000.5),
    ([f"{i + 1}\u202f{100 + i}" for i in range(N)], "number", 1100),
    ([f"{i % 40} %" for i in range(N)], "number", 0),
    ([f"$ {i},000.50" for i in range(1, N + 1)], "number", 1000.5),
    ([f"20{i:02d}-03-0{1 + i % 9}" for i in range(N)], "date", 11017.0),
    ([f"2024-01-{1 + i % 28:02d}T12:00+06:00" for i in range(N)], "date", 19723.25),
    ([f"{1 + i % 28}.1.2024" for i in range(N)], "date", 19723.0),
    ([f"1/{1 + i % 28}/2024" for i in range(N)], "date", 19723.0),
    ([f"20{i % 50:02d}-01" for i in range(N)], "date", 10957.0),
    (every("yes", "no", "Yes"), "yes/no", 1.0),
    (every("True", "False"), "yes/no", 1.0),
    (every("Y", "N", "?"), "yes/no", 1.0),
    (every("1", "2", "3+"), "number", 1.0),
    (every("A", "B", "NA"), "category", "A"),
    (every("low", "high", "none"), "category", "low"),
]


def test_columns_are_read_cell_by_cell(tmp_path):
    wrong = []
    for cells, kind, first in FORMS:
        made, found = column(tmp_path, cells)
        read = None if made.kind == "dropped" else found.frame["x"].iloc[0]
        wrong += [] if (made.kind, read) == (kind, first) else [(cells[0], made, read)]
    assert wrong == []


DROPPED = {
    "identify": [f"Person {i // 2}" for i in range(N)],
    "form that is not understood": [f"{1 + i % 28} Mar of 2024" for i in range(N)],
    "free text": ["said that the treatment of the other clinic did not help at all, " + str(i % 5) for i in range(N)],
    "numbers the rows": [str(i + 1) for i in range(N)],
    "long whole numbers": [str(100_000_000_000 + 7919 * i) for i in range(N)],
    "constant": ["7"] * N,
    "empty": [""] * N,
}


def test_what_must_not_be_used_is_dropped_with_its_reason(tmp_path):
    made = {reason: column(tmp_path, cells) for reason, cells in DROPPED.items()}
    assert [reason for reason, (one, _) in made.items() if one.kind != "dropped" or reason not in one.reason] == []
    assert all(found.frame.shape == (N, 0) for _, found in made.values())


def test_what_stands_between_numbers_is_not_told(tmp_path):
    made, _ = column(tmp_path, [f"Anna {i}" if i % 7 == 0 else str(i) for i in range(N)])
    assert (made.kind, "9 cells" in made.line, "Anna" in made.line) == ("number", True, False)


@pytest.mark.parametrize(
    "name", ["id", "patient_id", "patientId", "E-Mail", "ssn", "Surname", "first name", "home_address"]
)
def test_a_name_can_identify_and_public_ranges_overrule(tmp_path, name):
    path = file_of(tmp_path, {name: every("3", "5", "8")})
    (made,) = understand(path, "y").columns
    assert (made.kind, "name looks like an identifier" in made.reason) == ("dropped", True)
    assert understand(path, "y", schema=dn.Schema({name: {"range": (0, 10)}})).columns[0].kind == "number"


@pytest.mark.parametrize("name", ["idea", "paid", "width", "identity_known", "grid", "residence"])
def test_names_that_only_look_alike_are_fine(tmp_path, name):
    assert understand(file_of(tmp_path, {name: every("3", "5", "8")}), "y").columns[0].kind == "number"


@pytest.mark.parametrize(
    ("separator", "encoding"),
    [(",", "utf-8"), (";", "utf-8"), ("|", "utf-8-sig"), ("\t", "utf-16"), (";", "cp1252")],
)
def test_the_separator_is_that_of_the_header(tmp_path, separator, encoding):
    mark = dn.Schema(decimal=",") if separator == ";" else None
    _, found = column(tmp_path, every("Köln", "Århus"), separator=separator, encoding=encoding, schema=mark)
    assert [note for note in found.notes if "exact copies" not in note] == []  # a header says it: no news
    assert set(found.frame["x"]) == {"Köln", "Århus"}


@pytest.mark.parametrize(
    ("mark", "code", "unit"),
    [
        (b"\xff\xfe", "utf-16-le", b"\x00\xd8"),
        (b"\xfe\xff", "utf-16-be", b"\xdc\x00"),
        (b"", "utf-8", b"\x81"),
        (b"", "utf-8", b"\xed\xa0\x80"),
    ],
)
def test_a_bad_unit_costs_itself(tmp_path, mark, code, unit):
    lines = [f"{line}\n".encode(code) for line in ("x,y", "Köln,1", "Århus,2", "Ulm,3", "Rom,4")]
    end = "\n".encode(code)
    lines[2] = lines[2].removesuffix(end) + unit + end
    path = tmp_path / "odd.csv"
    path.write_bytes(mark + b"".join(lines))
    found = open_table(path).frame
    assert found["x"].tolist() == ["Köln", "Århus", "Ulm", "Rom"]
    assert [found["y"][i] for i in (0, 2, 3)] == ["1", "3", "4"]


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".parquet", ".feather"])
def test_every_kind_of_file_is_understood_alike(tmp_path, suffix):
    frame = pd.DataFrame(
        {
            "age": np.arange(N) * 7 % 41,
            "weight": np.where(np.arange(N) % 7, np.arange(N) / 3, np.nan),
            "town": every("a", "b", None),
            "born": pd.Timestamp("2001-02-03") + pd.to_timedelta(np.arange(N), unit="D"),
            "smokes": every(True, False),
            "y": every("ill", "well"),
        }
    )
    path = tmp_path / f"people{suffix}"
    if suffix == ".parquet":
        frame.to_parquet(path)
    elif suffix == ".feather":
        frame.to_feather(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in suffix else ",")
    found, direct = understand(path, "y"), understand(frame, "y")
    pd.testing.assert_frame_equal(found.frame, direct.frame)
    assert [c.kind for c in found.columns] == ["number", "number", "category", "date", "yes/no"]
    assert found.target.tolist() == direct.target.tolist()
    assert found.frame["born"].iloc[0] == 11356.0


def test_no_value_is_kept_in_columns(tmp_path):
    secrets = {
        "name": [f"Secret{i}" for i in range(N)],
        "wage": [str(31337 + 13 * i * i) for i in range(N)],
        "town": every("Tinyville", "Bigcity"),
    }
    found = understand(file_of(tmp_path, secrets), "y")
    kept = pickle.dumps((found.columns, found.notes, found.problems)).decode("latin-1") + repr(found.columns)
    assert not any(cell in kept for cells in secrets.values() for cell in cells)
    assert "Secret" not in pickle.dumps(found).decode("latin-1")


def test_all_problems_come_in_one_message(tmp_path):
    frame = pd.DataFrame({"income_last_year": [1.0, np.inf] * 10, "more": [[1], [2]] * 10, "z": 1j})
    with pytest.raises(dn.InputError) as error:
        understand(frame, "income", drop=["mroe"])
    message = str(error.value)
    for word in ("did you mean 'income_last_year'", "'mroe'", "did you mean 'more'"):
        assert word in message, message


def test_a_second_header_line_is_refused(tmp_path):
    path = tmp_path / "two.csv"
    rows = [f"{20 + i % 50},{i % 3},2021-01-{1 + i % 28:02d},{'AB'[i % 2]}" for i in range(N)]
    path.write_text("\n".join(["Person,,Visit,Result", "age,stay,since,stage", *rows]))
    with pytest.raises(dn.InputError, match=r"target 'stage' is not a column.*two header lines.*3 columns.*delete one"):
        understand(path, "stage")
    path.write_text("\n".join(["age,stay,since,stage", *rows]))
    assert [made.kind for made in understand(path, "stage").columns] == ["number", "number", "date"]
    # one text, or words for "missing", above numbers is no header
    path.write_text("\n".join(["age,stay,since,stage", "?,unknown,2021-01-01,A", *rows]))
    assert understand(path, "stage").problems == ()


@pytest.mark.parametrize("cell", [["a"], {"a": 1}, ("a", "b")], ids=["list", "dict", "tuple"])
def test_nested_cells_are_not_said_to_be_constant(cell):
    other = {"b": 2} if isinstance(cell, dict) else type(cell)(["c"])
    frame = pd.DataFrame({"y": np.arange(40) % 2, "x": np.linspace(0, 1, 40)})
    frame["tags"] = pd.Series([None, *([cell, other] * 20)][:40], dtype=object)
    frame["word"], frame["list"] = "list", type(cell).__name__
    reasons = {column.name: column.reason for column in understand(frame, "y", strict=False).columns}
    assert reasons["tags"].startswith(f"its cells are nested ({type(cell).__name__})")
    assert reasons["word"] == reasons["list"] == "it is constant"


@pytest.mark.parametrize(
    ("name", "key"),
    [("Patient-Nr", True), ("Patientennummer", True), ("FallNr", True), ("customer_no", True), ("patient_id", True),
     ("number_of_persons", False), ("persons", False), ("Fallzahl", False), ("education-num", False), ("age", False)],
)  # fmt: skip
def test_fits_advise_on_columns_that_are_named_like_identifiers(name, key):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.integers(1000, 1999, 600), "x": rng.uniform(size=600)})
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        dn.PrivateClassifier(advantage=0.5, ranges={"x": (0, 1)}).fit(frame, frame["x"] > 0.5)
    assert any("named like an identifier" in str(one.message) for one in said) == key
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "named like", TrainingWarning)
        declared = dn.tables.Schema({name: dn.tables.ColumnSchema(kind="number", range=(0, 2000))})
        dn.PrivateClassifier(advantage=0.5, schema=declared, ranges={"x": (0, 1)}).fit(frame, frame["x"] > 0.5)
