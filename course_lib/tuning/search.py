"""What to search, how, and how much of it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course_lib.base import UserError
from course_lib.runs import TrainConfig
from course_lib.tuning.search_space import grid_values, make_space

if TYPE_CHECKING:
    from filelock import FileLock

DEFAULT_TRIALS = 20
MAX_GRID = 10_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Search:
    """What to search, how, and how much of it now.

    Raises UserError for a search that cannot be.
    """

    config: TrainConfig
    """What all trials share. Its steps are the budget of each trial, its `monitor` is what is compared."""
    out: Path
    texts: Mapping[str, Any]
    """The search space: key → `"log:1e-4..1e-2"`, `"float:0..0.3"`, `"int:1..4"`, `"choice:a,b"` or a list."""
    sampler: str = "tpe"
    """`"tpe"`, `"random"` or `"grid"`."""
    pruner: str = "median"
    """`"median"`, `"halving"` (successive halving) or `"none"`."""
    trials: int | None = None
    """All trials of the study count, pruned ones too, and so do their steps. No limit at all: 20, or the grid."""
    max_total_steps: int | None = None
    minutes: float | None = None
    """After so many no trial begins; the one at hand comes to its end."""

    def __post_init__(self) -> None:
        for name in ("trials", "max_total_steps", "minutes"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UserError(f"{name} must be above 0, got {value}")
        if self.sampler == "grid" and (size := math.prod(map(len, self.grid.values()))) > MAX_GRID:
            raise UserError(f"a grid of {size:,} points is above {MAX_GRID:,}: search fewer keys")
        assert self.space  # read now, for its errors

    @cached_property
    def space(self) -> dict[str, Any]:
        return make_space(self.texts, self.config)

    @cached_property
    def grid(self) -> dict[str, list[Any]]:
        return {key: grid_values(distribution) for key, distribution in self.space.items()}

    @property
    def max_trials(self) -> float:
        if self.sampler == "grid":
            return min(self.trials or math.inf, math.prod(map(len, self.grid.values())))
        return self.trials or (math.inf if self.max_total_steps or self.minutes else DEFAULT_TRIALS)

    def lock(self, name: str) -> FileLock:
        from filelock import FileLock  # of the extra `tune`, as Optuna

        return FileLock(self.out / "locks" / name)
