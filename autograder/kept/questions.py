"""A learner's question about the grade of an exercise, kept in the answers file of the lesson: it travels with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autograder.common import printable

MAX_QUESTION = 2_000  # characters
_KEY = "ask:"


def question_key(exercise_id: str) -> str:
    """Where the question about an exercise is kept in the answers file."""
    return f"{_KEY}{exercise_id}"


def questions_in(answers: Mapping[str, Any]) -> dict[str, str]:
    """Exercise id → question, of answers as `read_answers` gives them: a stranger's file may hold anything."""
    entries = {key.removeprefix(_KEY): each for key, each in answers.items() if key.startswith(_KEY)}
    texts = {name: each.get("text") for name, each in entries.items() if isinstance(each, dict)}
    return {
        name: shown
        for name, text in texts.items()
        if isinstance(text, str) and (shown := printable(text[:MAX_QUESTION]).strip())
    }
