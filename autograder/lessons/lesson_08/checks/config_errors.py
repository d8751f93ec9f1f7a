"""What 8.2 must refuse, and with which words."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, NamedTuple

from autograder.engine import Job
from autograder.lessons.lesson_08.checks.config_texts import (
    DEFAULTS,
    VERSION,
    by_hand,
    one_line,
    said,
    shuffled,
)

FIELDS = ("name", *DEFAULTS)
# Errors of typing, for which every measure of nearness has the same answer.
MISSPELT = {
    "learning_rte": "learning_rate",
    "micro_batchsize": "micro_batch_size",
    "max_epoch": "max_epochs",
    "is_determinstic": "is_deterministic",
    "class_weight": "class_weights",
    "names": "name",
    "learning-rate": "learning_rate",
    "Learning_rate": "learning_rate",
}
FAR_OFF = (
    "optimizer",
    "lr",
    "dropout",
    "_comment",
    *("5", "1.5", "true", "null"),  # no text to YAML
)  # the nearest is a matter of the measure: `version` by some
_PART = "a part of a text is taken for the whole: what follows the number is not looked at"
_EMPTY = (
    "what is empty or nothing is taken for the default: `or {}`, where only a field that is left out keeps it"
)
_NUMBER = "a value of another type is taken as it is, or cast without a look"
_TRUE = "`true` counts as 1: in Python a bool is an int"
_CUT = "values are cast without a look: 3.5 becomes 3"
_INF = "infinity is no whole number, and neither is what is no number at all"
_NAME = "any value becomes a text: a name that YAML reads as a number or as nothing is cast, not refused"
_BOOL = "1 and 0 are no bools, though equal to one; and `bool(value)` makes True or False of everything"
_WEIGHTS = "class_weights is taken as it is: nobody looks at what stands in it"
_NO_TEXT = "keys of class_weights that are no texts to YAML become texts: `no` is False, and then 'False'"
#: Field → what stands there in a text, and why it may get through.
WRONG: dict[str, dict[str, str]] = {
    "name": {"12": _NAME, "true": _NAME, "null": _NAME, "[a, b]": _NAME, "1.5": _NAME, "2026-11-23": _NAME},
    "learning_rate": {
        "fast": _NUMBER,
        "true": _TRUE,
        "null": _NUMBER,
        "[0.1]": _NUMBER,
        "{a: 0.1}": _NUMBER,
        "1e-3 per step": _PART,
        "3e-4x": _PART,
        "''": _EMPTY,
    },
    "micro_batch_size": {
        "true": _TRUE,
        "3.5": _CUT,
        "'3.5'": _CUT,
        "fast": _NUMBER,
        "null": _NUMBER,
        "[8]": _NUMBER,
        "8 samples": _PART,
        "2.0000001": _CUT,
        ".inf": _INF,
        ".nan": _INF,
    },
    "max_epochs": {
        "3.5": _CUT,
        "false": _TRUE,
        "many": _NUMBER,
        "null": _NUMBER,
        "0.5": _CUT,
        "-1.5": _CUT,
        "-.inf": _INF,
        "'.inf'": _INF,
    },
    "is_deterministic": {"1": _BOOL, "0": _BOOL, "fast": _BOOL, "null": _BOOL, "[]": _BOOL, "'false'": _BOOL},
    "class_weights": {
        "[1.0, 2.0]": _WEIGHTS,
        "2.0": _WEIGHTS,
        "heavy": _WEIGHTS,
        "{csv: heavy}": _WEIGHTS,
        "{csv: 1.0, json: true}": _TRUE,
        "{csv: null}": _WEIGHTS,
        "{csv: [1.0]}": _WEIGHTS,
        "{csv: 1.0 or so}": _PART,
        "{csv: 1.0, 5: 2.0}": _NO_TEXT,
        "{no: 2.0}": _NO_TEXT,
        "null": _EMPTY,
        "[]": _EMPTY,
        "''": _EMPTY,
        "0": _EMPTY,
        "false": _EMPTY,
    },
}


class _Refused(NamedTuple):
    """A text that must be refused: words of the message, what the message is, and why there may be none."""

    text: str
    words: tuple[str, ...]
    message: str
    likely: str
    unknown: str = ""


def require_strict(job: Job, values: dict[str, Any]) -> None:
    """Fail unless each text that cannot be meant is refused, with the words that say what to change."""
    mixed = shuffled(job, values)
    wrong = [*_other_versions(job, mixed), *_unknown_keys(job, mixed)]
    for name, spelt in WRONG.items():
        wrong += [
            _Refused(
                by_hand(job, mixed, **{name: f"{name}: {value}"}),
                (name,),
                f"a message that names {name}",
                likely,
            )
            for value, likely in spelt.items()
        ]
    wrong += _nothing_there()
    answers = job.learner().call("read_configs", texts=[one.text for one in wrong])
    messages = {
        one.unknown: _known_in(str(answer.get("error", "")))
        for one, answer in zip(wrong, answers, strict=True)
        if one.unknown
    }
    for one, answer in zip(wrong, answers, strict=True):
        message = str(answer.get("error", ""))
        lower = message.lower()
        refused = answer.get("is_value_error", False) and all(word in lower for word in one.words)
        job.require(
            refused and (not one.unknown or _names_a_near_one(one.unknown, messages)),
            expected=f"ValueError with {one.message}, for this text: {one_line(one.text)}",
            got=said(answer),
            likely=_why(answer, one),
            look=f"read this text with your class: {one_line(one.text)}",
        )


def _why(answer: dict[str, Any], one: _Refused) -> str:
    if "values" in answer:
        return one.likely
    if not answer.get("is_value_error", False):
        return "refused by accident: an error of Python's own comes where a person needs a ValueError that says why"
    missing = [word for word in one.words if word not in str(answer["error"]).lower()]
    near = "the nearest field, which there is also for a key that is far from all"
    return (
        "refused, but the message does not say what a person must change: it lacks "
        f"{near if one.unknown and one.unknown not in missing else ' and '.join(missing)}"
    )


def _other_versions(job: Job, mixed: dict[str, Any]) -> list[_Refused]:
    likely = "the version of the text is not looked at: an old file is read with new meanings"
    found = [
        _Refused(
            by_hand(job, mixed, version=f"version: {version}"),
            ("version",),
            f"a message about the version, which is {version} and not {VERSION}",
            likely,
        )
        for version in (1, 3, int(job.rng.integers(20, 30)), "2.1", "1.9", "null", "[2]", "two")
    ]
    missing = by_hand(job, mixed, version="")
    likely = "a text without a version is taken for the newest"
    return [*found, _Refused(missing, ("version",), "a message about the missing version", likely)]


def _nothing_there() -> list[_Refused]:
    """Texts in which no key stands, and so no version either."""
    likely = "a text without keys is taken for a config"
    texts = ("", "# nothing yet\n", "- name\n- max_epochs\n", "a run\n")
    return [_Refused(text, ("version",), "a message about the missing version", likely) for text in texts]


def _unknown_keys(job: Job, mixed: dict[str, Any]) -> list[_Refused]:
    likely = "unknown keys ignored: the misspelt setting keeps its default, and the run looks right"
    message = "a message with the unknown key and the name of the nearest field"
    return [
        _Refused(
            by_hand(job, mixed, extra=f"{key}: 1"),
            # Python's name of `null` is None.
            (key.lower(), near) if near else (key,) if key != "null" else (),
            message,
            likely,
            unknown=key,
        )
        for key, near in [*MISSPELT.items(), *((key, "") for key in FAR_OFF)]
    ]


def _known_in(message: str) -> list[str]:
    return re.findall("|".join(rf"\b{name}\b" for name in (*FIELDS, "version")), message)


def _names_a_near_one(unknown: str, messages: dict[str, list[str]]) -> bool:
    """Whether its message singles out the nearest key; where no key is near, one is as good as another.

    `messages`: unknown key -> the known ones in its message, among them words that stand in every message.
    """
    near, named = MISSPELT.get(unknown, ""), messages[unknown]
    if not near:
        others = [other for key, other in messages.items() if key != unknown]
        in_all = {name: min(other.count(name) for other in others) for name in {*named}}
        in_order = any(other != named and sorted(other) == sorted(named) for other in others)
        return in_order or any(named.count(name) > in_all[name] for name in in_all)
    if near == "name":  # which is a word of English as well
        return near in named
    named = [name for name in named if name not in ("name", "version")]
    times = Counter(named)
    return named[:1] == [near] or all(times[near] > times[name] for name in times if name != near)
