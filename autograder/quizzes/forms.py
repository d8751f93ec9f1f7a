"""A lesson's quiz has up to two forms: other questions on the same decisions, for a second attempt.

    {"answers": {"quiz": {"form": "second"}, "02.1": {"choice": "b", …}, "02.1b": {"choice": "a", …}, …}}

The answers file keeps both, and which form is shown, so that a restart and another machine show the same. Nothing is
cleared by turning: whoever turns back finds the first form as it was left, and the better of the two counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from autograder.kept import AnswersFile
from autograder.quizzes.bank import Bank, unanswered
from course_lib.base import UserError

KEY = "quiz"  # of the entry in the answers file


def is_second(bank: Bank, answers: Mapping[str, Any]) -> bool:
    """Whether the second form is the one that is shown."""
    entry = answers.get(KEY)
    return bool(bank.second_forms) and isinstance(entry, dict) and entry.get("form") == "second"


def shown_form(bank: Bank, answers: Mapping[str, Any]) -> Bank:
    """The questions to show, as a bank of their own."""
    if not is_second(bank, answers):
        return bank
    return replace(bank.second_form(), title=f"{bank.title}, other questions")


def turn(file: AnswersFile, *, to_second: bool) -> None:
    """Show one of the two forms from now on.

    Raises:
        UserError: it could not be saved.
    """
    file.save(KEY, {"form": "second" if to_second else "first"})


def turn_when_done(bank: Bank, file: AnswersFile) -> None:
    """Turn to the other form if all questions that are shown have an answer: a cell that is run again turns nothing.

    Raises:
        UserError: there is no other form, or there are open questions, or the turn could not be saved.
    """
    entries = file.entries()
    if not bank.second_forms:
        raise UserError(f"quiz {bank.lesson} has no other questions; its answers may be changed at any time")
    questions = shown_form(bank, entries).questions
    if missing := unanswered(questions, entries):
        left = f"no answer yet to {len(missing)} of {len(questions)}: {', '.join(missing)}"
        raise UserError(f"these questions go on, others come once all are answered; {left}")
    turn(file, to_second=not is_second(bank, entries))
