"""Texts of configs, as the check of 8.2 gives them: by hand or as JSON, the keys in any order."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from autograder.engine import Job

VERSION = 2
DEFAULTS: dict[str, Any] = {
    "learning_rate": 1e-3,
    "micro_batch_size": 32,
    "max_epochs": 3,
    "is_deterministic": False,
    "class_weights": {},
}


def shuffled(job: Job, values: Mapping[str, Any]) -> dict[str, Any]:
    """The same mapping with its keys, and those of mappings in it, in a random order."""
    keys = list(values)
    order = [keys[i] for i in job.rng.permutation(len(keys))]
    return {
        key: shuffled(job, values[key]) if isinstance(values[key], dict) else values[key] for key in order
    }


def backwards(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same mapping backwards, at every depth: of two keys or more, never in the order that it had."""
    return {key: backwards(v) if isinstance(v, dict) else v for key, v in reversed(list(values.items()))}


def by_hand(job: Job, values: Mapping[str, Any], **changes: str) -> str:
    """YAML as people write it: `1e-3`, which YAML 1.1 takes for text; the version anywhere among the keys.

    `changes` are lines that take the place of a key's, or are added; "" leaves a key out.
    """
    lines = {}
    for key, value in values.items():
        if isinstance(value, dict) and value:
            lines[key] = "\n".join([f"{key}:", *(f"  {name}: {_spelt(one)}" for name, one in value.items())])
        else:
            lines[key] = f"{key}: {_spelt(value)}"
    if isinstance(values.get("learning_rate"), float):
        lines["learning_rate"] += "  # as always"
    lines |= {"version": f"version: {VERSION}"} | changes
    keys = list(lines)
    return "\n".join(line for i in job.rng.permutation(len(keys)) if (line := lines[keys[i]])) + "\n"


def _spelt(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value == int(value):
        return str(int(value))
    if isinstance(value, float):
        short = f"{value:.0e}"
        return short if float(short) == value else repr(value)
    return str(value)


def as_json(values: Mapping[str, Any]) -> str:
    """JSON of this version, which comes last; as UTF-8, since YAML reads the escapes of JSON otherwise."""
    return json.dumps(dict(values) | {"version": VERSION}, ensure_ascii=False)


def one_line(text: str) -> str:
    """A text as a reason shows it."""
    return "; ".join(" ".join(line.split()) for line in text.strip().splitlines())


def said(answer: Mapping[str, Any]) -> str:
    """What came instead of a config, or that one came."""
    if "error" not in answer:
        return "a config"
    return f"{answer['type']}: {answer['error']}"[:220].replace("\n", " ")
