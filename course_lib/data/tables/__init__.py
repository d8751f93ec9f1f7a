"""Tables as they come: text files, Parquet and frames, their characters, columns and labels found and said."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from course_lib.data.tables.columns import Columns, find_columns
    from course_lib.data.tables.labels import Labels, make_labels
    from course_lib.data.tables.loading import load_table
    from course_lib.data.tables.opening import open_table
    from course_lib.data.tables.table import Row, Table

__getattr__, __dir__, __all__ = attach(__name__, __file__)
