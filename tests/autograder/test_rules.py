"""The key of a grade follows from what decides the grade, and from nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autograder.course import lesson_ids, load_lesson
from autograder.engine import rules
from autograder.engine.rules import ROOT, key_of

CELL = "def solution():\n    return 1\n"
EXERCISES = [exercise.id for lesson_id in lesson_ids() for exercise in load_lesson(lesson_id).exercises]
Keys = dict[str, str]


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two folders, each with both packages."""
    roots = tmp_path_factory.mktemp("before"), tmp_path_factory.mktemp("after")
    for root in roots:
        for package in ("autograder", "course_lib"):
            keep = shutil.ignore_patterns("labextension", "__pycache__", "release")
            shutil.copytree(ROOT / package, root / package, ignore=keep)
    return roots


@pytest.fixture
def keys_after(copies: tuple[Path, Path]) -> Iterator[Callable[..., tuple[Keys, Keys]]]:
    """Every exercise's key before and after a line was added to a file."""
    one, two = copies
    restore: list[Callable[[], object]] = []

    def change(file: str, *, cell: str = CELL) -> tuple[Keys, Keys]:
        for cache in (rules._deciding, rules._imports, rules._content, rules._listed):
            cache.cache_clear()
        path = two / file
        old = path.read_text(encoding="utf-8")
        restore.append(lambda: path.write_text(old, encoding="utf-8"))
        path.write_text(old + "\n# Another word.\n", encoding="utf-8")
        before, after = ({each: key_of(each, cell, root) for each in EXERCISES} for root in (one, two))
        return before, after

    yield change
    for undo in restore:
        undo()


def changed(keys: tuple[Keys, Keys]) -> set[str]:
    return {each for each in EXERCISES if keys[0][each] != keys[1][each]}


def test_copies_have_the_keys_of_the_installed_packages(
    keys_after: Callable[..., tuple[Keys, Keys]],
) -> None:
    before, after = keys_after("autograder/show/card.py")
    assert before == after == {each: key_of(each, CELL) for each in EXERCISES}


def test_counters_decide_what_counts_with_them(keys_after: Callable[..., tuple[Keys, Keys]]) -> None:
    found = changed(keys_after("course_lib/measuring/counters.py"))
    assert "1.3" in found and "0.1" not in found and "5.1" not in found


@pytest.mark.parametrize(
    "file",
    [
        "autograder/show/card.py",
        "autograder/show/rich.py",
        "autograder/show/speed_words.py",
        "autograder/show/templates/result.html",
        "autograder/course/course.json",
        "autograder/kernel/exercises.py",
        "autograder/quizzes/grading.py",
        "autograder/grading/marking.py",
        "autograder/engine/__init__.py",
        "autograder/lessons/lesson_01/measured.py",
        "autograder/lessons/lesson_01/references.py",
        "course_lib/base/figures.py",
        "course_lib/__init__.py",
    ],
)
def test_what_is_only_said_or_shown_decides_nothing(
    file: str, keys_after: Callable[..., tuple[Keys, Keys]]
) -> None:
    assert changed(keys_after(file)) == set()


@pytest.mark.parametrize(
    ("file", "decides"),
    [
        ("autograder/lessons/lesson_01/checks/batches.py", {"1.1", "1.2"}),
        ("autograder/lessons/lesson_01/harness/epochs.py", {"1.1", "1.2", "1.3", "1.4", "1.5", "1.6"}),
        ("autograder/lessons/lesson_07/sick_runs.py", {"7.4"}),
        ("autograder/lessons/lesson_08/real_seeds.json", {f"8.{number}" for number in range(1, 7)}),
    ],
)
def test_a_lessons_own_files_decide_its_own_exercises(
    file: str, decides: set[str], keys_after: Callable[..., tuple[Keys, Keys]]
) -> None:
    found = changed(keys_after(file))
    assert decides <= found and {each.partition(".")[0] for each in found} == {file[26:28].lstrip("0")}


@pytest.mark.parametrize(
    "file",
    [
        "autograder/engine/check.py",
        "autograder/engine/timing/verdict.py",
        "autograder/engine/sandbox/inside/guard.py",
        "autograder/common/limits.py",
        "autograder/engine/sandbox/storage_server.py",
        "autograder/lessons/checking/harness_shared.py",
        "course_lib/data/batching.py",
    ],
)
def test_what_every_check_rests_on_decides_all(
    file: str, keys_after: Callable[..., tuple[Keys, Keys]]
) -> None:
    assert changed(keys_after(file)) == set(EXERCISES)


def test_what_asks_for_stored_samples_decides_where_something_is_stored(
    keys_after: Callable[..., tuple[Keys, Keys]],
) -> None:
    found = changed(keys_after("autograder/lessons/checking/harness_storage.py"))
    assert {each.partition(".")[0] for each in found} == {"1", "4", "7"}


def test_what_the_cell_imports_decides(keys_after: Callable[..., tuple[Keys, Keys]]) -> None:
    old_name = "from course_lib import lora\n" + CELL
    found = changed(keys_after("course_lib/models/lora.py", cell=old_name))
    assert found == set(EXERCISES)


def test_cell_exercise_and_torch_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    key = key_of("1.3", CELL)
    assert len({key, key_of("1.3", CELL + "#"), key_of("1.4", CELL), key_of("1.3", "\ud800")}) == 4
    monkeypatch.setattr(rules, "installed_version", lambda name: "0.1")
    assert key_of("1.3", CELL) != key
