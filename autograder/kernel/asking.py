"""A question about a grade, asked in the notebook."""

from __future__ import annotations

from autograder.course import find_exercise
from autograder.kept import MAX_QUESTION, answers_file, question_key
from autograder.show import told
from course_lib.base import UserError


@told()
def ask(exercise_id: str, question: str) -> None:
    """Ask your instructor about the grade of an exercise.

    The question is kept in the answers file beside the notebook; hand that file in again. The same exercise asked
    about again has the later question.

    Example:
        `ask("1.3", "The reason says that a batch is lost. Which one?")`
    """
    try:
        lesson, exercise = find_exercise(str(exercise_id))
    except KeyError as error:
        raise UserError(str(error.args[0])) from None
    text = str(question).strip()
    if not text or len(text) > MAX_QUESTION:
        raise UserError(
            f"not saved: a question has 1 to {MAX_QUESTION:,} characters, this one {len(text):,}; for instance "
            f'ask("{exercise.id}", "What does the reason mean?")'
        )
    file = answers_file(lesson.id)
    file.save(question_key(exercise.id), {"text": text})
    file.print_notices()
    print(
        f"Your question about {exercise.id} is saved in {file.path.name}. Hand that file in where your course asks for "
        "questions; the answer comes with your feedback."
    )
