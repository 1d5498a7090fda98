"""Tables: cells that are each read alone, a draft of what columns hold, matrices out of it, files of attack scores."""

from deniable.tables.alike import SharedColumn, read_alike, read_column
from deniable.tables.cell import DATE, MISSING, NUMBER, WORD, ColumnCells, flag_of, read_cell, read_cells, spelled
from deniable.tables.draft import PUBLIC, Column, TableWarning, Understood, understand
from deniable.tables.drafting import draft_schema
from deniable.tables.encoding import Encoded, encode
from deniable.tables.files import open_table
from deniable.tables.persons import copies_line
from deniable.tables.schema import ColumnSchema, Schema
from deniable.tables.score_files import read_scores

__all__ = [
    "DATE",
    "MISSING",
    "NUMBER",
    "PUBLIC",
    "WORD",
    "Column",
    "ColumnCells",
    "ColumnSchema",
    "Encoded",
    "Schema",
    "SharedColumn",
    "TableWarning",
    "Understood",
    "copies_line",
    "draft_schema",
    "encode",
    "flag_of",
    "open_table",
    "read_alike",
    "read_cell",
    "read_cells",
    "read_column",
    "read_scores",
    "spelled",
    "understand",
]
