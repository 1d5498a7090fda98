#!/bin/sh
# python-calamine 0.9.1: a cell with the error of a formula (#DIV/0!, #N/A) is an empty text, as an empty cell is; a text
# "#DIV/0!" that somebody typed stays. openpyxl 3.1.5 gives the error's name for both. Who changes from one to the other, or
# counts errors of a sheet before it is used, counts none.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q python-calamine==0.9.1 openpyxl==3.1.5
cat > seen.py <<'PY'
import openpyxl
import python_calamine

book = openpyxl.Workbook()
book.active.append(["error", "typed", "empty"])
book.active.append([None, "#DIV/0!", None])
book.active["A2"].value, book.active["A2"].data_type = "#DIV/0!", "e"
book.active["B2"].data_type = "s"
book.save("t.xlsx")
by_openpyxl = [cell.value for cell in openpyxl.load_workbook("t.xlsx", data_only=True).active[2]]
by_calamine = python_calamine.load_workbook("t.xlsx").get_sheet_by_index(0).to_python()[1]
print("openpyxl", by_openpyxl, "calamine", by_calamine)
assert by_openpyxl == ["#DIV/0!", "#DIV/0!", None]
assert by_calamine == ["", "#DIV/0!", ""]
PY
env/bin/python seen.py
