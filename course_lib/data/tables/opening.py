"""Any table, opened: by the ending of its name, or because it is a frame."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from course_lib.base import UserError
from course_lib.data.tables.characters import find_encoding
from course_lib.data.tables.columns import LABEL_NAMES, TEXT_NAMES
from course_lib.data.tables.delimited import open_delimited
from course_lib.data.tables.frames import is_frame, open_frame, open_parquet
from course_lib.data.tables.objects import open_objects
from course_lib.data.tables.table import Table, named


def open_table(
    source: Any,
    *,
    encoding: str | None = None,
    has_header: bool | None = None,
    known: Iterable[str] = (),
) -> Table:
    """A CSV or TSV file, JSON Lines or a JSON array (.jsonl, .ndjson, .json), Parquet (.parquet), or a frame of
    pandas or polars: its columns, and rows that are read one by one each time they are asked for.

    Args:
        encoding: of a text file; None: found, and said in `notes`.
        has_header: of a CSV or TSV file, likewise.
        known: further names by which a header is told.

    Raises:
        UserError: the file is missing, or is no table of its kind; the message names the line and the fix.
    """
    if is_frame(source):
        return open_frame(source)
    if not isinstance(source, str | Path):
        raise UserError(f"a table is a path, or a frame of pandas or polars, not a {type(source).__name__}")
    path = Path(os.path.expanduser(source))  # noqa: PTH111 - Path's own fails for "~nobody"
    with named(str(path)):
        if path.suffix.casefold() == ".parquet":
            return open_parquet(path)
        found = find_encoding(path, encoding)
        if path.suffix.casefold() in (".jsonl", ".ndjson", ".json"):
            return open_objects(path, found)
        return open_delimited(path, found, has_header, (*known, *TEXT_NAMES, *LABEL_NAMES))
