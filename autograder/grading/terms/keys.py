"""The questions of a graded quiz: the instructor's own, and their keys, which never leave the course.

    COURSE/banks/NN_quiz.toml              where a graded release looks for the questions, unless --bank names a file
    COURSE/.workbook/keys/NN.json          the compiled bank of the last graded release; the grader takes it from there
    COURSE/{source,release}/SLUG/SLUG_quiz.json   its questions and options alone, which students get

The text is written as that of the course's own quizzes (`quizzes.compiler`). A graded quiz has one form, and no
question that a machine answers: the learner's would measure one thing and the grader's another.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from autograder.course import Lesson, lesson_ids
from autograder.grading.submissions import Submission
from autograder.grading.terms.extensions import granted_in, granted_to
from autograder.grading.units import FOLDER
from autograder.kept import read_answers
from autograder.quizzes import (
    Bank,
    compile_bank,
    doubts,
    has_quiz,
    is_exam,
    keyless_name,
    load_bank,
    minutes_in,
)
from course_lib.base import UserError, atomic_write_text


def own_bank(lesson: Lesson, course: Path, path: Path | None = None) -> Bank:
    """The instructor's questions on a lesson, compiled.

    Args:
        path: of their text; `banks/NN_quiz.toml` in the course by default.

    Raises:
        UserError: there are none, or they are no graded quiz of this lesson; names the fix.
    """
    if is_exam(lesson.id):
        raise UserError(
            f"lesson {lesson.id} is an exam: it draws its questions and shows what was right at once, so it is for "
            "practice alone; ask graded questions in a lesson with a quiz"
        )
    path = path or course / "banks" / f"{lesson.id}_quiz.toml"
    if not path.is_file():
        raise UserError(
            f"a graded release needs questions of your own: there is no {path}; name the file with --bank FILE (the "
            "course's own questions will not do: their keys are on every student's disk)"
        )
    if any(path.resolve().is_relative_to(course / step) for step in ("source", "release")):
        raise UserError(f"{path} lies where students get what is there; move it to {course / 'banks'}")
    bank = compile_bank(path)
    if bank.lesson != lesson.id:
        raise UserError(f"{path.name} says lesson {bank.lesson}; this is lesson {lesson.id}")
    if bank.is_exam:
        raise UserError(f"{path.name} is an exam; a graded quiz asks everybody the same questions")
    published = _published()
    for question in bank.questions:
        if known := published.get(_words(question.text)):
            raise UserError(
                f"{path.name}: question {question.id} is the course's own {known}, whose key every student has; ask "
                "another one"
            )
    if bank.second_forms:
        raise UserError(
            f"{path.name}: a graded quiz has one form; take {bank.second_forms[0].id} and its like out"
        )
    if measured := [question.id for question in bank.questions if question.is_measured]:
        raise UserError(
            f"{path.name}: question {measured[0]} is measured, and the learner's machine is not the grader's; ask "
            "another one"
        )
    return bank


def keep(bank: Bank, course: Path) -> Path:
    """Keep a graded quiz with its keys, for the grader; returns where. Nobody but the owner may read it."""
    path = keys_path(course, bank.lesson)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.parent.chmod(0o700)  # before there is anything to read in it
    atomic_write_text(path, json.dumps(bank.to_dict(), indent=1, ensure_ascii=False))
    path.chmod(0o600)
    return path


def keys_path(course: Path, lesson_id: str) -> Path:
    """Where the keys of a lesson's graded quiz are kept."""
    return course / FOLDER / "keys" / f"{lesson_id}.json"


def grading_bank(course: Path, lesson: Lesson, student: str = "") -> Bank:
    """The questions with their keys that a course grades a lesson by: the last graded release's, else the lesson's own;
    of an exam with the time that this student has.

    Raises:
        UserError: the course released a graded quiz, and its keys are gone or damaged. Or the lesson has no quiz.
    """
    path = keys_path(course, lesson.id)
    was_graded = (course / "release" / lesson.slug / keyless_name(lesson.id)).exists()
    if not path.exists() and not was_graded:
        bank = load_bank(lesson.id)
        minutes = minutes_in(course / "release" / lesson.slug, lesson.id) if bank.is_exam else 0.0
        return replace(bank, minutes=minutes * exam_time(course, lesson, student)) if minutes else bank
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return Bank.from_dict(json.loads(path.read_text(encoding="utf-8")))
    raise UserError(
        f"{path} is missing or cannot be read, and the quiz cannot be graded without; put your copy back, or make it "
        f"again: workbook release {lesson.id} --graded --bank FILE"
    )


def exam_time(course: Path, lesson: Lesson, student: str) -> float:
    """How many times the usual time a student was granted in an exam. Raises UserError where the table is none."""
    return granted_to(granted_in(course), student, lesson.id).exam_time or 1.0


def exam_doubts(course: Path, lesson: Lesson, submission: Submission) -> list[str]:
    """What a person should know of the times in which a student answered an exam that has a clock."""
    if not submission.answers or not (has_quiz(lesson.id) and is_exam(lesson.id)):
        return []
    bank = grading_bank(course, lesson, submission.student)
    granted = exam_time(course, lesson, submission.student)
    return doubts(bank, read_answers(submission.answers), granted)


def bank_of_hand_in(notebook: Path) -> Callable[[Lesson], Bank] | None:
    """What gives the questions that a course grades a notebook in `submitted` or `autograded` by; None elsewhere."""
    for step in notebook.resolve().parents:
        if step.name in ("submitted", "autograded") and (step.parent / "nbgrader_config.py").is_file():
            student = notebook.resolve().relative_to(step).parts[0]
            return functools.partial(grading_bank, step.parent, student=student)
    return None


def _published() -> dict[str, str]:
    """The words of each question that the course comes with, and its id."""
    banks = [load_bank(lesson_id) for lesson_id in lesson_ids() if has_quiz(lesson_id)]
    return {_words(question.text): question.id for bank in banks for question in bank.all_questions}


def _words(text: str) -> str:
    return " ".join(text.split()).casefold()
