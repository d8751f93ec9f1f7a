"""From the source of a cell to a result, and from a notebook to all of them."""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autograder.lessons import Exercise, Lesson, find_exercise, load_lesson
from autograder.notebook_source import exercise_sources, is_stub, read_notebook
from course_lib.errors import UserError

Progress = Callable[[str, float], None]
_OUTCOME_KEYS = ("id", "score", "max_score", "verdict", "reason")
PUBLIC_KEYS = (*_OUTCOME_KEYS, "speedup", "counts", "sandbox", "evidence", "review")
PUBLIC_SPEEDUP_KEYS = ("estimate", "low", "high", "bar", "blocks")


def blank_result(exercise_id: str, verdict: str, reason: str) -> dict[str, Any]:
    """A result without a measurement: zero points and the reason."""
    try:
        exercise = find_exercise(exercise_id)[1]
        title, max_score = exercise.title, exercise.max_score
    except KeyError:
        title, max_score = "", 0
    return {
        "id": exercise_id,
        "title": title,
        "score": 0,
        "max_score": max_score,
        "verdict": verdict,
        "reason": reason,
        "speedup": None,
        "counts": {},
        "sandbox": None,
        "evidence": None,
        "review": [],
        "seconds": 0.0,
    }


def check_source(
    exercise_id: str, source: str, *, on_progress: Progress | None = None, seed: int | None = None
) -> dict[str, Any]:
    """Check one exercise from the source of its cell.

    Returns a result with DESIGN's keys, and for the card: `title`, `seconds`, `speedup.ratios`, `speedup.spread`.
    `seed` is for tests; else the secret inputs come from the operating system.
    """
    try:
        lesson, exercise = find_exercise(exercise_id)
    except KeyError as error:
        return blank_result(exercise_id, "error", str(error.args[0]))
    if is_stub(source, exercise.entry):
        return blank_result(exercise_id, "not_attempted", f"`{exercise.entry}` is still the stub it came as.")
    return _run(lesson, exercise, source, on_progress, secrets.randbits(64) if seed is None else seed)


def _run(
    lesson: Lesson, exercise: Exercise, source: str, on_progress: Progress | None, seed: int
) -> dict[str, Any]:
    import numpy as np

    from autograder import evidence
    from autograder.job import CheckFailed, Job, WorkerFailed
    from autograder.measure import Inconclusive

    start = time.monotonic()
    job = Job(
        exercise_id=exercise.id,
        entry=exercise.entry,
        source=source,
        harness=lesson.harness,
        rng=np.random.default_rng(seed),
        progress=on_progress or (lambda text, fraction: None),
        prior_blocks=evidence.open_blocks(exercise.id, source),
    )
    verdict, score, reason = "pass", exercise.max_score, "Right on secret inputs."
    try:
        job.progress("Starting", 0.0)
        job.prepare(exercise.num_workers)
        exercise.check(job)
    except CheckFailed as error:
        verdict, score, reason = "fail", 0, str(error)
    except Inconclusive as error:
        verdict, score, reason = "inconclusive", exercise.clock_free_score, str(error)
    except WorkerFailed as error:
        verdict, score, reason = "error", 0, str(error)
    finally:
        job.close()
    result = blank_result(exercise.id, verdict, reason) | {
        "score": score,
        "speedup": job.speed,
        "counts": job.counts,
        "sandbox": job.level(),
        "review": job.review,
        "seconds": time.monotonic() - start,
    }
    if verdict == "pass" and job.speed:
        result["reason"] += f" Speedup {job.speed['estimate']:.2f}×, asked for {job.speed['bar']:g}×."
    seed_hash = hashlib.sha256(str(seed).encode()).hexdigest()
    result["evidence"] = evidence.save(
        result, source, job.raw_blocks, job.prior_blocks, job.threads, seed_hash
    )
    return result


def check_notebook(
    path: Path | str, *, only: list[str] | None = None, on_progress: Progress | None = None
) -> dict[str, Any]:
    """Check every exercise of a lesson's notebook, and its quiz by the answers file beside it.

    Raises `UserError` when the file is no notebook of this course.
    """
    path = Path(path)
    sources = exercise_sources(read_notebook(path))
    lesson = lesson_of(path, sources)
    results = []
    for exercise in lesson.exercises:
        if only and exercise.id not in only:
            continue
        if exercise.id in sources:
            report = _prefixed(on_progress, exercise.id)
            results.append(check_source(exercise.id, sources[exercise.id], on_progress=report))
        else:
            reason = f'The notebook has no cell with @exercise("{exercise.id}"). Copy it from the release notebook.'
            results.append(blank_result(exercise.id, "not_attempted", reason))
    return {
        "lesson": lesson.id,
        "score": sum(result["score"] for result in results),
        "max_score": sum(result["max_score"] for result in results),
        "exercises": results,
        "quiz": _grade_quiz(lesson, path.parent),
    }


def check_evidence(path: Path | str, *, on_progress: Progress | None = None) -> dict[str, Any]:
    """Check the source in an evidence file again, and report it as a notebook of that one exercise.

    Raises `UserError` when the file is no evidence.
    """
    from autograder import evidence

    record = evidence.read(Path(path))
    exercise_id = str(record["result"]["id"])
    report = _prefixed(on_progress, exercise_id)
    result = check_source(exercise_id, record["source"], on_progress=report)
    return {
        "lesson": exercise_id.partition(".")[0].zfill(2),
        "score": result["score"],
        "max_score": result["max_score"],
        "exercises": [result],
        "quiz": None,
    }


def lesson_of(path: Path, sources: dict[str, str]) -> Lesson:
    """The lesson that a notebook belongs to: that of most of its exercises, else by its name."""
    prefixes = Counter(exercise_id.partition(".")[0].zfill(2) for exercise_id in sources)
    for lesson_id in (*(lesson_id for lesson_id, _ in prefixes.most_common()), path.name[:2]):
        with contextlib.suppress(KeyError):
            return load_lesson(lesson_id)
    raise UserError(f"{path}: no lesson of this course; its cells hold no @exercise of a known number")


def public(report: dict[str, Any]) -> dict[str, Any]:
    """The report with the documented keys alone, for `--json`."""
    exercises = []
    for result in report["exercises"]:
        kept = {key: result[key] for key in PUBLIC_KEYS}
        if kept["speedup"]:
            kept["speedup"] = {key: kept["speedup"][key] for key in PUBLIC_SPEEDUP_KEYS}
        exercises.append(kept)
    quiz = {key: report["quiz"][key] for key in ("score", "max_score", "passed")} if report["quiz"] else None
    return report | {"exercises": exercises, "quiz": quiz}


def _grade_quiz(lesson: Lesson, folder: Path) -> dict[str, Any] | None:
    from autograder.answers import read_answers
    from autograder.quizzes import grade_quiz, has_quiz

    if not has_quiz(lesson.id):
        return None
    return grade_quiz(lesson.id, read_answers(folder / f"{lesson.slug}_answers.json"))


def _prefixed(on_progress: Progress | None, exercise_id: str) -> Progress | None:
    if on_progress is None:
        return None
    return lambda text, fraction: on_progress(f"{exercise_id}  {text}", fraction)
