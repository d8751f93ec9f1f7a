"""A learner's CSV: every row is used, or a line says which was not and why."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from course_lib.base.errors import UserError
from course_lib.data import load_table

per_example = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def write(folder: Path, content: str | bytes) -> Path:
    path = folder / "data.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


GOOD = "text,label\na film,good\na bore,bad\nfine,good\ndull,bad\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no one column 'text', found: nothing. Name the one with the texts: text_column="),
        (b"\xef\xbb\xbf", "no one column 'text', found"),
        ("\n \n\t\n", "no one column 'text', found"),
        ("text,label\n", "no row has a text and a label"),
        ("text,label\n,x\n \t,y\na,\n", "no row has a text and a label"),
        ("a,b\n1,2\n", "no one column 'text', found: 'a', 'b'"),
        ("text,class\n1,2\n", "column 'class' has the one value '2'"),
        ("text,one,other\na,b,c\nd,e,f\n", "no one column 'label', found: 'text', 'one', 'other'"),
        ("text,label,text\n1,2,3\n", "there must be one column 'text', found: 'text', 'label', 'text'"),
        ("Text,label,TEXT\n1,2,3\n", "there must be one column 'text'"),
        ("text,label\na,x\nb,x \n", "column 'label' has the one value 'x' in all 2 usable rows"),
        ("text,label\na,x\nb, c,y\n", "row 3 has 3 fields, the header 2. Put a text with delimiters"),
        ("text,label\na,x\nb\n", "row 3 has 1 fields, the header 2"),
        ('text,label\n"a\n\nb",x\nc\n', "row 3 has 1 fields"),
        ('text,label\na,x\n"b,y\nc,x\n', "row 3: unexpected end of data. Put a text with"),
        ('text,label\na,x\n"b"c,y\n', "row 3: ',' expected after '\"'. Put a text with"),
        ("text,label\na,x\ncafé,y\n".encode() + b"caf\xe9,y\n", "line 4 is not UTF-8, and line 3 is: two"),
        (b"\xef\xbb\xbftext,label\na,x\ncaf\xe9,y\n", "Save the file as UTF-8"),
        (b"text,label\n\xef\xf0\xe8\xe2\xe5\xf2,x\nb,y\n", "nor Western European: name its encoding"),
        (b"text,label\na\x81b,x\nb,y\n", "nor Western European"),
        (b"text,label\na\x02,x\nb\xe9,y\n", "line 3 is not text"),
        (GOOD.encode("utf-16")[:-1], "what follows line 4 is not utf-16: truncated data"),
        ("text,label\na,x\nb\0,y\n", "line 3 is not text: it holds a NUL byte"),
        (b"PK\x03\x04rest\xff", "this is no text but an Excel workbook or a zip archive: save the sheet"),
        (b"\x1f\x8brest", "compressed by gzip: unpack it"),
        (b"PAR1rest", "its name must end in .parquet"),
    ],
)
def test_what_cannot_be_used_is_told_in_one_line(tmp_path, content, message):
    with pytest.raises(UserError) as caught:
        load_table(write(tmp_path, content))
    assert message in str(caught.value)
    assert "data.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_paths_that_are_no_file(tmp_path):
    with pytest.raises(UserError, match=r"absent.csv: No such file"):
        load_table(tmp_path / "absent.csv")
    with pytest.raises(UserError, match="Is a directory"):
        load_table(tmp_path)
    with pytest.raises(UserError, match="null byte"):
        load_table("nul\0byte.csv")
    with pytest.raises(UserError, match="No such file"):
        load_table("~no-such-user-at-all/data.csv")


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (GOOD + ",good\n  ,bad\n", "2 blank texts left out, the first: row 6"),
        (GOOD + "z, \n", "1 texts without a label left out, the first: row 6"),
        (GOOD + "z,rare\n", "1 labels with a single text, not to be validated, the first: 'rare'"),
        (GOOD + "A  FILM,good\n", "1 texts repeat an earlier one (a split keeps equal texts on one side)"),
        (GOOD + "A  FILM,bad\n", "side), 1 of them with different labels"),
        (
            "text,label\n" + "".join(f"t{i},{i}\n" for i in range(50)),
            "50 different labels in 50 rows: is 'label' the right column? A number to predict is task=regression",
        ),
        (
            "text,label\n" + "".join(f"t{i},x{i}\n" for i in range(4)),
            "4 different labels in 4 rows: is 'label' the right column?",
        ),
    ],
)
def test_what_is_left_out_or_odd_is_reported(tmp_path, content, note):
    texts = load_table(write(tmp_path, content))
    assert len(texts.notes) == 1 and texts.notes[0].endswith(note)
    assert {"good", "bad"} <= set(texts.label_names) or len(texts.label_names) == len(texts)


@pytest.mark.parametrize(
    "content",
    [
        *(GOOD, "\ufeff" + GOOD, GOOD.replace("\n", "\r\n"), GOOD.replace("\n", "\n\n"), "\n" + GOOD),
        *(GOOD.replace("text,label", " Text,LABEL "), GOOD.replace(",good", ", good ")),
        *(GOOD.replace("\n", ",,\n").replace("label,,", "label"), GOOD.replace("\n", "\r")),
    ],
)
def test_a_good_file_needs_no_note(tmp_path, content):
    texts = load_table(str(write(tmp_path, content)))
    assert list(texts.texts) == ["a film", "a bore", "fine", "dull"]
    assert texts.label_names == ("bad", "good")
    assert texts.labels.dtype == np.int64 and texts.labels.tolist() == [1, 0, 1, 0]
    assert texts.notes == ()
    assert len(set(texts.groups)) == 4
    assert re.fullmatch(r"[0-9a-f]{64}", texts.fingerprint)


def test_integer_labels_come_in_numeric_order(tmp_path):
    assert load_table(write(tmp_path, "text,label\na,10\nb,9\nc,-1\n")).label_names == ("-1", "9", "10")


def test_a_million_characters_are_kept(tmp_path):
    long_text = "word, " * 200_000
    texts = load_table(write(tmp_path, f'{GOOD}"{long_text}",good\n'))
    assert list(texts.texts)[-1] == long_text


def test_the_fingerprint_is_of_the_content(tmp_path):
    first = load_table(write(tmp_path, GOOD)).fingerprint
    assert load_table(write(tmp_path, GOOD.replace("\n", "\r\n"))).fingerprint == first
    assert load_table(write(tmp_path, GOOD.replace("dull", "dul"))).fingerprint != first
    assert load_table(write(tmp_path, GOOD.replace("fine,good", "fine,bad"))).fingerprint != first


def as_json_lines(folder: Path, rows: list[dict[str, object]], name: str = "data.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def as_parquet(folder: Path, rows: list[dict[str, object]]) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    path = folder / "data.parquet"
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.Table.from_pylist(rows), path)
    return path


ROWS = [{"id": i, "text": f"text, number {i}", "label": ["good", "bad"][i % 2]} for i in range(3000)]


@pytest.mark.parametrize("make", [as_json_lines, as_parquet])
def test_json_lines_and_parquet_hold_what_a_csv_holds(tmp_path, make):
    lines = "".join(f'{row["id"]},"{row["text"]}",{row["label"]}\n' for row in ROWS)
    wanted = load_table(write(tmp_path, "id,text,label\n" + lines))
    found = load_table(make(tmp_path, ROWS))
    assert list(found.texts) == list(wanted.texts) == [row["text"] for row in ROWS]
    assert list(found.texts) == list(wanted.texts), "it can be read again"
    assert found.label_names == wanted.label_names and found.labels.tolist() == wanted.labels.tolist()
    assert found.fingerprint == wanted.fingerprint
    assert found.notes == wanted.notes == ("not used: 'id'",)


@pytest.mark.parametrize("make", [as_json_lines, as_parquet])
def test_missing_values_are_dropped_and_reported(tmp_path, make):
    rows = [*ROWS[:4], {"text": None, "label": "good"}, {"text": "z", "label": None}]
    found = load_table(make(tmp_path, rows))
    assert len(found) == 4
    left_out = (
        "1 blank texts left out, the first: row 5",
        "1 texts without a label left out, the first: row 6",
    )
    assert found.notes == ("not used: 'id'", *left_out)


def test_labels_of_json_lines_may_be_numbers(tmp_path):
    rows = [{"text": f"t{i}", "label": i} for i in (10, 9, 1)]
    assert load_table(as_json_lines(tmp_path, rows)).label_names == ("1", "9", "10")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no one column 'text', found: nothing"),
        ("\n \n", "no one column 'text', found: nothing"),
        (
            '{"text": "a", "label": "x"}\n{"text": "b"\n',
            "row 2 is not a JSON object. Write one object a line",
        ),
        ('{"text": "a", "label": "x"}\nnull\n', "row 2 is not a JSON object"),
        ('[{"text": "a", "label": "x"}]', "column 'label' has the one value 'x' in all 1 usable rows"),
        ('[{"text": "a", "label": "x"}, 7]', "row 2 is not a JSON object"),
        ('[{"text": "a", "label": "x"} {}]', "no comma after row 1"),
        ('[{"text": "a", "label": "x"}', "the array is not closed after row 1: the file was cut"),
        ('[{"text": "a", "label": "x"}, {"te', "row 2 is not a JSON object"),
        ('[{"text": "a", "label": "x"}] {}', "there is more after the array's end, row 1"),
        ('{"text": "a"}', "no one column 'label', found: 'text'"),
        ('{"text": ["a"], "label": "x"}', "row 1: \"['a']\" is neither text nor a number"),
        ('{"text": "\\ud800", "label": "x"}', "row 1: '?' holds half a character"),
        ('{"text": "a", "label": "x"}\n' * 3, "column 'label' has the one value 'x' in all 3 usable rows"),
        (b'{"text": "caf\xe9", "label": "caf\xc3\xa9"}', "line 1 is not UTF-8, and line 1 is"),
        ("[" * 100_000, "row 1 is not a JSON object"),
    ],
)
def test_bad_json_lines_are_told_in_one_line(tmp_path, content, message):
    path = tmp_path / "data.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError) as caught:
        load_table(path)
    assert message in str(caught.value) and "data.jsonl" in str(caught.value)


def test_a_damaged_parquet_file_is_told_in_one_line(tmp_path):
    path = as_parquet(tmp_path, ROWS)
    whole = path.read_bytes()
    for content in (
        whole[:-9],
        b"PAR1",
        b"",
        whole[: len(whole) // 2] + b"x" * 1000 + whole[len(whole) // 2 + 1000 :],
    ):
        path.write_bytes(content)
        with pytest.raises(UserError) as caught:
            list(load_table(path).texts)
        assert "data.parquet" in str(caught.value)
    no_label = as_parquet(tmp_path, [{"text": "a"}])
    with pytest.raises(UserError, match="no one column 'label'"):
        load_table(no_label)


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    path = as_parquet(tmp_path, ROWS)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(UserError, match=r"training-workbook\[parquet\]"):
        load_table(path)


def test_text_alone_is_enough_where_labels_are_not_used(tmp_path):
    for path in (
        write(tmp_path, "text\na film\n\na bore\n"),
        as_json_lines(tmp_path, [{"text": "a film"}, {"text": "a bore"}]),
    ):
        texts = load_table(path, use_labels=False)
        assert list(texts.texts) == ["a film", "a bore"] and texts.labels.tolist() == [0, 0]
        with pytest.raises(UserError, match="no one column 'label'"):
            load_table(path)
    assert load_table(write(tmp_path, GOOD), use_labels=False).notes == ()


def test_a_file_that_changes_under_the_reader_is_noticed(tmp_path):
    path = write(tmp_path, GOOD)
    texts = load_table(path)
    write(tmp_path, GOOD + "more,good\n")
    with pytest.raises(UserError, match="the table changed while it was being read"):
        list(texts.texts)


plain = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=20)
named = plain.filter(lambda value: value.strip())


@per_example
@given(
    rows=st.lists(st.tuples(named, named.map(str.strip)), min_size=2, max_size=15),
    delimiter=st.sampled_from(",;\t"),
    line_end=st.sampled_from(["\n", "\r\n"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig"]),
)
def test_what_csv_writes_comes_back(tmp_path, rows, delimiter, line_end, encoding):
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, lineterminator=line_end, quoting=csv.QUOTE_ALL).writerows(
        [("text", "label"), *rows]
    )
    path = tmp_path / "data.csv"
    path.write_bytes(out.getvalue().encode(encoding))
    if len({label for _, label in rows}) == 1:
        with pytest.raises(UserError, match="one value"):
            load_table(path)
        return
    texts = load_table(path)
    assert [(t, texts.label_names[n]) for t, n in zip(texts.texts, texts.labels, strict=True)] == rows


pieces = st.sampled_from(
    [
        "text",
        "label",
        ",",
        ";",
        "\t",
        "|",
        '"',
        '""',
        "\n",
        "\r\n",
        "\r",
        " ",
        "a",
        "b",
        "é",
        "\ufeff",
        "\0",
        "x,y\n",
    ]
)


@settings(per_example, max_examples=400)
@given(
    st.one_of(st.binary(max_size=80), st.lists(pieces, max_size=40).map("".join).map(str.encode)),
    st.booleans(),
)
@example(b'text,label\n"a",x\n"",y\n\n b ,y\n', False)
def test_any_bytes_of_a_csv_give_a_user_error_or_account_for_each_record(tmp_path, content, with_header):
    content = b"text,label\n" + content if with_header else content
    path = write(tmp_path, content)
    try:
        texts = load_table(path)
    except UserError as error:
        assert "\n" not in str(error) and len(str(error)) > 20
        return
    assert len(list(texts.texts)) == len(texts.texts) == len(texts.labels) and len(texts.label_names) >= 2
    assert all(text.strip() for text in texts.texts)
    lines = content.decode("utf-8-sig").lstrip("\n").split("\n")
    counts = [
        sum(any(row) for row in csv.reader([line + "\n" for line in lines], delimiter=delimiter))
        for delimiter in ",;\t"
    ]
    left_out = sum(int(note.split()[0]) for note in texts.notes if "left out" in note)
    assert 1 + len(texts) + left_out <= max(counts), "no row is made up"
    assert 1 + len(texts) + left_out >= min(counts), "none is lost without a note"


values = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.lists(st.text(max_size=2))
)
objects = st.dictionaries(st.sampled_from(["text", "label", "Text", ""]), values).map(json.dumps)


@settings(per_example, max_examples=200)
@given(
    st.lists(objects | st.text(max_size=9) | st.just('{"text": "a", "label": 1}'), max_size=6),
    st.binary(max_size=4),
)
def test_any_json_lines_give_a_user_error_or_texts(tmp_path, lines, tail):
    path = tmp_path / "data.jsonl"
    path.write_bytes("\n".join(lines).encode() + tail)
    try:
        texts = load_table(path)
    except UserError as error:
        assert "\n" not in str(error) and len(str(error)) > 20
        return
    assert len(list(texts.texts)) == len(texts) > 0 and len(texts.label_names) > 1
