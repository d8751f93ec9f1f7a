"""What a student gets back: the page that nbgrader makes, with nothing from the network, and the same as a notebook.

nbgrader's page loads MathJax from the network for formulas in TeX. The lessons have none, and of what a student wrote
none is set (`learner_text`). So the page goes without: TeX that an instructor wrote stays as it was typed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from jinja2 import DictLoader
from nbconvert.exporters import HTMLExporter
from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import GetGrades
from traitlets import default

from autograder.common import in_points
from autograder.grading.nbgrader.asked import Questions
from autograder.grading.nbgrader.flags import Flags
from autograder.grading.nbgrader.learner_text import as_typed

_WITHOUT_MATHJAX = {"mathjax.html.j2": "{% macro mathjax(url='') %}{% endmacro %}"}


class Page(HTMLExporter):
    """The page of a student, for `c.GenerateFeedback.exporter_class`: it needs no other file and no network."""

    @default("extra_loaders")
    def _without_mathjax(self) -> list[Any]:
        return [DictLoader(_WITHOUT_MATHJAX)]


def feedback_notebook(coursedir: CourseDirectory, slug: str, student: str) -> str:
    """The same as a notebook: the graded one, with points and comments as texts, as nbgrader's page has them.

    Raises OSError or ValueError where there is no such notebook, and whatever nbgrader raises where it has no grade.
    """
    folder = Path(coursedir.root, coursedir.format_path(coursedir.autograded_directory, student, slug))
    names = {"student": student, "assignment": slug, "notebook": slug, "db_url": coursedir.db_url}
    notebook, resources = nbformat.read(folder / f"{slug}.ipynb", as_version=4), ResourcesDict(nbgrader=names)
    config = coursedir.config
    for step in (Flags(config=config), GetGrades(), Questions(config=config)):
        notebook, resources = step.preprocess(notebook, resources)
    about, cells = resources["nbgrader"], []
    lines = [f"# Feedback: {in_points(about['score'], about['max_score'])}", ""]
    if about["late_penalty"]:
        lines += [f"For lateness: {in_points(about['late_penalty'])} less.", ""]
    lines += ["This is a copy of what you handed in. Your own notebook stays as it is."]
    cells.append(new_markdown_cell("\n".join(lines)))
    for cell in notebook.cells:
        mark = cell.metadata.pop("nbgrader", {})
        cells.append(cell)
        cells += [new_markdown_cell(text) for text in _said(mark)]
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"  # the same at each run
    notebook.cells = cells
    return f"{nbformat.writes(notebook)}\n"


def _said(mark: NotebookNode) -> list[str]:
    """Points and comment of a cell."""
    texts = [f"**{in_points(mark['score'], mark['points'])}**"] if mark.get("grade") else []
    return texts + ([f"**Comment**\n\n{as_typed(mark['comment'])}"] if mark.get("comment") else [])
