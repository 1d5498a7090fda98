"""Reading tables as people have them: what each column is, what was dropped and why, and matrices out of them."""

from deniable.tables.columns import PUBLIC, Column
from deniable.tables.encoding import Encoded, EncodedRows, encode, encode_rows
from deniable.tables.reading import Table, builtin_names, read_table
from deniable.tables.understanding import Reader, TableWarning, Understood, understand

__all__ = [
    "PUBLIC",
    "Column",
    "Encoded",
    "EncodedRows",
    "Reader",
    "Table",
    "TableWarning",
    "Understood",
    "builtin_names",
    "encode",
    "encode_rows",
    "read_table",
    "understand",
]
