"""What the swapped steps do to a notebook, tried with nbgrader's own scoring."""

from __future__ import annotations

import math
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell
from nbgrader.converters import Autograde
from nbgrader.utils import determine_grade

from autograder.grading.nbgrader import bridge
from tests.autograder.solutions import reference_sources


def graded_cell(points: float = 10.0) -> bridge.NotebookNode:
    mark = {"grade": True, "grade_id": "check-1-1", "locked": True, "points": points, "solution": False}
    cell = new_code_cell('check("1.1")', metadata={"nbgrader": mark})
    cell.outputs = [bridge.new_output("stream", name="stderr", text="a warning")]
    return cell


@pytest.mark.parametrize(
    ("score", "max_score", "points", "expected"),
    [(0, 10, 10, 0), (10, 10, 10, 10), (4, 10, 10, 4), (4, 10, 5, 2), (1 / 3, 1, 7, 7 / 3), (0, 0, 0, 0)],
)
def test_nbgrader_reads_the_score_that_was_written(
    score: float, max_score: float, points: float, expected: float
) -> None:
    cell = graded_cell(points)
    bridge.write_answer(cell, score=score, max_score=max_score, html="<b>why</b>")
    assert determine_grade(cell) == (pytest.approx(expected), points)
    (output,) = cell.outputs
    assert output.output_type == "execute_result" and output.data["text/html"] == "<b>why</b>"


@pytest.mark.parametrize("score", [math.nan, math.inf, -1.0, 10.5])
def test_a_score_that_nbgrader_would_misread_is_refused(score: float) -> None:
    cell = graded_cell()
    before = cell.copy()
    with pytest.raises(ValueError, match=r"check-1-1: score .* is not between 0 and 10"):
        bridge.write_answer(cell, score=score, max_score=10, html="")
    assert cell == before


def test_lists_are_nbgraders_own_but_for_four_steps() -> None:
    """A new version of nbgrader with other steps must be looked at, not silently overruled."""

    def named(classes: list[type]) -> list[str]:
        return [cls.__name__ for cls in classes]

    stock = {
        name: named(getattr(Autograde(), name))
        for name in ("sanitize_preprocessors", "autograde_preprocessors")
    }
    ours = [path.rpartition(".")[2] for path in bridge.SANITIZE_PREPROCESSORS]
    assert [name for name in ours if name not in ("RestoreCells", "PlainTexts")] == stock[
        "sanitize_preprocessors"
    ]
    ours = [path.rpartition(".")[2] for path in bridge.AUTOGRADE_PREPROCESSORS]
    assert [name.replace("MeasuredGrades", "Execute") for name in ours if name != "PlainCode"] == stock[
        "autograde_preprocessors"
    ]


def test_a_card_shows_the_points_of_the_course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An instructor gave the check another weight: page and gradebook say the same."""
    monkeypatch.chdir(tmp_path)
    solved = new_code_cell(reference_sources("00")["0.1"])
    path = tmp_path / "00_start_here.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[solved]), path)
    answer = bridge._answers(path, {"check-0-1": 20.0}, None, "ada")["check-0-1"]
    assert (answer.score, answer.max_score) == (1.0, 1.0)
    assert "<strong>20</strong> of 20 points" in answer.html
