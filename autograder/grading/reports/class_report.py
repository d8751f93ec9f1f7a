"""What `workbook report` says of a class, as `--json` and the page have it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Points:
    """A student's, as the gradebook has them, with manual points and penalties."""

    score: float
    max_score: float


@dataclass(frozen=True, kw_only=True)
class Speedups:
    """Of those who passed."""

    bar: float
    low: float
    high: float
    median: float


@dataclass(frozen=True, kw_only=True)
class OfExercise:
    """What a class did in an exercise: counts by verdict, and by what the check named as the mistake."""

    id: str
    title: str
    verdicts: dict[str, int]
    mistakes: dict[str, int]
    speedups: Speedups | None


@dataclass(frozen=True, kw_only=True)
class OfQuestion:
    """What a class did in a question of the quiz.

    Attributes:
        answers: how many there are.
        difficulty: share of right answers.
        discrimination: correlation of a right answer with the number of other right answers; None where all are equal.
        mistakes: count by what was taken for what.
    """

    id: str
    text: str
    answers: int
    difficulty: float
    discrimination: float | None
    mistakes: dict[str, int]


@dataclass(frozen=True, kw_only=True, order=True)
class Alike:
    """Students with equal code in the exercise `id`."""

    id: str
    students: list[str]


@dataclass(frozen=True, kw_only=True)
class Look:
    """A reason for a person to look at solutions of an exercise.

    Attributes:
        why: in the words of the check, without the line of the cell.
        alike: whose, those with equal code together, the largest group first: one look is for all of a group.
    """

    id: str
    why: str
    alike: list[list[str]]


@dataclass(frozen=True, kw_only=True)
class ClassReport:
    """What a class did in a lesson.

    Attributes:
        students: by name.
        ungraded: who handed in and has no grade.
        unchecked: cells without a kept result, for nobody graded them, or by other checks than the installed ones.
        bins: how many students in each tenth of the points.
        exercises: those that the course left in.
        review: lines for a person, by student.
        looks: the same by exercise and reason, what most students share first.
        problems: lines by student.
        granted: by student: more time, and whether it mattered.
    """

    lesson: str
    title: str
    students: dict[str, Points]
    ungraded: list[str]
    unchecked: int
    bins: list[int]
    exercises: list[OfExercise]
    questions: list[OfQuestion]
    review: list[str]
    alike: list[Alike]
    problems: dict[str, list[str]]
    granted: dict[str, str] = field(default_factory=dict)
    looks: list[Look] = field(default_factory=list)
