"""Whom another's cell took the memory from is checked again, alone: the grade is that without the neighbour."""

from __future__ import annotations

import dataclasses
import threading
import time
from pathlib import Path

import pytest

from autograder.common import Reason
from autograder.engine import blank_result, check_source
from autograder.engine.sandbox import MACHINE_IS_FULL, LeastMemory, memory
from autograder.grading import marking
from autograder.grading.units import Unit
from tests.autograder.nbgrader_course import LESSON_00, Course, cell

GB = 2**30


@pytest.mark.parametrize(
    ("verdict", "note", "is_asked_again"),
    [
        ("error", MACHINE_IS_FULL, True),
        ("error", "Your code took more than 1.0 GiB of memory, and was ended.", True),
        ("error", "Your code asked for more memory than it may have here (MemoryError: ).", True),
        ("error", "The process that runs your code ended early (status -9): memory ran out.", True),
        ("fail", "RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory", True),
        ("fail", "an average over batches", False),
        ("pass", "MemoryError", False),
    ],
)
def test_who_lacked_memory_is_told_by_the_reason(
    monkeypatch: pytest.MonkeyPatch, verdict: str, note: str, is_asked_again: bool
) -> None:
    room = [4 * GB]
    monkeypatch.setattr(memory, "memory_limit", lambda: room[0])
    with LeastMemory() as least:
        room[0] = GB
        time.sleep(0.5)
    result = blank_result("0.1", verdict, Reason(note=note))  # type: ignore[arg-type]
    room[0] = 4 * GB
    assert least.was_lacking_to(result) == is_asked_again
    room[0] = GB  # it would have no more than it had
    assert least.was_lacking_to(result) == (note == MACHINE_IS_FULL)


@pytest.mark.slow
@pytest.mark.everyday
@pytest.mark.timeout(600)
def test_an_innocent_has_the_points_that_it_has_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    course = Course(tmp_path, LESSON_00)
    for student in ("bob", "cat", "eve"):
        notebook = course.notebook("source", LESSON_00)
        cell(notebook, "exercise-0-1").source += f"\nNAME = '{student}'\n"
        course.submit(student, LESSON_00, notebook)
    monkeypatch.setenv("WORKBOOK_DATA", str(course.data))
    monkeypatch.chdir(course.root)
    at_work, most = list[str](), list[int]()
    all_began = threading.Barrier(3, timeout=60)

    def check(unit: Unit) -> object:
        at_work.append(unit.source)
        most.append(len(at_work))
        try:
            if len(most) <= 3:  # beside others: eve takes all there is, and whoever works is ended
                all_began.wait()
                ended = blank_result("0.1", "error", Reason(note=MACHINE_IS_FULL))
                return dataclasses.replace(ended, evidence="there.json")
            result = check_source("0.1", unit.source)
            assert "eve" in unit.source or result.verdict == "pass"
            return ended_again if "eve" in unit.source else result
        finally:
            at_work.remove(unit.source)

    ended_again = blank_result("0.1", "error", Reason(note=MACHINE_IS_FULL))
    monkeypatch.setattr(marking, "check_unit", check)
    found = marking.grade("00", course.root, jobs=3)
    assert len(most) == 6 and most[3:] == [1, 1, 1], "once more each, and nobody beside"
    assert {name: each.score for name, each in found.students.items()} == {"bob": 1.0, "cat": 1.0, "eve": 0.0}
    assert MACHINE_IS_FULL in " ".join(found.students["eve"].look)
    assert found.checked == 3
