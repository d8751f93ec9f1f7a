"""Five hundred damaged tables: real texts, damaged as tables are. Each is refused in one line that says where, with
nothing written and the file untouched; none is read as if it were whole."""

from __future__ import annotations

import csv
import io
import json
import random
import re

import pytest

from course_lib.base.errors import UserError
from course_lib.cli import main as cli
from course_lib.data import load_docstrings, load_table

NUM_EACH = 50
ACCENTED = ["café", "naïve", "Größe", "señor", "à propos"]


@pytest.fixture(scope="module")
def real():
    corpus = load_docstrings()
    chosen = [i for i, text in enumerate(corpus.texts) if 30 < len(text) < 300][::10]
    return [(corpus.texts[i], corpus.label_names[corpus.labels[i]]) for i in chosen]


def rows_of(rng, real):
    while True:
        rows = rng.sample(real, rng.randint(12, 40))
        if len({label for _, label in rows}) > 1:
            return rows


def as_csv(rows, delimiter=","):
    """A list of written rows, the header first."""
    written = []
    for row in [("text", "label"), *rows]:
        out = io.StringIO(newline="")
        csv.writer(out, delimiter=delimiter, lineterminator="\n").writerow(row)
        written.append(out.getvalue())
    return written


def row_cut(rng, rows):
    """The end of a row is lost: its label, or a part of its text as well."""
    lines = as_csv(rows, rng.choice(",;"))
    i = rng.randrange(1, len(lines))
    # Up to the last delimiter at most, which in front of the label is the only one outside quotes.
    lines[i] = lines[i][: rng.randint(1, len(lines[i]) - len(rows[i - 1][1]) - 2)] + "\n"
    return "".join(lines).encode(), "csv"


def quote_opened(rng, rows):
    lines = as_csv(rows, rng.choice(",;"))
    i = rng.choice([i for i in range(1, len(lines)) if not lines[i].startswith('"')] or [1])
    lines[i] = '"' + lines[i] if not lines[i].startswith('"') else lines[i][1:]
    return "".join(lines).encode(), "csv"


def quote_in_a_quoted_text(rng, rows):
    """Written by a program that puts quotes around a text and does not double those inside."""
    rows = [(text.replace('"', ""), label) for text, label in rows]
    i = rng.randrange(len(rows))
    lines = as_csv(
        [
            (f'{text}, "so" they say', label) if j == i else (text, label)
            for j, (text, label) in enumerate(rows)
        ]
    )
    lines[i + 1] = lines[i + 1].replace('""', '"')
    return "".join(lines).encode(), "csv"


def encodings_mixed(rng, rows):
    """Some lines by one program, some by another."""
    rows = [(text.encode("ascii", "ignore").decode(), label) for text, label in rows]
    rows = [(f"{rng.choice(ACCENTED)} {text} {rng.choice(ACCENTED)}", label) for text, label in rows]
    lines = as_csv(rows, rng.choice(",;\t"))
    codecs = ["utf-8", "cp1252", *rng.choices(["utf-8", "cp1252"], k=len(lines) - 3)]
    return b"".join(line.encode(codec) for line, codec in zip(lines, ["utf-8", *codecs], strict=True)), "csv"


def columns_shifted(rng, rows):
    """From some row on there is a column more, or one less."""
    delimiter = rng.choice(",;\t")
    start = rng.randrange(len(rows))
    if rng.random() < 0.5:
        shifted = [(str(i), *row) for i, row in enumerate(rows[start:])]
    else:
        shifted = [(text,) for text, _ in rows[start:]]
    shifted = shifted[: rng.randint(1, len(shifted))]
    whole = [*rows[:start], *shifted, *rows[start + len(shifted) :]]
    return "".join(as_csv(whole, delimiter)).encode(), "tsv" if delimiter == "\t" else "csv"


def delimiter_changed(rng, rows):
    lines = as_csv([(re.sub(r'[,;\t"\n]', " ", text), label) for text, label in rows], ",")
    for i in rng.sample(range(1, len(lines)), rng.randint(1, len(lines) // 3)):
        lines[i] = lines[i].replace(",", ";")
    return "".join(lines).encode(), "csv"


def line_broken(rng, rows):
    """A line break inside a text that is not in quotes."""
    lines = as_csv([(re.sub(r'[,"\n]', " ", text), label) for text, label in rows], ",")
    i = rng.randrange(1, len(lines))
    at = rng.randint(5, len(rows[i - 1][0]) - 5)
    lines[i] = f"x{lines[i][:at]}\n{lines[i][at:]}"
    return "".join(lines).encode(), "csv"


def zeros_inside(rng, rows):
    data = bytearray("".join(as_csv(rows)).encode())
    start = rng.randrange(len(data) // 2, len(data))
    data[start : start + rng.randint(1, 64)] = bytes(rng.randint(1, 64))
    return bytes(data), "csv"


def object_cut(rng, rows):
    lines = [json.dumps({"text": text, "label": label}) for text, label in rows]
    i = rng.randrange(len(lines))
    lines[i] = lines[i][: rng.randrange(1, len(lines[i]))]
    return "\n".join(lines).encode(), "jsonl"


def array_cut(rng, rows):
    written = json.dumps([{"text": text, "label": label} for text, label in rows])
    return written[: rng.randrange(2, len(written))].encode(), "json"


DAMAGES = (
    row_cut, quote_opened, quote_in_a_quoted_text, encodings_mixed, columns_shifted, delimiter_changed, line_broken,
    zeros_inside, object_cut, array_cut,
)  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_tables_are_refused(damage, real, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COURSE_LIB_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    rng = random.Random(damage.__name__)
    for number in range(NUM_EACH):
        data, ending = damage(rng, rows_of(rng, real))
        path = tmp_path / f"data.{ending}"
        path.write_bytes(data)
        code = cli.main(["train", "--data", str(path), "--set", "max_steps=1", "--out", "run"])
        stdout, stderr = capsys.readouterr()
        case = f"{damage.__name__} {number}: {stderr}"
        assert (code, stdout, stderr.count("\n")) == (2, "", 1), case
        assert stderr.startswith(f"course-lib: {path}: ") and len(stderr) < 700, case
        assert re.search(r"\b(row|line) \d+", stderr), case
        assert path.read_bytes() == data, case
        assert [*tmp_path.iterdir()] == [path], case
        path.unlink()


def test_a_file_that_ends_early_is_refused_or_read_up_to_there(real, tmp_path):
    """Where it ends between two rows, or inside the last label, nothing in it says so."""
    rng = random.Random(0)
    for _ in range(NUM_EACH):
        rows = rows_of(rng, real)
        written = "".join(as_csv(rows)).encode()
        path = tmp_path / "data.csv"
        path.write_bytes(written[: rng.randrange(len(written) // 2, len(written))])
        try:
            texts = load_table(path)
        except UserError as error:
            assert re.search(r"row \d+", str(error)), error
            continue
        found = [*texts.texts]
        assert found == [text for text, _ in rows[: len(found)]]
        labels = [texts.label_names[i] for i in texts.labels]
        assert labels[:-1] == [label for _, label in rows[: len(found) - 1]]
        assert rows[len(found) - 1][1].startswith(labels[-1])
