"""Right solutions of lesson 04 that went roads nobody had thought of."""

# %%
import copy
import math
import operator
from typing import Any

from autograder import exercise


@exercise("4.3")
class EarlyStopping:
    """One dict holds all that changes; the settings stand beside it."""

    def __init__(
        self,
        monitor: str = "loss",
        mode: str = "min",
        patience: int = 3,
        min_delta: float = 0.0,
    ) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"mode must be min or max, not {mode!r}")
        self.monitor, self.mode = monitor, mode
        self.patience, self.min_delta = patience, min_delta
        self._is_better = operator.lt if mode == "min" else operator.gt
        self._margin = -min_delta if mode == "min" else min_delta
        self._state = {"best": None, "best_step": None, "num_bad": 0}

    best = property(lambda self: self._state["best"])
    best_step = property(lambda self: self._state["best_step"])
    num_bad = property(lambda self: self._state["num_bad"])

    def update(self, metrics: dict[str, float], step: int) -> bool:
        value = float(metrics[self.monitor])
        if not math.isnan(value) and (self.best is None or self._is_better(value, self.best + self._margin)):
            self._state = {"best": value, "best_step": step, "num_bad": 0}
        else:
            self._state["num_bad"] += 1
        return not self.num_bad < self.patience

    def state_dict(self) -> dict[str, Any]:
        return copy.deepcopy(self._state)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._state = copy.deepcopy(dict(state))
