"""The skill exam: questions over all lessons, and no exercise."""

from autograder.course import Lesson

LESSON = Lesson(id="09", slug="09_skill_exam")
