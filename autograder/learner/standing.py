"""Where a learner stands: what each part of the course has come to, what is missing to pass it, what to do next.

Passing the course is defined here and nowhere else. Lessons 01 to 08: `PASS_MARK` of the points of the exercises and
of the quiz, each lesson by itself. The exam and the mini project: `PASS_MARK` of their points.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autograder.common import in_points
from autograder.course import Part, Section, answers_path, load_lesson, parts
from autograder.kept import BestCheck, BestQuiz, LastPlace, LessonSummary, Summary, read_answers
from autograder.quizzes import (
    BY_INSTRUCTOR,
    PASS_MARK,
    bank_in,
    exams,
    has_quiz,
    is_exam,
    load_bank,
)

START = "00"  # explains how the course works; passing it is asked of nobody
NOT_BEGUN = "not begun"
FURTHER = "Longer projects"  # a heading of the last part


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What a learner has reached in one part.

    Attributes:
        exercises: best check of each one tried, by id.
        is_exam: whether the questions are all there is.
        score, max_score: points of the exercises; of an exam its right answers in the best attempt.
        quiz: best grade; None before the first, and where there is no quiz.
        quiz_words: the state of quiz or exam; "" where there is none.
        seconds: time spent.
        missing: what is missing to pass, a clause each; empty when it is passed.
        open_places: what is not finished, in order: "exercise 1.3", …, "quiz".
        is_started: whether anything was tried, answered or visited.
    """

    part: Part
    is_exam: bool
    exercises: dict[str, BestCheck]
    score: float
    max_score: float
    quiz: BestQuiz | None
    quiz_words: str
    seconds: float
    missing: tuple[str, ...]
    open_places: tuple[str, ...]
    is_started: bool

    @property
    def is_passed(self) -> bool:
        return not self.missing

    @property
    def state(self) -> str:
        """In words."""
        return "done" if self.is_passed else "in progress" if self.is_started else "not started"


@dataclass(frozen=True, kw_only=True)
class Step:
    """What to do next.

    Attributes:
        lead: why this: "Continue where you stopped", "Next", …
        place: as in `Standing.open_places`, or a prediction, or a heading; "" for the top.
        section: the one that the place is in; None for the top.
    """

    lead: str
    part: Part
    place: str
    section: Section | None


def standings(summary: Summary) -> list[Standing]:
    """Where a learner stands in every part, in order."""
    return [_standing(part, summary.lessons.get(part.id)) for part in parts()]


def required(found: Iterable[Standing]) -> list[Standing]:
    """The parts that must be passed to pass the course."""
    return [standing for standing in found if standing.part.id != START]


def is_course_passed(found: Iterable[Standing]) -> bool:
    """Whether the learner has passed the course."""
    return all(standing.is_passed for standing in required(found))


def next_step(found: Sequence[Standing], last: LastPlace | None) -> Step:
    """What to do next: what was left unfinished, else what follows it.

    Args:
        last: None when nothing has happened yet.
    """
    if last is None:
        return _step("Nothing here yet: begin with", found[0], found[0].open_places[0])
    index = next((i for i, standing in enumerate(found) if standing.part.id == last.lesson), 0)
    here, place = found[index], last.place
    stopped = "Continue where you stopped:"
    if place in here.open_places:
        return _step(stopped, here, place)
    if not here.is_passed:
        if place == "" or place.startswith("prediction"):  # no way to tell whether one is through with it
            return _step(stopped, here, place)
        order = [*here.part.sections]
        behind = order[: order.index(place) + 1] if place in order else []
        ahead = [open_place for open_place in here.open_places if open_place not in behind]
        return _step(stopped, here, (ahead or here.open_places)[0])
    for standing in required([*found[index + 1 :], *found[:index]]):
        if not standing.is_passed:
            return _step("Next:", standing, standing.open_places[0] if standing.is_started else "")
    return _step("You have passed the course. To go further:", found[-1], FURTHER)


def enough(max_score: float) -> int:
    """The fewest points that pass."""
    return math.ceil(PASS_MARK * max_score - 1e-9)


def _step(lead: str, standing: Standing, place: str) -> Step:
    return Step(lead=lead, part=standing.part, place=place, section=standing.part.sections.get(place))


def _standing(part: Part, found: LessonSummary | None) -> Standing:
    is_started, found = found is not None, found or LessonSummary()
    exercises, quiz, tried = load_lesson(part.id).exercises, found.quiz, found.exercises
    score = float(sum(tried[exercise.id].score for exercise in exercises if exercise.id in tried))
    max_score = float(sum(exercise.max_score for exercise in exercises))
    missing = []
    if score < enough(max_score):
        missing.append(f"{in_points(score, max_score)}, {enough(max_score)} are needed")
    open_places = [
        f"exercise {exercise.id}"
        for exercise in exercises
        if exercise.id not in tried or tried[exercise.id].score < exercise.max_score
    ]
    quiz_words = ""
    if has_quiz(part.id):
        name = "exam" if is_exam(part.id) else "quiz"
        quiz_words = _exam_words(part.id, quiz) if name == "exam" else _quiz_words(part.id, found)
        if not (quiz and quiz.passed):
            needed = f", {enough(quiz.max_score)} are needed" if quiz else ""
            missing.append(f"{name}: {quiz_words}{needed}")
            open_places.append("quiz")
        if not exercises:
            bank_size = load_bank(part.id).num_questions
            score, max_score = (quiz.score, quiz.max_score) if quiz else (0.0, float(bank_size))
    return Standing(
        part=part,
        is_exam=not exercises,
        exercises=tried,
        score=score,
        max_score=max_score,
        quiz=quiz,
        quiz_words=quiz_words,
        seconds=found.seconds,
        missing=tuple(missing),
        open_places=tuple(open_places),
        is_started=is_started,
    )


def _grade(quiz: BestQuiz) -> str:
    return f"{quiz.score:g} of {quiz.max_score:g} right" + (", passed" if quiz.passed else "")


def _quiz_words(lesson_id: str, found: LessonSummary) -> str:
    if found.quiz:
        return _grade(found.quiz)
    if not found.answered:
        return NOT_BEGUN
    path = answers_path(lesson_id)
    bank = bank_in(path.parent, lesson_id) if path else load_bank(lesson_id)
    graded = BY_INSTRUCTOR if bank.is_keyless else "not graded"
    size = bank.num_questions
    return f"{min(found.answered, size)} of {size} answered, {graded}"


def _exam_words(lesson_id: str, quiz: BestQuiz | None) -> str:
    """The best grade, and the attempt that the answers file tells of."""
    path = answers_path(lesson_id)
    answers = read_answers(path) if path else {}
    place = exams.place_in(answers)
    best = _grade(quiz) if quiz else ""
    if place is None:
        return best or NOT_BEGUN
    if place.is_open:
        size = load_bank(lesson_id).num_questions
        answered = sum(key.startswith(f"{lesson_id}.{place.attempt}.") for key in answers)
        state = f"attempt {place.attempt} open, {answered} of {size} answered"
    else:
        state = f"attempt {place.attempt} handed in" + ("" if best else ", not graded here")
    return f"{state}; best: {best}" if best else state
