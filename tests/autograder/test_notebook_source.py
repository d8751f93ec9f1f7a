"""Exercise cells are found whatever was done to the notebook around them."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.engine.source.notebook import (
    as_python,
    exercise_ids,
    exercise_sources,
    is_stub,
    read_notebook,
)
from course_lib.base.errors import UserError

STUB = '@exercise("1.1")\ndef collate(batch):\n    """Text."""\n    # YOUR CODE HERE\n    raise NotImplementedError\n'
CLASS = (
    "class collate:\n    def __init__(self):\n        self.x = 1\n"
    "    def run(self):\n        raise NotImplementedError\n    def go(self):\n        {body}\n"
)
DONE = '@exercise("1.1")\ndef collate(batch):\n    return {}\n'


def notebook(*sources: object) -> dict[str, object]:
    return {"cells": [{"cell_type": "code", "source": source} for source in sources]}


def test_sources_as_text_or_lines_and_the_last_cell_counts() -> None:
    lines = DONE.splitlines(keepends=True)
    assert exercise_sources(notebook("x = 1", STUB, lines)) == {"1.1": DONE}


def test_a_syntax_error_hides_nothing_and_a_comment_marks_nothing() -> None:
    assert exercise_ids("@exercise('1.2')\ndef f(:\n") == ["1.2"]
    assert exercise_ids('# @exercise("1.2")\n') == []


@pytest.mark.parametrize(
    "source",
    [
        "%%time\n" + DONE,
        "!pip --version\n" + DONE + "collate?",
        DONE.replace("@exercise", "@autograder.exercise"),
        DONE.replace('"1.1"', "\n    exercise_id='1.1',  # the first\n"),
        'collate = exercise("1.1")(lambda batch: {})',
        'NOTES = """\n@exercise("1.2")\n"""\n' + DONE,
    ],
)
def test_an_exercise_is_found_however_it_is_written(source: str) -> None:
    assert exercise_ids(source) == ["1.1"]


_LINES = st.lists(
    st.sampled_from(["%time 1", "!ls -l", "collate?", "?len", "files = !ls", "x = 1", "", "# %no"])
)


@given(top=st.sampled_from(["", "%%time\n", "\n \n%%capture out\n"]), before=_LINES, after=_LINES)
def test_magics_hide_no_python(top: str, before: list[str], after: list[str]) -> None:
    cell = top + "\n".join([*before, DONE, *after]) + "\n"
    assert exercise_ids(cell) == ["1.1"]
    kept = [ast.dump(node) for node in ast.parse(as_python(cell)).body if isinstance(node, ast.FunctionDef)]
    assert kept == [ast.dump(ast.parse(DONE).body[0])]


def test_python_stays_as_it_is_and_magics_become_comments() -> None:
    assert as_python(DONE) == DONE
    assert as_python("%%time\nx = 1\n") == "# %%time\nx = 1\n"
    assert as_python('s = """\n%no\n"""\n!ls\n') == 's = """\n%no\n"""\npass  # !ls\n'
    assert "def f(:" in as_python("def f(:\n")


def test_cells_without_text_are_passed_over() -> None:
    broken = {"cells": [None, 3, {"cell_type": "code"}, {"cell_type": "markdown", "source": STUB}]}
    assert exercise_sources(broken) == {}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (STUB, True),
        (STUB.replace("NotImplementedError", "NotImplementedError('later')"), True),
        (DONE, False),
        (STUB.replace("raise", "x = 1\n    raise"), False),
        ("def f(:", False),
        (CLASS.format(body="raise NotImplementedError"), True),
        (CLASS.format(body="return 1"), False),
        ("def other():\n    raise NotImplementedError", False),
        (STUB + DONE, False),
        (DONE + STUB, True),
        (STUB + "collate = print\n", False),
        ("%%time\n" + DONE, False),
    ],
)
def test_what_is_still_the_stub(source: str, expected: bool) -> None:
    assert is_stub(source, "collate") is expected


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "no such file"),
        (b"", "not valid JSON"),
        (b"\xff\xfe\x00", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[1]", "not a notebook"),
        (json.dumps({"cells": 3}).encode(), "not a notebook"),
    ],
)
def test_what_is_no_notebook_gets_one_line(tmp_path: Path, content: bytes | None, says: str) -> None:
    path = tmp_path / "a.ipynb"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=says) as raised:
        read_notebook(path)
    assert "\n" not in str(raised.value)
