"""The unit of grading: one exercise's source. Equal sources are checked once, and a result is kept by content.

A result's name is a hash of the source and of all code that decides what the check says. So a corrected check regrades
its own exercise and nothing else, and a grader that was killed goes on with what it had finished.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock, Timeout

from autograder.common import CHECKS_WITHOUT_RESULT, Result, data_directory
from autograder.course import Lesson, find_exercise
from autograder.engine import EngineDied, EngineService, EngineStuck, key_of
from autograder.engine.timing import num_cores
from autograder.grading.submissions import Submission
from course_lib.base import UserError, atomic_write_text

FOLDER = ".workbook"  # of what grading keeps, in the course
_MAX_TRIES = 2
MAX_SECONDS = 10 * 60.0  # of a check, some times what any takes; then it is held up on purpose, or hangs
MOST_WITHOUT = 2
_LANE_SECONDS = 0.2  # between looks for a free one
_own = threading.local()
_services: list[EngineService] = []
_ending = threading.Event()


@dataclass(frozen=True)
class Unit:
    """What is checked on its own. `is_timed`: whether the clock has a say."""

    exercise_id: str
    source: str

    @property
    def is_timed(self) -> bool:
        return find_exercise(self.exercise_id)[1].clock is not None

    @functools.cached_property
    def key(self) -> str:
        """Name of its result."""
        return key_of(self.exercise_id, self.source)


def units_of(submission: Submission, lesson: Lesson) -> list[Unit]:
    """What there is to check of a submission, in the lesson's order."""
    ids = [exercise.id for exercise in lesson.exercises if exercise.id in submission.sources]
    return [Unit(exercise_id, submission.sources[exercise_id]) for exercise_id in ids]


class Results:
    """The results in one folder, each whole or not there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, unit: Unit) -> Result | None:
        """The result of a unit, if it came to one that stands."""
        try:
            return Result.of_message(json.loads(self._path(unit).read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, unit: Unit, result: Result) -> None:
        """Keep a result. Raises UserError where the folder cannot be written."""
        try:
            atomic_write_text(self._path(unit), json.dumps(result.to_message()))
        except UserError as error:
            raise cannot_write(self.folder, error.__cause__) from None

    def _path(self, unit: Unit) -> Path:
        return self.folder / unit.exercise_id / f"{unit.key[:40]}.json"


def cannot_write(folder: Path, why: object) -> UserError:
    """What there is to do about a disk that fails, in a line: the file is named where the error knows it."""
    number = getattr(why, "errno", None)
    is_full = number in (None, errno.ENOSPC, errno.EDQUOT)
    place = folder if is_full else getattr(why, "filename", None) or folder
    fix = "Free space there" if is_full else "Mend that file or its rights"
    return UserError(
        f"cannot {'write in' if is_full else 'read or write'} {place}: {getattr(why, 'strerror', None) or why}. "
        f"{fix}, then run the same command: what was finished is kept"
    )


def results_of(course: Path) -> Results:
    """The results that are kept in a course."""
    return Results(course / FOLDER / "results")


def check_unit(unit: Unit) -> Result:
    """The engine's result, from an engine process of this thread's own. Runs anywhere the workbook is installed.

    An engine that dies is tried once more, on a new process; then the result says so, with verdict "error".
    """
    with lane() if unit.is_timed else contextlib.nullcontext():
        return _checked(unit)


def _checked(unit: Unit) -> Result:
    died = ""
    for _ in range(_MAX_TRIES):
        try:
            if result := _service().check(unit.exercise_id, unit.source, lambda *_: None, MAX_SECONDS):
                return result
        except EngineDied as error:
            died = str(error)
            if isinstance(error, EngineStuck):  # it would be as long once more
                return without_result(unit, died)
        if _ending.is_set():
            break
    return check_died(unit, died)


@contextlib.contextmanager
def lane() -> Iterator[None]:
    """One of as many places for timed work as this machine has cores, which all its graders share. The verdict's error
    rates were measured with every core taken by another process; with more than one they are not known."""
    folder = data_directory() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    lanes = [FileLock(folder / f"lane-{number}.lock") for number in range(num_cores())]
    while not any(map(_is_taken_now, lanes)) and not _ending.wait(_LANE_SECONDS):
        pass
    try:
        yield
    finally:
        for each in lanes:
            each.release()  # those that others hold stay theirs


def _is_taken_now(place: FileLock) -> bool:
    with contextlib.suppress(Timeout):
        place.acquire(timeout=0)
    return place.is_locked


def check_died(unit: Unit, why: str) -> Result:
    """The result of a unit that could not be checked, which is asked for again at the next run."""
    from autograder.engine import blank_result

    reason = f"The check itself stopped ({why[:200]}). This is not the learner's mistake: grade it again."
    return blank_result(unit.exercise_id, "error", reason)


def without_result(unit: Unit, why: str) -> Result:
    """The result of a unit whose check came to no end. It is asked for once more at the next run, for the machine may
    have stood still; a cell that waits for ever does so again."""
    from autograder.engine import blank_result

    reason = f"{why}: the cell waits, or works without end. The check was ended."
    return replace(blank_result(unit.exercise_id, "error", reason), counts={CHECKS_WITHOUT_RESULT: 1})


def counted(result: Result, before: Result | None) -> Result:
    """A new result, with how often there was none."""
    times = before.counts.get(CHECKS_WITHOUT_RESULT, 0) if before else 0
    return (
        replace(result, counts={CHECKS_WITHOUT_RESULT: times + 1})
        if CHECKS_WITHOUT_RESULT in result.counts and times
        else result
    )


@contextlib.contextmanager
def engines() -> Iterator[None]:
    """However the block ends, no engine process of this process's threads stays, and none waits for a lane."""
    _ending.clear()
    try:
        yield
    finally:
        _ending.set()
        ending = [threading.Thread(target=service.stop) for service in _services]
        _services.clear()
        for thread in ending:  # side by side: each engine takes a moment to stop its workers
            thread.start()
        for thread in ending:
            thread.join()


def _service() -> EngineService:
    if not hasattr(_own, "service"):
        _own.service = EngineService()
        _services.append(_own.service)
    return _own.service
