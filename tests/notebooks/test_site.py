"""The lessons as pages: what they show, what they keep to themselves, and what is not run twice."""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path

import nbformat
import pytest

from autograder.cli.main import main
from autograder.notebooks.site.pages import lesson_body, sections_of
from autograder.notebooks.site.running import run_lesson
from autograder.quizzes import load_bank
from autograder.quizzes.kinds import Choice
from autograder.show import plain
from course_lib.base import UserError

CELLS = {
    "text": "# 01 · A lesson\n\n## Padding\n\nSee [two](../02_mixed_precision/02_mixed_precision.ipynb#Four-formats).",
    "figure": "print('it ran')",
    "exercise": '@exercise("1.1")\ndef collate(batch):\n    raise NotImplementedError',
    "check": 'check("1.1")',
    "quiz": 'quiz("01")',
    "graded": 'check_quiz("01")',
}


def lesson(folder: Path, **changed: str) -> Path:
    cells = [
        nbformat.v4.new_markdown_cell(source) if name == "text" else nbformat.v4.new_code_cell(source)
        for name, source in (CELLS | changed).items()
    ]
    cells[1].metadata["jupyter"] = {"source_hidden": True}
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    path = folder / "01_a_lesson.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def test_what_a_page_shows(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    notebook = run_lesson(lesson(tmp_path), tmp_path / "kept.ipynb", lambda done, of: told.append((done, of)))
    assert told == [(1, 1)]  # what is the learner's is not run
    body = lesson_body(notebook)
    assert "it ran" in body and '<details class="folded">' in body
    assert 'href="02_mixed_precision.html#Four-formats"' in body
    assert "NotImplementedError" in body and body.count("In the notebook, this cell judges") == 2
    bank = load_bank("01")
    for question in bank.questions:
        assert question.id in body
    choices = [question for question in bank.questions if isinstance(question, Choice) and question.key]
    assert len(choices) > 3
    for question in choices:
        for option in question.options:
            assert escape(plain(option.text), quote=False) in unquoted(body)
            assert escape(question.judge("01", option.id).reason[:60], quote=False) not in unquoted(body)
    found = sections_of("01_a_lesson.html", "A lesson", body)
    assert [section.title for section in found] == ["01 · A lesson", "Padding"]
    assert found[1].page == "01_a_lesson.html#Padding" and "See two" in found[1].text


def unquoted(text: str) -> str:
    return text.replace("&#34;", '"').replace("&#39;", "'")


def test_nothing_is_run_twice_until_it_changes(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    for source in ("print(1)", "print(1)", "print(2)"):
        path = lesson(tmp_path, figure=source)
        run_lesson(path, tmp_path / "kept.ipynb", lambda done, of: told.append((done, of)))
    assert len(told) == 2


def test_a_cell_that_fails_is_one_line(tmp_path: Path) -> None:
    path = lesson(tmp_path, figure="1 / 0")
    with pytest.raises(UserError, match=r"^01_a_lesson, cell 1: ZeroDivisionError: division by zero$"):
        run_lesson(path, tmp_path / "kept.ipynb", lambda *_: None)
    assert not (tmp_path / "kept.ipynb").exists()


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["site", "--out", str(tmp_path)]) == 2
    assert "holds other things" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert main(["site", "--out", str(tmp_path / "new"), "77"]) == 2
    assert "there is no lesson '77'" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_writes_pages_that_hold_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["site", "9", "--out", str(tmp_path / "site"), "--json"]) == 0
    pages = [Path(page) for page in json.loads(capsys.readouterr().out)["pages"]]
    assert [page.name for page in pages] == ["09_skill_exam.html", "index.html"]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        asked_for = re.findall(r'(?:src|href)="(?!#|data:)([^"]+)"', text)
        assert not [link for link in asked_for if re.match(r"(?:https?:)?//", link) and "<a" not in text]
        assert not re.findall(r'<(?:script|img|link|iframe)[^>]+(?:src|href)="(?:https?:)?//', text)
    index = (tmp_path / "site" / "site.js").read_text(encoding="utf-8")
    assert "09_skill_exam.html#" in index
