"""The author's text of a quiz (TOML) made into the shipped bank (JSON), or refused with the place and the fix.

    [[question]]
    id = "01.3"
    kind = "diagnose"            # diagnose, bug, estimate, interpret
    text = "…"                   # `code`, **bold** and ``` blocks
    [[question.option]]          # lettered a, b, c … in this order
    text = "…"
    right = true                 # exactly one; the others name their `mistake`
    reason = "…"                 # shown after answering

A measured question names a function of its lesson's `measured` module (`measured = "…"`) and gives each option
an interval `low ≤ value < high`; the right option is the one that holds what this machine measures.

A second attempt asks the same decisions on other cases: the second form of "01.3" is a question with the id "01.3b"
directly after it. A question without one is asked again as it is.

An exam's text has no questions of its own: `parts` names a folder with a text like the one above for each lesson,
`draw` says how many questions an attempt has and `min_measured` how many of them are measured (`exams`). There each
question also names its `topic`, for what to read again.
"""

from __future__ import annotations

import itertools
import math
import string
import tomllib
from pathlib import Path
from typing import Any

from autograder.quizzes.bank import SECOND, Question, high, low, seal, second_form, unseal
from course_lib.base import UserError

KINDS = ("diagnose", "bug", "estimate", "interpret")
NOTE = "Practice release: the keys come with the quiz, only lightly hidden. Looking them up would cheat only you."


def compile_bank(toml_path: Path | str) -> dict[str, Any]:
    """The shipped form of an author's quiz. The same text always gives the same bank.

    Raises:
        UserError: the text is no good quiz; names the question and the fix.
    """
    path = Path(toml_path)
    try:
        text = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path.name}: cannot be read: {error}") from None
    if "parts" in text:
        return _compile_exam(path, text)
    _check_keys(path.name, text, needed="lesson title question")
    compiled = [_compile(path.name, question) for question in text["question"]]
    _check_ids(path.name, text["lesson"], [question["id"] for question in compiled])
    questions = [question for question in compiled if not question["id"].endswith(SECOND)]
    seconds = [question for question in compiled if question["id"].endswith(SECOND)]
    bank = _head(text) | {"questions": questions} | ({"second_forms": seconds} if seconds else {})
    _check_tells(path.name, questions)
    if seconds:
        _check_tells(f"{path.name}, second forms", second_form(bank)["questions"])
        texts = {question["id"]: question["text"] for question in compiled}
        if same := [key for key in texts if texts.get(f"{key}{SECOND}") == texts[key]]:
            raise UserError(f"{path.name}: {same[0]}{SECOND} asks the same as {same[0]}: give another case")
    return bank


def _head(text: dict[str, Any]) -> dict[str, Any]:
    return {"format": 1, "lesson": text["lesson"], "title": text["title"], "note": NOTE}


def _compile_exam(path: Path, text: dict[str, Any]) -> dict[str, Any]:
    _check_keys(path.name, text, needed="lesson title parts draw min_measured")
    parts = [compile_bank(part) for part in sorted((path.parent / text["parts"]).glob("*.toml"))]
    if any("second_forms" in part for part in parts):
        raise UserError(
            f"{path.name}: an exam draws other questions by itself; its parts take no second forms"
        )
    questions = [question | {"lesson": part["lesson"]} for part in parts for question in part["questions"]]
    if missing := [question["id"] for question in questions if "topic" not in question]:
        raise UserError(f"{path.name}: question {missing[0]} needs a `topic`: what to read again")
    others = [sum("measured" not in question for question in part["questions"]) for part in parts]
    # So that any attempt can be dealt, whatever was drawn before it (`exams.deal`).
    if not parts or min(others) < math.ceil(text["draw"] / len(parts)):
        raise UserError(f"{path.name}: too few questions to draw {text['draw']} from every lesson")
    if len(questions) - sum(others) < text["min_measured"]:
        raise UserError(f"{path.name}: fewer than {text['min_measured']} questions are measured")
    drawn = {key: text[key] for key in ("draw", "min_measured")}
    return _head(text) | drawn | {"questions": questions}


def _check_ids(name: str, lesson_id: str, ids: list[str]) -> None:
    """01.1, 01.2, …, each at most once more with a "b" directly after it."""
    firsts = [f"{lesson_id}.{n + 1}" for n in range(sum(not key.endswith(SECOND) for key in ids))]
    if ids != [key for first in firsts for key in (first, f"{first}{SECOND}") if key == first or key in ids]:
        one = f"{lesson_id}.1"
        raise UserError(
            f"{name}: question ids must run {one}, {lesson_id}.2, …, a second form ({one}{SECOND}) directly after "
            f"the first; got {ids}"
        )


def _compile(name: str, text: dict[str, Any]) -> Question:
    where = f"{name}, question {text.get('id', '?')}"
    _check_keys(where, text, needed="id kind text option", free="measured unit slack explain topic")
    if text["kind"] not in KINDS:
        raise UserError(f"{where}: kind must be one of {', '.join(KINDS)}")
    options = dict(zip(string.ascii_lowercase, text["option"], strict=False))
    if not 3 <= len(options) <= 6:
        raise UserError(f"{where}: give three to six options")
    if len({option.get("text", "").strip() for option in options.values()}) != len(options):
        raise UserError(f"{where}: two options read the same")
    is_measured = "measured" in text
    for letter, option in options.items():
        _check_option(f"{where}, option {letter}", option, is_measured)
    if is_measured:
        _check_intervals(where, list(options.values()))
    keys = [letter for letter, option in options.items() if option.get("right")]
    if len(keys) != (0 if is_measured else 1):
        raise UserError(f"{where}: mark exactly one option `right = true` (none if it is measured)")
    secret = {
        "key": None if is_measured else keys[0],
        "explain": text.get("explain", "").strip(),
        "options": {
            letter: {"mistake": option.get("mistake", ""), "reason": option["reason"].strip()}
            for letter, option in options.items()
        },
    }
    shown = [
        {"id": letter, "text": option["text"].strip()}
        | {k: option[k] for k in ("low", "high") if k in option}
        for letter, option in options.items()
    ]
    question = {"id": text["id"], "kind": text["kind"], "text": text["text"].strip(), "options": shown}
    question |= {key: text[key] for key in ("measured", "unit", "slack", "topic") if key in text}
    return question | {"sealed": seal(text["id"], secret)}


def _check_option(where: str, option: dict[str, Any], is_measured: bool) -> None:
    _check_keys(where, option, needed="text reason", free="right mistake low high")
    if not option.get("right") and not option.get("mistake"):
        raise UserError(f"{where}: a wrong option needs `mistake`, the name of the mistake behind it")
    if not is_measured and ("low" in option or "high" in option):
        raise UserError(f"{where}: `low` and `high` need a question with `measured`")


def _check_intervals(where: str, options: list[dict[str, Any]]) -> None:
    """The intervals must follow each other without gap or overlap, the outer ones open."""
    ordered = sorted(options, key=low)
    joined = all(high(one) == low(two) for one, two in itertools.pairwise(ordered))
    if not joined or low(ordered[0]) != -math.inf or high(ordered[-1]) != math.inf:
        raise UserError(
            f"{where}: intervals must cover every value once: each `high` is the next one's `low`"
        )


def _check_tells(name: str, questions: list[Question]) -> None:
    """Refuse a quiz that can be passed without thinking: by position, or by the longest option."""
    keyed = [(question, unseal(question)["key"]) for question in questions if "measured" not in question]
    if len(keyed) < 3:
        return
    letters = [key for _, key in keyed]
    if max(letters.count(letter) for letter in letters) > math.ceil(len(letters) / 2):
        raise UserError(f"{name}: the right option is too often at the same place ({' '.join(letters)})")
    longest = [
        key == max(question["options"], key=lambda option: len(option["text"]))["id"]
        for question, key in keyed
    ]
    if sum(longest) > len(longest) / 2:
        raise UserError(f"{name}: the longest option is right in {sum(longest)} of {len(longest)} questions")


def _check_keys(where: str, table: dict[str, Any], *, needed: str, free: str = "") -> None:
    known = [*needed.split(), *free.split()]
    if missing := [key for key in needed.split() if key not in table]:
        raise UserError(f"{where}: `{missing[0]}` is missing")
    if unknown := [key for key in table if key not in known]:
        raise UserError(f"{where}: `{unknown[0]}` is not known; it takes {', '.join(known)}")
