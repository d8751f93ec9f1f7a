"""What the answers to a quiz or an exam are worth: found by `grading`, shown by `card`."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from autograder.quizzes.question import Judgement, Table


@dataclass(frozen=True, kw_only=True)
class GradedQuestion:
    """One question of a grade.

    Attributes:
        choice: what was answered; None if nothing was.
        judgement: what that is worth; None where only the instructor knows.
        right_first: whether the first choice was right already.
        text, lesson, topic, drawn: of the question; empty where only the instructor knows what is right.
        chosen: what the choice says.
    """

    id: str
    choice: str | None
    judgement: Judgement | None
    right_first: bool = False
    text: str = ""
    lesson: str = ""
    topic: str = ""
    drawn: str = ""
    chosen: str = ""

    @property
    def is_right(self) -> bool:
        """Whether it counts as right."""
        return self.judgement is not None and self.judgement.is_right

    @property
    def mistake(self) -> str:
        """Name of the mistake behind a wrong choice."""
        return self.judgement.mistake if self.judgement else ""

    def to_dict(self) -> Table:
        """For templates and other programs: nothing is said of an answer that nobody here can judge."""
        table: Table = {"id": self.id, "choice": self.choice}
        if self.judgement is None:
            return table
        table |= {"right_first": self.right_first, **asdict(self.judgement), "text": self.text}
        table |= {name: value for name in ("lesson", "topic") if (value := getattr(self, name))}
        return table | {"chosen": self.chosen}


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """What one attempt at an exam reached."""

    attempt: int
    score: float


@dataclass(frozen=True, kw_only=True)
class QuizGrade:
    """The grade of a quiz or an exam.

    Attributes:
        score: number of right answers; None where only the instructor knows.
        max_score: number of questions.
        passed: whether that is at least `PASS_MARK` of them; None where `score` is.
        questions: of the better form of a quiz; of an exam those of the last attempt that counts.
        problem: what was wrong with the answers file, or "".
        forms: of a quiz with two forms the score of each that was begun, in order; else None.
        attempts: of an exam each that counts; None for a quiz.
        handed_in: whether it is of answers that can no longer be changed: they earn points, and pass nothing.
    """

    lesson: str
    score: float | None
    max_score: float
    passed: bool | None
    questions: tuple[GradedQuestion, ...]
    problem: str = ""
    forms: tuple[float, ...] | None = None
    attempts: tuple[Attempt, ...] | None = None
    handed_in: bool = False

    @property
    def num_answered(self) -> int:
        """How many questions have an answer."""
        return sum(question.choice is not None for question in self.questions)

    def points(self) -> Table:
        """What others need of it."""
        return {"score": self.score, "max_score": self.max_score, "passed": self.passed}

    def to_dict(self) -> Table:
        """For templates and other programs."""
        table: Table = {"lesson": self.lesson, **self.points()}
        table |= {"questions": [question.to_dict() for question in self.questions], "problem": self.problem}
        if self.forms is not None:
            table["forms"] = list(self.forms)
        if self.attempts is not None:
            table["attempts"] = [asdict(attempt) for attempt in self.attempts]
        return table
