"""Secret spaces of 5.1: those that can be, of every kind and in every order, and those that cannot."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Space = dict[str, dict[str, Any]]
NUM_SPACES = 6
WRONG = "weight_decay"
"""The name in an impossible space whose range cannot be."""
_VALUES: tuple[list[Any], ...] = (
    [{"steps": number} for number in range(9)],
    [0.0, "auto", None],
    [True, False],
    [(0.9, 0.95), (0.9, 0.999)],
    [7],
    ["16", "auto", 16],
)


def draw_spaces(rng: np.random.Generator) -> list[Space]:
    """Spaces of the same names, {role_number: part}, and other ranges; a condition stands before its key, or after."""
    names = {
        role: f"{role}_{rng.integers(10, 100)}"
        for role in ("rate", "decay", "share", "shift", "layers", "optimizer", "width", "momentum", "mode")
    }
    return [_space(rng, number, names) for number in range(NUM_SPACES)]


def is_wide(part: dict[str, Any]) -> bool:
    """Whether it is a range of whole numbers of which few can be drawn."""
    return bool(part["kind"] == "int" and part["high"] - part["low"] > 1000)


def role_of(name: str) -> str:
    return name.rpartition("_")[0]


def _space(rng: np.random.Generator, number: int, names: dict[str, str]) -> Space:
    # Some begin so near to 0 that what is added to be on the safe side, or rounded, shows.
    low = 10 ** rng.uniform(*((-6, -4), (-12, -10), (-6, -4), (-40, -30), (-6, -4), (-12, -10))[number])
    start, near = 10 ** rng.uniform(-1, 1), 1e-9 * rng.uniform(1, 2)
    first = (0, 1, -2, 2**33 + 5)[number % 4]  # one beyond what 32 bits hold
    num_layers = (4, 6, 2, 5, 3, 1)[number]
    end = (0.0, -0.5, float(rng.uniform(0.5, 2)))[number % 3]
    optimizers = rng.permutation(["adam", "adamw", "sgd"]).tolist()
    width = _VALUES[number % len(_VALUES)]
    by_optimizer = (names["optimizer"], "adam" if number == 3 else str(rng.choice(optimizers)))
    by_other = (names["width"], width[-1]) if number in (1, 3, 5) else (names["layers"], first)
    if number == 4:  # those that are there together
        by_other = by_optimizer
    elif number == 2:  # two that hang on one
        by_other = (names["optimizer"], str(rng.choice(optimizers)))
    rate = {"kind": "log", "low": low, "high": low * 10 ** rng.uniform(2.5, 4)}
    parts: dict[str, dict[str, Any]] = {
        "rate": rate,
        "decay": {"kind": "log", "low": start, "high": start * 10 ** rng.uniform(0.7, 2)},
        "share": {"kind": "float", "low": rng.uniform(0, 0.1), "high": rng.uniform(0.3, 0.6)},
        "shift": {"kind": "float", "low": rng.uniform(-2, -1), "high": end},
        "layers": {"kind": "int", "low": first, "high": first + num_layers - 1},
        "optimizer": {"kind": "choice", "values": optimizers},
        "width": {"kind": "choice", "values": width},
        "momentum": {"kind": "float", "low": 0.5, "high": rng.uniform(0.9, 0.99), "when": by_optimizer},
        "mode": {"kind": "choice", "values": [False, True], "when": by_other},
    }
    if number == 2:  # ends as they are often written, though floats are drawn
        parts |= {
            "decay": {"kind": "log", "low": 1, "high": 64},
            "share": {"kind": "float", "low": 0, "high": 3},
        }
    if number == 4:  # two names of one part, and a range that is narrow
        parts |= {"decay": rate, "share": {"kind": "float", "low": near, "high": 3 * near}}
        # A float as momentum is: one number for both shows in a line.
        parts["shift"] |= {"when": by_optimizer}
    if number == 1:  # wider than 16 bits, with a sign or without
        below, above = rng.integers(33_000, 40_000, size=2).tolist()
        parts["layers"] = {"kind": "int", "low": -below, "high": above}
    order = rng.permutation(list(parts)).tolist()
    if number < 2:  # conditions last, or first
        order.sort(key=lambda role: ("when" in parts[role]) != bool(number))
    return {names[role]: parts[role] for role in order}


def odd_spaces() -> list[tuple[str, Space, dict[str, Any]]]:
    """Spaces that can be, though they seldom are, why one could stumble over it, and what each sample has beside `x`.

    `x`, where it is there, is a number of its range.
    """
    optimizer: Space = {"optimizer": {"kind": "choice", "values": ["sgd"]}}
    never = {"kind": "float", "low": 0.5, "high": 0.9, "when": ("optimizer", "adamw")}
    return [
        ("without a key: its sample has none", {}, {}),
        (
            "with a condition on a value that is never drawn",
            optimizer | {"momentum": never},
            {"optimizer": "sgd"},
        ),
        ("with a range that is narrow", {"x": {"kind": "log", "low": 1.0, "high": 1.0 + 1e-10}}, {}),
        ("with a range that is narrow", {"x": {"kind": "float", "low": 1e-12, "high": 2e-12}}, {}),
    ]


def impossible_spaces(rng: np.random.Generator) -> list[tuple[str, Space]]:
    """What is wrong with a space, and the space: the wrong part is anywhere among others that are right."""
    one, two = sorted(rng.uniform(0.1, 1.0, size=2).tolist())
    wrong: dict[str, dict[str, Any]] = {
        "a log range that begins at 0": {"kind": "log", "low": 0.0, "high": two},
        "a log range that begins below 0": {"kind": "log", "low": -one, "high": two},
        "a log range below 0": {"kind": "log", "low": -two, "high": -one},
        "a log range whose ends are swapped": {"kind": "log", "low": two, "high": one},
        "a log range whose ends are equal": {"kind": "log", "low": one, "high": one},
        "a float range whose ends are swapped": {"kind": "float", "low": two, "high": -one},
        "a float range whose ends are equal": {"kind": "float", "low": two, "high": two},
        "a float range that begins at NaN": {"kind": "float", "low": math.nan, "high": two},
        "a float range that ends at NaN": {"kind": "float", "low": one, "high": math.nan},
        "a log range that begins at NaN": {"kind": "log", "low": math.nan, "high": two},
        "a log range that ends at NaN": {"kind": "log", "low": one, "high": math.nan},
    }
    right: Space = {
        "optimizer": {"kind": "choice", "values": ["adamw", "sgd"]},
        "dropout": {"kind": "float", "low": 0.0, "high": 0.5},
        "num_layers": {"kind": "int", "low": 1, "high": 4},
    }
    found = [(what, _anywhere(rng, right, part)) for what, part in wrong.items()]
    for what, part in wrong.items():
        hidden = part | {"when": ("optimizer", "sgd")}
        found.append((f"{what}, also where its condition does not hold", _anywhere(rng, right, hidden)))
    return found


def _anywhere(rng: np.random.Generator, right: Space, part: dict[str, Any]) -> Space:
    parts = right | {WRONG: part}
    return {name: parts[name] for name in rng.permutation(list(parts)).tolist()}
