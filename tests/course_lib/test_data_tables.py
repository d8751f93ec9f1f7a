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

from course_lib.data import load_table
from course_lib.errors import UserError

per_example = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def write(folder: Path, content: str | bytes) -> Path:
    path = folder / "data.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


GOOD = "text,label\na film,good\na bore,bad\nfine,good\ndull,bad\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        ("\n \n\t\n", "the file is empty"),
        ("text,label\n", "no row below the header has both a text and a label"),
        ("text,label\n,x\n \t,y\na,\n", "no row below the header has both a text and a label"),
        ("a,b\n1,2\n", "row 1 does not name a column 'text' (found: 'a', 'b')"),
        ("text,class\n1,2\n", "row 1 does not name a column 'label' (found: 'text', 'class')"),
        ("a film,good\na bore,bad\n", "The first row must be a header with the columns text and label"),
        ("text,label,text\n1,2,3\n", "names the column 'text' more than once (columns 1 and 3): rename one"),
        ("Text,label,TEXT\n1,2,3\n", "names the column 'text' more than once (columns 1 and 3): rename one"),
        ("text,label\na,x\nb,x \n", "column 'label' has the one value 'x' in all 2 usable rows"),
        (
            "text,label\na,x\nb, c,y\n",
            "row 3 has 3 fields but the header has 2: if a comma belongs to the text",
        ),
        ("text,label\na,x\nb\n", "row 3 has 1 field but the header has 2: add the missing comma"),
        ('text,label\n"a\n\nb",x\nc\n', "row 3 has 1 field"),
        ('text,label\na,x\n"b,y\nc,x\n', "row 3: a quote is opened and never closed"),
        ('text,label\na,x\n"b"c,y\n', "row 3: a quoted field goes on after its closing quote"),
        (b"text,label\na,x\ncaf\xe9,y\n", "line 3: byte 0xE9 is not valid UTF-8. Save the file as UTF-8"),
        (b"\xef\xbb\xbftext,label\na,x\ncaf\xe9,y\n", "line 3: byte 0xE9 is not valid UTF-8"),
        (GOOD.encode("utf-16")[:-1], "is not valid UTF-16"),
        (GOOD.encode("utf-16-le"), "line 1 holds a NUL byte"),
        (GOOD.encode("utf-32"), "holds a NUL byte"),
        ("text,label\na,x\nb\0,y\n", "line 3 holds a NUL byte"),
        (b"PK\x03\x04rest", "a zip or Excel file: save it as CSV"),
        (b"\x1f\x8brest", "compressed with gzip: unpack it"),
    ],
)
def test_what_cannot_be_used_is_told_in_one_line(tmp_path, content, message):
    with pytest.raises(UserError) as caught:
        load_table(write(tmp_path, content))
    assert message in str(caught.value)
    assert "data.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_paths_that_are_no_file(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        load_table(tmp_path / "absent.csv")
    with pytest.raises(UserError, match="this is a folder"):
        load_table(tmp_path)
    with pytest.raises(UserError, match="cannot be read"):
        load_table("nul\0byte.csv")
    with pytest.raises(UserError, match="no such file"):
        load_table("~no-such-user-at-all/data.csv")


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (GOOD.replace(",", ";"), "read with the delimiter semicolon instead of comma"),
        (GOOD.replace(",", "\t"), "read with the delimiter tab instead of comma"),
        (GOOD.replace(",", "|"), "read with the delimiter bar instead of comma"),
        (GOOD.replace("text,label", " Text,LABEL"), "column 'LABEL' was read as 'label'"),
        ("\n\n" + GOOD, "2 blank lines above the header skipped"),
        (GOOD + "\n\nz,good\n", "2 blank lines skipped: rows 6, 7"),
        (GOOD + ",good\n  ,bad\n", "2 blank texts dropped: rows 6, 7"),
        (GOOD + "z, \n", "1 text without a label dropped: row 6"),
        (GOOD + ",good\n" * 8, "8 blank texts dropped: rows 6, 7, 8, 9, 10 and 3 more"),
        (GOOD + "z, good\nzz,good \n", "2 labels with spaces around removed: rows 6, 7"),
        (GOOD + "z,rare\n", "labels with a single text, which cannot be validated: 'rare'"),
        (GOOD.encode("utf-16"), "read as UTF-16, as its first two bytes say"),
        (GOOD + "A  FILM,bad\n", "1 texts repeat an earlier one; a split keeps equal texts on one side"),
        (GOOD + "A  FILM,bad\n", "1 of the texts occur with different labels"),
        ("id,text,label\n" + "".join(f"{i},t{i},{i}\n" for i in range(50)), "columns ignored: 'id'"),
        (
            "text,label\n" + "".join(f"t{i},{i}\n" for i in range(50)),
            "50 different labels in 50 rows: is 'label' the right column?",
        ),
    ],
)
def test_what_is_mended_or_left_out_is_reported(tmp_path, content, note):
    texts = load_table(write(tmp_path, content))
    assert note in texts.notes
    assert {"good", "bad"} <= set(texts.label_names) or len(texts.label_names) == 50


@pytest.mark.parametrize(
    "content", [GOOD, "\ufeff" + GOOD, GOOD.replace("\n", "\r\n"), GOOD.replace("\n", "\r")]
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


def test_a_million_characters_are_kept_and_reported(tmp_path):
    long_text = "word, " * 200_000
    texts = load_table(write(tmp_path, f'{GOOD}"{long_text}",good\n'))
    assert list(texts.texts)[-1] == long_text
    assert any("longer than 100,000 characters" in note and "row 6" in note for note in texts.notes)


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
    assert found.notes == wanted.notes == ("columns ignored: 'id'",)


@pytest.mark.parametrize("make", [as_json_lines, as_parquet])
def test_missing_values_are_dropped_and_reported(tmp_path, make):
    rows = [*ROWS[:4], {"text": None, "label": "good"}, {"text": "z", "label": None}]
    found = load_table(make(tmp_path, rows))
    assert len(found) == 4
    assert (
        "1 blank text dropped: row 5" in found.notes
        and "1 text without a label dropped: row 6" in found.notes
    )


def test_labels_of_json_lines_may_be_numbers(tmp_path):
    rows = [{"text": f"t{i}", "label": i} for i in (10, 9, 1)]
    assert load_table(as_json_lines(tmp_path, rows)).label_names == ("1", "9", "10")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("\n \n", "the file is empty"),
        ('{"text": "a", "label": "x"}\n{"text": "b"\n', "row 2 is not JSON"),
        ('{"text": "a", "label": "x"}\nnull\n', "row 2 is not an object. Write one object a line"),
        ('[{"text": "a", "label": "x"}]', "row 1 is not an object"),
        ('{"text": "a", "class": "x"}', "row 1 does not name a column 'label' (found: 'text', 'class')"),
        ('{"text": ["a"], "label": "x"}', "row 1: \"['a']\" is neither text nor a number"),
        ('{"text": "\\ud800", "label": "x"}', "row 1 holds half of a character"),
        ('{"text": "a", "label": "x"}\n' * 3, "column 'label' has the one value 'x' in all 3 usable rows"),
        (b'{"text": "caf\xe9", "label": "x"}', "row 1 is not JSON"),
        ("[" * 100_000, "row 1 is not JSON"),
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
    with pytest.raises(UserError, match="does not name a column 'label'"):
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
        with pytest.raises(UserError, match="does not name a column 'label'"):
            load_table(path)
    assert load_table(write(tmp_path, GOOD), use_labels=False).notes == ("columns ignored: 'label'",)


def test_a_file_that_changes_under_the_reader_is_noticed(tmp_path):
    path = write(tmp_path, GOOD)
    texts = load_table(path)
    write(tmp_path, GOOD + "more,good\n")
    with pytest.raises(UserError, match="the file changed while it was being read"):
        list(texts.texts)


plain = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=20)
named = plain.filter(lambda value: value.strip())


@per_example
@given(
    rows=st.lists(st.tuples(named, named.map(str.strip)), min_size=2, max_size=15),
    delimiter=st.sampled_from(",;\t|"),
    line_end=st.sampled_from(["\n", "\r\n"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
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


def records_left_out(notes: tuple[str, ...]) -> int:
    pattern = r"(\d+) (?:blank lines? skipped|blank texts? dropped|texts? without a label dropped)"
    return sum(int(found[1]) for note in notes if (found := re.match(pattern, note)))


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
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    decoded = io.StringIO(content.decode(encoding), newline="")
    above = sum(
        int(n[0].split()[0]) for n in [re.findall(r"\d+ blank lines? above", m) for m in texts.notes] if n
    )
    named_delimiter = next(
        (n.split()[-4] for n in texts.notes if n.startswith("read with the delimiter")), "comma"
    )
    delimiter = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}[named_delimiter]
    records = len(list(csv.reader(decoded, delimiter=delimiter)))
    assert records == 1 + above + len(texts) + records_left_out(texts.notes)


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
