"""What the fingerprint of 8.2 must know, and what it must not."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.lesson_08.checks.config_texts import as_json

_TEXT = "what is hashed is the text of the file, not the values of the config"
_LOOK = "hash after the values have the types of their fields"


def require_fingerprint(job: Job, values: dict[str, Any], one: str, turned: str, respelt: str) -> None:
    """Fail unless it changes with every value but the name, and with nothing else.

    `one` is that of `values`; `respelt` that of the same text with numbers spelt otherwise, and `turned` that of
    this with its keys in another order.
    """
    job.require(
        one == respelt or turned != respelt,
        expected="one fingerprint for one config, however its numbers are spelt",
        got="two, one for YAML by hand and one for JSON",
        likely=_TEXT,
        look=_LOOK,
    )
    job.require(
        one == turned,
        expected="one fingerprint for one config, whatever the order of keys",
        got="two, for the same values in another order",
        likely="the fingerprint depends on the order of keys, also of those inside class_weights",
        look="`json.dumps(…, sort_keys=True)` sorts at every depth",
    )
    weights: dict[str, float] = values["class_weights"]
    first, second, *_ = weights
    swapped = weights | {first: weights[second] + 1.0, second: weights[first]}
    changes: dict[str, dict[str, Any]] = {
        "learning_rate": {"learning_rate": float(np.nextafter(values["learning_rate"], 2.0))},
        "micro_batch_size": {"micro_batch_size": values["micro_batch_size"] + 1},
        "max_epochs": {"max_epochs": values["max_epochs"] + 1},
        "is_deterministic": {"is_deterministic": not values["is_deterministic"]},
        "a class weight": {"class_weights": weights | {first: weights[first] + 1e-9}},
        "a class's name": {"class_weights": {"xml" if k == first else k: v for k, v in weights.items()}},
        "the number of class weights": {"class_weights": weights | {"xml": 0.0}},
    }
    same: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "name": (values, {"name": "another"}),
        "1": ({"learning_rate": 1.0}, {"learning_rate": 1}),
        "weights": ({"class_weights": {"csv": 2.0}}, {"class_weights": {"csv": 2}}),
        "zero": ({"learning_rate": 0.0}, {"learning_rate": -0.0}),
    }
    apart: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "two class weights that change places": (
            {"class_weights": swapped},
            {"class_weights": swapped | {first: swapped[second], second: swapped[first]}},
        ),
        "micro_batch_size 1 and max_epochs 23, or 12 and 3": (
            {"micro_batch_size": 1, "max_epochs": 23},
            {"micro_batch_size": 12, "max_epochs": 3},
        ),
        "micro_batch_size and max_epochs that change places": (
            {"micro_batch_size": 7, "max_epochs": 9},
            {"micro_batch_size": 9, "max_epochs": 7},
        ),
    }
    # However names and weights are strung together.
    strung = [
        (
            f"the classes a and b, or one that is called {(name := f'a{between}1.0{then}b')!r}",
            {"a": 1.0, "b": 2.0},
            {name: 2.0},
        )
        for between in ("", "=", ":", ": ", ",", "-", "_")
        for then in ("", ",", ", ", ";", "\n", "|", "&", "_", " ")
    ]
    for what, *both in (
        *strung,
        ("a class's name and its weight, c 12 and c1 2", {"c": 12.0}, {"c1": 2.0}),
        ("the classes ö and ü", {"ö": 1.0}, {"ü": 1.0}),
        ("the classes csv and CSV", {"csv": 1.0}, {"CSV": 1.0}),
    ):
        apart[what] = ({"class_weights": both[0]}, {"class_weights": both[1]})
    configs = [*changes.values(), *(config for pair in (same | apart).values() for config in pair)]
    answers = job.learner().call("read_configs", texts=[as_json(values | config) for config in configs])
    found = [answer.get("fingerprint", answer.get("error")) for answer in answers]
    rest = found[len(changes) :]
    pairs = dict(zip([*same, *apart], zip(rest[::2], rest[1::2], strict=True), strict=True))
    blind = [name for name, got in zip(changes, found, strict=False) if got == one]
    blind += [name for name in apart if pairs[name][0] == pairs[name][1]]
    job.require(
        not blind,
        expected="another fingerprint when a value changes",
        got=f"the same after a change of {', '.join(blind[:4])}",
        likely="fields are left out, or numbers are rounded before they are hashed"
        if not {*blind} <= {*apart}
        else "values are hashed without the names that they belong to, or one after the other with nothing between",
        look="every field but `name` shapes the weights; `json.dumps(…, sort_keys=True)` keeps names and values apart",
    )
    job.require(
        pairs["name"][1] == one,
        expected="the same fingerprint for another name: it does not shape the weights",
        got="another one",
        likely="`name` is hashed too",
        look="two runs that differ in their name alone must end with equal weights",
    )
    _require_equal_values(job, values)
    for key, what in (
        ("1", "learning_rate 1 and 1.0"),
        ("weights", "a class weight of 2 and one of 2.0"),
        ("zero", "learning_rate 0.0 and -0.0"),
    ):
        job.require(
            pairs[key][0] == pairs[key][1],
            expected=f"one fingerprint for {what}",
            got="two",
            likely=_TEXT,
            look=_LOOK,
        )


def _require_equal_values(job: Job, values: dict[str, Any]) -> None:
    """Of configs that are made of values, and of no text: `==` holds for these pairs."""
    pairs: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("learning_rate 1 and 1.0", {"learning_rate": 1}, {"learning_rate": 1.0}),
        (
            "a class weight of 2 and one of 2.0",
            {"class_weights": {"csv": 2}},
            {"class_weights": {"csv": 2.0}},
        ),
        ("learning_rate 0.0 and -0.0", {"learning_rate": 0.0}, {"learning_rate": -0.0}),
        ("class weights of 0.0 and -0.0", {"class_weights": {"csv": 0.0}}, {"class_weights": {"csv": -0.0}}),
    ]
    made = [values | one for _, *both in pairs for one in both]
    answers = job.learner().call("made_configs", values=made)
    found = [
        answer.get("fingerprint") for answer in answers
    ]  # None where another type than the field's is refused
    for (what, *_), one, other in zip(pairs, found[::2], found[1::2], strict=True):
        job.require(
            None in (one, other) or one == other,
            expected=f"one fingerprint for configs that are equal, made with {what}",
            got="two",
            likely="values are hashed as they are spelt: 1 equals 1.0, and 0.0 equals -0.0",
            look="`float(value) + 0.0` is one spelling for all of these",
        )
