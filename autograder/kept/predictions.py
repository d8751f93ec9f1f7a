"""What a learner predicted, and why it differed: kept in the answers file of the lesson."""

from __future__ import annotations

import math
import re

from autograder.kept import progress
from autograder.kept.answers import AnswersFile, answers_file
from course_lib.base import UserError


def prediction_file(name: str) -> AnswersFile:
    """The answers file that keeps a prediction: "1a" is of lesson 01."""
    digits = re.match(r"\d+", str(name))
    if not digits:
        raise UserError(f'"{name}" names no prediction; write lesson number and letter, for instance "1a"')
    return answers_file(digits[0].zfill(2))


def save_prediction(file: AnswersFile, name: str, number: float, unit: str) -> None:
    """Keep a prediction. Raises `UserError`."""
    file.save(
        f"predict:{name}", lambda old: {"value": number, "unit": unit, "first": old.get("first", number)}
    )
    progress.record_visit(file.lesson_id, f"prediction {name}")


def kept_prediction(file: AnswersFile, name: str) -> float | None:
    """The number in the file, or None if there is none or it is no number."""
    value = file.entries().get(f"predict:{name}", {}).get("value")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # A submission's file may hold anything, such as an int too large for a float.
    return float(value) if abs(value) < 1e300 else None


def kept_diagnosis(name: str) -> str | None:
    """The letter that was chosen under this name, or None."""
    choice = prediction_file(name).entries().get(f"diagnosis:{name}", {}).get("choice")
    return choice if isinstance(choice, str) and len(choice) == 1 else None


def save_diagnosis(name: str, choice: str) -> None:
    """Keep a choice, and the first one beside it. Raises `UserError`."""
    file = prediction_file(name)
    file.save(f"diagnosis:{name}", lambda old: {"choice": choice, "first": old.get("first", choice)})
    progress.record_visit(file.lesson_id, f"prediction {name}")


def why_key(name: str) -> str:
    """Where the learner's reason is kept in the answers file."""
    return f"why:{name}"


def parse_number(text: object, unit: str = "") -> float:
    """A finite number as people type it: "2.5", "2,5", "2.5 ×", "40 %".

    Raises:
        UserError: it is none; the message shows how to write one.
    """
    cleaned = str(text).strip().removesuffix(unit).strip().replace("−", "-")
    if re.fullmatch(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?", cleaned):
        cleaned = cleaned.replace(",", "")  # 12,000
    try:
        number = float(cleaned.replace(",", ".").rstrip("×x%"))
    except ValueError:
        number = math.nan
    if isinstance(text, bool) or not math.isfinite(number):
        raise UserError(f"not saved: {str(text)[:40]!r} is no number; write for instance 2.5")
    return number
