"""The check of 8.2: a config that refuses to guess."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from autograder.engine import Job

VERSION = 2
# Texts that YAML would read as something else.
TRAPS = ("on", "1e-3", "null", "'quoted': yes", "# no comment", "größer")


def check_run_config(job: Job) -> None:
    """8.2: strict, the same after a round trip, and with a fingerprint that knows what matters and nothing else."""
    values = _values(job)
    mixed = _shuffled(job, values)
    yaml_text, json_text = _yaml(mixed), json.dumps({"version": VERSION} | _reversed(mixed))
    found, twin = _read(job, [yaml_text, json_text])
    for text, answer in ((yaml_text, found), (json_text, twin)):
        _require_values(job, answer, values, text)
    _require_strict(job, values)
    _require_round_trip(job, values)
    _require_fingerprint(job, values, found["fingerprint"], twin["fingerprint"])
    elsewhere = job.learner().call(
        "fingerprints_elsewhere", source=job.source, entry=job.entry, text=json_text, hash_seeds=[1, 2]
    )
    job.require(
        {*elsewhere} == {found["fingerprint"]},
        expected="the same fingerprint in another process",
        got="another one after Python was started again",
        likely="an unordered hash: `hash()`, or the order of a set, is new each time Python starts",
        look="write the values in sorted order as text, and hash that with `hashlib`",
    )


def _values(job: Job) -> dict[str, Any]:
    rng = job.rng
    names = rng.permutation(["csv", "json", "re", "os", "ast"])[: rng.integers(3, 6)]
    return {
        "name": f"run-{rng.integers(1000)}",
        "learning_rate": float(rng.choice([1e-3, 3e-4, 2e-5])),
        "micro_batch_size": int(rng.integers(1, 512)),
        "max_epochs": int(rng.integers(1, 20)),
        "is_deterministic": bool(rng.integers(2)),
        "class_weights": {str(name): float(rng.integers(1, 40)) / 8 for name in names},
    }


def _shuffled(job: Job, values: Mapping[str, Any]) -> dict[str, Any]:
    """The same mapping with its keys, and those of mappings in it, in a random order."""
    keys = list(values)
    order = [keys[i] for i in job.rng.permutation(len(keys))]
    return {
        key: _shuffled(job, values[key]) if isinstance(values[key], dict) else values[key] for key in order
    }


def _reversed(values: dict[str, Any]) -> dict[str, Any]:
    """The same mapping backwards, at every depth: of two keys or more, never in the order that it had."""
    return {key: _reversed(v) if isinstance(v, dict) else v for key, v in reversed(values.items())}


def _yaml(values: Mapping[str, Any], **changes: str) -> str:
    """YAML as people write it: `1e-3`, which YAML 1.1 takes for text; the keys in the order that they have."""
    lines = {"version": f"version: {VERSION}"}
    for key, value in values.items():
        if isinstance(value, dict):
            lines[key] = "\n".join([f"{key}:", *(f"  {name}: {number}" for name, number in value.items())])
        elif isinstance(value, bool):
            lines[key] = f"{key}: {'true' if value else 'false'}"
        else:
            lines[key] = f"{key}: {value:.0e}" if isinstance(value, float) else f"{key}: {value}"
    lines |= changes
    return "\n".join(lines.values()) + "\n"


def _read(job: Job, texts: list[str]) -> list[dict[str, Any]]:
    answers: list[dict[str, Any]] = job.learner().call("read_configs", texts=texts)
    return answers


def _require_values(job: Job, answer: dict[str, Any], values: dict[str, Any], text: str) -> None:
    job.require(
        "values" in answer,
        expected=f"a config from this text: {_indented(text)}",
        got=f"{answer.get('type')}: {answer.get('error')}"[:300].replace("\n", " "),
        likely="a text in the other format, or keys in another order, are refused",
        look="JSON is YAML too; `1e-3` without a dot is a text to YAML, and a number to people",
    )
    for name, value in values.items():
        kind, got = answer["values"][name]
        job.require(
            kind == type(value).__name__ and got == value,
            expected=f"{name} = {value!r} ({type(value).__name__})",
            got=f"{got!r} ({kind})",
            likely="the value is kept as the file spells it, not as its field's type",
            look="YAML 1.1 reads `1e-3` as text: turn what spells a number into one where the field is a number",
        )


def _indented(text: str) -> str:
    return "; ".join(" ".join(line.split()) for line in text.strip().splitlines())


def _require_strict(job: Job, values: dict[str, Any]) -> None:
    """What must be refused, each with why."""
    mixed = _shuffled(job, values)
    wrong = {
        "unknown keys ignored: the misspelt setting keeps its default, and the run looks right": (
            _yaml(mixed, extra="learning_rte: 0.1"),
            ("learning_rte", "learning_rate"),
            "a message with the unknown key and the nearest known one",
        ),
        "the version of the text is not looked at: an old file is read with new meanings": (
            _yaml(mixed, version="version: 1"),
            ("version",),
            f"a message about the version, which is 1 and not {VERSION}",
        ),
        "a text without a version is taken for the newest": (
            _yaml(mixed, version=""),
            ("version",),
            "a message about the missing version",
        ),
        "values are cast without a look: 3.5 becomes 3": (
            _yaml(mixed, max_epochs="max_epochs: 3.5"),
            ("max_epochs",),
            "a message that names max_epochs",
        ),
        "a value of another type is taken as it is": (
            _yaml(mixed, learning_rate="learning_rate: fast"),
            ("learning_rate",),
            "a message that names learning_rate",
        ),
        "`true` counts as 1: in Python a bool is an int": (
            _yaml(mixed, micro_batch_size="micro_batch_size: true"),
            ("micro_batch_size",),
            "a message that names micro_batch_size",
        ),
    }
    answers = _read(job, [text for text, _, _ in wrong.values()])
    for (likely, (text, words, message)), answer in zip(wrong.items(), answers, strict=True):
        refused = answer.get("is_value_error", False) and all(word in answer["error"] for word in words)
        said = answer.get("error", "")
        job.require(
            refused,
            expected=f"ValueError with {message}",
            got=f"{answer['type']}: {said[:200]}".replace("\n", " ")
            if said or "type" in answer
            else "a config",
            likely=likely
            if "values" in answer
            else "refused, but the message does not say what a person must change",
            look=f"read this text with your class: {_indented(text)}",
        )


def _require_round_trip(job: Job, values: dict[str, Any]) -> None:
    tried = [values | {"name": name, "learning_rate": float(job.rng.random()) * 1e-5} for name in TRAPS]
    texts = [json.dumps({"version": VERSION} | each) for each in tried]
    written = _read(job, texts)
    for each, answer in zip(tried, written, strict=True):
        _require_values(job, answer, each, json.dumps(each))
    for each, answer, again in zip(tried, written, _read(job, [a["text"] for a in written]), strict=True):
        same = "values" in again and all(again["values"][name] == answer["values"][name] for name in each)
        changed = [name for name in each if again.get("values", {}).get(name) != answer["values"][name]]
        job.require(
            same,
            expected="from_text(config.to_text()) to be the config itself",
            got=f"a change in {', '.join(changed)}"
            if "values" in again
            else f"{again['type']}: {again['error'][:120]}",
            likely="the text is put together by hand: quotes are missing, digits rounded, or the version is left out",
            look=f"write and read back a config with name {each['name']!r} and learning_rate {each['learning_rate']!r}",
        )


def _require_fingerprint(job: Job, values: dict[str, Any], one: str, two: str) -> None:
    job.require(
        one == two,
        expected="one fingerprint for one config, whatever the order of keys",
        got="two, for the same values in another order",
        likely="the fingerprint depends on the order of keys, also of those inside class_weights",
        look="`json.dumps(…, sort_keys=True)` sorts at every depth",
    )
    texts = {"name": json.dumps({"version": VERSION} | values | {"name": "another"})}
    whole = values | {"learning_rate": 1.0}
    texts |= {
        "1.0": json.dumps({"version": VERSION} | whole),
        "1": json.dumps({"version": VERSION} | whole | {"learning_rate": 1}),
        "weights 2.0": json.dumps({"version": VERSION} | values | {"class_weights": {"csv": 2.0}}),
        "weights 2": json.dumps({"version": VERSION} | values | {"class_weights": {"csv": 2}}),
    }
    changes = {
        "learning_rate": values["learning_rate"] * 1.0001,
        "micro_batch_size": values["micro_batch_size"] + 1,
        "max_epochs": values["max_epochs"] + 1,
        "is_deterministic": not values["is_deterministic"],
        "class_weights": values["class_weights"] | {next(iter(values["class_weights"])): 9.5},
    }
    texts |= {
        name: json.dumps({"version": VERSION} | values | {name: value}) for name, value in changes.items()
    }
    answers = _read(job, list(texts.values()))
    found = {
        name: answer.get("fingerprint", answer.get("error"))
        for name, answer in zip(texts, answers, strict=True)
    }
    blind = [name for name in changes if found[name] == one]
    job.require(
        not blind,
        expected="another fingerprint when a value changes",
        got=f"the same after a change of {', '.join(blind)}",
        likely="fields are left out, or numbers are rounded before they are hashed",
        look="every field but `name` shapes the weights",
    )
    job.require(
        found["name"] == one,
        expected="the same fingerprint for another name: it does not shape the weights",
        got="another one",
        likely="`name` is hashed too",
        look="two runs that differ in their name alone must end with equal weights",
    )
    for what, whole_number, broken in (
        ("learning_rate 1 and 1.0", "1", "1.0"),
        ("a class weight of 2 and one of 2.0", "weights 2", "weights 2.0"),
    ):
        job.require(
            found[whole_number] == found[broken],
            expected=f"one fingerprint for {what}",
            got="two",
            likely="what is hashed is the text of the file, not the values of the config",
            look="hash after the values have the types of their fields",
        )
