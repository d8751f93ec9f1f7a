"""The author's text of a quiz (TOML) made into the shipped bank (JSON), or refused with the place and the fix.

    [[question]]
    id = "01.3"
    kind = "diagnose"            # diagnose, bug, estimate, interpret
    text = "…"                   # `code`, **bold** and ``` blocks
    [[question.option]]          # lettered a, b, c … in this order
    text = "…"
    right = true                 # exactly one; the others name their `mistake`
    reason = "…"                 # shown after answering

Answers files hold ids and letters, and are graded by the bank of the day. So a question that is mended, or replaced by
another, keeps its id, the letter of its key and its intervals; none is added to a quiz or an exam that has been handed
out: a quiz would ask for more points, and an attempt at an exam that has begun would go on with other questions. What
the form of the options gives away, `python -m tools.question_form` tells.

A measured question names a function of its lesson's `measured` module (`measured = "…"`) and gives each option
an interval `low ≤ value < high`; the right option is the one that holds what this machine measures.

A second attempt asks the same decisions on other cases: the second form of "01.3" is a question with the id "01.3b"
directly after it. A question without one is asked again as it is.

An exam's text has no questions of its own: `parts` names a folder with a text like the one above for each lesson,
`draw` says how many questions an attempt has and `min_measured` how many of them are measured (`exams`). There each
question also names its `topic`, for what to read again.
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import replace
from pathlib import Path

from autograder.quizzes.bank import SECOND, Bank
from autograder.quizzes.kinds import check_tells, kind_of
from autograder.quizzes.question import Question, Table, check_keys
from course_lib.base import UserError

KINDS = ("diagnose", "bug", "estimate", "interpret")
NOTE = "Practice release: the keys come with the quiz, only lightly hidden. Looking them up would cheat only you."


def compile_bank(toml_path: Path | str) -> Bank:
    """The shipped form of an author's quiz. The same text always gives the same bank.

    Raises:
        UserError: the text is no good quiz; names the question and the fix.
    """
    path = Path(toml_path)
    try:
        text = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path.name}: cannot be read: {error}") from None
    if "parts" in text:
        return _compile_exam(path, text)
    check_keys(path.name, text, needed="lesson title question")
    compiled = [_compile(path.name, question) for question in text["question"]]
    _check_ids(path.name, text["lesson"], [question.id for question in compiled])
    questions = tuple(question for question in compiled if not question.id.endswith(SECOND))
    seconds = tuple(question for question in compiled if question.id.endswith(SECOND))
    bank = Bank(
        lesson=text["lesson"], title=text["title"], note=NOTE, questions=questions, second_forms=seconds
    )
    check_tells(path.name, questions)
    if seconds:
        check_tells(f"{path.name}, second forms", bank.second_form().questions)
        texts = {question.id: question.text for question in compiled}
        if same := [key for key in texts if texts.get(f"{key}{SECOND}") == texts[key]]:
            raise UserError(f"{path.name}: {same[0]}{SECOND} asks the same as {same[0]}: give another case")
    return bank


def _compile_exam(path: Path, text: Table) -> Bank:
    check_keys(path.name, text, needed="lesson title parts draw min_measured")
    parts = [compile_bank(part) for part in sorted((path.parent / text["parts"]).glob("*.toml"))]
    if any(part.second_forms for part in parts):
        raise UserError(
            f"{path.name}: an exam draws other questions by itself; its parts take no second forms"
        )
    questions = [replace(question, lesson=part.lesson) for part in parts for question in part.questions]
    if missing := [question.id for question in questions if not question.topic]:
        raise UserError(f"{path.name}: question {missing[0]} needs a `topic`: what to read again")
    others = [sum(not question.is_measured for question in part.questions) for part in parts]
    # So that any attempt can be dealt, whatever was drawn before it (`exams.deal`).
    if not parts or min(others) < math.ceil(text["draw"] / len(parts)):
        raise UserError(f"{path.name}: too few questions to draw {text['draw']} from every lesson")
    if len(questions) - sum(others) < text["min_measured"]:
        raise UserError(f"{path.name}: fewer than {text['min_measured']} questions are measured")
    drawn = {name: text[name] for name in ("lesson", "title", "draw", "min_measured")}
    return Bank(**drawn, note=NOTE, questions=tuple(questions))


def _check_ids(name: str, lesson_id: str, ids: list[str]) -> None:
    """01.1, 01.2, …, each at most once more with a "b" directly after it."""
    firsts = [f"{lesson_id}.{n + 1}" for n in range(sum(not key.endswith(SECOND) for key in ids))]
    if ids != [key for first in firsts for key in (first, f"{first}{SECOND}") if key == first or key in ids]:
        one = f"{lesson_id}.1"
        raise UserError(
            f"{name}: question ids must run {one}, {lesson_id}.2, …, a second form ({one}{SECOND}) directly after "
            f"the first; got {ids}"
        )


def _compile(name: str, text: Table) -> Question:
    where = f"{name}, question {text.get('id', '?')}"
    kind = kind_of(text)
    check_keys(where, text, needed=f"id kind text {kind.NEEDED}", free=f"{kind.FREE} topic")
    if text["kind"] not in KINDS:
        raise UserError(f"{where}: kind must be one of {', '.join(KINDS)}")
    return kind.compiled(where, text)
