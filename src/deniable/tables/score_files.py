"""Scores from any other tool, read from the files that people have."""

from __future__ import annotations

import csv
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray, InputError
from deniable.tables.cell import WORD, flag_of, read_cells
from deniable.tables.draft import TableWarning
from deniable.tables.files import WHICH_MARK, open_table, refuse_sheet, separator
from deniable.tables.inference import doubts, texts_of
from deniable.tables.schema import Schema

SCORE_NAMES = ("score", "scores", "mia_score", "mia_scores", "llr", "signal_values", "member_prob", "headline_score")
MEMBER_NAMES = (
    "member", "is_member", "membership", "memberships", "in", "included", "in_train", "true_labels", "label", "labels",
)  # fmt: skip
_SIDES = tuple(
    (inside + end, outside + end)
    for end in ("", "_scores")
    for inside, outside in (("member", "nonmember"), ("members", "nonmembers"), ("in", "out"), ("train", "test"))
) + (("loss_train", "loss_test"),)
_INSIDE = ("yes", "in", "member", "members", "train", "training", "inside", "included")
_OUTSIDE = ("no", "out", "nonmember", "non-member", "nonmembers", "non-members", "test", "holdout", "outside")
_SIDE = dict.fromkeys(_INSIDE, 1.0) | dict.fromkeys((*_OUTSIDE, "excluded"), 0.0)
_ENDLESS = {sign + word: float(sign + word) for sign in ("", "+", "-") for word in ("inf", "infinity")}
_KINDS = ".csv, .tsv or .txt (also .gz), .parquet, .xlsx, .json, .npz or .npy"
_HOW = "np.savez('scores.npz', scores=scores, member=member)"


def read_scores(
    path: str | Path,
    *,
    score: str | None = None,
    member: str | None = None,
    decimal: str = "",
    sheet: str | None = None,
) -> tuple[FloatArray, FloatArray]:
    r"""Return (member scores, nonmember scores) from a file.

    One column or array holds the scores and one says which are members (1/0, 1/2, yes/no in some languages, in/out,
    train/test), or there is one for each side ("member" and "nonmember", "in" and "out", "train" and "test"; shorter
    columns end in empty cells). Text tables, .parquet, .xlsx, .npz, .npy (with named fields)
    and .json (columns, or records, at any depth), among them the files of Privacy Meter, LeakPro and
    SACRO-ML and memaudit.

    Parameters
    ----------
    path
        The file; its ending says its format.
    score, member
        Names of the score and membership columns, if they are not among the usual ones. A column ``label`` is
        membership where no other is, with a warning unless it is named here: it may be a target.
    decimal
        The decimal mark, "." or ","; a header with ";" and scores such as 1,234 need it.
    sheet
        Sheet of a workbook, if not the first.

    Returns
    -------
    tuple
        Two arrays of shape (members,) and (nonmembers,), in the order of the file.

    Raises
    ------
    InputError
        If the file, a column or a value cannot be used; it names the row.

    Examples
    --------
    >>> import deniable as dn
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "scores.csv"
    >>> _ = path.write_text("score,member\n0.9,1\n0.2,0\n0.7,1\n")
    >>> members, others = dn.audit.read_scores(path)
    >>> members.tolist(), others.tolist()
    ([0.9, 0.7], [0.2])
    """
    schema = Schema(decimal=decimal)
    found = list(_tables(Path(path), schema, sheet))
    usable = [(table, layout) for table in found if (layout := _layout(table, score, member))]
    if not usable:
        names = list(dict.fromkeys(name for table in found for name in table))
        raise InputError(f"{_lacking(names, score, member)} in {str(path)!r}; it has: {', '.join(names) or 'nothing'}")
    table, layout = usable[0]
    if layout in _SIDES:
        first, second = (_numbers(side, _column(table, side), schema, padded=True) for side in layout)
        return first, second
    values = _numbers(layout[0], _column(table, layout[0]), schema)
    inside = _membership(layout[1], _column(table, layout[1]))
    if values.shape != inside.shape:
        raise InputError(f"scores and membership must have one length, got {values.shape} and {inside.shape}")
    return values[inside], values[~inside]


def each_pair(
    lines: Iterable[str], *, score: str | None = None, member: str | None = None, decimal: str = ""
) -> Iterator[tuple[float, float]]:
    """Yield pairs of a member's and a nonmember's score from CSV lines; the first line names the columns.

    Two lines next to each other, one of each side, are a pair: both scores were made at one time. A line whose
    neighbours are of its own side has no partner and is left out.
    """
    coming, schema = iter(lines), Schema(decimal=decimal)
    header = next(coming, "")
    mark = separator(header, None)
    if mark == ";" and not decimal:
        raise InputError(f"the stream cannot be used: {WHICH_MARK}")
    rows = csv.DictReader(chain([header], coming), delimiter=mark)
    rows.fieldnames = names = [name.strip().lower() for name in rows.fieldnames or ()]
    layout = _layout(dict.fromkeys(names), score, member)
    if layout is None or layout in _SIDES:
        raise InputError(f"{_lacking(names, score, member)} in the stream; it has: {', '.join(names)}")
    waiting: tuple[float, bool] | None = None
    for row in rows:
        where = f"line {rows.line_num}: "
        if None in row or None in row.values():
            raise InputError(f"{where}it has another number of cells than the first line, {len(names)}")
        value, inside = (np.array([row[name]], dtype=object) for name in layout)
        try:
            now = float(_numbers(layout[0], value, schema)[0]), bool(_membership(layout[1], inside)[0])
        except InputError as error:
            raise InputError(f"{where}{error}") from None
        if waiting is None or waiting[1] == now[1]:
            waiting = now
        else:
            yield (now[0], waiting[0]) if now[1] else (waiting[0], now[0])
            waiting = None


def _tables(path: Path, schema: Schema, sheet: str | None) -> Iterator[Mapping[str, Any]]:
    """Yield what the file holds as columns, by their names in small letters."""
    name = path.name.lower()
    if not path.exists():
        raise InputError(f"score file {str(path)!r} does not exist; give a {_KINDS} file")
    try:
        if name.endswith((".npz", ".npy", ".json")):
            refuse_sheet(sheet)
        if name.endswith((".npz", ".npy")):
            yield _arrays(path)
        elif name.endswith(".json"):
            yield from _in_json(json.loads(path.read_text(encoding="utf-8")))
        else:
            opened = open_table(path, schema, sheet=sheet).checked()
            if opened.odd:
                raise InputError(f"score file {str(path)!r}: line {opened.odd[0] + 1} has another number of cells")
            yield {name.lower(): opened.frame[name] for name in opened.frame.columns}
    except InputError:
        raise
    except Exception as error:  # each reader raises its own errors: all mean that this is not such a file
        raise InputError(f"score file {str(path)!r} could not be read: {error}") from error


def _arrays(path: Path) -> Mapping[str, Any]:
    """Return the arrays of an .npz file, or the named fields of an .npy file; none may hold Python objects."""
    try:
        loaded = np.load(path, allow_pickle=False)
        if not isinstance(loaded, np.ndarray):
            with loaded as arrays:
                return {key.lower().removeprefix("individual."): arrays[key] for key in arrays.files}
    except (ValueError, OSError, EOFError):  # what NumPy says of such a file is how to read it unsafely
        raise InputError(
            f"score file {str(path)!r} is incomplete, or holds no arrays of numbers; save them: {_HOW}"
        ) from None
    if not loaded.dtype.names:
        raise InputError(f"a .npy file of shape {loaded.shape} does not say who is a member; save both: {_HOW}")
    return {name.lower(): loaded[name] for name in loaded.dtype.names}


def _in_json(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every dictionary of lists, and every list of records as one, from the outside in."""
    import pandas as pd

    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        value = pd.json_normalize(value).to_dict("list")
    if isinstance(value, dict):
        yield {str(name).lower().removeprefix("scores."): one for name, one in value.items()}
        for one in value.values():
            yield from _in_json(one)


def _layout(table: Mapping[str, Any], score: str | None, member: str | None) -> tuple[str, str] | None:
    """Return the names of the columns of both sides, or of scores and membership; None without them."""
    if score is None and member is None:
        for pair in _SIDES:
            if all(side in table for side in pair):
                return pair
    found = [
        next((name for name in ([asked.lower()] if asked else usual) if name in table), None)
        for asked, usual in ((score, SCORE_NAMES), (member, MEMBER_NAMES))
    ]
    if found[0] is None or found[1] is None:
        return None
    if member is None and found[1] in MEMBER_NAMES[-2:]:
        said = f"{found[1]!r} is taken for who is a member; if it is a target, say which column is (member=, --member)"
        warnings.warn(said, TableWarning, stacklevel=3)
    if found[0] == found[1]:
        raise InputError(f"score and member must be two columns, got {found[0]!r} for both")
    return found[0], found[1]


def _lacking(names: list[str], score: str | None, member: str | None) -> str:
    """Say which column is missing, and what it may be called."""
    scored = any(name in names for name in ([score.lower()] if score else SCORE_NAMES))
    asked, usual = (member, MEMBER_NAMES) if scored else (score, SCORE_NAMES)
    return f"no {'member' if scored else 'score'} column ({repr(asked) if asked else 'one of ' + ', '.join(usual)})"


def _column(table: Mapping[str, Any], name: str) -> Any:
    """Return a column; an array of several dimensions is refused unless all but one are of length 1."""
    shape = np.shape(table[name])
    if sum(n != 1 for n in shape) > 1:
        raise InputError(
            f"{name!r} has shape {shape}, and an audit needs one score a record, of one model: choose one, or take the "
            f"mean over the others, such as np.mean({name}, axis=1) of records × views"
        )
    return np.ravel(table[name]) if len(shape) != 1 else table[name]


def _numbers(name: str, column: Any, schema: Schema, *, padded: bool = False) -> FloatArray:
    """Return a column of numbers; empty cells may end a shorter one, which is ``padded``."""
    own = schema.column(name)
    if getattr(getattr(column, "dtype", None), "kind", "") in ("b", "i", "u", "f"):
        values = np.asarray(column, dtype=np.float64)
    else:
        if said := doubts(texts_of(column), own).get("decimal"):
            raise InputError(f"{name!r} has numbers with a comma of two readings ({said}): say --decimal , or .")
        cells = own.read(column)
        values, other = cells.number.copy(), np.flatnonzero(np.isnan(cells.number))
        values[other] = [_ENDLESS.get(str(column[row]).strip().lower(), np.nan) for row in other]
        if (words := (cells.kind == WORD) & np.isnan(values)).any():
            raise InputError(f"{name!r} must hold numbers, row {int(words.argmax()) + 1} has a word; drop or repair it")
    filled = np.flatnonzero(~np.isnan(values))
    values = values[: filled[-1] + 1 if filled.size else 0] if padded else values
    if (gaps := np.isnan(values)).any():
        row = int(gaps.argmax()) + 1
        raise InputError(f"{name!r} must be a number in every row, got nan in row {row}; drop or repair it")
    return values


def _membership(name: str, column: Any) -> NDArray[np.bool_]:
    """Return who is a member: 1 of 0/1, −1/1 and 1/2; yes, in and train of words."""
    cells = read_cells(column)
    words = [_SIDE.get(flag_of(word) or word.casefold(), np.nan) for word in cells.words]
    said = np.where(cells.kind == WORD, np.array([*words, np.nan])[cells.word], cells.number)
    yes, no = said == 1, np.isin(said, (0, -1))
    no |= (said == 2) & ~np.any(no)
    if not (yes | no).all():
        row = int(np.argmin(yes | no)) + 1
        raise InputError(f"{name!r} must say member or not (1/0, yes/no, in/out, train/test), row {row} does not")
    return np.asarray(yes)
