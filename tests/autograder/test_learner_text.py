"""A learner's texts run nothing on the pages that show a submission, and look as they did where they are harmless."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
from nbconvert.filters import markdown2html

from autograder.grading.nbgrader.learner_text import harmless
from tests.autograder.nbgrader_course import LESSON_00, Course, cell

ATTACKS = [
    "<script>alert(1)</script>",
    "Look: <img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)//",
    "</div><iframe src='javascript:alert(1)'>",
    "<!-- --><b onmouseover=alert(1)>",
    "</pre><script>alert(1)</script>",
    "[here](javascript:alert(1))",
    "[here](JaVaScript:alert(1))",
    "[here](&#106;avascript:alert(1))",
    "[here][1]\n\n[1]: vbscript:alert(1)",
    "[here](data:text/html;base64,PHNjcmlwdD4=)",
    "![a picture](javascript:alert(1))",
    "![a picture](/logout)",
    "![a picture](https://example.org/was-read.png)",
    "![a picture][1]\n\n[1]: //example.org/was-read.png",
    "[a link](/logout)",
    "`<b>` and [here](javascript:alert(1))",
    "\\<script>alert(1)</script>",
    "$x$ <b onclick=alert(1)>",
]
HARMLESS = [
    "## What I found\n\n- **faster** by 2×, see [the paper](https://example.org/a?b=1#c)",
    "`a < b`, $a < b$, 3 <4, x<-1 and a `<=` b",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "```python\nif a < b:\n    pass\n```",
    "[above](#the-bar) and [mail](mailto:ada@example.org)",
]


class Seen(HTMLParser):
    """The tags of a page, its handlers of events and its addresses."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.handlers: list[str] = []
        self.addresses: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src")]


@pytest.mark.parametrize("text", ATTACKS)
def test_what_could_run_is_shown_as_typed(text: str) -> None:
    seen = Seen(markdown2html(harmless(text)))
    assert seen.tags == ["pre"]
    assert not seen.handlers and not seen.addresses


@pytest.mark.parametrize("text", HARMLESS)
def test_a_harmless_text_is_left_alone(text: str) -> None:
    assert harmless(text) == text


@pytest.mark.slow
def test_a_text_of_the_assignment_is_one_whatever_kind_of_cell_it_comes_as(tmp_path: Path) -> None:
    """nbgrader makes it a text again, behind the step that shows texts as they were typed."""
    course = Course(tmp_path)
    source = course.notebook("source", LESSON_00)
    essay = nbformat.v4.new_markdown_cell("What did you expect?", id="essay")
    mark = {"grade": True, "solution": True, "locked": False, "task": False, "points": 5}
    essay.metadata.nbgrader = mark | {"grade_id": "essay", "schema_version": 3}
    source.cells.append(essay)
    nbformat.write(source, course.root / "source" / LESSON_00 / f"{LESSON_00}.ipynb")
    course.nbgrader("generate_assignment", LESSON_00)
    make = {
        "code": nbformat.v4.new_code_cell,
        "raw": nbformat.v4.new_raw_cell,
        "text": nbformat.v4.new_markdown_cell,
    }
    for kind, new in make.items():
        notebook = course.notebook("release", LESSON_00)
        mine = new(f"{kind} said <script>act()</script>")
        mine.metadata.nbgrader = cell(notebook, "essay").metadata.nbgrader
        notebook.cells = [
            mine if each.metadata.get("nbgrader", {}).get("grade_id") == "essay" else each
            for each in notebook.cells
        ]
        course.submit(kind, LESSON_00, notebook)
    course.nbgrader("autograde", LESSON_00)
    course.nbgrader("generate_feedback", LESSON_00)
    for kind in make:
        page = course.feedback(kind, LESSON_00)
        assert f"{kind} said" in page and "<script>act" not in page
