"""A lesson without buttons: saved in the form that VS Code gives a notebook, run by `jupyter execute` alone.

VS Code itself is not run here. What its notebooks have of their own is: format 4.2 without cell ids, `vscode` metadata,
no nbgrader menus. And ipywidgets is missing, so that whatever needs a click must have another way.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from autograder.common.folders import release_folder
from autograder.engine.source.notebook import exercise_ids
from autograder.kept.answers import AnswersFile, read_answers
from autograder.notebooks.check import check_notebook
from autograder.quizzes.bank import PASS_MARK
from autograder.quizzes.grading import grade_quiz, load_bank
from autograder.quizzes.kinds import Choice
from tests.autograder.solutions import reference_sources

LESSON = "04"
SLUG = "04_checkpointing_and_early_stopping"


@pytest.fixture(scope="module")
def lesson(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The release notebook with solutions and typed answers, as VS Code saves it, executed."""
    folder = tmp_path_factory.mktemp("editor") / SLUG
    folder.mkdir()
    path = folder / f"{SLUG}.ipynb"
    notebook = json.loads((release_folder() / SLUG / f"{SLUG}.ipynb").read_text(encoding="utf-8"))
    path.write_text(json.dumps(as_vs_code_saves(filled_in(notebook)), indent=2), encoding="utf-8")
    (folder / "ipywidgets.py").write_text("raise ImportError('not installed')\n", encoding="utf-8")
    run = [sys.executable, "-m", "jupyter", "execute", "--inplace", "--timeout=600", str(path)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=1000)
    assert done.returncode == 0, done.stderr[-3000:]
    return path


def filled_in(notebook: dict[str, Any]) -> dict[str, Any]:
    """The stubs replaced by the reference solutions, and the quiz answered by typing."""
    references = reference_sources(LESSON)
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and (ids := exercise_ids(source)):
            cell["source"] = references[ids[0]]
        elif source.startswith("check_quiz("):
            cell["source"] = "\n".join(["from autograder import answer, predict", *typed_answers(), source])
    return notebook


def typed_answers() -> list[str]:
    """A line for each question, right or, for as many as may be, wrong; and one for a prediction."""
    questions = load_bank(LESSON).questions
    num_needed = -int(-PASS_MARK * len(questions) // 1)
    lines = ['predict("4a", "How many times the size of the weights?", unit="×", value=2.5)']
    for index, question in enumerate(questions):
        assert isinstance(question, Choice)
        letters = [option.id for option in question.options]
        is_right = {letter: question.judge(LESSON, letter).is_right for letter in letters}
        choice = next(letter for letter in letters if is_right[letter] == (index < num_needed))
        lines.append(f'answer("{question.id}", "{choice}")')
    return lines


def as_vs_code_saves(notebook: dict[str, Any]) -> dict[str, Any]:
    for cell in notebook["cells"]:
        cell.pop("id", None)
        if cell["cell_type"] == "code":
            cell["metadata"]["vscode"] = {"languageId": "python"}
    metadata = {
        "kernelspec": {"display_name": ".venv", "language": "python", "name": "python3"},
        "language_info": {"name": "python", "file_extension": ".py"},
    }
    return {"cells": notebook["cells"], "metadata": metadata, "nbformat": 4, "nbformat_minor": 2}


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_every_check_and_the_quiz_pass(lesson: Path) -> None:
    cells = json.loads(lesson.read_text(encoding="utf-8"))["cells"]
    shown = {
        "".join(cell["source"]).splitlines()[-1]: cell["outputs"] for cell in cells if cell.get("outputs")
    }
    checks = {line: outputs for line, outputs in shown.items() if line.startswith('check("')}
    assert len(checks) == len(reference_sources(LESSON))
    for line, outputs in checks.items():
        (score,) = [output["data"] for output in outputs if output["output_type"] == "execute_result"]
        assert "Passed" in "".join(score["text/html"]), line
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert "widget-view" not in json.dumps(outputs)
    on_stderr = ["".join(output["text"]) for output in outputs if output.get("name") == "stderr"]
    # A package of the "In the wild" section misses ipywidgets too, and says so.
    assert not [text for text in on_stderr if "TqdmWarning: IProgress not found" not in text]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_what_was_typed_is_saved_and_graded(lesson: Path) -> None:
    answers = lesson.with_name(f"{SLUG}_answers.json")
    entries = AnswersFile(answers, LESSON).entries()
    assert entries["predict:4a"]["value"] == 2.5
    report = check_notebook(lesson, only=["4.1"])
    assert report.exercises[0].verdict == "pass"
    quiz = grade_quiz(LESSON, read_answers(answers))
    assert quiz.passed
    assert quiz.score is not None and quiz.score < quiz.max_score
