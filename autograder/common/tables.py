"""Tables that a person filled in, as a spreadsheet saves them."""

from __future__ import annotations

import csv
from pathlib import Path

from course_lib.base import UserError


def read_table(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The first row of a CSV file, as a spreadsheet writes it, and each other with its number; empty ones are left out.

    Raises UserError where it cannot be read, or a row has another number of fields.
    """
    try:
        data = path.read_bytes()
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
        first = text.partition("\n")[0]
        table = list(csv.reader(text.splitlines(), delimiter=max(",;\t", key=first.count)))
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except (UnicodeDecodeError, csv.Error):
        raise UserError(f"{path}: no table as text: save it as CSV UTF-8") from None
    header, rows = (table or [[]])[0], [*enumerate(table[1:], start=2)]
    for number, row in rows:
        if row and len(row) != len(header):
            raise UserError(f"{path}: row {number} has {len(row)} fields, the first row {len(header)}")
    return header, [(number, [cell.strip() for cell in row]) for number, row in rows if any(row)]
