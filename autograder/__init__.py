"""Measures, checks and grades the exercises of the Training Workbook.

Light on purpose: torch, NumPy and the widgets are loaded only where they are used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autograder.answers import answer
    from autograder.exercises import Score, check, exercise
    from autograder.hints import hint
    from autograder.predictions import compare, predict, predicted
    from autograder.quizzes import check_quiz, exam, quiz

_HOMES = {
    "Score": "exercises",
    "check": "exercises",
    "exercise": "exercises",
    "hint": "hints",
    "answer": "answers",
    "check_quiz": "quizzes",
    "compare": "predictions",
    "exam": "quizzes",
    "predict": "predictions",
    "predicted": "predictions",
    "quiz": "quizzes",
}

__all__ = [
    "Score",
    "answer",
    "check",
    "check_quiz",
    "compare",
    "exam",
    "exercise",
    "hint",
    "predict",
    "predicted",
    "quiz",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'autograder' has no attribute {name!r}")
    return getattr(importlib.import_module(f"autograder.{_HOMES[name]}"), name)
