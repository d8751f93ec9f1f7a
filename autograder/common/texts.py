"""What somebody else wrote, as text that does nothing where it is shown: a learner's error, file name or answer.

On a terminal a control character moves the cursor, a bidirectional override turns a line around, and a line end lets
the next words stand where our own stand. Here the first two become visible, and the third is marked.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable

MAX_LINE_BYTES = 500
MARK = "  | "
"""Begins each line of a quoted text but the first, which stands behind words of ours."""
_MAX_MARKS = 3
"""Combining characters on one letter: no script needs more, and a stack of them covers the lines above."""
# They count as letters or marks, and nobody sees them (Unicode's Default_Ignorable_Code_Point): fillers, joiners,
# selectors of a variant.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_OF_PICTURES = (
    "\u200d\ufe0f"  # join two emoji to one, and make a sign one: behind a picture they hide nothing
)
_PLAIN_NAME = re.compile(r"[\w.@+/-]+")


def printable(text: str) -> str:
    """The text with line ends as "\\n", a tab or another blank as blanks, and the escape of whatever else has no
    picture of its own, such as `\\x1b`. Raises TypeError for what is no text."""
    text = re.sub(r"\r\n?", "\n", text).replace("\t", "    ")
    return _with_escapes(text, lambda char: " " if _is_blank(char) else _escape(char))


def as_json(value: object) -> str:
    """JSON of the same value, with an escape for whatever has no picture of its own."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return _with_escapes(text, lambda char: json.dumps(char)[1:-1])


def in_points(score: float, most: float | None = None) -> str:
    """ "3 points", "1 point", "0.5 of 1 point", "7 of 10 points"."""
    of = "" if most is None else f" of {most:g}"
    return f"{score:g}{of} {'point' if (score if most is None else most) == 1 else 'points'}"


def shortened(text: str, most: int) -> str:
    """`printable`, in at most `most` bytes of UTF-8 (over 100); where something is left out, the end says so."""
    return cut(printable(text[:most]), most, len(text))


def cut(shown: str, most: int, whole: int) -> str:
    """The first `most` bytes of what is shown of a text with `whole` characters, which is its beginning."""
    data = shown.encode()
    if whole <= most and len(data) <= most:
        return shown
    note = f"… (cut here: the whole has {whole:,} characters)"
    return data[: most - len(note.encode())].decode("utf-8", "ignore") + note


def one_line(text: str, most: int = MAX_LINE_BYTES) -> str:
    """`shortened`, on a single line: a line end in it is shown as `\\n`."""
    return cut(printable(text[:most]).replace("\n", "\\n"), most, len(text))


def quoted(text: str, most: int = MAX_LINE_BYTES) -> str:
    """`one_line` in quotation marks that nothing within can close."""
    return f"“{one_line(re.sub('[“”]', chr(34), text), most)}”"


def named(name: str, most: int = 200) -> str:
    """A name of a student or a file: as it is where it can be taken for nothing else, else in quotation marks."""
    return name if _PLAIN_NAME.fullmatch(name) and name == one_line(name, most) else quoted(name, most)


def marked(text: str) -> str:
    """A text of several lines behind words of ours: no line but the first begins as one of ours could."""
    return re.sub(rf"\n(?!{re.escape(MARK)})", f"\n{MARK}", text)


def _with_escapes(text: str, escaped: Callable[[str], str]) -> str:
    if text.isprintable() and text.isascii():
        return text
    shown, num_marks, before = [], 0, ""
    for char in text:
        num_marks = num_marks + 1 if unicodedata.combining(char) else 0
        is_seen = char == "\n" or (char.isprintable() and not _INVISIBLE.match(char))
        is_picture = before == "\ufe0f" or (before and unicodedata.category(before) in ("So", "Sk"))
        is_kept = is_picture and char in _OF_PICTURES
        shown.append(char if is_kept or (is_seen and num_marks <= _MAX_MARKS) else escaped(char))
        before = char
    return "".join(shown)


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode()


def _is_blank(char: str) -> bool:
    return unicodedata.category(char) == "Zs"
