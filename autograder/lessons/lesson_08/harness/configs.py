"""Harness of 8.2: configs read from texts, made of values, and hashed in other processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from autograder.lessons.checking.harness_shared import learner

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
    return {"fingerprint": fingerprint, "values": _values(config), "text": str(config.to_text())}


def _values(config: Any) -> dict[str, Any]:
    """Each field with its type: a value that is 1 may be `1`, `1.0` or `True`."""
    return {name: _with_type(getattr(config, name)) for name in FIELDS}


def _with_type(value: Any) -> list[Any]:
    kind = next((kind for kind in (bool, int, float, str, dict) if isinstance(value, kind)), type(value))
    if kind is dict:
        return ["dict", {str(key): _with_type(one) for key, one in value.items()}]
    return [kind.__name__, value if kind in (bool, int, float, str) else str(value)]


def _fingerprint(config: Any) -> str:
    found = config.fingerprint
    return str(found() if callable(found) else found)


# Another interpreter that hashes texts in another order; it loads the cell alone, and so is quick.
_ELSEWHERE = """
import json, sys, types
source, entry, text = json.load(sys.stdin)
marker, module = types.ModuleType("autograder"), types.ModuleType("__learner__")
marker.exercise = module.exercise = lambda _: lambda definition: definition
marker.__getattr__ = lambda name: lambda *_, **__: None
sys.modules |= {"autograder": marker, "__learner__": module}
exec(compile(source, "<your cell>", "exec"), module.__dict__)
found = getattr(module, entry).from_text(text).fingerprint
print(found() if callable(found) else found)
"""


def fingerprints_elsewhere(source: str, entry: str, text: str, hash_seeds: list[int]) -> dict[str, Any]:
    """The fingerprints of a config in fresh interpreters, one for each seed of Python's own hash.

    "trouble" is what an interpreter said that ended with an error, "" for none.
    """
    request = json.dumps([source, entry, text])
    started = [
        subprocess.Popen(
            [sys.executable, "-c", _ELSEWHERE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        )
        for hash_seed in hash_seeds
    ]
    found, trouble = [], ""
    for process in started:
        words, complaint = process.communicate(request)
        if process.returncode or not words.strip():
            trouble = complaint.strip().rpartition("\n")[2][:200] or "nothing was printed"
        else:
            found.append(words.strip().splitlines()[-1])
    return {"found": found, "trouble": trouble}
