"""The small changes themselves, what is listed of them, and a sample of them before the real checks."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from autograder.course import lesson_ids, load_lesson
from autograder.course.lessons import Exercise
from autograder.engine.check import check_source
from tests.everyday import first_of
from tests.mutation.operators import mutations
from tests.mutation.repeated import known_solutions
from tests.mutation.table import SURVIVORS, Mutant, known_survivors, mutated, table

EXERCISES = [exercise for lesson_id in lesson_ids() for exercise in load_lesson(lesson_id).exercises]
#: One exercise of each lesson, then all others.
SAMPLE = sorted(EXERCISES, key=lambda exercise: not exercise.id.endswith(".1"))
SOURCE = '''\
import math

@exercise("0.0")
def f(values: list[int] = None, most=3):
    """What it does."""
    if len(values) > most:
        raise ValueError("too many", most)
    return math.copysign(values[0], scale(values, by=2))
'''


def changed_to(after: str) -> bool:
    return any(mutation.after == after for mutation in mutations(SOURCE))


@pytest.mark.parametrize(
    "after",
    [
        "if len(values) >= most:",
        "if not (len(values) > most):",
        "pass",
        "def f(values: list[int] = None, most=4):",
        "def f(values: list[int] = None, most=2):",
        "return math.copysign(scale(values, by=2), values[0])",
        "return math.copysign(values[0], scale(values, ))",
        "return math.copysign(values[0], scale(values, by=None))",
        "return math.copysign(values[1], scale(values, by=2))",
    ],
)
def test_what_is_changed(after: str) -> None:
    assert changed_to(after)


def test_what_is_left_alone() -> None:
    changed = {mutation.before for mutation in mutations(SOURCE)}
    assert not any(word in line for line in changed for word in ("import", "@exercise", '"""'))
    assert [m.after for m in mutations(SOURCE) if "raise" in m.before] == ["pass"], "the words of an error"
    sources = [mutation.source for mutation in mutations(SOURCE)]
    assert len(set(sources)) == len(sources)


@pytest.mark.parametrize(
    ("source", "after"),
    [
        ("pairs = zip(a, b, strict=True)", "pairs = zip(a, b, strict=False)"),
        ("norm = get_total_norm(gradients, foreach=True)", "norm = get_total_norm(gradients, )"),
        ("least = min(a, 3)", "least = min(3, a)"),
        ("values: list", "pass"),
    ],
)
def test_what_no_check_can_see_is_not_changed(source: str, after: str) -> None:
    assert after not in [mutation.after for mutation in mutations(source)]


def test_the_table_counts_what_passed() -> None:
    first, *others = (Mutant("0.1", "reference", mutation) for mutation in mutations(SOURCE))
    *_, row = table([first, *others], {first}).splitlines()
    num = len(others) + 1
    assert row == f"| all | 1 | {num} | {num - 1} | 0 | 0 | 1 | {(num - 1) / num:.1%} |  |"


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", sorted(SURVIVORS.glob("*.toml")), ids=lambda path: path.stem)
def test_what_is_listed_is_still_a_change_of_a_solution(path: Path) -> None:
    made = {
        (exercise.id, *mutation.key)
        for exercise in load_lesson(path.stem).exercises
        for source in mutated(exercise.id).values()
        for mutation in mutations(source)
    }
    assert set(known_survivors(path.stem)) - made == set()


@pytest.mark.parametrize("exercise", first_of(SAMPLE, everyday=0, further=10), ids=lambda e: e.id)
def test_a_change_of_the_reference_is_refused_or_listed(exercise: Exercise, without_the_clock: None) -> None:
    source = mutated(exercise.id)["reference"]
    case = Mutant(exercise.id, "reference", random.Random(exercise.id).choice(mutations(source)))
    result = check_source(exercise.id, case.mutation.source)
    assert result.score < exercise.clock_free_score or case.kind, case.mutation.key


@pytest.mark.parametrize("exercise", first_of(SAMPLE, everyday=0, further=10), ids=lambda e: e.id)
def test_a_wrong_solution_fails_whatever_is_drawn(exercise: Exercise, without_the_clock: None) -> None:
    wrong = [solution for solution in known_solutions(exercise.id) if solution.says]
    solution = random.Random(exercise.id).choice(wrong)
    results = [check_source(exercise.id, solution.source, again=True) for _ in range(20)]
    assert {result.verdict for result in results} == {"fail"}, solution.name
