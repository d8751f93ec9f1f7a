"""Bytes become characters: the encoding of a file as named, or as found; what is no text is refused."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from course_lib.base import UserError

FIX = "Save the file as UTF-8 (spreadsheets call it 'CSV UTF-8'), or name its encoding: encoding=cp1252"
_OTHERS = "name its encoding: encoding=gb18030 (Chinese), shift_jis (Japanese), cp1251 (Cyrillic) …"
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_FOREIGN = {
    b"PK\x03\x04": "an Excel workbook or a zip archive: save the sheet as CSV UTF-8",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook: save the sheet as CSV UTF-8",
    b"\x1f\x8b": "compressed by gzip: unpack it",
    b"%PDF": "a PDF: give a table",
    b"PAR1": "a Parquet file: its name must end in .parquet",
}
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x19\x1c-\x1f]")
_UNDEFINED = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")  # in cp1252
_OF_UTF8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe1-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_HIGH_RUN = re.compile(rb"[\x80-\xff]{2,}")


class Encoding(NamedTuple):
    """A Python codec, and the note that says how it was found ("" for UTF-8 and what was named)."""

    codec: str
    note: str = ""


def lines_of(path: Path, codec: str) -> Iterator[str]:
    """The lines, with their ends as they are."""
    with path.open(encoding=codec, newline="") as file:
        yield from file


def find_encoding(path: Path, name: str | None) -> Encoding:
    """The encoding of a text file. All of it is looked at: what one line needs, the last may be the first to show.

    Without a `name`: by a byte order mark, UTF-16 by its NUL bytes, else UTF-8 where every line is, else cp1252
    (Western European, of which latin-1's letters are a part) where that makes sense of every byte.

    Raises UserError naming the line: no text, two encodings in one file, or one that must be named.
    """
    with path.open("rb") as file:
        head = file.read(4096)
    for magic, says in _FOREIGN.items():
        if head.startswith(magic):
            raise UserError(f"this is no text but {says}")
    codec = next((codec for mark, codec in _MARKS.items() if head.startswith(mark)), None)
    if name is not None:
        with_mark = {"utf-8": "utf-8-sig", "utf-16": "utf-16"}
        codec = _python_name(name)
        return _checked(path, with_mark.get(codec, codec))
    if codec is None and (wide := _without_mark(head)):
        return _checked(path, wide)._replace(note=f'encoding = "{wide}": by its NUL bytes')
    if codec == "utf-16":
        return _checked(path, codec)._replace(note='encoding = "utf-16": by its byte order mark')
    return _by_its_lines(path, has_mark=codec is not None)


def _python_name(name: str) -> str:
    try:
        b"".decode(name)
        return codecs.lookup(name).name
    except (LookupError, ValueError):
        raise UserError(f"encoding={name!r} is not known: utf-8, utf-16, cp1252, gb18030 …") from None


def _without_mark(head: bytes) -> str | None:
    """UTF-16 of mostly Latin letters: every other byte is NUL."""
    pairs = len(head) // 2
    even, odd = head[: 2 * pairs : 2].count(0), head[1 : 2 * pairs : 2].count(0)
    if pairs >= 4 and min(even, odd) == 0 and max(even, odd) > 0.7 * pairs:
        return "utf-16-le" if odd else "utf-16-be"
    return None


def _checked(path: Path, codec: str) -> Encoding:
    """Every line, decoded. Raises UserError for the first that cannot be."""
    number = 1
    is_wide = codec.startswith(("utf-16", "utf-32"))  # a byte of a line end is no line end there
    try:
        if is_wide:
            for number, text in enumerate(lines_of(path, codec), 1):
                _refuse_nul(number, "\0" in text)
        else:
            with path.open("rb") as file:
                for number, line in enumerate(file, 1):
                    line.decode(codec)
                    _refuse_nul(number, b"\0" in line)
    except UnicodeError as error:  # in what is wide, somewhere after that line
        reason = getattr(error, "reason", None) or error
        place = f"what follows line {number}" if is_wide else f"line {number}"
        raise UserError(f"{place} is not {codec.removesuffix('-sig')}: {reason}. {FIX}") from None
    return Encoding(codec)


def _refuse_nul(number: int, has_nul: bool) -> None:
    if has_nul:
        raise UserError(f"line {number} is not text: it holds a NUL byte. {FIX}")


def _by_its_lines(path: Path, *, has_mark: bool) -> Encoding:
    first_utf8 = first_other = num_high = num_paired = 0
    has_control = has_undefined = False
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            _refuse_nul(number, b"\0" in line)
            has_control = has_control or _CONTROL.search(line) is not None
            if line.isascii():
                continue
            try:
                text = line.decode("utf-8")
                # A byte order mark says UTF-8 as well as a letter does.
                first_utf8 = first_utf8 or (number if text.lstrip("\ufeff") or has_mark else 0)
            except UnicodeDecodeError:
                first_other = first_other or number
                rest = _OF_UTF8.sub(b"", line)
                first_utf8 = first_utf8 or (number if rest != line else 0)
                num_high += sum(byte > 127 for byte in rest)
                num_paired += sum(map(len, _HIGH_RUN.findall(rest)))
                has_undefined = has_undefined or _UNDEFINED.search(rest) is not None
    if not first_other:
        return Encoding("utf-8-sig")
    if has_control:
        raise UserError(f"line {first_other} is not text. {FIX}")
    # Letters beyond ASCII stand side by side where they are not the exception but the alphabet.
    if has_undefined or (num_high >= 4 and 2 * num_paired > num_high):
        raise UserError(f"line {first_other} is not UTF-8, nor Western European: {_OTHERS}")
    if first_utf8:
        says = f"line {first_other} is not UTF-8, and line {first_utf8} is: two encodings in one file"
        raise UserError(f"{says}. {FIX}")
    return Encoding("cp1252", f'encoding = "cp1252" (Western European): line {first_other} is not UTF-8')
