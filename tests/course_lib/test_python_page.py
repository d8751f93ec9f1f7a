"""docs/python.md shows each name of the face in code that runs, and prints what it says."""

import re
from pathlib import Path

import pytest

import course_lib
from tests.benchmarks.made_csv import make_csv
from tests.course_lib.blocks import python_blocks, run_blocks

PAGE = Path(__file__).parents[2] / "docs" / "python.md"


def test_every_name_of_the_face_is_told_and_used():
    text = PAGE.read_text(encoding="utf-8")
    code = "\n".join(python_blocks(text))
    face = course_lib.__doc__
    for name in course_lib.__all__:
        assert f"**`{name}`**" in text, f"docs/python.md does not tell of {name}"
        assert len(re.findall(rf"\b{name}\b", code)) >= 2, (
            f"docs/python.md imports {name} and does not use it"
        )
        assert f"`{name}`" in face, f"the docstring of course_lib does not lead to {name}"
        assert getattr(course_lib, name).__doc__, name
    told = set(re.findall(r"\*\*`(\w+)`\*\*", text))
    assert told == set(course_lib.__all__)


def test_the_page_runs_as_it_stands(tmp_path, monkeypatch):
    pytest.importorskip("optuna")
    pytest.importorskip("safetensors")
    make_csv(tmp_path / "reviews.csv", num_rows=300)
    monkeypatch.chdir(tmp_path)
    run_blocks(PAGE, PAGE.read_text(encoding="utf-8"))


def test_a_block_that_prints_something_else_is_an_error(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("Words.\n\n```python\na = 1\nprint(a)  # 2\n```\n")
    with pytest.raises(AssertionError, match=r"page\.md, block at line 4"):
        run_blocks(page, page.read_text())
    page.write_text("```python\na = 1\n```\n\n```python\nprint(a)  # 1\nb = c\n```\n")
    with pytest.raises(NameError) as caught:
        run_blocks(page, page.read_text())
    assert caught.traceback[-1].lineno == 6  # from 0
