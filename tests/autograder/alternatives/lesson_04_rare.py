"""More right solutions of lesson 04 by people who knew the notebook alone."""

# %%
import ast
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autograder import exercise


def _numpy_text() -> str:
    name, keys, *rest = np.random.get_state()
    return repr((name, keys.tolist(), *rest))


# name -> (state as text, put a text back); literal_eval reads literals and can call nothing
GENERATORS = {
    "random": (
        lambda: repr(random.getstate()),
        lambda text: random.setstate(ast.literal_eval(text)),
    ),
    "numpy": (_numpy_text, lambda text: np.random.set_state(ast.literal_eval(text))),
    "torch": (
        lambda: torch.get_rng_state().numpy().tobytes().hex(),
        lambda text: torch.set_rng_state(torch.tensor(list(bytes.fromhex(text)), dtype=torch.uint8)),
    ),
}


@exercise("4.1")
class RunCheckpoint:
    """States of generators as text, by `repr` and `literal_eval`; written beside and renamed."""

    def __init__(self, *, model: Any, optimizer: Any, scheduler: Any, scaler: Any, sampler: Any) -> None:
        self.parts = {
            "model": model,
            "optimizer": optimizer,
            "scheduler": scheduler,
            "scaler": scaler,
            "sampler": sampler,
        }

    def save(self, path: Path, step: int) -> None:
        texts = {name: to_text() for name, (to_text, _) in GENERATORS.items()}
        states = [(name, self.parts[name].state_dict()) for name in sorted(self.parts)]
        part_file = path.parent / f".{path.name}.{os.getpid()}"
        try:
            with part_file.open("wb") as file:
                torch.save([step, texts, states], file)
            part_file.replace(path)
        finally:
            part_file.unlink(missing_ok=True)

    def load(self, path: Path) -> int:
        with path.open("rb") as file:
            step, texts, states = torch.load(file, weights_only=True)
        states = dict(states)
        for name in ("model", "optimizer", "scheduler", "scaler", "sampler"):
            self.parts[name].load_state_dict(states[name])
        for name, (_, from_text) in GENERATORS.items():
            from_text(texts[name])
        return step


# %%
import math
from collections.abc import Generator
from typing import Any

from autograder import exercise


def watcher(lower_is_better, patience, min_delta, best, best_step, num_bad) -> Generator:
    """Takes (value, step), gives (best, best_step, num_bad, should stop), for ever."""
    while True:
        value, step = yield best, best_step, num_bad, num_bad >= patience
        num_bad += 1
        if math.isnan(value):
            continue
        if best is not None:
            gain = best - value if lower_is_better else value - best
            if not gain > min_delta:
                continue
        best, best_step, num_bad = value, step, 0


@exercise("4.3")
class EarlyStopping:
    """A coroutine: a generator keeps all in local variables, and `update` sends to it."""

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
        self._start(None, None, 0)

    def _start(self, *where) -> None:
        settings = (self.mode == "min", self.patience, self.min_delta)
        self._watcher = watcher(*settings, *where)
        self._take(next(self._watcher))

    def _take(self, answer) -> bool:
        self.best, self.best_step, self.num_bad, should_stop = answer
        return should_stop

    def update(self, metrics: dict[str, float], step: int) -> bool:
        return self._take(self._watcher.send((float(metrics[self.monitor]), step)))

    def state_dict(self) -> dict[str, Any]:
        return {"so_far": [self.best, self.best_step, self.num_bad]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._start(*state["so_far"])


# %%
import math
from collections import deque
from typing import Any

import torch

from autograder import exercise


class Books:
    def __init__(self, model, window):
        self.model = model
        self.recent = deque(maxlen=window)
        self.lowest_mean, self.since = math.inf, 0
        self.entry, self.tensors = {"loss": math.inf}, {}

    def add(self, entry) -> None:
        loss = entry["loss"]
        if loss < self.entry["loss"]:
            self.entry = entry
            self.tensors = {n: t.clone() for n, t in self.model.state_dict().items()}
        self.recent.append(loss)
        mean = sum(self.recent) / len(self.recent)
        self.since += 1
        if len(self.recent) == self.recent.maxlen and mean < self.lowest_mean:
            self.lowest_mean, self.since = mean, 0

    @torch.no_grad()
    def put_back(self) -> None:
        for name, tensor in self.model.state_dict().items():
            tensor.copy_(self.tensors[name])  # into the live tensors


@exercise("4.4")
def train_with_early_stopping(run: Any) -> dict[str, float]:
    """The stop looks at the mean of the last losses, where the jitter averages out; the best at each one."""
    books = Books(run.model, window=3)
    while run.num_steps < run.max_steps and books.since < 8:
        run.train(min(10, run.max_steps - run.num_steps))
        books.add(run.validate())
    books.put_back()
    return {"best_step": books.entry["step"], "loss": books.entry["loss"]}


# %%
from collections.abc import Callable

from autograder import exercise


@exercise("4.5")
class Cadence:
    """An account: time earns credit at the allowed rate, saves spend it."""

    def __init__(self, max_lost_seconds: float, max_overhead: float, clock: Callable[[], float]) -> None:
        self.max_lost_seconds = max_lost_seconds
        self.max_overhead = max_overhead
        self.clock = clock
        self._last = None  # when the last save ended
        self._credit = 0.0  # seconds of saving that were earned and not spent
        self._due_at = clock() + max_lost_seconds

    def saved(self, seconds: float) -> None:
        now = self.clock()
        # Earn a little less than is allowed: the price of the next save is only known from the last.
        rate = 0.85 * self.max_overhead
        if self._last is not None:  # the one before the first step only tells the price
            self._credit += rate * (now - self._last) - seconds
        self._last = now
        if seconds * (1.0 - self.max_overhead) <= self.max_overhead * self.max_lost_seconds:
            wait = self.max_lost_seconds  # both limits hold
        else:
            pause = seconds / self.max_overhead - seconds
            payable = (seconds - self._credit) / rate - seconds  # the save is time too, and earns
            wait = max(self.max_lost_seconds, min(payable, 1.9 * pause))
        self._due_at = now + wait

    def is_due(self) -> bool:
        return self._due_at <= self.clock()
