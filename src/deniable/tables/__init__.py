"""Tables: cells that are each read alone, a draft of what columns hold, matrices out of it, files of attack scores."""

from deniable.tables.alike import SharedColumn, read_alike
from deniable.tables.blocks import Block, RowPart, Source, as_source, mapped_rows
from deniable.tables.cell import (
    DATE,
    MISSING,
    NUMBER,
    WORD,
    CellFormat,
    ColumnCells,
    flag_of,
    read_cell,
    read_cells,
    spelled,
)
from deniable.tables.columnar import PAIR_TARGET, ColumnsOnDisk, on_disk
from deniable.tables.containers import above_header, as_column, as_frame, column_among, few, name_of, names_of, near
from deniable.tables.draft import (
    PUBLIC,
    Column,
    TableWarning,
    Understood,
    draft_schema,
    understand,
)
from deniable.tables.encoding import encode
from deniable.tables.files import WHICH_MARK, Opened, apart, as_table, open_table, typed_table
from deniable.tables.inference import advice_on_keys, kind_counts, kind_of, typed
from deniable.tables.persons import copies_line, persons_of
from deniable.tables.schema import ColumnSchema, Schema, as_schema, shorthand
from deniable.tables.score_files import each_pair, read_scores

__all__ = [
    "DATE", "MISSING", "NUMBER", "PAIR_TARGET", "PUBLIC", "WHICH_MARK", "WORD", "Block", "CellFormat", "Column",
    "ColumnCells", "ColumnSchema", "ColumnsOnDisk", "Opened", "RowPart", "Schema", "SharedColumn", "Source",
    "TableWarning", "Understood", "above_header", "advice_on_keys", "apart", "as_column", "as_frame", "as_schema",
    "as_source", "as_table", "column_among", "copies_line", "draft_schema", "each_pair", "encode", "few", "flag_of",
    "kind_counts", "kind_of", "mapped_rows", "name_of", "names_of", "near", "on_disk", "open_table", "persons_of",
    "read_alike", "read_cell", "read_cells", "read_scores", "shorthand", "spelled", "typed", "typed_table",
    "understand",
]  # fmt: skip
