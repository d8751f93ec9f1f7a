"""The check of 8.2: a config that refuses to guess."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autograder.engine import Job, Worker
from autograder.lessons.lesson_08.checks.config_errors import require_strict
from autograder.lessons.lesson_08.checks.config_texts import (
    DEFAULTS,
    as_json,
    backwards,
    by_hand,
    one_line,
    said,
    shuffled,
)
from autograder.lessons.lesson_08.checks.fingerprints import require_fingerprint

# Texts that YAML would read as something else, or not at all, if they stood there as they are.
TRAPS = (
    "on",
    "1e-3",
    "null",
    "'quoted': yes",
    "# no comment",
    "größer",
    "007",
    "two\nlines",
    " a ",
    "- x",
    "🚀 = 𝛼",
)
# What only escapes keep: a line end of Unicode, and signs that no YAML holds as they are.
ESCAPED = ("a\u2028b", "\x7f", "\0", "a\r\nb", "\ufeff")
_ESCAPES = (
    "signs that YAML does not hold as they are, such as a line end of Unicode, are written without escapes: "
    "`ensure_ascii=False` leaves them"
)
SIGNS = [*" :#-'\"\\{}[],&*!|>%@`~?=./0aöß", "\n", "\t", "  ", ": ", " #", "true", "1e3", "null"]


def check_run_config(job: Job) -> None:
    """8.2: strict, the same after a round trip, and with a fingerprint that knows what matters and nothing else."""
    values = _values(job)
    mixed = shuffled(job, values)
    whole = values | {"learning_rate": 1.0}
    yaml_text, json_text = by_hand(job, mixed), as_json(backwards(mixed))
    texts = {yaml_text: values, json_text: values, as_json(mixed): values, by_hand(job, whole): whole}
    answers = _read(job, list(texts))
    for (text, expected), answer in zip(texts.items(), answers, strict=True):
        _require_values(job, answer, expected, text)
    _require_spellings(job, values)
    _require_defaults(job, values)
    require_strict(job, values)
    _require_round_trip(job, values)
    fingerprint, *others = (answer["fingerprint"] for answer in answers[:3])
    require_fingerprint(job, values, fingerprint, *others)
    (made,) = job.learner().call("made_configs", values=[values])
    job.require(
        made.get("fingerprint") == fingerprint,
        expected="the same fingerprint for a config made of values as for one read from a text",
        got="another one" if "fingerprint" in made else said(made),
        likely="what is hashed is the text that was read, not the values of the config",
        look="hash the fields of `self`",
    )
    _require_same_elsewhere(job, json_text, fingerprint)


def _values(job: Job) -> dict[str, Any]:
    rng = job.rng
    names = rng.permutation(["csv", "json", "re", "os", "ast"])[: rng.integers(3, 6)]
    # One that a person writes as `2`, one that they write as `1e-1`, and a zero among the others.
    weights = [2.0, 0.1, *rng.choice([0.0, 0.125, 0.5, 4.25, 7.0], len(names) - 2, replace=False)]
    return {
        "name": f"run-{rng.integers(1000)}",
        "learning_rate": float(rng.choice([1e-3, 3e-4, 2e-5])),
        "micro_batch_size": int(rng.integers(1, 512)),
        "max_epochs": int(rng.integers(4, 20)),
        "is_deterministic": bool(rng.integers(2)),
        "class_weights": {
            str(name): float(weight) for name, weight in zip(names, rng.permutation(weights), strict=True)
        },
    }


def _read(job: Job, texts: list[str], worker: Worker | None = None) -> list[dict[str, Any]]:
    answers: list[dict[str, Any]] = (worker or job.learner()).call("read_configs", texts=texts)
    return answers


def _require_values(job: Job, answer: dict[str, Any], values: Mapping[str, Any], text: str) -> None:
    job.require(
        "values" in answer,
        expected=f"a config from this text: {one_line(text)}",
        got=said(answer),
        likely="a text in the other format, or keys in another order, are refused",
        look="JSON is YAML too; `1e-3` without a dot is a text to YAML, and a number to people",
    )
    for name, value in values.items():
        kind, got = answer["values"][name]
        job.require(
            [kind, got] == _with_type(value),
            expected=f"{name} = {value!r} ({type(value).__name__}) from this text: {one_line(text)}",
            got=f"{got!r} ({kind})",
            likely="the value is kept as the file spells it, not as its field's type",
            look="YAML 1.1 reads `1e-3` as text: turn what spells a number into one where the field is a number",
        )


def _with_type(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return ["dict", {key: _with_type(one) for key, one in value.items()}]
    return [type(value).__name__, value]


def _require_spellings(job: Job, values: dict[str, Any]) -> None:
    """Numbers as people write them, and what YAML 1.1 has beside `key: value` lines."""
    spelt = {"1e-3": 1e-3, "1E-3": 1e-3, "1e5": 1e5, "2.5e3": 2500.0, ".5": 0.5, "+1e-2": 0.01, "1": 1.0}
    texts = {
        by_hand(job, values, learning_rate=f"learning_rate: {text}"): values | {"learning_rate": number}
        for text, number in spelt.items()
    }
    odd = """%YAML 1.1
---
"version": 2
'name': >-
  two words,
  folded
learning_rate: &rate 1e-2
? micro_batch_size
: 0x20
max_epochs: 1_2
is_deterministic: yes
class_weights: {csv: *rate, "a: b": 2,
  json: 5e-1}
...
"""
    texts[odd] = {
        "name": "two words, folded",
        "learning_rate": 0.01,
        "micro_batch_size": 32,
        "max_epochs": 12,
        "is_deterministic": True,
        "class_weights": {"csv": 0.01, "a: b": 2.0, "json": 0.5},
    }
    for (text, expected), answer in zip(texts.items(), _read(job, [*texts]), strict=True):
        _require_values(job, answer, expected, text)


def _require_defaults(job: Job, values: dict[str, Any]) -> None:
    """Fields left out, all of them and each once, keep their default."""
    left = [values | {name: DEFAULTS[name]} for name in DEFAULTS] + [{"name": values["name"]} | DEFAULTS]
    texts = [
        by_hand(job, {k: v for k, v in values.items() if k == "name" or k in kept})
        for kept in [DEFAULTS.keys() - {name} for name in DEFAULTS] + [set()]
    ]
    for text, expected, answer in zip(texts, left, _read(job, texts), strict=True):
        got = answer.get("values")
        wrong = [name for name, value in expected.items() if got and got[name] != _with_type(value)]
        first = wrong[0] if wrong else "name"
        job.require(
            got is not None and not wrong,
            expected=f"{first} = {expected[first]!r} from this text: {one_line(text)}"
            if wrong
            else f"a config from this text: {one_line(text)}",
            got=repr(got[first][1]) if got else said(answer),
            likely="a field that is left out raises, or gets another value than its default",
            look="only what the text has is passed on: `cls(**values)`",
        )


def _require_round_trip(job: Job, values: dict[str, Any]) -> None:
    tried = []
    for at, name in enumerate([*TRAPS, *(_odd_text(job) for _ in TRAPS), "", "a word " * 40]):
        rate = float(job.rng.random() * 10.0 ** job.rng.integers(-9, 20))
        key = TRAPS[at] if at < len(TRAPS) else _odd_text(job)
        own = {
            "name": name,
            "learning_rate": rate,
            "is_deterministic": bool(job.rng.integers(2)),
            "micro_batch_size": int(job.rng.integers(1, 2**40)),
        }
        tried.append(values | own | {"class_weights": {key: rate / 3, "csv": 1.0} if at % 3 else {}})
    # Falsy, where the defaults are not.
    tried.append(tried[0] | {"learning_rate": 0.0, "micro_batch_size": 0, "max_epochs": 0, "name": ""})
    texts = [as_json(each) for each in tried]
    tried += [tried[0] | {"name": text, "class_weights": {text: 1.0}} for text in ESCAPED]
    written = job.learner().call("made_configs", values=tried)
    for each, text, answer in zip(tried, texts, _read(job, texts), strict=False):
        _require_values(job, answer, each, text)
    for each, answer in zip(tried, written, strict=True):
        job.require(
            "text" in answer,
            expected="a config made of values of the types of its fields, and its text",
            got=said(answer),
            likely="values of the right types are refused, or `to_text` needs what only `from_text` sets",
            look="`RunConfig(name='a')` is a config too",
        )
        job.require(
            answer["stays"],
            expected="a config that `to_text` leaves as it is",
            got="one with other values afterwards",
            likely="the values of the config itself are changed as the text is made: `vars(self)` is no copy",
            look="`dataclasses.asdict(self)` is a copy, to its depths",
        )
        # In a process that has not written it: a text holds all there is.
        (again,) = _read(job, [answer["text"]], job.worker("reader", job.source))
        got = again.get("values", {})
        changed = [name for name, value in each.items() if got.get(name) != _with_type(value)]
        job.require(
            not changed,
            expected="from_text(config.to_text()) to be the config itself",
            got=f"a change in {', '.join(changed)}" if got else said(again)[:160],
            likely=_ESCAPES if each["name"] in ESCAPED else _why_another(again, changed),
            look=f"write and read back a config with name {each['name']!r}, learning_rate {each['learning_rate']!r} "
            f"and class_weights {each['class_weights']!r}",
        )
        _require_equal(job, answer)


def _require_equal(job: Job, answer: dict[str, Any]) -> None:
    job.require(
        answer.get("is_equal", False),
        expected="from_text(config.to_text()) == config",
        got="False, though every field has the same value",
        likely="configs differ in something that is no field of the text, such as the text that they were read from",
        look="the class has six fields, and compares those",
    )


def _odd_text(job: Job) -> str:
    return "".join(SIGNS[i] for i in job.rng.integers(len(SIGNS), size=int(job.rng.integers(1, 9))))


def _why_another(again: dict[str, Any], changed: list[str]) -> str:
    if "version" in again.get("error", ""):
        return "the version is left out of the text: `from_text` refuses what `to_text` wrote"
    if any(half in str(again.get("values")) for half in ("ud83d", "ud835")):
        return (
            "JSON's escapes are no YAML: `json.dumps` makes two halves of a 🚀, and YAML does not join them"
        )
    if changed == ["learning_rate"] or changed == ["learning_rate", "class_weights"]:
        return "digits are rounded as the text is written: `repr` of a float holds all of them"
    if "values" in again and changed and "name" not in changed:
        return f"the text does not hold what the config has: {', '.join(changed)} is left out or written otherwise"
    return "the text is put together by hand: quotes are missing where a text looks like something else"


def _require_same_elsewhere(job: Job, text: str, fingerprint: str) -> None:
    elsewhere = job.learner().call(
        "fingerprints_elsewhere", source=job.source, entry=job.entry, text=text, hash_seeds=[1, 2]
    )
    job.require(
        not elsewhere["trouble"],
        expected="a cell that reads a config in a fresh interpreter too",
        got=elsewhere["trouble"],
        likely="the cell needs something that stands outside it",
        look="run this cell alone in a new kernel, and read a text",
    )
    job.require(
        {*elsewhere["found"]} == {fingerprint},
        expected="the same fingerprint in another process",
        got="another one after Python was started again",
        likely="an unordered hash: `hash()`, or the order of a set, is new each time Python starts",
        look="write the values in sorted order as text, and hash that with `hashlib`",
    )
