"""Search spaces as text: `learning_rate=log:1e-4..1e-2`, checked against `TrainConfig` before any trial."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from course_lib.config import WITHOUT_EFFECT, TrainConfig, known_keys
from course_lib.config_io import check_keys
from course_lib.errors import UserError, require

HOW = "write KEY=log:1e-4..1e-2, KEY=float:0..0.3, KEY=int:1..4 or KEY=choice:32,64"
COMPARED = {
    *("task", "validation", "monitor", "min_delta", "seed", "device", "is_deterministic"),
    *("max_epochs", "max_steps", "validate_every_steps", "early_stopping_patience"),
}
"""Keys that must be equal in all trials: they decide the budget, or what is compared."""
MAX_GRID = 10_000
_RANGE = re.compile(r"(log|float|int):([^/]+?)\.\.([^/]+?)(?:/(\d{1,4}))?")


class Dimension(NamedTuple):
    """What one key may be."""

    text: str
    """As it was asked for, in one spelling."""
    distribution: Any
    """Optuna's."""
    grid: list[Any]
    """What a grid takes: `/N` values evenly spaced, else 3 of a range, else every whole number or choice."""


def default_space(config: TrainConfig) -> dict[str, str]:
    """What is worth searching first: the learning rate over two decades, and what restrains the weights."""
    if config.hf_model:
        return {"learning_rate": "log:1e-5..1e-3", "weight_decay": "log:1e-3..0.3"}
    return {"learning_rate": "log:3e-4..3e-2", "weight_decay": "log:1e-3..0.3", "dropout": "float:0..0.3"}


def parse_searches(searches: Iterable[str]) -> dict[str, str]:
    """`["num_layers=int:1..4"]` → `{"num_layers": "int:1..4"}`."""
    for search in searches:
        if "=" not in search:
            raise UserError(f"--search {search}: {HOW}")
    return {key.strip(): text for key, _, text in (search.partition("=") for search in searches)}


def make_space(texts: Mapping[str, Any], config: TrainConfig) -> dict[str, Dimension]:
    """Read `{key: text}` (a list counts as a choice), sorted by key. Both ends of each range and each choice must
    make a TrainConfig with the other values of `config`; else UserError."""
    if not texts:
        raise UserError(f"the search space is empty: {HOW}")
    check_keys(texts, known_keys(), source="search space")
    # Outside classification these two decide which tokens the loss is a mean of.
    of_tokens = set() if config.task == "classification" else {"vocab_size", "max_length"}
    for key in (COMPARED | WITHOUT_EFFECT | of_tokens) & texts.keys():
        raise UserError(f"search space: {key} must be the same in all trials, or they cannot be compared")
    return {key: _dimension(key, text, config) for key, text in sorted(texts.items())}


def grid_points(space: Mapping[str, Dimension], config: TrainConfig) -> list[dict[str, Any]]:
    """All points of the grid. Raises UserError when one makes no TrainConfig, or they are too many."""
    size = math.prod(len(dimension.grid) for dimension in space.values())
    if size > MAX_GRID:
        raise UserError(f"a grid of {size:,} points is above {MAX_GRID:,}: take fewer of each (/N)")
    grids = itertools.product(*(dimension.grid for dimension in space.values()))
    points = [dict(zip(space, values, strict=True)) for values in grids]
    for point in points:
        with_values(config, point)
    return points


def with_values(config: TrainConfig, values: Mapping[str, Any]) -> TrainConfig:
    try:
        return TrainConfig(**{**config.to_dict(), **values})
    except UserError as error:
        raise UserError(f"search space: {error}") from None


def _dimension(key: str, text: Any, config: TrainConfig) -> Dimension:
    def typed(value: Any) -> Any:  # as the config has it, or its error
        return getattr(with_values(config, {key: value}), key)

    def wrong(reason: str) -> UserError:
        return UserError(f"search space: {key}={text}: {reason}")

    distributions = require("optuna", extra="tune").distributions
    if isinstance(text, list) or str(text).startswith("choice:"):
        choices = [typed(choice) for choice in _choices(text, wrong(HOW))]
        if len(choices) < 2 or len(set(map(repr, choices))) < len(choices):
            raise wrong("give at least two choices, all different")
        name = f"choice:{','.join(map(str, choices))}"
        return Dimension(name, distributions.CategoricalDistribution(choices), choices)
    match = _RANGE.fullmatch(str(text).replace(" ", ""))
    if not match:
        raise wrong(HOW)
    kind, *ends, count = match.groups()
    low, high = map(typed, ends)
    is_whole = type(low) is int and type(high) is int
    if not is_whole and not (type(low) is float and type(high) is float):
        raise wrong(f"it has no order; write {key}=choice:…")
    if kind != "log" and is_whole != (kind == "int"):
        raise wrong(f"write {key}={'int' if is_whole else 'float'}:{ends[0]}..{ends[1]}")
    if not low < high < math.inf:
        raise wrong("the range is empty; give a lower end, then a higher one")
    if kind == "log" and low <= 0:
        raise wrong("a log range begins above 0, zero has no logarithm")
    # One above MAX_GRID is enough to be refused.
    num = int(count) if count else min(high - low, MAX_GRID) + 1 if kind == "int" else 3
    values = (np.geomspace if kind == "log" else np.linspace)(low, high, max(2, num)).tolist()
    grid = sorted({round(value) for value in values}) if is_whole else [float(f"{v:.12g}") for v in values]
    make = distributions.IntDistribution if is_whole else distributions.FloatDistribution
    name = f"{kind}:{low}..{high}" + (f"/{count}" if count else "")
    return Dimension(name, make(low, high, log=kind == "log"), grid)


def _choices(text: Any, error: UserError) -> list[Any]:
    import yaml

    try:
        return list(yaml.safe_load(f"[{text.removeprefix('choice:')}]") if isinstance(text, str) else text)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise error from None
