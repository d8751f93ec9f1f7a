"""The classifier that exercise 2.5 repairs, by the name under which notebooks import it."""

from autograder.lessons.lesson_02.harness.fragile import FragileClassifier

__all__ = ["FragileClassifier"]
