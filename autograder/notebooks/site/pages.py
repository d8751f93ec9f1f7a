"""From a lesson's notebook, with its outputs, to its page: no script that is not ours, nothing from a network."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.kernel import predictions
from autograder.notebooks.site.running import LEARNERS
from autograder.quizzes import Bank, load_bank
from autograder.show import plain, rich_html

_HERE = Path(__file__).parent
_LESSON_LINK = re.compile(r'href="\.\./(\d\d_\w+)/\1\.ipynb(#[^"]*)?"')
_HEADING = re.compile(r'<h([1-4]) id="([^"]*)">(.*?)<a class="anchor-link".*?</h\1>', re.DOTALL)
_TAG = re.compile(r"<[^>]+>")
_MAX_INDEXED = 4_000  # characters of a section that the search looks through


@dataclass(frozen=True, kw_only=True)
class Section:
    """What a search can find.

    Attributes:
        page: file name and anchor.
        title: of the section; lesson: of its lesson.
        text: what stands there, without marks.
    """

    page: str
    lesson: str
    title: str
    text: str


def lesson_body(notebook: NotebookNode) -> str:
    """The HTML of a lesson: texts, code and outputs; exercises with their stubs, questions without their keys."""
    from nbconvert import HTMLExporter

    shown = nbformat.from_dict(notebook)
    shown.cells = [_for_reading(cell) for cell in shown.cells]
    exporter = HTMLExporter(
        template_name="basic",
        raw_template=(_HERE / "cells.html").read_text(encoding="utf-8"),
        preprocessors=["nbconvert.preprocessors.HighlightMagicsPreprocessor"],
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )
    body, _ = exporter.from_notebook_node(shown)
    # A region that scrolls can be reached by keyboard.
    body = re.sub(r"<(pre|table)\b(?![^>]*tabindex)", r'<\1 tabindex="0"', body)
    return _LESSON_LINK.sub(lambda link: f'href="{link[1]}.html{link[2] or ""}"', body)


def sections_of(page: str, lesson: str, body: str) -> list[Section]:
    """What the search knows of a page."""
    found = list(_HEADING.finditer(body))
    ends = [heading.start() for heading in found[1:]] + [len(body)]
    return [
        Section(
            page=f"{page}#{heading[2]}",
            lesson=lesson,
            title=_words(heading[3]),
            text=_words(re.sub(r"<(style|script|img)\b.*?>", " ", body[heading.end() : end]))[:_MAX_INDEXED],
        )
        for heading, end in zip(found, ends, strict=True)
    ]


def page(template: str, **values: Any) -> str:
    """A whole page. Values are escaped but for `body`."""
    import jinja2

    loader = jinja2.FileSystemLoader(_HERE)
    return jinja2.Environment(loader=loader, autoescape=True).get_template(template).render(**values)


def _words(markup: str) -> str:
    from html import unescape

    return " ".join(unescape(_TAG.sub(" ", markup)).split())


def _for_reading(cell: NotebookNode) -> NotebookNode:
    """The cell as its page shows it."""
    if cell.cell_type != "code" or not LEARNERS.search(cell.source):
        cell.outputs = [_static(output) for output in cell.get("outputs", ())]
        return cell
    if "@exercise" in cell.source:
        return cell
    asked = re.search(r'^(?:quiz|exam)\("(\d\d)"\)', cell.source, re.MULTILINE)
    if asked:
        return nbformat.v4.new_raw_cell(
            _questions(load_bank(asked[1])), metadata={"raw_mimetype": "text/html"}
        )
    what = "the quiz" if "check_quiz" in cell.source else "your solution"
    return nbformat.v4.new_raw_cell(
        page("waiting.html", what=what, source=cell.source), metadata={"raw_mimetype": "text/html"}
    )


def _static(output: NotebookNode) -> NotebookNode:
    """An output without what needs a kernel: a widget is told by its text."""
    data: Mapping[str, Any] = output.get("data", {})
    if "application/vnd.jupyter.widget-view+json" in data:
        asked = str(data.get("text/plain", "")).partition("\nNothing was predicted")[0]
        return nbformat.v4.new_output("display_data", {"text/plain": asked.partition("\nWithout a ")[0]})
    if "text/html" in data:
        output["data"]["text/html"] = data["text/html"].replace(predictions.MISSING_PREDICTION, "")
    return output


def _questions(bank: Bank) -> str:
    asked = [
        {"id": question.id, "text": rich_html(question.text), "options": _options(question)}
        for question in bank.questions
    ]
    return page("questions.html", questions=asked, draw=bank.draw)


def _options(question: Any) -> list[str]:
    return [plain(option.text) for option in getattr(question, "options", ())]
