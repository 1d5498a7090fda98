"""Tables that are written otherwise are read alike, or refused: an independent parse says what each cell is."""

import datetime

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable.tables import read_alike


def records(n, rng):
    return pd.DataFrame({
        "income": np.round(rng.lognormal(8, 1, n), 2),
        "share": np.round(10 * rng.random(n), 3),
        "born": pd.to_datetime(rng.integers(-8000, 15000, n), unit="D"),
        "town": rng.choice(["Oslo", "Roma", "Bern"], n),
        "ill": rng.choice(["yes", "no"], n),
    })  # fmt: skip


def decimal_comma(value):
    return f"{value:,.3f}".translate(str.maketrans(",.", ".,"))


SPELLINGS = {
    "decimal commas": {"income": lambda v: f"{v}".replace(".", ","), "share": lambda v: f"{v}".replace(".", ",")},
    "points for thousands": {"income": decimal_comma, "share": decimal_comma},
    "dollars": {"income": lambda v: f"${v:,.2f}", "share": lambda v: f"{v}%"},
    "day first": {"born": lambda v: v.strftime("%d/%m/%Y")},
    "month first": {"born": lambda v: v.strftime("%m/%d/%Y")},
    "points in dates": {"born": lambda v: v.strftime("%d.%m.%Y")},
    "names of months": {"born": lambda v: v.strftime("%d %b %Y")},
    "capitals": {"town": str.upper, "ill": str.upper},
    "true and false": {"ill": lambda v: {"yes": "True", "no": "False"}[v]},
    "one and zero": {"ill": lambda v: {"yes": "1", "no": "0"}[v]},
}


def spelled(table, how):
    return table.assign(**{name: table[name].map(write) for name, write in SPELLINGS[how].items()})


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    return {name: records(400, rng) for name in ("members", "nonmembers", "reference")}


@pytest.mark.parametrize("how", SPELLINGS)
def test_the_members_themselves_are_found_in_any_spelling(tmp_path, people, how):
    """Read cell by cell as texts, the members' table with decimal commas "showed no leakage"."""
    path, separator = tmp_path / "released.csv", ";" if "comma" in how or "points" in how else ","
    spelled(people["members"], how).to_csv(path, sep=separator, index=False)
    order = how.split()[0] if how.endswith("first") else ""
    flags = {"ill": {"kind": "yes/no"}} if how in ("true and false", "one and zero") else {}
    schema = dn.Schema(flags, decimal="," if "comma" in how or "thousands" in how else ".", order=order)
    if separator == ";":  # 1,234 may be either: a person says which, once
        with pytest.raises(dn.InputError, match="say --decimal"):
            dn.attack_synthetic(path, people["members"], people["nonmembers"])
    found = dn.attack_synthetic(path, people["members"], people["nonmembers"], schema=schema).audit()
    assert found.copies.copied_members == 400
    assert found.advantage().low > 0.95


@pytest.mark.parametrize("how", ["decimal commas", "points for thousands", "dollars", "day first", "points in dates"])
def test_an_independent_parse_agrees(people, how):
    """The oracle undoes each spelling by hand."""
    table = spelled(people["members"], how)
    undo = {
        "decimal commas": lambda t: float(t.replace(",", ".")),
        "points for thousands": lambda t: float(t.replace(".", "").replace(",", ".")),
        "dollars": lambda t: float(t.strip("$%").replace(",", "")),
    }
    epoch = datetime.date(1970, 1, 1)
    for name in SPELLINGS[how]:
        if name == "born":
            parts = [[int(p) for p in text.replace(".", "/").split("/")] for text in table[name]]
            expected = [(datetime.date(y, m, d) - epoch).days for d, m, y in parts]
        else:
            expected = [undo[how](text) for text in table[name]]
        declared = dn.Schema(decimal="," if how == "decimal commas" else "", order="day")
        if how == "points for thousands":
            declared = dn.Schema(decimal=",")
        np.testing.assert_array_equal(declared.column(name).read(table[name]).number, expected)


def test_no_cell_decides_how_another_is_read():
    """Next to 0,5 a comma was the decimal mark of 1,234: one record's cell changed all others."""
    one, two = (read_alike({"a": [[cell], ["1,234"]]})[0][0].numbers for cell in ("0,5", "2.5"))
    assert one[1] == two[1] == 1234


@pytest.mark.parametrize(
    ("name", "write", "declared"),
    [
        ("share", lambda v: f"{v:.3f}".replace(".", ","), {"decimal": ","}),
        ("born", lambda v: v.strftime("%d/%m/%Y"), {"order": "day"}),
    ],
)
def test_what_two_tables_write_in_two_ways_is_declared_or_refused(people, name, write, declared):
    """Read alone, the texts of one table are other values than those of the other: the copies would not be seen."""
    released = people["members"].assign(**{name: people["members"][name].map(write)})
    tables = (released, people["members"], people["nonmembers"])
    (settles,) = declared
    with pytest.raises(dn.InputError, match=f"column '{name}' may be read in two ways.* declare its {settles}"):
        dn.attack_synthetic(*tables)
    found = dn.attack_synthetic(*tables, schema=dn.Schema(**declared)).audit()
    assert found.copies.copied_members == 400


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"born": lambda v: v.strftime("%d-%m-%y")},
            "column 'born': the records' cells are read as dates, and of the synthetic table's 0 %",
        ),
        (
            {"income": lambda v: "high" if v > 3000 else "low"},
            "column 'income': the records' cells are read as numbers, and of the synthetic table's 0 %",
        ),
        ({"income": lambda v: v / 1e6}, "column 'income': .* are its units or words others"),
        (
            {"town": lambda v: {"Oslo": "O", "Roma": "R", "Bern": "B"}[v]},
            "column 'town': .* are its units or words others",
        ),
    ],
)
def test_a_column_that_is_another_one_is_refused(people, change, message):
    released = people["members"].assign(**{name: people["members"][name].map(f) for name, f in change.items()})
    with pytest.raises(dn.InputError, match=message):
        dn.attack_synthetic(released, people["members"], people["nonmembers"], people["reference"])


def test_nine_tenths_of_the_cells_are_enough(people):
    rng = np.random.default_rng(1)
    some = people["members"].astype({"income": object})
    for share, fine in ((0.05, True), (0.2, False)):
        odd = some.assign(income=some["income"].where(rng.random(400) >= share, "unknown"))
        if fine:
            assert dn.attack_synthetic(odd, people["members"], people["nonmembers"]).audit().advantage().low > 0.9
        else:
            with pytest.raises(dn.InputError, match="column 'income'"):
                dn.attack_synthetic(odd, people["members"], people["nonmembers"])


def test_a_column_may_hold_words_among_its_numbers_if_all_tables_have_as_many(people):
    """`audit` refused what `check`, `train` and `publish` read: limits of detection, scales such as 1, 2, 3+."""
    rng = np.random.default_rng(2)
    made = {name: table.astype({"income": object}) for name, table in people.items()}
    for table in made.values():
        table.loc[rng.random(400) < 0.25, "income"] = "< 0.5"
        table["stage"] = rng.choice(["1", "2", "3+"], 400)
    columns, _ = read_alike(made)
    assert [column.numbers is None for column in columns] == [False, False, False, True, True, False]
    found = dn.attack_synthetic(made["members"], made["members"], made["nonmembers"]).audit()
    assert found.copies.copied_members == 400
    made["members"].loc[made["members"]["income"] != "< 0.5", "income"] = "?"
    with pytest.raises(dn.InputError, match="column 'income'"):
        read_alike({"synthetic": people["members"].assign(stage="1"), **made})


def test_columns_are_matched_by_name_and_tables_of_any_kind(people):
    pa = pytest.importorskip("pyarrow")
    members, others = people["members"], people["nonmembers"]
    turned = members[members.columns[::-1]].assign(more=1)
    first = dn.attack_synthetic(members.drop(columns="town"), members, others)
    again = dn.attack_synthetic(pa.Table.from_pandas(members.drop(columns="town")), turned, others)
    np.testing.assert_array_equal(first.member_scores, again.member_scores)
    with pytest.raises(dn.InputError, match="missing: more"):
        dn.attack_synthetic(turned, members, others)
    with pytest.raises(dn.InputError, match="synthetic: "):
        dn.attack_synthetic(np.zeros(3), members, others)


def test_equal_cells_have_equal_codes():
    tables = {"a": pd.DataFrame({"x": ["7", None, *"0123456789"]}), "b": pd.DataFrame({"x": [7.0, np.nan, 8.5]})}
    columns, rows = read_alike(tables)
    codes = columns[0].codes
    assert codes[0] == codes[9] == codes[12]
    assert codes[1] == codes[13] == -1
    assert codes[14] not in codes[:14]
    assert rows == {"a": slice(0, 12), "b": slice(12, 15)}


DAYS = pd.to_datetime("2020-01-01") + pd.to_timedelta(37 * np.arange(400) % 4001, unit="D")
NUMBERS = np.round(np.random.default_rng(4).uniform(1, 900, 400), 3)


def written(way, values):
    return pd.DataFrame({"x": [way(value) for value in values]})


@pytest.mark.parametrize(
    ("values", "one", "other", "settles"),
    [
        *(
            (DAYS, f"%m{mark}%d{mark}%Y{clock}", f"%d{mark}%m{mark}%Y{clock}", "order")
            for mark in "/-."
            for clock in ("", " %H:%M")
        ),
        (DAYS, "%d/%m/%y", "%m/%d/%y", "order"),
        (NUMBERS, lambda v: f"{round(1000 * v):,}", lambda v: f"{v:g}".replace(".", ","), "decimal"),
        (
            NUMBERS,
            lambda v: f"{round(1000 * v):,}".replace(",", "."),
            lambda v: f"{1000 * v:,.2f}".translate(str.maketrans(",.", ".,")),
            "decimal",
        ),
    ],
)
def test_tables_that_each_may_be_read_in_two_ways_show_the_same_one_or_are_refused(values, one, other, settles):
    """Both were doubtful, and passed: of 60 copied dates among 61 those up to the 12th were other days."""
    one, other = (way if callable(way) else lambda v, way=way: v.strftime(way) for way in (one, other))
    for first, second in ((one, other), (other, one)):
        released, members, others = written(first, values[:200]), written(second, values[:200]), values[200:]
        with pytest.raises(dn.InputError, match=f"column 'x' may be read in two ways.*: .* declare its {settles}"):
            read_alike({"synthetic": released, "members": members, "nonmembers": written(second, others)})


@pytest.mark.parametrize(
    ("cells", "settles"),
    [(["01/02/2021", "01/03/2021"], "order"), (["01.02.2021"], "order")],
)
def test_tables_that_all_may_be_read_in_two_ways_are_refused_until_one_is_declared(cells, settles):
    """Firsts of months written in two orders were twelve days of January in one table."""
    tables = {name: pd.DataFrame({"x": cells}) for name in ("synthetic", "members", "nonmembers")}
    with pytest.raises(dn.InputError, match=f"column 'x' may be read in two ways.* declare its {settles}"):
        read_alike(tables)
    for way in {"order": ("day", "month"), "decimal": (".", ",")}[settles]:
        declared = dn.Schema({"x": {settles: way}})
        columns, rows = read_alike(tables, declared)
        np.testing.assert_array_equal(columns[0].numbers[rows["members"]], declared.column("x").read(cells).number)


def test_thousands_that_all_tables_write_alike_are_read_and_those_of_two_marks_refused():
    us, german = pd.DataFrame({"x": ["1,234", "45,000"]}), pd.DataFrame({"x": ["1.234", "45.000"]})
    columns, _ = read_alike({"synthetic": us, "members": us})
    assert columns[0].numbers.tolist() == [1234, 45000] * 2
    for other in (german, pd.DataFrame({"x": ["1234", "45000"]})):
        with pytest.raises(dn.InputError, match="column 'x' may be read in two ways"):
            read_alike({"synthetic": german if other is not german else us, "members": other})


@pytest.mark.parametrize(
    ("first", "second"),
    [("%m/%d/%Y", "%Y-%m-%d"), ("%d.%m.%Y", "%Y-%m-%d"), ("%d.%m.%Y", "%m/%d/%Y"), ("%d/%m/%Y", "%d/%m/%Y")],
)
def test_ways_that_every_table_shows_are_not_asked_for(first, second):
    """Each is read as meant, or all in one order."""
    tables = {
        "synthetic": written(lambda v: v.strftime(first), DAYS),
        "members": written(lambda v: v.strftime(second), DAYS),
    }
    columns, rows = read_alike(tables)
    np.testing.assert_array_equal(columns[0].codes[rows["synthetic"]], columns[0].codes[rows["members"]])
