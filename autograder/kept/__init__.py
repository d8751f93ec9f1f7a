"""What a learner has done, on disk, never torn."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from autograder.kept.answers import (
        Answer,
        AnswersFile,
        Entry,
        answers_file,
        lesson_of_answers,
        read_answers,
    )
    from autograder.kept.predictions import (
        kept_diagnosis,
        kept_prediction,
        parse_number,
        prediction_file,
        save_diagnosis,
        save_prediction,
        why_key,
    )
    from autograder.kept.progress import (
        BestCheck,
        BestQuiz,
        LastPlace,
        LessonSummary,
        Summary,
        events,
        learner_name,
        summary,
    )
    from autograder.kept.progress_file import Event, progress_path, with_database
    from autograder.kept.questions import MAX_QUESTION, question_key, questions_in

__getattr__, __dir__, __all__ = attach(__name__, __file__)
