"""Names of programs that run on this machine: for the person who sits at it, and for nobody and no file else."""

from __future__ import annotations

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from autograder.cli.check_report import busy_programs_told
from autograder.common import Reason, Result, Speed, release_folder
from autograder.course import load_lesson
from autograder.engine.timing import conditions
from autograder.grading import marking, units
from autograder.grading.gradebook import Grade
from autograder.kernel import exercises

SPEED = Speed(estimate=1.4, low=1.0, high=2.0, bar=1.5, blocks=2, spread=0.5, ratios=(1.0, 2.0))
RESTLESS = Result(
    id="1.1", max_score=10, verdict="inconclusive", reason=Reason(likely="noise."), speedup=SPEED
)
NAMED = "Busy on this machine now: chess (1.0 cores)."


def test_what_is_busy_is_asked_only_where_the_machine_was_restless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "busiest", lambda: NAMED)
    assert conditions.what_is_in_the_way(RESTLESS) == NAMED
    others = ({"speedup": replace(SPEED, spread=0.05)}, {"speedup": None}, {"verdict": "fail"})
    for other in others:
        assert conditions.what_is_in_the_way(replace(RESTLESS, **other)) == ""


def test_busy_programs_of_others_are_named() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True) as busy:
        try:  # asked by a process whose child it is not
            code = "from autograder.engine.timing.conditions import busiest; print(busiest(2.0))"
            said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
            assert psutil.Process(busy.pid).name() in said.stdout
        finally:
            busy.kill()


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_is_told_once_what_is_busy_and_a_file_never(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(conditions, "busiest", lambda: NAMED)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    tell = busy_programs_told()
    for _ in range(2):
        tell(RESTLESS)
    said = capsys.readouterr()
    assert said.err.count(NAMED) == is_terminal and not said.out


def test_names_of_programs_are_in_no_result_of_a_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a grader's machine runs reaches the terminal of the grader; what is kept is the engine's own word."""
    monkeypatch.setattr(conditions, "busiest", lambda: NAMED)
    lesson = load_lesson("00")
    handed_in = tmp_path / "submitted" / "ada" / lesson.slug
    handed_in.mkdir(parents=True)
    shutil.copy(release_folder() / lesson.slug / f"{lesson.slug}.ipynb", handed_in)
    monkeypatch.setattr(units.Unit, "key", "0" * 40)
    monkeypatch.setattr(marking, "check_unit", lambda unit: replace(RESTLESS, id=unit.exercise_id))
    monkeypatch.setattr(marking, "Entries", lambda *_: SimpleNamespace(enter=lambda *_: Grade(look=())))
    seen: list[Result] = []
    with ThreadPoolExecutor(1) as pool:
        found = marking.grade("00", tmp_path, executor=pool, on_result=seen.append)
    assert [conditions.what_is_in_the_way(result) for result in seen] == [NAMED]
    kept = [path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.json")]
    assert len(kept) == 1 and "noise." in kept[0] and "chess" not in "".join([*kept, str(found)])


def test_a_notebook_tells_its_person_what_is_busy_and_keeps_it_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
    monkeypatch.setattr(conditions, "busiest", lambda: NAMED)
    monkeypatch.setattr(exercises, "_result", lambda *_: RESTLESS)
    for is_here in (True, False):
        monkeypatch.setattr(exercises, "_somebody_is_here", lambda is_here=is_here: is_here)
        score = exercises.check("1.1")
        assert (NAMED in capsys.readouterr().out) is is_here
        assert "chess" not in f"{score.result} {score._repr_html_()}"
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert kept and not any(b"chess" in path.read_bytes() for path in kept)
