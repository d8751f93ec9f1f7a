"""The bytes of the notebook and of the answers file: flipped, cut, repeated, of other encodings, of other formats."""

from __future__ import annotations

import codecs
import encodings
import gzip
import pkgutil
import random
from functools import partial

from tests.fuzz.damage import Change, damage, register_each
from tests.fuzz.hand_in import HandIn


def _any_file(hand_in: HandIn, chance: random.Random) -> str:
    """Mostly the notebook."""
    return (
        hand_in.answers if hand_in.answers in hand_in.files and chance.random() < 0.25 else hand_in.notebook
    )


@damage("bytes", weight=250)
def bits_flipped(hand_in: HandIn, chance: random.Random) -> None:
    name = _any_file(hand_in, chance)
    data = bytearray(hand_in.bytes_of(name))
    for _ in range(chance.choice([1, 1, 1, 3, 20, 500]) if data else 0):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    hand_in.files[name] = bytes(data)


@damage("bytes", weight=150)
def bytes_exchanged(hand_in: HandIn, chance: random.Random) -> None:
    """As JSON stays more often when the bytes are of those that it is made of."""
    name = _any_file(hand_in, chance)
    data = bytearray(hand_in.bytes_of(name))
    for _ in range(chance.choice([1, 1, 2, 5, 50]) if data else 0):
        data[chance.randrange(len(data))] = chance.choice(b'{}[]",:\\0123456789.eE-+ntf u\n\x00\xff')
    hand_in.files[name] = bytes(data)


@damage("bytes", weight=150)
def cut_off(hand_in: HandIn, chance: random.Random) -> None:
    name = _any_file(hand_in, chance)
    data = hand_in.bytes_of(name)
    hand_in.files[name] = data[: chance.randint(0, len(data))]


@damage("bytes", weight=60)
def a_piece_is_missing_or_comes_again(hand_in: HandIn, chance: random.Random) -> None:
    name = _any_file(hand_in, chance)
    data = hand_in.bytes_of(name)
    begin, end = sorted(chance.choices(range(len(data) + 1), k=2))
    middle = chance.choice([b"", data[begin:end] * 2, data[begin:end] * 5, bytes(end - begin)])
    hand_in.files[name] = data[:begin] + middle + data[end:]


@damage("bytes", weight=20)
def bytes_inserted(hand_in: HandIn, chance: random.Random) -> None:
    name = _any_file(hand_in, chance)
    data = hand_in.bytes_of(name)
    place = chance.randint(0, len(data))
    pieces = [
        b"\x00",
        b"\xff\xfe",
        b"\xed\xa0\x80",
        b"\xc0\x80",
        b"\xf4\x90\x80\x80",
        b"\x1b[2J",
        b"NaN",
        b"[" * 2000,
    ]
    hand_in.files[name] = data[:place] + chance.choice(pieces) + data[place:]


def _text_codecs() -> list[str]:
    """Every encoding of text that Python knows here."""
    found = []
    for name in sorted(module.name for module in pkgutil.iter_modules(encodings.__path__)):
        try:
            is_of_text = codecs.lookup(name)._is_text_encoding
        except LookupError:  # of no encoding, or of one that another system has
            continue
        if is_of_text and name not in (
            "undefined",
            "idna",
        ):  # which write nothing, and names of machines alone
            found.append(name)
    return found


def _encoded(hand_in: HandIn, chance: random.Random, codec: str) -> None:
    """With letters that the encodings write differently, as far as each has them."""
    for name in (hand_in.notebook, hand_in.answers):
        try:
            text = hand_in.bytes_of(name).decode("utf-8")
        except UnicodeDecodeError:
            continue
        letters = chance.choice(["cöurse", "курс", "課程", "دورة", "¥\\~", "😀"])
        for errors in ("strict", "replace", "ignore"):
            try:
                hand_in.files[name] = text.replace("course", letters).encode(codec, errors)
                break
            except (UnicodeError, ValueError):
                continue


CODECS = _text_codecs()
_CASES: dict[str, Change] = {name: partial(_encoded, codec=name) for name in CODECS}
register_each("bytes", "encoded as", _CASES)


def _twice(hand_in: HandIn, chance: random.Random, first: str, then: str) -> None:
    """Read as another encoding and saved again, as editors do."""
    data = hand_in.bytes_of(hand_in.notebook).replace(b"course", "cöurse".encode())
    hand_in.files[hand_in.notebook] = data.decode(first, "replace").encode(then, "replace")


for _first, _then in (("latin_1", "utf_8"), ("cp1252", "utf_16"), ("utf_8", "cp037"), ("utf_16", "utf_8")):
    register_each(
        "bytes", "read as", {f"{_first}, saved as {_then}": partial(_twice, first=_first, then=_then)}
    )

WHOLE: dict[str, bytes] = {
    "nothing": b"",
    "a byte order mark alone": b"\xef\xbb\xbf",
    "half of a byte order mark": b"\xff",
    "zeros": bytes(5000),
    "a page": b"<!doctype html><title>Sign in</title><script>alert(1)</script>",
    "a list": b"[]",
    "null": b"null",
    "a text": b'"cells"',
    "a number": b"1e999",
    "a number of a million digits": b"9" * 1_000_000,
    "NaN": b'{"cells": NaN}',
    "one open bracket": b"[",
    "brackets 100,000 deep": b"[" * 100_000,
    "objects 100,000 deep": b'{"cells":' * 100_000,
    "objects 990 deep": b'{"cells":[' * 490 + b"]}" * 490,
    "cells 100,000 deep": b'{"cells":[{"source":' + b"[" * 100_000 + b"]" * 100_000 + b"}]}",
    "30 MB of a list": b'{"cells":[' + b"1," * 15_000_000 + b"1]}",
    "30 MB of a key": b'{"cells":[],"' + b"k" * 30_000_000 + b'":1}',
    "100,000 equal keys": b"{" + b'"cells":[],' * 100_000 + b'"cells":[]}',
    "20 MB of escapes": b'{"cells":[{"cell_type":"markdown","source":"' + b"\\u0041" * 3_300_000 + b'"}]}',
    "a million numbers of thirty digits": b'{"cells":[],"a":['
    + b"123456789012345678901234567890," * 1_000_000
    + b"1]}",
    "bytes of any kind": random.Random(0).randbytes(100_000),
}


def _instead(hand_in: HandIn, chance: random.Random, data: bytes) -> None:
    hand_in.files[_any_file(hand_in, chance)] = data


register_each(
    "bytes", "instead of the file", {name: partial(_instead, data=data) for name, data in WHOLE.items()}
)


@damage("bytes", weight=3)
def packed(hand_in: HandIn, chance: random.Random) -> None:
    data = hand_in.bytes_of(hand_in.notebook)
    packed = gzip.compress(data, mtime=0)
    hand_in.files[hand_in.notebook] = chance.choice(
        [packed, b"PK\x03\x04" + data, data + packed, packed[:-9]]
    )


@damage("bytes", weight=4)
def marks_of_byte_order(hand_in: HandIn, chance: random.Random) -> None:
    mark = chance.choice(
        [codecs.BOM_UTF8, codecs.BOM_UTF8 * 2, codecs.BOM_UTF16, codecs.BOM_UTF32, codecs.BOM_UTF16_BE]
    )
    hand_in.files[hand_in.notebook] = mark + hand_in.bytes_of(hand_in.notebook)


@damage("bytes", weight=4)
def something_before_or_behind(hand_in: HandIn, chance: random.Random) -> None:
    data = hand_in.bytes_of(hand_in.notebook)
    other = chance.choice([b"\n" * 100_000, b" " * 100_000, b"// a note\n", b"\x00", data, b"}", b"\x1a"])
    hand_in.files[hand_in.notebook] = chance.choice([data + other, other + data])
