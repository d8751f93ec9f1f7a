"""Tables as they come: what is not named is found, and said; in every form the same table gives the same texts."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from course_lib.base.errors import UserError
from course_lib.data import load_table

per_example = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
WORDS = ["red", "green", "blue", "large", "small", "thing", "house", "cat", "dog"]
ROWS = [
    {"text": f"{WORDS[i % 9]} {WORDS[i % 7]}, number {i}", "label": ["good", "bad"][i % 2]} for i in range(60)
]


def write(folder: Path, content: str | bytes, name: str = "data.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def as_csv(rows: list[dict[str, Any]], *, delimiter: str = ",", header: bool = True) -> str:
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerows(([[*rows[0]]] if header else []) + [[*row.values()] for row in rows])
    return out.getvalue()


WANTED = [row["text"] for row in ROWS], [row["label"] for row in ROWS]


def content(texts: Any) -> tuple[list[str], list[str]]:
    return [*texts.texts], [texts.label_names[i] for i in texts.labels]


@pytest.mark.parametrize(
    ("codec", "note"),
    [
        ("utf-8", None),
        ("utf-8-sig", None),
        ("utf-16", 'encoding = "utf-16": by its byte order mark'),
        ("utf-16-le", 'encoding = "utf-16-le": by its NUL bytes'),
        ("utf-16-be", 'encoding = "utf-16-be": by its NUL bytes'),
        ("cp1252", 'encoding = "cp1252" (Western European): line 2 is not UTF-8'),
        ("latin-1", 'encoding = "cp1252" (Western European): line 2 is not UTF-8'),
    ],
)
@pytest.mark.parametrize("form", ["csv", "jsonl", "json"])
def test_an_encoding_is_found_and_said(tmp_path, codec, note, form):
    rows = [{"text": f"café {row['text']} naïve", "label": row["label"]} for row in ROWS]
    written = as_csv(rows)
    if form != "csv":
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        written = "\n".join(lines) if form == "jsonl" else f"[{', '.join(lines)}]"
    texts = load_table(write(tmp_path, written.encode(codec), f"data.{form}"))
    assert [*texts.texts] == [row["text"] for row in rows]
    expected = note and note.replace("line 2", "line 1" if form != "csv" else "line 2")
    assert texts.notes == (() if note is None else (expected,))


@pytest.mark.parametrize(("codec", "text"), [("gb18030", "很好吃，下次再来"), ("cp1251", "очень вкусно")])
def test_an_encoding_that_must_be_named_is_asked_for_and_then_read(tmp_path, codec, text):
    path = write(tmp_path, f"text,label\n{text},good\nbad,bad\n".encode(codec))
    with pytest.raises(UserError, match="line 2 is not UTF-8, nor Western European: name its encoding"):
        load_table(path)
    assert [*load_table(path, encoding=codec).texts] == [text, "bad"]
    with pytest.raises(UserError, match="encoding='utf-9' is not known"):
        load_table(path, encoding="utf-9")
    with pytest.raises(UserError, match="line 2 is not utf-8"):
        load_table(path, encoding="UTF8")


@pytest.mark.parametrize(
    ("name", "delimiter", "note"),
    [
        *(("a.csv", ",", ()), ("a.tsv", "\t", ()), ("a.csv", ";", ("delimiter = semicolon",))),
        *(("a.csv", "\t", ("delimiter = tab",)), ("a.tsv", ",", ("delimiter = comma",)), ("a.txt", ",", ())),
    ],
)
def test_a_delimiter_is_found_and_said(tmp_path, name, delimiter, note):
    texts = load_table(write(tmp_path, as_csv(ROWS, delimiter=delimiter), name))
    assert (content(texts), texts.notes) == (WANTED, note)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_commas_in_texts_do_not_hide_another_delimiter(tmp_path, delimiter):
    rows = [["a, b, c", "x"], ["d; e", "y"], ["f\tg, h", "x"], ["i", "y"]]
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows(rows)
    texts = load_table(write(tmp_path, out.getvalue()), has_header=False)
    assert [[text, label] for text, label in zip(*content(texts), strict=True)] == rows


def test_a_tab_separated_file_may_use_quotes_as_letters(tmp_path):
    path = write(tmp_path, 'text\tlabel\n"a" film\tgood\n"open\tbad\n5" long\tgood\n', "a.tsv")
    texts = load_table(path)
    assert [*texts.texts] == ['"a" film', '"open', '5" long']
    assert "quotes are part of the texts" in texts.notes[0]
    quoted = write(tmp_path, 'text\tlabel\n"a\tb"\tgood\n"c\nd"\tbad\n', "a.tsv")
    assert [*load_table(quoted).texts] == ["a\tb", "c\nd"]


@pytest.mark.parametrize(
    ("first", "has_header", "note"),
    [
        ("text,label", True, None),
        ("x,Category", True, None),
        ("v1,v2", True, "has_header = true: the first row reads like names, 'v1', 'v2'"),
        ("a film that is good,good", False, "has_header = false: 'good' of the first row stands further"),
        ("a film,7", False, "has_header = false: there is a number in the first row"),
        ("an unusually long film with a point.,fair", False, "the first row does not read like names"),
    ],
)
def test_a_header_is_found_and_said_or_named(tmp_path, first, has_header, note):
    lines = [f"a text with several words {i},{['good', 'bad'][i % 2]}" for i in range(10)]
    path = write(tmp_path, "\n".join([first, *lines]))
    texts = load_table(path)
    assert len(texts) == (10 if has_header else 11)
    said = [each for each in texts.notes if each.startswith("has_header")]
    assert said == [] if note is None else note in said[0]
    assert texts.columns["text"] == (first.split(",")[0] if has_header else "column 1")
    assert len(load_table(path, has_header=True)) == 10
    named = load_table(path, has_header=False, text_column="column 1", label_column="column 2")
    assert len(named) == 11


@pytest.mark.parametrize(
    ("header", "cells", "found", "notes"),
    [
        (
            "text,category",
            "some words {i},{c}",
            ("text", "category"),
            ['label = "category": the only other column'],
        ),
        ("id,text,label", "{i},some words {i},{c}", ("text", "label"), ["not used: 'id'"]),
        (
            "a,b",
            "some longer words {i},{c}",
            ("a", "b"),
            ["has_header", 'text = "a": its cells', 'label = "b"'],
        ),
        (
            ",body,kind",
            "{i},some words {i},{c}",
            ("body", "kind"),
            ['text = "body": a usual name', 'label = "kind"'],
        ),
        (
            "when,text,intent",
            "2024-01-{i},some words {i},{c}",
            ("text", "intent"),
            ['label = "intent": a usual name', "not used: 'when'"],
        ),
        (
            "when,text,kind",
            "2024-01-{i},some words {i},{c}",
            ("text", "kind"),
            ['label = "kind": the only other column whose values come again', "not used: 'when'"],
        ),
        (
            "v1,v2,,,",
            "{c},some words {i},,,",
            ("v2", "v1"),
            ["has_header", 'text = "v2"', 'label = "v1": the only'],
        ),
    ],
)
def test_columns_are_found_and_said(tmp_path, header, cells, found, notes):
    lines = [cells.format(i=i, c=["up", "down"][i % 2]) for i in range(12)]
    texts = load_table(write(tmp_path, "\n".join([header, *lines])))
    assert (texts.columns["text"], texts.columns["label"]) == found
    assert len(texts.notes) == len(notes)
    assert all(said.startswith(note) for said, note in zip(texts.notes, notes, strict=True)), texts.notes
    assert set(texts.label_names) == {"up", "down"}


def test_columns_can_be_named_and_are_not_guessed_when_several_could_be_meant(tmp_path):
    lines = [f"words that say {i},other words {i},{'xy'[i % 2]},{'pq'[i % 2]}" for i in range(9)]
    path = write(tmp_path, "\n".join(["first,second,one,two", *lines]))
    with pytest.raises(UserError, match=r"no one column 'text', found: 'first', 'second', 'one', 'two'"):
        load_table(path)
    with pytest.raises(
        UserError, match=r"no one column 'label'.*Name the one with the labels: label_column="
    ):
        load_table(path, text_column="second")
    texts = load_table(path, text_column="second", label_column="Two")
    assert texts.label_names == ("p", "q") and next(iter(texts.texts)) == "other words 0"
    with pytest.raises(UserError, match="text_column=third: there must be one such column, found: 'first'"):
        load_table(path, text_column="third")
    with pytest.raises(UserError, match="column 'one' cannot be text and label at once"):
        load_table(path, text_column="one", label_column="one")


def test_what_stands_beside_the_columns_with_a_name_is_told(tmp_path):
    lines = [f"{'xy'[i % 2]},some words {i}{', the rest' if i == 4 else ','}," for i in range(9)]
    texts = load_table(write(tmp_path, "\n".join(["v1,v2,,", *lines])))
    assert (
        texts.notes[-1] == "1 rows have more in columns without a name, which is not used, the first: row 6"
    )


def test_every_form_of_a_table_gives_the_same_texts(tmp_path):
    lines = [json.dumps(row) for row in ROWS]
    wanted = load_table(write(tmp_path, as_csv(ROWS)))
    sources = [
        write(tmp_path, "\n".join(lines), "a.jsonl"),
        write(tmp_path, "\n".join(lines), "lines.json"),
        write(tmp_path, json.dumps(ROWS, indent=2), "array.json"),
    ]
    for source in sources:
        texts = load_table(source)
        assert (texts.fingerprint, texts.notes) == (wanted.fingerprint, ()), source
        assert content(texts) == content(texts) == WANTED


def test_a_long_array_is_read_element_by_element(tmp_path):
    rows = [
        {"text": "word " * (i % 40) + str(i), "label": "ab"[i % 2], "more": [{"deep": i}]}
        for i in range(5000)
    ]
    path = write(tmp_path, json.dumps(rows), "long.json")
    assert [*load_table(path).texts] == [row["text"] for row in rows]
    huge = write(tmp_path, json.dumps([{"text": "x" * 200_000, "label": i} for i in range(3)]), "huge.json")
    assert [len(text) for text in load_table(huge).texts] == [200_000] * 3


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_frame_is_a_table(tmp_path, kind):
    frames = pytest.importorskip(kind)
    wanted = load_table(write(tmp_path, as_csv(ROWS)))
    frame = frames.DataFrame(ROWS)
    texts = load_table(frame)
    assert (texts.fingerprint, texts.notes, texts.columns) == (wanted.fingerprint, (), wanted.columns)
    assert content(texts) == content(texts) == WANTED
    missing = frames.DataFrame({"n": [1.5, None, 2.5], "text": ["a", None, "b"], "kind": ["x", "y", None]})
    with pytest.raises(
        UserError, match="the frame: column 'kind' has the one value 'x' in all 1 usable rows"
    ):
        load_table(missing, label_column="kind")
    assert load_table(missing, use_labels=False).notes == ("1 blank texts left out, the first: row 1",)
    with pytest.raises(UserError, match="the frame: no one column 'label', found: 'text'"):
        load_table(frame[["text"]])
    with pytest.raises(UserError, match="a table is a path, or a frame of pandas or polars, not a list"):
        load_table(ROWS)


def test_a_series_or_a_lazy_frame_is_told_what_to_give():
    polars = pytest.importorskip("polars")
    with pytest.raises(UserError, match=r"give frame\.collect"):
        load_table(polars.DataFrame(ROWS).lazy())
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, index=range(100, 160))
    frame["label"] = frame["label"].astype("category")
    assert content(load_table(frame)) == WANTED


cells = st.text(st.characters(exclude_categories=("Cs", "Cc"), max_codepoint=0x24F), min_size=1, max_size=12)
cells = cells.filter(lambda cell: cell.strip())


@per_example
@given(
    rows=st.lists(st.tuples(cells, st.sampled_from(["up", "down"])), min_size=4, max_size=20),
    delimiter=st.sampled_from(",;\t"),
    codec=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_whatever_delimiter_encoding_and_line_ends_a_table_comes_back(tmp_path, rows, delimiter, codec, end):
    rows = [*rows, ("one more", "up"), ("and one", "down")]
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows([("text", "label"), *rows])
    texts = load_table(write(tmp_path, out.getvalue().encode(codec)))
    assert [*zip(*content(texts), strict=True)] == rows
