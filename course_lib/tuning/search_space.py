"""Search spaces as text: `learning_rate=log:1e-4..1e-2`, checked against `TrainConfig` before any trial."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from course_lib.base import UserError, check_keys, require
from course_lib.runs import WITHOUT_EFFECT, TrainConfig, known_keys

HOW = "write KEY=log:1e-4..1e-2, KEY=float:0..0.3, KEY=int:1..4 or KEY=choice:32,64"
GRID_VALUES = 4
"""So many values of a range does a grid take."""
COMPARED = {
    *("task", "validation", "monitor", "min_delta", "seed", "device", "is_deterministic"),
    *("max_epochs", "max_steps", "validate_every_steps", "early_stopping_patience"),
}
"""Keys that must be equal in all trials: they decide the budget, or what is compared."""


def default_space(config: TrainConfig) -> dict[str, str]:
    """What is worth searching first: the learning rate over two decades, and what restrains the weights."""
    if config.hf_model:
        return {"learning_rate": "log:1e-5..1e-3", "weight_decay": "log:1e-3..0.3"}
    return {"learning_rate": "log:3e-4..3e-2", "weight_decay": "log:1e-3..0.3", "dropout": "float:0..0.3"}


def parse_searches(searches: Sequence[str]) -> dict[str, str]:
    """`["num_layers=int:1..4"]` → `{"num_layers": "int:1..4"}`."""
    for search in searches:
        if "=" not in search:
            raise UserError(f"--search {search}: {HOW}")
    return dict(search.split("=", 1) for search in searches)


def make_space(texts: Mapping[str, Any], config: TrainConfig) -> dict[str, Any]:
    """Read `{key: text}` (a list counts as a choice) into Optuna's distributions, sorted by key. Both ends of
    each range and each choice must make a TrainConfig with the other values of `config`; else UserError."""
    if not texts:
        raise UserError(f"the search space is empty: {HOW}")
    check_keys(texts, known_keys(), source="search space")
    # Where items are tokens, these two decide of which the loss is a mean.
    is_of_tokens = config.task in ("token-classification", "language-modelling")
    of_tokens = {"vocab_size", "max_length"} if is_of_tokens else set()
    for key in (COMPARED | WITHOUT_EFFECT | of_tokens) & texts.keys():
        raise UserError(f"search space: {key} must be the same in all trials, or they cannot be compared")
    return {key: _distribution(key, text, config) for key, text in sorted(texts.items())}


def grid_values(distribution: Any) -> list[Any]:
    """What a grid takes: each choice, or values of the range from end to end, evenly spaced (`log`: by ratio)."""
    if hasattr(distribution, "choices"):
        return list(distribution.choices)
    space = np.geomspace if distribution.log else np.linspace
    values = space(distribution.low, distribution.high, GRID_VALUES).tolist()
    return sorted({round(value) for value in values}) if isinstance(distribution.low, int) else values


def _distribution(key: str, text: Any, config: TrainConfig) -> Any:
    def typed(value: Any) -> Any:  # as the config has it, or its error
        return getattr(dataclasses.replace(config, **{key: value}), key)

    def wrong(reason: str) -> UserError:
        return UserError(f"search space: {key}={text}: {reason}")

    distributions = require("optuna", extra="tune").distributions
    if isinstance(text, str) and text.startswith("choice:"):
        words = [word.strip() for word in text.removeprefix("choice:").split(",")]
        text = [{"true": True, "false": False}.get(word, word) for word in words]
    if isinstance(text, list):
        choices = list(dict.fromkeys(typed(choice) for choice in text))
        if len(choices) < 2:
            raise wrong("give at least two choices")
        return distributions.CategoricalDistribution(choices)
    match = re.fullmatch(r"(log|float|int):(.+)\.\.(.+)", str(text))
    if not match:
        raise wrong(HOW)
    kind, low, high = match[1], typed(match[2]), typed(match[3])
    number = type(low).__name__
    if type(low) is not type(high) or number not in (("int", "float") if kind == "log" else (kind,)):
        raise wrong(HOW)
    if not low < high < math.inf or (kind == "log" and low <= 0):
        raise wrong("give the lower end, then the higher one; a log range begins above 0")
    make = distributions.IntDistribution if number == "int" else distributions.FloatDistribution
    return make(low, high, log=kind == "log")
