"""The shipped questions of a quiz (`compiler` makes them), and those of an attempt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from autograder.kept import Answer
from autograder.quizzes.kinds import read_question
from autograder.quizzes.question import Question, Table

PASS_MARK = 0.7
GRADED_NOTE = "Graded: the key is with your instructor. Your choices are saved, and graded after you hand in."
SECOND = "b"  # ends the id of a question's second form


@dataclass(frozen=True, kw_only=True)
class Bank:
    """Questions that are asked together: a quiz, what an exam draws from, or the paper of one attempt (`exams`).

    Attributes:
        note: for whoever answers, about the keys.
        second_forms: other questions on the same decisions; empty where there are none.
        draw: how many questions an attempt at an exam has; 0 in a quiz.
        min_measured: how many of them are measured.
        minutes: how long an attempt may take; 0 where no clock runs (`exam_time`). In no file: each learner has theirs.
        attempt: whose paper it is, from 1; 0 in what is no paper.
        is_open: whether that attempt still takes answers; None in what is no paper.
    """

    lesson: str
    title: str
    note: str = ""
    questions: tuple[Question, ...]
    second_forms: tuple[Question, ...] = ()
    draw: int = 0
    min_measured: int = 0
    minutes: float = 0.0
    attempt: int = 0
    is_open: bool | None = None

    @classmethod
    def from_dict(cls, table: Table) -> Bank:
        """What `to_dict` made of a quiz or an exam. Raises KeyError or TypeError where it is something else."""
        return cls(
            lesson=table["lesson"],
            title=table["title"],
            note=table.get("note", ""),
            questions=tuple(map(read_question, table["questions"])),
            second_forms=tuple(map(read_question, table.get("second_forms", ()))),
            draw=table.get("draw", 0),
            min_measured=table.get("min_measured", 0),
        )

    def to_dict(self) -> Table:
        """As it stands in a file."""
        table: Table = {"format": 1, "lesson": self.lesson, "title": self.title, "note": self.note}
        if self.is_exam:
            table |= {"draw": self.draw, "min_measured": self.min_measured}
        table["questions"] = [question.to_dict() for question in self.questions]
        if self.second_forms:
            table["second_forms"] = [question.to_dict() for question in self.second_forms]
        if self.attempt:
            table |= {"attempt": self.attempt, "is_open": self.is_open}
        return table

    @property
    def is_exam(self) -> bool:
        """Whether each attempt draws its questions."""
        return self.draw > 0

    @property
    def is_keyless(self) -> bool:
        """Whether nobody but the instructor can say what is right."""
        return any(not question.sealed for question in self.questions)

    @property
    def num_questions(self) -> int:
        """How many questions somebody is asked: all, or as many as an exam draws."""
        return self.draw or len(self.questions)

    @property
    def all_questions(self) -> tuple[Question, ...]:
        """Those of both forms."""
        return (*self.questions, *self.second_forms)

    def second_form(self) -> Bank:
        """The other questions on the same decisions; a question without a second form stands in itself."""
        others = {question.id: question for question in self.second_forms}
        return replace(self, questions=tuple(others.get(f"{q.id}{SECOND}", q) for q in self.questions))

    def without_keys(self) -> Bank:
        """What a graded release holds: the texts of the questions and options alone."""
        questions = tuple(question.without_key() for question in self.questions)
        return Bank(lesson=self.lesson, title=self.title, note=GRADED_NOTE, questions=questions)


def unanswered(questions: Iterable[Question], answers: Mapping[str, Any]) -> list[str]:
    """The ids of the questions that have no answer yet, in order."""
    return [q.id for q in questions if not q.accepts(Answer.from_entry(answers.get(q.id)).choice)]
