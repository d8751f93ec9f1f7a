"""The lessons' texts hold together: links lead somewhere, and figures can be read without eyes."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import jupytext
import pytest

LESSONS = Path(__file__).resolve().parents[2] / "notebooks" / "lessons"
TEXTS = sorted(LESSONS.glob("[0-9][0-9]_*.py"))
LINK = re.compile(r"\]\((?!https?://)([^)\s#]*)(?:#([^)\s]*))?\)")


@functools.cache
def cells(path: Path, kind: str) -> list[str]:
    return [cell.source for cell in jupytext.read(path).cells if cell.cell_type == kind]


def markdown(path: Path) -> str:
    return "\n\n".join(cells(path, "markdown"))


@functools.cache
def anchors(path: Path) -> set[str]:
    """Where JupyterLab lets a link lead: a heading's text, with hyphens for spaces."""
    headings = re.findall(r"^#+ (.+)$", markdown(path), flags=re.MULTILINE)
    return {re.sub(r"[`*]", "", heading).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_links_between_lessons_lead_somewhere(path: Path) -> None:
    broken = []
    for target, anchor in LINK.findall(markdown(path)):
        text = path
        if target:
            match = re.fullmatch(r"\.\./([^/]+)/\1\.ipynb", target)
            text = LESSONS / f"{match[1]}.py" if match else LESSONS / "no notebook"
        if not text.exists() or (anchor and anchor not in anchors(text)):
            broken.append(f"{target}#{anchor}")
    assert not broken


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_every_figure_is_told_in_words(path: Path) -> None:
    shown = [source for source in cells(path, "code") if re.search(r"^\s*show\(", source, re.MULTILINE)]
    assert all("alt=" in source for source in shown)
    assert not [source for source in shown if "plt.show" in source]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_every_exercise_has_its_check_right_under_it(path: Path) -> None:
    code = cells(path, "code")
    for before, after in zip(code, [*code[1:], ""], strict=True):
        for number in re.findall(r'^@exercise\("([\d.]+)"\)', before, flags=re.MULTILINE):
            assert after == f'check("{number}")'
