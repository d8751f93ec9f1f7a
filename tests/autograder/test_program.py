"""The learner's own parts in a lesson's program, and the picture of how far it has come."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autograder import so_far, yours
from autograder.kept import progress
from autograder.kernel import exercises
from course_lib.measuring.bench import Block, SpeedupEstimate

CELL = '@exercise("1.1")\ndef collate(batch):\n    return len(batch)\n'
NAME = "01_efficient_training_loops_answers.json"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(exercises, "_SOURCES", {})
    monkeypatch.setattr(exercises, "_DEFINED", {})
    (tmp_path / "lesson").mkdir()
    monkeypatch.chdir(tmp_path / "lesson")
    return tmp_path / "lesson"


def run_cell(source: str, tmp_path: Path) -> Any:
    """As a kernel runs a cell: its text can be looked up under the name it was compiled with."""
    import linecache

    from autograder import exercise

    name = f"<cell {len(linecache.cache)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    space: dict[str, Any] = {"exercise": exercise}
    exec(compile(source, name, "exec"), space)
    return space["collate"]


def passed(source: str, verdict: str = "pass") -> None:
    result = {"id": "1.1", "score": 10, "max_score": 10, "verdict": verdict}
    progress.record_check(result, source)


def ours(batch: object) -> int:
    return -1


def test_a_part_that_has_passed_takes_the_place_of_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = run_cell(CELL, tmp_path)
    assert yours("1.1", ours) is ours
    assert "no solution of yours has passed" in capsys.readouterr().out
    passed(CELL, "fail")
    assert yours("1.1", ours) is ours
    passed(CELL)
    assert yours("1.1", ours) is theirs
    assert yours("1.2", ours) is ours


def test_what_the_clock_left_open_is_right(tmp_path: Path) -> None:
    theirs = run_cell(CELL, tmp_path)
    passed(CELL, "inconclusive")
    assert yours("1.1", ours) is theirs


def test_a_cell_that_was_changed_since_has_to_pass_again(tmp_path: Path) -> None:
    passed(CELL)
    run_cell(CELL.replace("len(batch)", "0"), tmp_path)
    assert yours("1.1", ours) is ours
    assert yours("1.1", ours) is ours  # and asking changes nothing
    back = run_cell(CELL, tmp_path)
    assert yours("1.1", ours) is back  # as after a restart: no check is needed again


def test_the_picture_grows_by_a_bar(
    tmp_path: Path, folder: Path, shown: Callable[[], str], capsys: pytest.CaptureFixture[str]
) -> None:
    run_cell(CELL, tmp_path)
    so_far("1.1", "your batches", never)
    assert "your batches" not in shown()
    passed(CELL)
    so_far("1.1", "your batches", lambda: 2.25)
    assert shown() == "Your program so far: naive program 1.0 ×, 1.1 your batches 2.2 ×."
    block = Block(order="AB", seconds=(2.0, 1.0), num_steps=1, seeds=(0,))
    so_far("1.1", "your batches", lambda: SpeedupEstimate(estimate=3.0, low=2.5, high=3.5, blocks=(block,)))
    assert "1.1 your batches: 3.00× (95% interval 2.50 to 3.50, 1 blocks)" in capsys.readouterr().out
    assert "your batches 3.0 ×" in shown()
    exercises._SOURCES.clear()  # a kernel that was started anew: the bar is kept
    so_far("1.2", "your sampler", never)
    assert shown() == "Your program so far: naive program 1.0 ×, 1.1 your batches 3.0 ×."


def test_another_unit_has_its_own_start(tmp_path: Path, shown: Callable[[], str]) -> None:
    run_cell(CELL, tmp_path)
    passed(CELL)
    so_far("1.1", "your batches", lambda: 12, unit="MB", start=40, digits=0)
    assert shown() == "Your program so far: naive program 40 MB, 1.1 your batches 12 MB."


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), "3", True])
def test_what_is_no_number_is_one_line(
    tmp_path: Path, value: object, capsys: pytest.CaptureFixture[str]
) -> None:
    run_cell(CELL, tmp_path)
    passed(CELL)
    so_far("1.1", "your batches", lambda: value)
    out = capsys.readouterr().out
    assert re.search(r'^so_far\("1\.1", …\): measure must return one number', out, re.MULTILINE)


@pytest.mark.parametrize(
    "entry", [{"bars": {"x": "y", "z": 1e999}}, {"bars": 3}, {"bars": {"a" * 9: True}}, {}]
)
def test_a_file_may_hold_anything(folder: Path, entry: dict[str, Any], shown: Callable[[], str]) -> None:
    document = {"format": 1, "lesson": "01", "answers": {"so_far:01": entry}}
    (folder / NAME).write_text(json.dumps(document))
    so_far("1.1", "your batches", never)
    assert shown().startswith("Your program so far: naive program 1.0 ×")


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """The text of the picture that was shown last."""
    texts: list[str] = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw: texts.append(data["text/plain"]))
    return lambda: texts[-1]


def never() -> float:
    raise AssertionError("nothing is measured")
