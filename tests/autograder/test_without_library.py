"""What a solution may import: all, but nothing of `course_lib` where its exercise asks to build what that has."""

from __future__ import annotations

import re

import pytest

from autograder.course import Exercise, find_exercise, lesson_ids, load_lesson
from autograder.engine import check_source
from autograder.engine.review import imported
from tests.autograder.solutions import LESSONS

EXERCISES = [exercise for lesson_id in lesson_ids() for exercise in load_lesson(lesson_id).exercises]


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_the_text_says_what_may_be_imported(exercise: Exercise) -> None:
    text = (LESSONS / f"{find_exercise(exercise.id)[0].slug}.py").read_text(encoding="utf-8")
    line = re.search(rf"^# ### {re.escape(exercise.id)} .*\n#\n# > (.*)$", text, re.MULTILINE)
    expected = "imports: all that is installed" + ", except `course_lib`" * exercise.without_library
    assert line and line[1].rpartition(" · ")[2] == expected


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("from course_lib import collate", 1),
        ("from course_lib.data.batching import collate as mine\n\ncollate = mine", 1),
        ("import course_lib\n\ncollate = course_lib.collate", 1),
        ("x = 1\nimport course_lib.data.batching as b\ndef collate(batch):\n    return b.collate(batch)", 2),
        ("def collate(batch):\n    from course_lib.old_names import data\n    return data", 2),
        ("from course_lib import *", 1),
        ("from course_ｌib import collate", 1),
        ("from torch.utils.data import default_collate\ncollate = default_collate", None),
        ("# from course_lib import collate\nx = 'course_lib.collate'", None),
        ("from course_lib import collate ???", None),
    ],
)
def test_the_library_is_found_by_whichever_road(source: str, line: int | None) -> None:
    assert imported(source) == line


#: What the library has under another name, or as a part of something larger, does the same work.
BY_ANOTHER_NAME = {
    "1.1": """
from course_lib.data import Batches

def collate(batch):
    return next(iter(Batches(batch, [range(len(batch))])))
""",
    "3.2": """
from course_lib.micro_batch import find_executable_micro_batch_size

def largest_micro_batch_size(try_step, budget_bytes, max_size):
    return find_executable_micro_batch_size(try_step, max_size=max_size, memory_limit_bytes=budget_bytes)
""",
    "4.2": """
from course_lib.training import Checkpointer, TrainState

def save_checkpoint(*args, **kwargs):
    Checkpointer(*args, **kwargs).save_last(TrainState(step=1))
""",
}


@pytest.mark.parametrize("exercise_id", BY_ANOTHER_NAME)
def test_a_solution_that_imports_the_library_fails_by_name(exercise_id: str) -> None:
    result = check_source(exercise_id, BY_ANOTHER_NAME[exercise_id])
    assert (result.verdict, result.score) == ("fail", 0)
    assert result.reason.expected.endswith("built by yourself")
    assert result.reason.got == "`course_lib`, in line 2 of the cell"


def test_another_exercise_may_use_it() -> None:
    assert not find_exercise("1.6")[1].without_library
