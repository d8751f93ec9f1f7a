"""What the course consists of, as data: lessons, exercises, titles, hints; checks by name alone."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from autograder.course.draws import drawn, same_id, values_of
    from autograder.course.lessons import (
        LOW_PRECISION,
        Clock,
        Exercise,
        Lesson,
        find_exercise,
        has_references,
        lesson_ids,
        load_lesson,
    )
    from autograder.course.outline import Part, Section, answers_path, lesson_href, parts, title_of
    from autograder.course.sealed import seal, unseal

__getattr__, __dir__, __all__ = attach(__name__, __file__)
