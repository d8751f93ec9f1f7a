"""`workbook grade`: a lesson of a whole class into nbgrader's gradebook.

Its phases are resumable by what each leaves on the disk. First the checks that keep no clock, side by side. Then the
timed ones, one per core at most; the verdict's error rates were measured with every core taken by another process. Then
once more, one at a time, those from whom others may have taken the memory. Then nbgrader's own autograde, student by
student from the one process that writes the database, with the results at hand.

    COURSE/.workbook/results/…     results by content (`units`)
    COURSE/.workbook/staged/…, graded/…, locks/…     (`gradebook`)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from autograder.common import CHECKS_WITHOUT_RESULT, Result, one_line
from autograder.course import Lesson, load_lesson
from autograder.engine.sandbox import LeastMemory, is_machines
from autograder.engine.timing import num_cores
from autograder.grading.gradebook import Entries, Grade
from autograder.grading.submissions import near_names, read_submission, students_of
from autograder.grading.units import (
    MOST_WITHOUT,
    Unit,
    check_died,
    check_unit,
    counted,
    engines,
    results_of,
    units_of,
)
from course_lib.base import UserError

OnProgress = Callable[[str, int, int], None]
Done = tuple[Unit, Result]


@dataclass(frozen=True, kw_only=True)
class Graded:
    """What `grade` came to.

    Attributes:
        graded: how many students have a grade.
        checked: units that ran.
        reused: units whose result was there.
        students: by name.
    """

    lesson: str
    graded: int
    checked: int
    reused: int
    students: dict[str, Grade]


def grade(
    lesson_id: str,
    course: Path,
    *,
    students: Sequence[str] = (),
    jobs: int | None = None,
    executor: Executor | None = None,
    require_sandbox: str | None = None,
    on_progress: OnProgress = lambda *_: None,
    on_result: Callable[[Result], None] = lambda _: None,
) -> Graded:
    """Grade what the students handed in, and return what there is to say about it.

    Args:
        students: these alone; all who handed in by default.
        jobs: checks at a time; one per core by default, and never more than that of the timed ones.
        executor: what runs `check_unit`, in place of `jobs` engines on this machine.
        require_sandbox: the weakest sandbox level that a grade may be given at.
        on_progress: gets the phase, how many of its parts are done, and how many there are.
        on_result: gets the result of each check that ran, once it is kept.
    """
    lesson = known_lesson(lesson_id)
    names = list(students) or students_of(course, lesson.slug)
    if unknown := sorted(set(names) - set(students_of(course, lesson.slug))):
        raise UserError(
            f"{unknown[0]} handed in nothing for {lesson.slug}: there is no submitted/{unknown[0]}/{lesson.slug}"
        )
    if not names:
        near = [f"{name}: {why}" for name, why in near_names(course, lesson.slug).items()]
        raise UserError(
            f"nothing was handed in for {lesson.slug}: {course}/submitted/STUDENT/{lesson.slug} is not there"
            + "".join(f". {one_line(line)}" for line in near[:3])
        )
    results = results_of(course)
    submissions = [read_submission(course, name, lesson) for name in names]
    wanted = dict.fromkeys(unit for each in submissions for unit in units_of(each, lesson))
    missing = [unit for unit in wanted if not _stands(results.get(unit))]
    untimed = [unit for unit in missing if not unit.is_timed]
    timed = [unit for unit in missing if unit.is_timed]

    def keep(phase: str, units: list[Unit], done: Iterator[Done]) -> None:
        if units:
            on_progress(phase, 0, len(units))
        for number, (unit, result) in enumerate(done, start=1):
            results.put(unit, counted(result, results.get(unit)))
            on_result(result)
            on_progress(phase, number, len(units))

    with _checking(executor, jobs or num_cores()) as check:
        with LeastMemory() as memory:
            checked = check(untimed)  # the engines start while nbgrader is loaded
            gradebook = Entries(course, lesson, require_sandbox)
            keep("checks", untimed, checked)
            keep("timed checks", timed, check(timed))
        lacked = [unit for unit in missing if memory.was_lacking_to(results.get(unit))]
        keep("checks again, alone", lacked, (done for unit in lacked for done in check([unit])))
    grades = {}
    on_progress("gradebook", 0, len(submissions))
    for done, submission in enumerate(submissions, start=1):
        grades[submission.student] = gradebook.enter(submission, results)
        on_progress("gradebook", done, len(submissions))
    if not students:
        grades |= {name: Grade(look=(), error=why) for name, why in near_names(course, lesson.slug).items()}
    return Graded(
        lesson=lesson.id,
        graded=sum(not each.error for each in grades.values()),
        checked=len(missing),
        reused=len(wanted) - len(missing),
        students=grades,
    )


@contextlib.contextmanager
def _checking(executor: Executor | None, jobs: int) -> Iterator[Callable[[list[Unit]], Iterator[Done]]]:
    """Yields what gives each unit with its result, as it is known. However the block ends, no process of ours stays."""
    with contextlib.ExitStack() as ends:
        pool = executor or ThreadPoolExecutor(jobs, thread_name_prefix="grade")
        if executor is None:
            ends.enter_context(engines())
            ends.callback(pool.shutdown, wait=False, cancel_futures=True)

        def check(units: list[Unit]) -> Iterator[Done]:
            futures = {pool.submit(check_unit, unit): unit for unit in units}
            return ((futures[future], _result(futures[future], future)) for future in as_completed(futures))

        yield check


def _result(unit: Unit, future: Future[Result]) -> Result:
    """What a unit came to: whatever went wrong with one is told in its result, and the class goes on."""
    try:
        return future.result()
    except UserError:  # of the machines that check: nobody's unit can be checked
        raise
    except Exception as error:
        return check_died(unit, f"{type(error).__name__}: {error}")


def _stands(result: Result | None) -> bool:
    """Whether a result need not be asked for again: the clock may decide now, an engine that died may live, and a
    machine that was full of others' work may have room. Who came to no end twice will not."""
    if result is None or result.verdict == "inconclusive":
        return False
    if result.counts.get(CHECKS_WITHOUT_RESULT, 0) >= MOST_WITHOUT:
        return True
    return result.verdict != "error" or (result.evidence is not None and not is_machines(result))


def known_lesson(lesson_id: str) -> Lesson:
    """The lesson with this id. Raises UserError where there is none."""
    try:
        return load_lesson(lesson_id)
    except KeyError as error:
        raise UserError(str(error.args[0])) from None
