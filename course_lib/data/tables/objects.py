"""JSON: one object a line, or an array of objects, read one by one."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from course_lib.base import UserError
from course_lib.data.tables.characters import Encoding, lines_of
from course_lib.data.tables.table import Row, Table

_FIX = 'Write one object a line: {"text": "great film", "label": "good"}'
_CHUNK = 2**16
_LONGEST = 2**26
"""Characters of one object; more are read of a broken file before it is told."""

Objects = Callable[[Path, str], Iterator[tuple[int, dict[str, Any]]]]


def open_objects(path: Path, encoding: Encoding) -> Table:
    """A `.jsonl`, `.ndjson` or `.json` file; which of the two forms it has, its first character tells."""
    objects = _lines
    for line in lines_of(path, encoding.codec):
        if line.strip():
            objects = _array if line.lstrip().startswith("[") else _lines
            break
    # All are looked at: the last may be the first to have a key, and a table with answers keeps every one.
    keys = (row for _, row in objects(path, encoding.codec))
    columns = [*dict.fromkeys(itertools.chain.from_iterable(keys))]

    def read(chosen: Sequence[int] | None) -> Iterator[Row]:
        names = columns if chosen is None else [columns[i] for i in chosen]
        for number, row in objects(path, encoding.codec):
            yield number, [row.get(name) for name in names]

    return Table(str(path), columns, read, (encoding.note,) if encoding.note else ())


def _lines(path: Path, codec: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(lines_of(path, codec), 1):
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                row = None
            if not isinstance(row, dict):
                raise UserError(f"row {number} is not a JSON object. {_FIX}")
            yield number, row


def _array(path: Path, codec: str) -> Iterator[tuple[int, dict[str, Any]]]:
    decode = json.JSONDecoder().raw_decode
    number, buffer = 0, ""
    with path.open(encoding=codec) as file:

        def more() -> bool:
            nonlocal buffer
            added = file.read(max(_CHUNK, len(buffer))) if len(buffer) < _LONGEST else ""
            buffer += added
            return bool(added)

        def next_sign() -> str:
            nonlocal buffer
            buffer = buffer.lstrip()
            while not buffer and more():
                buffer = buffer.lstrip()
            return buffer[:1]

        next_sign()
        buffer = buffer[1:]  # the bracket
        while (sign := next_sign()) and sign != "]":
            if number and sign != ",":
                raise UserError(f"no comma after row {number}. {_FIX}")
            if number:
                buffer = buffer[1:]
                next_sign()
            number += 1
            row, end = _decoded(decode, buffer), 0
            while row is None and more():
                row = _decoded(decode, buffer)
            value, end = row or (None, 0)
            if not isinstance(value, dict):
                raise UserError(f"row {number} is not a JSON object. {_FIX}")
            buffer = buffer[end:]
            yield number, value
        if not sign:
            raise UserError(f"the array is not closed after row {number}: the file was cut. {_FIX}")
        buffer = buffer[1:]
        if next_sign():
            raise UserError(f"there is more after the array's end, row {number}. {_FIX}")


def _decoded(decode: Callable[[str], tuple[Any, int]], text: str) -> tuple[Any, int] | None:
    """None where the text is no JSON, or not yet."""
    try:
        return decode(text)
    except (ValueError, RecursionError):
        return None
