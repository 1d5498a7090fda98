"""Reading tables as people have them: what each column is, what was dropped and why, and matrices out of them."""

from deniable.tables.cell import DATE, MISSING, NUMBER, WORD, ColumnCells, flag_of, read_cell, read_cells, spelled
from deniable.tables.columns import PUBLIC, Column
from deniable.tables.encoding import Encoded, EncodedRows, encode, encode_rows
from deniable.tables.reading import Table, builtin_names, read_table
from deniable.tables.understanding import Reader, TableWarning, Understood, understand

__all__ = [
    "DATE",
    "MISSING",
    "NUMBER",
    "PUBLIC",
    "WORD",
    "Column",
    "ColumnCells",
    "Encoded",
    "EncodedRows",
    "Reader",
    "Table",
    "TableWarning",
    "Understood",
    "builtin_names",
    "encode",
    "encode_rows",
    "flag_of",
    "read_cell",
    "read_cells",
    "read_table",
    "spelled",
    "understand",
]
