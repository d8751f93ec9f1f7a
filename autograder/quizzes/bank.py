"""The shipped questions of a quiz (`quiz_compiler` makes them): their forms, and what an answer is worth.

Keys and reasons are shipped only lightly hidden: enough to keep a glance at the file from giving them away.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

PASS_MARK = 0.7
GRADED_NOTE = "Graded: the key is with your instructor. Your choices are saved, and graded after you hand in."
SECOND = "b"  # ends the id of a question's second form
Question = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What one choice is worth.

    Attributes:
        is_right: whether it counts as right.
        mistake: name of the mistake behind a wrong option.
        reason: why, for the learner.
        measured: what this machine measured, as text; empty for questions that measure nothing.
    """

    is_right: bool
    mistake: str = ""
    reason: str = ""
    measured: str = ""


def second_form(bank: dict[str, Any]) -> dict[str, Any]:
    """The bank with other questions on the same decisions; a question without a second form stands in itself."""
    others = {question["id"]: question for question in bank.get("second_forms", [])}
    return bank | {"questions": [others.get(f"{q['id']}{SECOND}", q) for q in bank["questions"]]}


def without_keys(bank: dict[str, Any]) -> dict[str, Any]:
    """What a graded release holds of a bank: the texts of its questions and options alone."""
    questions = [
        {"id": question["id"], "text": question["text"]}
        | {"options": [{"id": option["id"], "text": option["text"]} for option in question["options"]]}
        for question in bank["questions"]
    ]
    head = {key: bank[key] for key in ("format", "lesson", "title")}
    return head | {"note": GRADED_NOTE, "questions": questions}


def is_keyless(bank: Mapping[str, Any]) -> bool:
    """Whether nobody but the instructor can say what is right."""
    return any("sealed" not in question for question in bank["questions"])


def num_questions(bank: dict[str, Any]) -> int:
    """How many questions somebody is asked: all, or as many as an exam draws."""
    return int(bank.get("draw", len(bank["questions"])))


def unanswered(questions: Iterable[Question], answers: Mapping[str, Any]) -> list[str]:
    """The ids of the questions that have no answer yet, in order."""

    def choice(question: Question) -> Any:
        entry = answers.get(question["id"])
        return entry.get("choice") if isinstance(entry, dict) else None

    return [q["id"] for q in questions if choice(q) not in [option["id"] for option in q["options"]]]


def judge(lesson_id: str, question: Question, choice: str) -> Judgement:
    """Whether a choice is right, and the reason to show. Takes the measurement if the question is measured."""
    sealed = unseal(question)
    own = sealed["options"][choice]
    if "measured" not in question:
        is_right = choice == sealed["key"]
        return Judgement(is_right=is_right, mistake=own["mistake"], reason=own["reason"])
    try:
        value = measure(lesson_id, question["measured"])
    except Exception as error:  # whatever stops a measurement is the machine's fault, never the learner's
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        reason = f"This machine could not take the measurement ({said}), so any answer counts."
        return Judgement(is_right=True, reason=reason, measured="not measured")
    option = next(option for option in question["options"] if option["id"] == choice)
    slack = question.get("slack", 0.0)  # a value next to a limit counts on both sides: machines differ
    is_right = low(option) - slack <= value < high(option) + slack
    unit = question.get("unit", "")
    shown = f"{value:.0%}" if unit == "%" else f"{value:.3g}{unit}"
    # An option may be right on one machine and wrong on the next: its own reason says why it is wrong.
    mistake, reason = ("", "") if is_right else (own["mistake"], f"{own['reason']} ")
    return Judgement(is_right=is_right, mistake=mistake, reason=reason + sealed["explain"], measured=shown)


def measure(lesson_id: str, name: str) -> float:
    """A lesson's measurement by name, taken on this machine."""
    module = importlib.import_module(f"autograder.lessons.lesson_{lesson_id}.measured")
    value = float(module.MEASUREMENTS[name]())
    if not math.isfinite(value):
        raise ValueError(f"{name} gave {value}")
    return value


def seal(question_id: str, secret: dict[str, Any]) -> str:
    """Lightly hidden: base64 of salted JSON."""
    salt = hashlib.sha256(question_id.encode()).hexdigest()[:12]
    text = salt + json.dumps(secret, ensure_ascii=False, sort_keys=True)
    return base64.b64encode(text.encode()).decode("ascii")


def unseal(question: Question) -> dict[str, Any]:
    """The key (None if measured), and mistake and reason of each option."""
    return json.loads(base64.b64decode(question["sealed"]).decode()[12:])


def low(option: dict[str, Any]) -> float:
    return float(option.get("low", -math.inf))


def high(option: dict[str, Any]) -> float:
    return float(option.get("high", math.inf))
