"""What exercise 3.4 asks plans for: recipes that tell one rule, and one rounding, from another."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

NUM_SHORT = 24  # of any recipes, those of so few updates that each number of them comes


def _tells_apart(limit: int, steps: int) -> bool:
    """Whether a device's rows, one more than fit in so many steps, show what is rounded, and to what.

    The smallest plan exceeds them by 5 % or more, and the steps that divide them are more than the fewest.
    """
    rows, fewest = limit * steps + 1, steps + 1
    dividing = next((more for more in range(fewest, rows) if rows % more == 0), rows)
    return fewest < dividing < rows and math.ceil(rows / fewest) * fewest > 1.05 * rows


_LIMITS_AND_STEPS = [
    (limit, steps) for limit in range(6, 16) for steps in range(2, 7) if _tells_apart(limit, steps)
]


def recipes(rng: np.random.Generator, peak_slack: float) -> list[dict[str, Any]]:
    """Recipes, machines and wishes. Rounding decides in most of them: a target is seldom a multiple of what fits.

    Args:
        peak_slack: by so much a peak may differ from the right one; where sizes allow it, no two rules are that close.
    """
    # (limit, devices, target): first those that tell mistakes apart. One row more than what fits in some steps makes
    # the smallest plan larger than its target by 5 % and more, so that the rate of the target is another one.
    sizes = []
    for world_size in rng.permutation([3, 4, 5]).tolist():
        limit, steps = _LIMITS_AND_STEPS[int(rng.integers(len(_LIMITS_AND_STEPS)))]
        sizes.append((limit, world_size, limit * world_size * steps + 1))
    for world_size in (1, 2, 7):
        limit = int(rng.integers(3, 20))
        sizes.append(
            (limit, world_size, limit * world_size * int(rng.integers(2, 9)) + int(rng.integers(1, limit)))
        )
    limit, world_size = int(rng.integers(5, 20)), int(rng.integers(2, 5))
    sizes += [
        (limit, world_size, 3 * limit * world_size),  # an exact fit
        (limit, world_size, limit * world_size),
        (limit, world_size, limit * world_size - 1),  # one step is enough
        (400, 8, 9),  # far more than is wished for
        (1, 3, 10),
    ]
    few = {8: 2, 9: int(rng.integers(10, 20))}  # of less than 20 updates, 5 % are less than one
    wanted: list[dict[str, Any]] = [
        {
            "target_batch_size": target,
            "max_micro_batch_size": limit,
            "world_size": world_size,
            "base_batch_size": _base(rng, limit, world_size, target, peak_slack),
            "base_learning_rate": float(10 ** rng.uniform(-5, -0.5)),
            "max_steps": int(rng.integers(100, 400))
            if number < 8
            else few.get(number, int(rng.integers(3, 60))),
            "optimizer": ("sgd", "adamw")[number % 2],
        }
        for number, (limit, world_size, target) in enumerate(sizes)
    ]
    # A batch that grows so little that the recipe's own rate is above half the peak.
    for plan, least, most in ((wanted[6], 1.3, 1.7), (wanted[7], 1.5, 3.0)):
        target = max(20, plan["target_batch_size"])
        plan |= {"target_batch_size": target, "base_batch_size": round(target / rng.uniform(least, most))}
    return wanted


def any_recipes(rng: np.random.Generator, number: int) -> list[dict[str, Any]]:
    """Recipes without a plan: small and large ones, all batches larger than the recipe's, rates of many sizes."""

    def up_to(most: float, least: float = 1.0) -> int:
        return round(float(np.exp(rng.uniform(np.log(least), np.log(most)))))

    wishes: list[dict[str, Any]] = []
    for at in range(number):
        base = up_to(2000)
        target = base + up_to(100 * base)
        world_size, steps = up_to(64), up_to(40)
        wishes.append(
            {
                "target_batch_size": target,
                "max_micro_batch_size": max(
                    1, round(target / (world_size * steps)) + int(rng.integers(-1, 2))
                ),
                "world_size": world_size,
                "base_batch_size": base,
                "base_learning_rate": float(10 ** rng.uniform(-7, 0.5)),
                "max_steps": 2 + at
                if at < NUM_SHORT
                else up_to(20_000, 5000)
                if at >= number - 3
                else up_to(1000, 2),
                "optimizer": ("sgd", "adamw")[int(rng.integers(2))],
            }
        )
    return wishes


def _base(rng: np.random.Generator, limit: int, world_size: int, target: int, peak_slack: float) -> int:
    """A size to scale from: one at which no two rules give the same rate, where the sizes allow it."""
    steps = math.ceil(target / (limit * world_size))
    total = math.ceil(target / (steps * world_size)) * steps * world_size  # the smallest of the plan

    def gap(base: int) -> float:
        growth = total / base
        others = [steps] * (steps > 1) + [growth / world_size] * (world_size > 1)
        others += [target / base] * (target < total) + [math.floor(growth)]
        gaps = []
        for power in (0.5, 1.0):
            rates = sorted([1.0, growth**0.5, growth, *(factor**power for factor in others)])
            gaps += [b / a for a, b in itertools.pairwise(rates)]
        return min(gaps)

    bases = rng.permutation(np.arange(2, max(3, target // 3))).tolist()
    return next((base for base in bases if gap(base) > 1 + 3 * peak_slack), max(bases, key=gap))
