"""What the answers to a quiz or an exam are worth, from the answers alone."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from autograder.course import load_lesson
from autograder.quizzes import exams
from autograder.quizzes.bank import (
    PASS_MARK,
    Judgement,
    Question,
    is_keyless,
    judge,
    num_questions,
    second_form,
    without_keys,
)
from autograder.quizzes.forms import has_second
from course_lib.base import UserError


def has_quiz(lesson_id: str) -> bool:
    """Whether the lesson has a quiz."""
    return _bank_path(lesson_id).exists()


@functools.cache
def load_bank(lesson_id: str) -> dict[str, Any]:
    """The questions of a lesson.

    Raises:
        UserError: the lesson has no quiz.
    """
    if not has_quiz(lesson_id):
        raise UserError(f'there is no quiz "{lesson_id}"; lessons are named "01", "02", …')
    bank: dict[str, Any] = json.loads(_bank_path(lesson_id).read_text(encoding="utf-8"))
    return bank


def bank_in(folder: Path, lesson_id: str) -> dict[str, Any]:
    """The questions that are asked in a folder: those of a graded release, which has no keys, else the lesson's own.

    Raises:
        UserError: the lesson has no quiz, or the graded one cannot be read.
    """
    shipped = load_bank(lesson_id)
    path = folder / keyless_name(lesson_id)
    if not path.is_file():
        return shipped
    try:
        return without_keys(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise UserError(
            f"{path.name} cannot be read: put the one there that your course handed out"
        ) from None


def keyless_name(lesson_id: str) -> str:
    """Name of the file beside the notebook with the questions of a graded release."""
    return f"{load_lesson(lesson_id).slug}_quiz.json"


def is_exam(lesson_id: str) -> bool:
    """Whether the quiz of a lesson is drawn anew for each attempt."""
    return "draw" in load_bank(lesson_id)


def grade_quiz(
    lesson_id: str,
    answers: Mapping[str, Any],
    *,
    open_counts: bool = True,
    bank: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Grade the answers of a quiz without showing anything. Answers that make no sense count as not given.

    Of a quiz with two forms the better one counts, and of an exam the best attempt. An open attempt counts as it
    stands: whoever forgot to hand in loses nothing.

    Args:
        answers: by question id; an entry of the answers file, or the letter alone.
        open_counts: False leaves an attempt out that is not handed in.
        bank: the questions, if not the lesson's own.

    Returns:
        score: number of right answers; max_score: number of questions; passed: at least `PASS_MARK` of them; score and
        passed are None, and nothing is said about any answer, where the bank has no keys;
        questions: id, text, choice (None if not answered), chosen (its text), is_right, right_first, mistake, reason,
        measured of each;
        problem: what was wrong with the file, or "".
        Of a quiz with two forms also forms: the score of each that was begun, in order; questions are those of the
        better one.
        Of an exam also attempts: number and score of each that counts; questions are those of the last of them,
        each with its lesson and topic.
    """
    bank = bank or load_bank(lesson_id)
    if is_keyless(bank):
        return _waiting(bank, answers)
    if "draw" not in bank:
        return _better_form(bank, answers)
    place = exams.place_in(answers)
    papers = [exams.paper(bank, place, attempt + 1) for attempt in range(place.attempt)] if place else []
    results = [
        result | {"attempt": paper["attempt"]}
        for paper in papers
        if not paper["is_open"] or open_counts
        for result in [graded(paper, answers)]
        if not paper["is_open"] or any(question["choice"] for question in result["questions"])
    ]
    unasked = {"questions": [], "max_score": float(num_questions(bank)), "passed": False}
    blank = graded(bank | {"questions": []}, answers) | unasked
    if exams.KEY in answers and place is None:
        blank["problem"] = f'The entry "{exams.KEY}" of the answers file is none that this course writes.'
    best = max(results, key=lambda result: float(result["score"]), default=blank)
    attempts = [{"attempt": result["attempt"], "score": result["score"]} for result in results]
    return best | {"questions": (results or [blank])[-1]["questions"], "attempts": attempts}


def _waiting(bank: dict[str, Any], answers: Mapping[str, Any]) -> dict[str, Any]:
    """Of a graded release, before the instructor has graded it: what was answered."""
    given = [
        (question["id"], _choice(question, answers.get(question["id"]))) for question in bank["questions"]
    ]
    return {
        "lesson": bank["lesson"],
        "score": None,
        "max_score": float(num_questions(bank)),
        "passed": None,
        "questions": [{"id": question_id, "choice": choice} for question_id, choice in given],
        "problem": str(answers.get("problem", "")),
    }


def _better_form(bank: dict[str, Any], answers: Mapping[str, Any]) -> dict[str, Any]:
    results = [graded(bank, answers)]
    if not has_second(bank):
        return results[0]
    if any(question["id"] in answers for question in bank["second_forms"]):
        results.append(graded(second_form(bank), answers))
    best = max(results, key=lambda result: float(result["score"]))
    return best | {"forms": [result["score"] for result in results]}


def graded(bank: dict[str, Any], answers: Mapping[str, Any]) -> dict[str, Any]:
    """The answers to all questions of a bank, or of a paper drawn from one; keys as in `grade_quiz`."""
    questions = bank["questions"]
    each = [_grade(bank["lesson"], question, answers.get(question["id"])) for question in questions]
    score, max_score = sum(question["is_right"] for question in each), len(each)
    return {
        "lesson": bank["lesson"],
        "score": float(score),
        "max_score": float(max_score),
        "passed": score >= PASS_MARK * max_score - 1e-9,
        "questions": each,
        "problem": str(answers.get("problem", "")),
    }


def letters(question: Question) -> list[str]:
    """What an answer may be."""
    return [option["id"] for option in question["options"]]


def _grade(lesson_id: str, question: Question, entry: Any) -> dict[str, Any]:
    given, choice = entry if isinstance(entry, dict) else {}, _choice(question, entry)
    judgement = judge(lesson_id, question, choice) if choice else Judgement(is_right=False)
    right_first = judgement.is_right and given.get("first", choice) == choice
    about: dict[str, Any] = {key: question[key] for key in ("text", "lesson", "topic") if key in question}
    about["chosen"] = next((option["text"] for option in question["options"] if option["id"] == choice), "")
    return {"id": question["id"], "choice": choice, "right_first": right_first, **asdict(judgement), **about}


def _choice(question: Question, entry: Any) -> str | None:
    choice = entry.get("choice") if isinstance(entry, dict) else entry
    return choice if choice in letters(question) else None


def _bank_path(lesson_id: str) -> Path:
    # The name goes into a path, and it may come from a submission's file.
    name = lesson_id if lesson_id.isalnum() else "none"
    return Path(__file__).parents[1] / "lessons" / f"lesson_{name}" / "quiz.json"
