"""What a learner wrote, safe to show: nbgrader puts the texts of a submission into formgrader and into the feedback as
the HTML that they are, and a script there would act for the instructor who opens the page. And it renders them in its
own process, where a text that was written for it would be rendered for hours.

So each text that was not handed out is rendered once beforehand, apart; what does not come out well is shown as typed.
Each is marked as the student's, so that none looks like ours. MathJax, which these pages load, passes over it: TeX can
draw over what stands elsewhere, and fetch.
"""

from __future__ import annotations

import contextlib
import re
import time
from html import escape, unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import nbformat
from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor

from autograder.common import ApartError, printable, run_apart
from autograder.grading.reading import IMAGES, OURS, images_of
from autograder.grading.submissions import sources_at_hand

SECONDS = 3.0  # of CPU, for all texts of a notebook together
_SECONDS_ALONE = 1.0  # for one, once they do not come out together
# Processes that such texts may end: each costs the seconds that another needs to load.
_MOST_ENDED = 2
_LOADING_SECONDS = 20.0  # of that, which is no text's fault
MAX_CODE = 20_000  # characters of a cell in colours; each takes some twenty on the page
MAX_PAGE = 20_000_000  # characters of HTML, of all texts together
_TAG = re.compile(r"<[A-Za-z/!?]")
_ADDRESS = re.compile(r'(href|src)="([^"]*)"')
_SAFE_SCHEMES = ("http", "https", "mailto")
_SAFE_DATA = tuple(f"data:{kind};base64," for kind in IMAGES)
_THEIRS = (
    '<div class="tex2jax_ignore" style="border-left:3px solid #888;padding-left:.8em">'
    '<small style="opacity:.75">The student’s own text</small>\n\n'
)
_END = "</div>"
Text = tuple[str, str, dict[str, Any]]  # kind of the cell, its source, its images


class PlainTexts(NbGraderPreprocessor):
    """Marks each text as the student's, and shows it as it was typed where it holds HTML, an address that acts, or what
    cannot be rendered in time; the released texts stay. Images that were pasted into a text stay as well, and no other
    attachments."""

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        for cell in _others(
            self, nb, resources["nbgrader"], "raw"
        ):  # it would be HTML of its own on the page
            cell.cell_type = "markdown"
            cell.source = f"{_THEIRS}{as_typed(cell.source)}\n\n{_END}"
        cells = [
            cell
            for cell in _others(self, nb, resources["nbgrader"], "markdown")
            if not cell.source.startswith(_THEIRS)
        ]
        for cell in cells:
            cell.source = printable(cell.source)
        for cell in cells:
            if images := images_of(cell.pop("attachments", None)):
                cell.attachments = nbformat.from_dict(images)
        texts = [(cell.cell_type, cell.source, cell.get("attachments", {})) for cell in cells]
        for cell, comes_out in zip(cells, come_out(texts), strict=True):
            if not comes_out:
                cell.source = as_typed(cell.source)
                cell.pop("attachments", None)
            cell.source = f"{_THEIRS}{cell.source}\n\n{_END}"
        return nb, resources


class PlainCode(NbGraderPreprocessor):
    """Shows code without colours where it is very long or cannot be coloured in time. It goes behind the steps that
    grade, and behind nbgrader's `ClearMetadata`: the mark that it sets is one that nbconvert looks for."""

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        nb.metadata.language_info = nbformat.from_dict({"name": "python", "pygments_lexer": "ipython3"})
        cells = _others(self, nb, resources["nbgrader"], "code")
        for cell in cells:
            cell.source = printable(cell.source)
        texts: list[Text] = [(cell.cell_type, cell.source, {}) for cell in cells]
        for cell, comes_out in zip(cells, come_out(texts), strict=True):
            if not comes_out:
                cell.metadata.magics_language = "text"
        return nb, resources


def _others(
    step: NbGraderPreprocessor, nb: NotebookNode, names: dict[str, str], kind: str
) -> list[NotebookNode]:
    """The cells of a kind whose text was not handed out."""
    course = CourseDirectory(config=step.config)
    folder = Path(course.format_path(course.release_directory, ".", names["assignment"]))
    released: set[str] = set()
    try:
        notebook = nbformat.read(folder / f"{names['notebook']}.ipynb", as_version=4)
        released = {cell.source for cell in notebook.cells}
    except (OSError, ValueError):
        step.log.warning("%s has no notebook: texts with HTML are shown as typed", folder)
    ours = (
        OURS.items() if sources_at_hand() is not None else None
    )  # else nothing has cleaned a cell's metadata
    return [
        cell
        for cell in nb.cells
        if cell.cell_type == kind
        and cell.source not in released
        and not (ours and ours <= cell.metadata.items())
    ]


def come_out(texts: list[Text]) -> list[bool]:
    """Whether each text can be put on a page as it is: harmless, and rendered in time."""
    with contextlib.suppress(ApartError):
        return _rendered(texts, SECONDS)[0]
    # Of which text? Each by itself, as long as there is time.
    found, left, ended = [], SECONDS, 0
    for text in texts:
        comes_out = False
        if left > 0 and ended < _MOST_ENDED:
            try:
                [comes_out], seconds = _rendered([text], _SECONDS_ALONE)
                left -= seconds
            except ApartError:
                ended += 1
        found.append(comes_out)
    return found


def _rendered(texts: list[Text], seconds: float) -> tuple[list[bool], float]:
    """Of each whether it comes out, and the seconds of CPU that all took."""
    if not texts:
        return [], 0.0
    run_apart(_load, seconds=_LOADING_SECONDS)
    found, taken = run_apart(_come_out, texts, seconds=seconds)
    return found, taken


def _load() -> None:
    import nbconvert.filters.highlight
    import nbconvert.filters.markdown_mistune  # noqa: F401


def _come_out(texts: list[Text]) -> tuple[list[bool], float]:
    found: list[bool] = []
    start = time.process_time()
    left: float = MAX_PAGE
    for kind, text, images in texts:
        try:
            length = _length_of_code(text) if kind == "code" else _length_of_page(text, images)
        except Exception:  # such as of an attachment that did not come along
            length = left + 1
        found.append(length <= left)
        left -= length if length <= left else 0
    return found, time.process_time() - start


def _length_of_code(text: str) -> float:
    """Characters of its HTML."""
    from nbconvert.filters.highlight import Highlight2HTML

    return len(Highlight2HTML(pygments_lexer="ipython3")(text)) if len(text) <= MAX_CODE else float("inf")


def _length_of_page(text: str, images: dict[str, Any]) -> float:
    """Characters of its HTML; infinite where that could act."""
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    if _TAG.search(text):
        return float("inf")
    renderer = IPythonRenderer(escape=False, attachments=images)
    html: str = MarkdownWithMath(renderer=renderer).render(f"{_THEIRS}{text}\n\n{_END}")
    # A fence that is left open would take in what closes the mark.
    is_safe = html.count("<div") == html.count(_END) and all(
        _is_safe(kind, unescape(address)) for kind, address in _ADDRESS.findall(html)
    )
    return len(html) if is_safe else float("inf")


def _is_safe(kind: str, address: str) -> bool:
    """What a page fetches by itself comes along with it: any other address would be asked as whoever opens the page,
    such as that which ends the session. A link waits for a click, and leads away or to a place of the page."""
    if address.startswith(_SAFE_DATA):
        return True
    return kind == "href" and (address.startswith("#") or _scheme(address) in _SAFE_SCHEMES)


def harmless(text: str) -> str:
    """Markdown that shows what this shows, or, where that could run code or does not end, the text itself."""
    return text if come_out([("markdown", text, {})])[0] else as_typed(text)


def as_typed(text: str) -> str:
    """Markdown that shows the text itself."""
    return f'<pre style="white-space:pre-wrap">{escape(printable(text))}</pre>'


def _scheme(address: str) -> str:
    try:
        return urlsplit(address).scheme
    except ValueError:
        return "none that is known"
