"""What a solution may import: all but the part of `course_lib` that its exercise asks to build."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

import course_lib
from autograder.course import Exercise, find_exercise, lesson_ids, load_lesson
from autograder.engine import check_source
from autograder.engine.review import imported
from tests.autograder.solutions import LESSONS

EXERCISES = [exercise for lesson_id in lesson_ids() for exercise in load_lesson(lesson_id).exercises]
BUILDING = [exercise for exercise in EXERCISES if exercise.builds]


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_the_text_says_what_may_be_imported(exercise: Exercise) -> None:
    text = (LESSONS / f"{find_exercise(exercise.id)[0].slug}.py").read_text(encoding="utf-8")
    line = re.search(rf"^# ### {re.escape(exercise.id)} .*\n#\n# > (.*)$", text, re.MULTILINE)
    parts = [f"`{name}`" for name in exercise.builds]
    less = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1]))) if parts else ""
    expected = "imports: all that is installed" + (f", except {less} of `course_lib`" if less else "")
    assert line and line[1].rpartition(" · ")[2] == expected


@pytest.mark.parametrize("exercise", BUILDING, ids=lambda e: e.id)
def test_what_is_built_is_there_to_be_imported(exercise: Exercise) -> None:
    """Else the text forbids what nobody could have done."""
    rooms = ("base", "data", "training", "models", "measuring", "lora")
    homes = [course_lib, *(import_module(f"course_lib.{room}") for room in rooms)]
    assert [name for name in exercise.builds if not any(hasattr(home, name) for home in homes)] == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from course_lib import collate", ("collate", 1)),
        ("from course_lib.data.batching import collate as mine\n\ncollate = mine", ("collate", 1)),
        ("import course_lib\n\ncollate = course_lib.collate", ("collate", 3)),
        ("import course_lib.data.batching as b\ndef collate(batch):\n    return b.collate(batch)", ("collate", 3)),
        ("from course_lib import data\nfind = getattr(data, 'collate')", ("collate", 2)),
        ("import course_lib.some.where as there\nthere.collate", ("collate", 2)),
        ("from course_lib import *", ("collate", 1)),
        ("from course_lib import train_step\ndef collate(batch):\n    return train_step", None),
        ("from torch.utils.data import default_collate\ncollate = default_collate", None),
        ("import course_lib\nclass Mine:\n    def collate(self): ...\nMine().collate()", None),
        ("# from course_lib import collate\nx = 'course_lib.collate'", None),
        ("from course_lib import collate ???", None),
    ],
)  # fmt: skip
def test_the_part_is_found_by_whichever_road(source: str, found: tuple[str, int] | None) -> None:
    assert imported(source, ("collate",)) == found


def test_a_solution_that_imports_the_part_fails_by_name() -> None:
    result = check_source("1.1", "from course_lib import collate\n")
    assert (result.verdict, result.score) == ("fail", 0)
    assert result.reason.expected == "`collate` built by yourself"
    assert result.reason.got == "`collate` of `course_lib`, in line 1 of the cell"


def test_another_exercise_may_use_it() -> None:
    assert not find_exercise("1.6")[1].builds
