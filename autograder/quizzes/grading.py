"""What the answers to a quiz or an exam are worth, from the answers alone."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from autograder.course import load_lesson
from autograder.kept import Answer
from autograder.quizzes import exams
from autograder.quizzes.bank import PASS_MARK, Bank
from autograder.quizzes.exam_time import in_time, late_text, minutes_in, timed
from autograder.quizzes.grade import Attempt, GradedQuestion, QuizGrade
from autograder.quizzes.question import Judgement, Question
from course_lib.base import UserError


def has_quiz(lesson_id: str) -> bool:
    """Whether the lesson has a quiz."""
    return _bank_path(lesson_id).exists()


@functools.cache
def load_bank(lesson_id: str) -> Bank:
    """The questions of a lesson.

    Raises:
        UserError: the lesson has no quiz.
    """
    if not has_quiz(lesson_id):
        raise UserError(f'there is no quiz "{lesson_id}"; lessons are named "01", "02", …')
    return Bank.from_dict(json.loads(_bank_path(lesson_id).read_text(encoding="utf-8")))


def bank_in(folder: Path, lesson_id: str) -> Bank:
    """The questions that are asked in a folder: those of a graded release, which has no keys, else the lesson's own.

    Raises:
        UserError: the lesson has no quiz, or the graded one cannot be read.
    """
    shipped = load_bank(lesson_id)
    path = folder / keyless_name(lesson_id)
    if not path.is_file():
        return shipped
    try:
        return Bank.from_dict(json.loads(path.read_text(encoding="utf-8"))).without_keys()
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise UserError(
            f"{path.name} cannot be read: put the one there that your course handed out"
        ) from None


def keyless_name(lesson_id: str) -> str:
    """Name of the file beside the notebook with the questions of a graded release."""
    return f"{load_lesson(lesson_id).slug}_quiz.json"


def exam_bank(folder: Path, lesson_id: str, answers: Mapping[str, Any]) -> Bank:
    """The questions of an exam, with the time that an attempt has in a folder. Raises UserError as `load_bank` does."""
    return timed(load_bank(lesson_id), minutes_in(folder, lesson_id), answers)


def is_exam(lesson_id: str) -> bool:
    """Whether the quiz of a lesson is drawn anew for each attempt."""
    return load_bank(lesson_id).is_exam


def grade_quiz(
    lesson_id: str, answers: Mapping[str, Any], *, open_counts: bool = True, bank: Bank | None = None
) -> QuizGrade:
    """Grade the answers of a quiz without showing anything. Answers that make no sense count as not given.

    Of a quiz with two forms the better one counts, and of an exam the best attempt. An open attempt counts as it
    stands: whoever forgot to hand in loses nothing.

    Args:
        answers: by question id; an entry of the answers file, or the letter alone.
        open_counts: False leaves an attempt out that is not handed in.
        bank: the questions, if not the lesson's own. In an exam with `minutes`, what was answered after them is left
            out.
    """
    bank = bank or load_bank(lesson_id)
    if bank.is_keyless:
        return _waiting(bank, answers)
    if not bank.is_exam:
        return _better_form(bank, answers)
    place = exams.place_in(answers)
    papers = [exams.paper(bank, place, attempt + 1) for attempt in range(place.attempt)] if place else []
    found = [
        (paper, graded(paper, in_time(bank, answers, paper.attempt)))
        for paper in papers
        if not paper.is_open or open_counts
    ]
    found = [(paper, grade) for paper, grade in found if not paper.is_open or grade.num_answered]
    problem = str(answers.get("problem", ""))
    if exams.KEY in answers and place is None:
        problem = f'The entry "{exams.KEY}" of the answers file is none that this course writes.'
    late = [late_text(bank, answers, paper.attempt) for paper, _ in found]
    problem = ". ".join(filter(None, [problem, *late]))
    blank = QuizGrade(
        lesson=bank.lesson,
        score=0.0,
        max_score=float(bank.num_questions),
        passed=False,
        questions=(),
        problem=problem,
    )
    grades = [grade for _, grade in found]
    attempts = tuple(Attempt(attempt=paper.attempt, score=grade.score or 0.0) for paper, grade in found)
    best = max(grades, key=_score, default=blank)
    return replace(best, questions=(grades or [blank])[-1].questions, attempts=attempts, problem=problem)


def _waiting(bank: Bank, answers: Mapping[str, Any]) -> QuizGrade:
    """Of a graded release, before the instructor has graded it: what was answered."""
    given = [(question.id, _choice(question, answers.get(question.id))) for question in bank.questions]
    return QuizGrade(
        lesson=bank.lesson,
        score=None,
        max_score=float(bank.num_questions),
        passed=None,
        questions=tuple(GradedQuestion(id=key, choice=choice, judgement=None) for key, choice in given),
        problem=str(answers.get("problem", "")),
    )


def _better_form(bank: Bank, answers: Mapping[str, Any]) -> QuizGrade:
    grades = [graded(bank, answers)]
    if not bank.second_forms:
        return grades[0]
    if any(question.id in answers for question in bank.second_forms):
        grades.append(graded(bank.second_form(), answers))
    return replace(max(grades, key=_score), forms=tuple(map(_score, grades)))


def graded(bank: Bank, answers: Mapping[str, Any]) -> QuizGrade:
    """The answers to all questions of a bank, or of a paper drawn from one."""
    each = tuple(_grade(bank.lesson, question, answers.get(question.id)) for question in bank.questions)
    score, max_score = sum(question.is_right for question in each), len(each)
    return QuizGrade(
        lesson=bank.lesson,
        score=float(score),
        max_score=float(max_score),
        passed=score >= PASS_MARK * max_score - 1e-9,
        questions=each,
        problem=str(answers.get("problem", "")),
    )


def _grade(lesson_id: str, question: Question, entry: object) -> GradedQuestion:
    choice = _choice(question, entry)
    judgement = question.judge(lesson_id, choice) if choice else Judgement(is_right=False)
    return GradedQuestion(
        id=question.id,
        choice=choice,
        judgement=judgement,
        right_first=judgement.is_right and Answer.from_entry(entry).first in (None, choice),
        text=question.text,
        lesson=question.lesson,
        topic=question.topic,
        drawn=question.drawn,
        chosen=question.words_of(choice) if choice else "",
    )


def _choice(question: Question, entry: object) -> str | None:
    choice = Answer.from_entry(entry).choice
    return choice if question.accepts(choice) else None


def _score(grade: QuizGrade) -> float:
    return grade.score or 0.0


def _bank_path(lesson_id: str) -> Path:
    # The name goes into a path, and it may come from a submission's file.
    name = lesson_id if lesson_id.isalnum() else "none"
    return Path(__file__).parents[1] / "lessons" / f"lesson_{name}" / "quiz.json"
