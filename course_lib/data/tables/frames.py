"""Parquet, and frames of pandas and polars, which need not be imported to be read."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from course_lib.base import UserError, require
from course_lib.data.tables.table import Row, Table

_ROWS_AT_ONCE = 1024
FRAME = "the frame"


def is_frame(source: object) -> bool:
    """Whether it comes from pandas or polars."""
    return type(source).__module__.partition(".")[0] in ("pandas", "polars")


def open_parquet(path: Path) -> Table:
    parquet = require("pyarrow.parquet", extra="parquet")
    with parquet.ParquetFile(path) as file:
        columns = [*file.schema_arrow.names]

    def read(chosen: Sequence[int] | None) -> Iterator[Row]:
        names = columns if chosen is None else [columns[i] for i in chosen]
        with parquet.ParquetFile(path) as file:
            batches = (batch.to_pylist() for batch in file.iter_batches(_ROWS_AT_ONCE, columns=names))
            for number, row in enumerate(itertools.chain.from_iterable(batches), 1):
                yield number, [row[name] for name in names]

    return Table(str(path), columns, read)


def open_frame(frame: Any) -> Table:
    """Rows count from 0, as `iloc` does; the index is not looked at."""
    if hasattr(frame, "collect"):
        raise UserError(f"{FRAME} is a lazy one: give frame.collect()")
    if not hasattr(frame, "iloc") and not hasattr(frame, "iter_rows"):
        raise UserError(f"{FRAME} has one column: give a DataFrame with texts and labels")
    columns = [*map(str, frame.columns)]

    def read(chosen: Sequence[int] | None) -> Iterator[Row]:
        positions = range(len(columns)) if chosen is None else chosen
        for start in range(0, len(frame), _ROWS_AT_ONCE):
            part = frame[start : start + _ROWS_AT_ONCE]
            rows = _pandas_rows(part) if hasattr(part, "iloc") else part.iter_rows()
            for number, row in enumerate(rows, start):
                yield number, [row[i] for i in positions]

    return Table(FRAME, columns, read)


def _pandas_rows(part: Any) -> Iterator[Sequence[Any]]:
    """Missing values, of which pandas has several kinds, as None."""
    values = part.astype(object)
    return values.where(part.notna(), None).itertuples(index=False, name=None)
