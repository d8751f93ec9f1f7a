"""From the source of a cell to a result."""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import replace

import numpy as np

from autograder.common import CHECKS_WITHOUT_RESULT, Reason, Result, Verdict
from autograder.course import Exercise, find_exercise
from autograder.engine import calibration, evidence, review
from autograder.engine.job import CheckFailed, Job, Progress, WorkerFailed
from autograder.engine.measure import Inconclusive, TooSlow
from autograder.engine.sandbox import LEVELS, Level, Stop, probe
from autograder.engine.source.cell import read_cell
from autograder.engine.source.drawn import student_in
from course_lib.base import UserError

NOTHING_LOST = "Nothing is lost, and no points are given or taken."
_STANDS = (
    f"This code came to {evidence.MAX_ATTEMPTS} verdicts by the clock on this machine, and the last of them stands. "
    "Code that does something else is measured anew."
)
_REFUSED = (
    "No grade was given: the process that ran the code proved sandbox level {!r}, and {!r} is required. This is not "
    "the learner's mistake; `workbook doctor` says how to raise the level."
)
_CLOCK_NOT_ASKED = (
    "not asked for {:g}×: on this machine a right solution does not come clear of it, and that is nobody's "
    "mistake. All points rest on properties and counts."
)
_OUR_MISTAKE = (
    "The check itself went wrong ({}). This is not your mistake: run it again, and report it to us if it stays. "
    "The other exercises are checked all the same."
)
_NO_SUCH_INTEGER = ("cannot convert float NaN", "cannot convert float infinity")


def blank_result(exercise_id: str, verdict: Verdict, reason: Reason | str) -> Result:
    """A result without a measurement: zero points and the reason."""
    try:
        exercise = find_exercise(exercise_id)[1]
        title, max_score = exercise.title, exercise.max_score
    except KeyError:
        title, max_score = "", 0
    said = Reason(note=reason) if isinstance(reason, str) else reason
    return Result(id=exercise_id, title=title, max_score=max_score, verdict=verdict, reason=said)


def check_source(
    exercise_id: str,
    source: str,
    *,
    on_progress: Progress | None = None,
    require_sandbox: Level | None = None,
    again: bool = False,
    stop: Stop | None = None,
) -> Result:
    """Check one exercise from the source of its cell.

    Args:
        require_sandbox: the weakest sandbox level that a grade may be given at; None takes what there is.
        again: for a check of what is on record: earlier measurements do not weigh on it, nor it on later ones.
        stop: ends the check when pressed. Then its verdict is "stopped", which is none.

    Whatever goes wrong while it is checked is a result too, with verdict "error".
    Raises `UserError` before anything runs when this machine's sandbox is weaker than required.
    """
    try:
        lesson, exercise = find_exercise(exercise_id)
    except KeyError as error:
        return blank_result(exercise_id, "error", str(error.args[0]))
    _require_level(require_sandbox)
    try:
        cell = read_cell(source, exercise.entry)
        if cell.mistake:
            return blank_result(exercise_id, "fail", cell.mistake)
        if cell.is_stub:
            return blank_result(
                exercise_id, "not_attempted", f"`{exercise.entry}` is still the stub it came as"
            )
        if exercise.without_library and (line := review.imported(cell.source)):
            return blank_result(exercise_id, "fail", _imported(exercise, line))
        if exercise.draws and not student_in(cell.source):
            return blank_result(exercise_id, "fail", _nobody(exercise))
        job = Job.of(exercise, cell.source, lesson.harness)
        job.stop = stop or job.stop

        def progress(text: str, fraction: float) -> None:
            job.stop.raise_if_pressed()
            if on_progress:
                on_progress(text, fraction)

        job.progress = progress
        return _run(exercise, job, require_sandbox, again)
    except UserError as error:  # says itself what to do
        return blank_result(exercise_id, "error", str(error))
    except Exception as error:
        if os.environ.get("WORKBOOK_DEBUG"):
            raise
        what = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        if isinstance(error, OverflowError) or any(text in what for text in _NO_SUCH_INTEGER):
            return blank_result(exercise_id, "fail", _beyond_numbers(what))
        return replace(
            blank_result(exercise_id, "error", _OUR_MISTAKE.format(what)), counts={CHECKS_WITHOUT_RESULT: 1}
        )


def _run(exercise: Exercise, job: Job, required: Level | None, again: bool) -> Result:
    start, seed, source = time.monotonic(), secrets.randbits(64), job.source
    job.rng = np.random.default_rng(seed)
    history = evidence.History() if again else evidence.history(exercise.id, source)
    job.prior_blocks = history.prior_blocks()
    reached = calibration.load().get(exercise.id)
    job.reference_speedup = reached.speedup if reached else None
    job.review += review.reasons(
        source,
        counts=exercise.kinds == ("property", "count") and not exercise.clock,
        allowed=exercise.means,
        given=job.harness,
        entry=exercise.entry,
    )
    verdict: Verdict
    verdict, score, reason = "pass", exercise.max_score, Reason(note="Right on secret inputs.")
    try:
        job.progress("Starting", 0.0)
        exercise.part(exercise.check)(job)
    except CheckFailed as error:
        verdict, score, reason = "fail", 0, error.reason
        if isinstance(error, TooSlow) and error.earns:
            score = exercise.clock_free_score
    except Inconclusive as error:
        verdict, score, reason = "inconclusive", exercise.clock_free_score, error.reason
    except Exception as error:
        if job.stop.is_pressed:
            return _stopped(job, history, keep=not again, seconds=time.monotonic() - start)
        if not isinstance(error, WorkerFailed):
            raise
        verdict, score, reason = "error", 0, Reason(note=str(error))
    finally:
        job.close()
    if job.speed:
        if verdict == "pass":
            came_to = f" Speedup {job.speed.estimate:.2f}×, asked for {job.speed.bar:g}×."
            reason = replace(reason, note=reason.note + came_to)
        if history.stands:
            reason = replace(reason, after=_STANDS)
        history = history.after(verdict, job.prior_blocks + job.raw_blocks, job.speed.bar)
        job.speed = replace(job.speed, attempts=history.attempts)
    if verdict == "pass" and (bar := job.counts.get("speed_bar_moved_to_counts")):
        reason = replace(reason, clock=_CLOCK_NOT_ASKED.format(bar))
    if verdict != "error" and required and LEVELS.index(job.level()) > LEVELS.index(required):
        verdict, score, reason = "error", 0, Reason(note=_REFUSED.format(job.level(), required))
    result = replace(
        blank_result(exercise.id, verdict, reason),
        score=score,
        speedup=job.speed,
        counts=job.counts,
        sandbox=job.level(),
        review=tuple(job.review),
        seconds=time.monotonic() - start,
    )
    path = evidence.path_of(exercise.id, source, again=again)
    facts = evidence.Facts(result=result, threads=job.threads, conditions=job.conditions)
    return replace(result, evidence=evidence.save(path, source, seed, history, facts))


def _beyond_numbers(what: str) -> Reason:
    """What a check draws is finite: a number with which it cannot reckon came from the learner's code."""
    return Reason(
        expected="results that can be compared with the right ones",
        got=f"a number that is NaN, infinite or beyond what a float holds ({what})",
        likely="a division by zero, a logarithm of 0, or a number that grew without bound",
        next="print what your code returns for a small input, and look for nan, inf, or a number of many digits",
    )


def _nobody(exercise: Exercise) -> Reason:
    return Reason(
        expected='your id in the cell: `STUDENT = "ada"`',
        got="no such line with a text",
        likely="the line is gone, or stands in another cell",
        next=f'write it above `{exercise.entry}`; `drawn("{exercise.id}", STUDENT)` shows the values that are yours',
    )


def _imported(exercise: Exercise, line: int) -> Reason:
    return Reason(
        expected=f"`{exercise.entry}` built by yourself",
        got=f"`course_lib`, in line {line} of the cell",
        likely="the library has what this exercise asks you to build",
        next="write it without `course_lib`; all else that is installed may be used. To compare, look into the "
        "library's afterwards: it is there to be read",
    )


def _stopped(job: Job, history: evidence.History, *, keep: bool, seconds: float) -> Result:
    """The result of a check that was stopped: no verdict, no points, and the blocks kept that were measured."""
    blocks = job.prior_blocks + job.raw_blocks
    if not job.speed or not keep or history.stands:
        reason = Reason(note=NOTHING_LOST, next="run the check again")
    elif evidence.keep_open(job.exercise_id, job.source, blocks):
        reason = Reason(
            note=f"{NOTHING_LOST[:-1]}: {len(blocks)} blocks are kept.",
            next=f"run the check again: it goes on from these {len(blocks)} blocks",
        )
    else:
        reason = Reason(
            note="The blocks so far could not be kept.", next="run `workbook doctor`: it looks at the disk"
        )
    return replace(blank_result(job.exercise_id, "stopped", reason), speedup=job.speed, seconds=seconds)


def _require_level(required: Level | None) -> None:
    if required and LEVELS.index((here := probe()).level) > LEVELS.index(required):
        raise UserError(
            f"sandbox level {required!r} is required, and this machine holds {here.level!r}: {here.reason}. "
            f"{here.fix or 'Grade on Linux with bubblewrap'}"
        )
