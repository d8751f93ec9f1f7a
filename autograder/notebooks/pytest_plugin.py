"""`pytest LESSON.ipynb` runs each exercise and the quiz of a lesson's notebook as a test item."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from autograder.common import in_points, named, one_line

if TYPE_CHECKING:
    from autograder.course import Lesson


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a notebook that was named on the command line or that marks exercises of this course, or its quiz."""
    if file_path.suffix != ".ipynb":
        return None
    text = file_path.read_text(encoding="utf-8", errors="replace")
    if "@exercise(" not in text and "check_quiz(" not in text:
        return None
    file: NotebookFile = NotebookFile.from_parent(parent, path=file_path)
    shown = one_line(file.nodeid)  # pytest prints it as it is
    return file if shown == file.nodeid else NotebookFile.from_parent(parent, path=file_path, nodeid=shown)


class NotebookFile(pytest.File):
    """A lesson's notebook."""

    def collect(self) -> Iterator[pytest.Item]:
        """One item per exercise of the lesson, and one for its quiz."""
        from autograder.engine import sources_in
        from autograder.notebooks.check import lesson_of
        from autograder.quizzes import has_quiz

        sources = sources_in(self.path)
        lesson = lesson_of(self.path, sources)
        for exercise in lesson.exercises:
            yield ExerciseItem.from_parent(
                self, name=exercise.id, exercise_id=exercise.id, source=sources.get(exercise.id)
            )
        if has_quiz(lesson.id):
            yield QuizItem.from_parent(self, name="quiz", lesson=lesson)


class NotPassed(Exception):
    """Carries the reason to pytest's report without a traceback of ours."""


class _Item(pytest.Item):
    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, NotPassed):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, f"{named(self.path.name)}: {self.name}"


class ExerciseItem(_Item):
    """One exercise. An inconclusive timing is a skip with its reason: it is neither right nor wrong."""

    def __init__(self, *, exercise_id: str, source: str | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.exercise_id, self.source = exercise_id, source

    def runtest(self) -> None:
        from autograder.engine import check_source
        from autograder.show import folded, result_text

        if self.source is None:
            raise NotPassed(f'The notebook has no cell with @exercise("{self.exercise_id}").')
        result = check_source(self.exercise_id, self.source)
        if result.verdict == "inconclusive":
            pytest.skip(folded(str(result.reason)))
        if result.verdict != "pass":
            raise NotPassed(folded(result_text(result)))


class QuizItem(_Item):
    """The quiz, by the answers file beside the notebook."""

    def __init__(self, *, lesson: Lesson, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.lesson = lesson

    def runtest(self) -> None:
        from autograder.kept import read_answers
        from autograder.quizzes import PASS_MARK, bank_in, grade_quiz, headline

        answers = read_answers(self.path.parent / f"{self.lesson.slug}_answers.json")
        quiz = grade_quiz(self.lesson.id, answers, bank=bank_in(self.path.parent, self.lesson.id))
        if quiz.score is None:
            pytest.skip(f"Quiz: {headline(quiz)}")
        if not quiz.passed:
            raise NotPassed(
                f"Quiz: {in_points(quiz.score, quiz.max_score)}; {PASS_MARK:.0%} are needed to pass."
            )
