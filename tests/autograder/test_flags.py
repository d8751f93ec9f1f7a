"""Flags: what an exercise allows, who reads them, and that they are grouped for whoever looks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from traitlets.config import Config

from autograder.common.result import Result
from autograder.course.lessons import LOW_PRECISION
from autograder.engine.check import blank_result
from autograder.engine.review import reasons
from autograder.grading.gradebook import Grade
from autograder.grading.marking import Graded
from autograder.grading.nbgrader.flags import Flags
from autograder.grading.reports import reporting
from autograder.grading.reports.class_report import Look
from autograder.grading.submissions import Submission
from autograder.grading.summary import graded_text
from autograder.show.card import result_html
from autograder.show.score import Score

HALF = """
import operator
import torch


@exercise("2.1")
def store(model, x):
    model.half()
    other = torch.Tensor.half(x)
    return {name: value.half() for name, value in model.state_dict().items()}, operator.methodcaller("half")(other)
"""
WHY = "the cell uses `x.mystery</div>`, which is on no list (line 3)"
FLAGGED = replace(blank_result("1.1", "pass", "Right on secret inputs."), score=10, review=(WHY,))


@pytest.mark.parametrize(
    "allows", [(".half",), ("torch.Tensor.half",), ("torch.nn.Module.half",), LOW_PRECISION]
)
def test_an_exercise_can_allow_a_method(allows: tuple[str, ...]) -> None:
    assert len(reasons(HALF, counts=False, entry="store")) == 4
    assert reasons(HALF, counts=False, entry="store", allowed=allows) == []


@pytest.mark.parametrize("allows", [("torch.half",), (".bfloat16",), ("torch.Tensor.float",), ("f",)])
def test_it_allows_that_method_alone(allows: tuple[str, ...]) -> None:
    assert len(reasons(HALF, counts=False, entry="store", allowed=allows)) == 4
    hooked = 'import torch\n\n\n@exercise("2.1")\ndef store(x):\n    return x.untyped_storage()\n'
    assert reasons(hooked, counts=False, entry="store", allowed=("torch.Tensor.half",))


def test_a_student_sees_them_where_the_course_says_so() -> None:
    def page(config: Config) -> str:
        shown = {"text/plain": "10.0", "text/html": result_html(FLAGGED)}
        cell = new_code_cell("check('1.1')", outputs=[new_output("execute_result", shown)])
        nb, _ = Flags(config=config).preprocess(new_notebook(cells=[cell]), {})
        return str(nb.cells[0].outputs[0].data["text/html"])

    assert "mystery" in result_html(FLAGGED)
    assert "mystery" not in page(Config()) and "costs no points" not in page(Config())
    assert page(Config()) == result_html(replace(FLAGGED, review=()))
    shown = page(Config({"Flags": {"on_students_pages": True}}))
    assert shown == result_html(FLAGGED)


def test_a_students_own_card_has_none() -> None:
    assert "mystery" not in Score(10, FLAGGED)._repr_html_() and "Passed" in Score(10, FLAGGED)._repr_html_()


def test_the_list_is_by_reason_and_equal_code() -> None:
    code = "@exercise('1.1')\ndef collate(batch):\n    {} = batch.mystery\n    return {}\n"
    sources = {
        "ada": code.format("a", "a"),
        "bo": f"# mine\n{code.format('own', 'own')}",
        "cy": code.replace("return {}", "return list({})").format("a", "a"),
        "di": code.format("a", "a"),
    }
    lines = {"ada": 3, "bo": 4, "cy": 3, "di": 3}
    submissions = [
        Submission(student=name, folder=Path(), cells=(), answers=None, sources={"1.1": source}, problems=())
        for name, source in sources.items()
    ]

    def result(name: str) -> Result:
        why = f"the cell uses `batch.mystery`, which is on no list (line {lines[name]})"
        return replace(FLAGGED, review=(why, *(["another"] if name == "cy" else [])))

    found = {name: [result(name)] for name in sources}
    assert reporting._grouped(submissions, found) == [
        Look(
            id="1.1",
            why="the cell uses `batch.mystery`, which is on no list",
            alike=[["ada", "bo", "di"], ["cy"]],
        ),
        Look(id="1.1", why="another", alike=[["cy"]]),
    ]


def test_a_line_of_many_stands_once_after_grading() -> None:
    many = {f"s{number:02}": Grade(look=(WHY,), score=1.0, max_score=2.0) for number in range(12)}
    found = Graded(
        lesson="01",
        graded=13,
        checked=0,
        reused=0,
        students=many | {"zoe": Grade(look=(WHY, "own"), error="broken", score=None, max_score=None)},
    )
    text = graded_text(found)
    assert text.count("mystery") == 1 and "s00, s01" in text and "and 3 more: " in text
    assert "zoe: own" in text and "zoe: broken" in text
