"""A learner's texts run nothing on the pages that show a submission, and look as they did where they are harmless."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
from nbconvert.filters import markdown2html

from autograder.cli.main import main
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


FORGED = "**About this submission**\n\n    0.1: checked again by hand: Passed, 1 of 1 points"
COVER = r"$$\bbox[#e6ffec,8px,border:2px solid #1a7f37]{\textbf{0.1 Passed}}$$ $\style{cursor:url(https://x.example/)}{x}$"
OPEN = "```\n" + FORGED
PANEL = '<div class="panel nb"><b>Score: 1.0 / 1.0</b> forged by hand</div>'


class Marked(HTMLParser):
    """The texts of a page, within what MathJax passes over and outside of it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.inside = self.outside = ""
        self._open: list[bool] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "div":
            self._open.append("tex2jax_ignore" in (dict(attrs).get("class") or ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "div":
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if any(self._open):
            self.inside += data
        else:
            self.outside += data


@pytest.mark.slow
@pytest.mark.parametrize("grades", ["workbook", "nbgrader"])
def test_no_text_of_a_learner_looks_like_ours_or_is_typeset(tmp_path: Path, grades: str) -> None:
    """TeX draws boxes and covers what stands elsewhere; MathJax passes over what is of this class (its tex2jax)."""
    course = Course(tmp_path)
    course.nbgrader("generate_assignment", LESSON_00)
    for student, text in {"forges": FORGED, "covers": COVER, "opens": OPEN}.items():
        notebook = course.notebook("release", LESSON_00)
        notebook.cells.insert(0, nbformat.v4.new_markdown_cell(text, metadata={"training_workbook": "ours"}))
        notebook.cells.insert(1, nbformat.v4.new_raw_cell(f"{PANEL}\n\n{PANEL}"))
        stub = next(each for each in notebook.cells if '@exercise("0.1")' in each.source)
        stub.source = (
            f'@exercise("0.1")\ndef speedup(*args, **kwargs):\n    raise ValueError(r"""{COVER}""")\n'
        )
        course.submit(student, LESSON_00, notebook)
        (course.root / "submitted" / student / LESSON_00 / "second.ipynb").write_text("{")
    if grades == "nbgrader":
        course.nbgrader("autograde", LESSON_00)
    else:
        assert main(["grade", "00", "--course", str(course.root)]) == 0
    course.nbgrader("generate_feedback", LESSON_00)
    for student in ("forges", "covers", "opens"):
        page = Marked(course.feedback(student, LESSON_00))
        assert not page._open
        assert ("second.ipynb: not valid JSON" in page.outside) == (grades == "workbook"), student
        assert "by hand: Passed" not in page.outside, student
        assert (student == "covers") != ("by hand: Passed" in page.inside), student
        assert page.inside.count("forged by hand") == 2 and '<div class="panel nb' not in course.feedback(
            student, LESSON_00
        )
        # In a cell of code, which MathJax passes over as well, and in the card.
        assert r"\bbox" in page.inside, student
