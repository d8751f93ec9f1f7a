"""Harness of 8.2: configs read from texts, made of values, and hashed in other processes."""

from __future__ import annotations

import contextlib
from typing import Any

from autograder.lessons.checking.harness_shared import elsewhere, learner

FIELDS = ("name", "learning_rate", "micro_batch_size", "max_epochs", "is_deterministic", "class_weights")


def read_configs(texts: list[str]) -> list[dict[str, Any]]:
    """What each text is read as: its values, its fingerprint and its text again, or the error that it raised."""
    return [_reported(lambda text=text: learner.from_text(text)) for text in texts]


def made_configs(values: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same of configs that are made of values, without a text."""
    return [_reported(lambda each=each: learner(**each)) for each in values]


def _reported(make: Any) -> dict[str, Any]:
    try:
        config = make()
    except Exception as error:
        return {
            "error": str(error),
            "type": type(error).__name__,
            "is_value_error": isinstance(error, ValueError),
        }
    # The fingerprint first: it must leave the config as it is.
    fingerprint = _fingerprint(config)
    values = _values(config)
    found: dict[str, Any] = {"fingerprint": fingerprint, "values": values, "text": str(config.to_text())}
    found["stays"] = values == _values(config)
    with contextlib.suppress(Exception):  # what it raises is seen where the text is read
        found["is_equal"] = bool(learner.from_text(found["text"]) == config)
    if not config.class_weights:  # what somebody adds to one config must not turn up in the next
        with contextlib.suppress(TypeError, AttributeError):
            config.class_weights["added"] = 1.0
    return found


def _values(config: Any) -> dict[str, Any]:
    """Each field with its type: a value that is 1 may be `1`, `1.0` or `True`."""
    return {name: _with_type(getattr(config, name)) for name in FIELDS}


def _with_type(value: Any) -> list[Any]:
    kind = next((kind for kind in (bool, int, float, str, dict) if isinstance(value, kind)), type(value))
    if kind is dict:
        return ["dict", {_as_it_is(str(key)): _with_type(one) for key, one in value.items()}]
    if kind is str:
        return ["str", _as_it_is(value)]
    return [kind.__name__, value if kind in (bool, int, float) else str(value)]


def _as_it_is(text: str) -> str:
    """Halves of a character, as YAML makes of JSON's escapes, stay halves: on the way they would become whole."""
    return text.encode("utf-8", "backslashreplace").decode()


def _fingerprint(config: Any) -> str:
    found = config.fingerprint
    return str(found() if callable(found) else found)


_FINGERPRINT = """
found = learner.from_text(request).fingerprint
say(str(found() if callable(found) else found))
"""


def fingerprints_elsewhere(source: str, entry: str, text: str, hash_seeds: list[int]) -> dict[str, Any]:
    """The fingerprints of a config in fresh interpreters, one for each seed of Python's own hash.

    "trouble" is what an interpreter said that ended with an error, "" for none.
    """
    try:
        found = [elsewhere(_FINGERPRINT, source, entry, text, seed) for seed in hash_seeds]
    except RuntimeError as error:
        return {"found": [], "trouble": str(error)}
    return {"found": found, "trouble": ""}
