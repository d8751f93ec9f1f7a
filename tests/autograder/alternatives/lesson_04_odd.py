"""Right solutions of lesson 04 by unusual roads."""

# %%
import os
import tempfile
from pathlib import Path
from typing import Any

import torch

from autograder import exercise


@exercise("4.2")
def save_atomically(checkpoint: dict[str, Any], path: Path) -> None:
    """Written in a temporary folder beside the file, which goes away with all that is in it."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        written = Path(folder) / "new"
        torch.save(checkpoint, written)
        handle = os.open(written, os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        written.replace(path)


# %%
from typing import Any

from autograder import exercise


@exercise("4.3")
class EarlyStopping:
    """The state is all attributes; what is compared is always to be maximised."""

    def __init__(
        self,
        monitor: str = "loss",
        mode: str = "min",
        patience: int = 3,
        min_delta: float = 0.0,
    ) -> None:
        self.monitor = monitor
        self.mode = mode
        self.patience = patience
        self.min_delta = min_delta
        self.best: float | None = None
        self.best_step: int | None = None
        self.num_bad = 0

    def update(self, metrics: dict[str, float], step: int) -> bool:
        value = float(metrics[self.monitor])
        is_number = value == value
        up = value if self.mode == "max" else -value
        if is_number and (self.best is None or up > self._bar()):
            self.best, self.best_step, self.num_bad = value, step, 0
            return False
        self.num_bad += 1
        return not self.num_bad < self.patience

    def _bar(self) -> float:
        assert self.best is not None
        return (self.best if self.mode == "max" else -self.best) + self.min_delta

    def state_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
