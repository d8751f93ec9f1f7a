"""What a learner wrote between the code, safe to show: nbgrader puts the texts of a submission into formgrader and into
the feedback as the HTML that they are, and a script there would act for the instructor who opens the page.
"""

from __future__ import annotations

import re
from html import escape, unescape
from pathlib import Path
from urllib.parse import urlsplit

import nbformat
from nbconvert.exporters.exporter import ResourcesDict
from nbconvert.filters import markdown2html
from nbformat import NotebookNode
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor

_TAG = re.compile(r"<[A-Za-z/!?]")
_ADDRESS = re.compile(r'(?:href|src)="([^"]*)"')
_SAFE_SCHEMES = ("", "http", "https", "mailto")


class PlainTexts(NbGraderPreprocessor):
    """Shows a text as it was typed where it holds HTML or an address that runs code; the released texts stay."""

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        released = self._released(resources["nbgrader"])
        for cell in nb.cells:
            if cell.cell_type == "markdown" and cell.source not in released:
                cell.pop("attachments", None)
                cell.source = harmless(cell.source)
        return nb, resources

    def _released(self, names: dict[str, str]) -> set[str]:
        course = CourseDirectory(config=self.config)
        folder = Path(course.format_path(course.release_directory, ".", names["assignment"]))
        try:
            notebook = nbformat.read(folder / f"{names['notebook']}.ipynb", as_version=4)
        except (OSError, ValueError):
            self.log.warning("%s has no notebook: texts with HTML are shown as typed", folder)
            return set()
        return {cell.source for cell in notebook.cells}


def harmless(text: str) -> str:
    """Markdown that shows what this shows, or, where that could run code, the text itself."""
    if not _TAG.search(text):
        addresses = [unescape(found) for found in _ADDRESS.findall(markdown2html(text))]
        if all(_scheme(address) in _SAFE_SCHEMES for address in addresses):
            return text
    return f'<pre style="white-space:pre-wrap">{escape(text)}</pre>'


def _scheme(address: str) -> str:
    try:
        return urlsplit(address).scheme
    except ValueError:
        return "none that is known"
