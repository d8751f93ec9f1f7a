"""Another right solution of each exercise of lesson 05, in another style than the reference."""

# %%
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy import stats

from autograder import exercise


@cache  # making a frozen distribution takes longer than a draw from it
def law(kind: str, low: float, high: float) -> Any:
    if kind == "int":
        return stats.randint(low, high + 1)
    if not low < high or (kind == "log" and low <= 0):
        raise ValueError(f"a range of kind {kind!r} cannot go from {low} to {high}")
    return stats.loguniform(low, high) if kind == "log" else stats.uniform(low, high - low)


class Space:
    """A way to draw for each name; those with a condition stand apart."""

    def __init__(self, parts: dict[str, dict[str, Any]]) -> None:
        self.draws = {name: self._draw_of(**part) for name, part in parts.items()}
        self.conditions = {name: part["when"] for name, part in parts.items() if "when" in part}

    @staticmethod
    def _draw_of(kind: str, **part: Any) -> Callable[[np.random.Generator], Any]:
        if kind == "choice":
            return lambda rng: part["values"][int(rng.random() * len(part["values"]))]
        drawn_from = law(kind, part["low"], part["high"])
        return lambda rng: np.asarray(drawn_from.rvs(random_state=rng)).item()

    def draw(self, rng: np.random.Generator) -> dict[str, Any]:
        free = [name for name in self.draws if name not in self.conditions]
        drawn = {name: self.draws[name](rng) for name in free}
        for name, (other, wanted) in self.conditions.items():
            if drawn[other] == wanted:
                drawn[name] = self.draws[name](rng)
        return drawn


@exercise("5.1")
def sample(space: dict[str, dict[str, Any]], rng: np.random.Generator) -> dict[str, Any]:
    return Space(space).draw(rng)


# %%
from itertools import islice, product
from typing import Any

import numpy as np
import torch

from autograder import exercise


class OneTrial:
    """Everything that belongs to one trial lives and dies with this object."""

    def __init__(self, task: Any, config: dict[str, float], seed: int) -> None:
        torch.manual_seed(seed)
        self.model = task.make_model(config)
        self.optimizer = task.make_optimizer(self.model, config)
        self.stream = task.train_batches(seed)
        self.objective = torch.nn.CrossEntropyLoss()

    def logits(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        return self.model(batch["input_ids"], batch["attention_mask"])

    def fit(self, num_steps: int) -> "OneTrial":
        parameters = [p for p in self.model.parameters() if p.requires_grad]
        self.model.train()
        for batch in islice(self.stream, num_steps):
            loss = self.objective(self.logits(batch), batch["labels"])
            gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = gradient
            self.optimizer.step()
        return self

    @torch.inference_mode()
    def judge(self, batches: list[dict[str, torch.Tensor]]) -> float:
        self.model.eval()
        log_shares = torch.cat([self.logits(batch).double().log_softmax(-1) for batch in batches])
        labels = torch.cat([batch["labels"] for batch in batches])
        return -log_shares.gather(1, labels[:, None]).mean().item()


@exercise("5.2")
def run_trials(task: Any, configs: list[dict[str, float]], seeds: list[int], num_steps: int) -> np.ndarray:
    losses = np.full((len(configs), len(seeds)), np.nan)
    # Seeds outside: a trial must not depend on which one ran before it.
    for (column, seed), (row, config) in product(enumerate(seeds), enumerate(configs)):
        trial = OneTrial(task, config, seed).fit(num_steps)
        losses[row, column] = trial.judge(task.validation_batches())
    return np.where(np.isfinite(losses), losses, np.inf)


# %%
import heapq
import math
from collections.abc import Callable, Iterator
from typing import Any

from autograder import exercise


def rounds_that_fit(num_trials: int, steps: int, factor: int, budget: int) -> Iterator[tuple[int, int]]:
    """(trials, more steps for each) of every round: the plan needs no loss, so it is made first."""
    due = steps
    while (budget := budget - num_trials * due) >= 0:
        yield num_trials, due
        if num_trials == 1:
            return
        num_trials = max(1, num_trials // factor)
        steps, due = steps * factor, steps * (factor - 1)


@exercise("5.3")
def successive_halving(
    configs: list[dict[str, float]],
    train: Callable[[dict[str, float], int], float],
    min_steps: int,
    reduction_factor: int,
    max_total_steps: int,
) -> dict[str, Any]:
    plan = list(rounds_that_fit(len(configs), min_steps, reduction_factor, max_total_steps))
    if not plan:
        raise ValueError(f"{len(configs)} trials of {min_steps} steps are over {max_total_steps}")
    bill = [0] * len(configs)
    losses = dict.fromkeys(range(len(configs)), 0.0)
    for num_trials, due in plan:
        going_on = heapq.nsmallest(num_trials, losses, key=losses.__getitem__)
        losses = {}
        for place in going_on:
            loss = train(configs[place], due)
            bill[place] += due
            losses[place] = math.inf if math.isnan(loss) else loss
    best = min(losses, key=losses.__getitem__)
    return {"best": best, "value": losses[best], "num_steps": bill, "total_steps": sum(bill)}


# %%
import math
from functools import cache
from typing import Any

import numpy as np
from scipy import stats

from autograder import exercise


@cache  # the quantile is an integral, and the same for all tables of a shape
def tukey(confidence: float, num_rows: int, freedom: int) -> float:
    return float(stats.studentized_range.ppf(confidence, num_rows, freedom))


@exercise("5.4")
def choose_winner(losses: np.ndarray, confidence: float = 0.95) -> dict[str, Any]:
    """Two-way layout: rows plus seeds plus noise; Tukey's intervals hold for every pair of rows at once."""
    rows = np.flatnonzero(np.isfinite(losses).all(axis=1))
    table = losses[rows]
    num_rows, num_seeds = table.shape
    means = table.mean(axis=1)
    place = 1 + int(means[1:].argmin())
    noise = table - table.mean(axis=0) - means[:, None] + table.mean()
    freedom = (num_rows - 1) * (num_seeds - 1)
    if freedom == 0:  # one seed: no spread is known
        half = math.inf
    else:
        error = math.sqrt((noise**2).sum() / freedom / num_seeds)
        half = tukey(confidence, num_rows, freedom) * error
    gain = float(means[0] - means[place])
    candidate = int(rows[place])
    return {
        "candidate": candidate,
        "interval": (gain - half, gain + half),
        "winner": candidate if gain > half else 0,
    }


# %%
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import qmc

from autograder import exercise


class Purse:
    """Trains, remembers every trial, and never asks for a step that is not paid for."""

    def __init__(self, train: Callable[[dict[str, float], int], float], steps: int) -> None:
        self.train, self.left = train, steps
        self.had: dict[tuple[float, float], int] = {}
        self.loss: dict[tuple[float, float], float] = {}

    def bring(self, point: tuple[float, float], steps: int) -> None:
        """This point's trial to `steps` steps in all, if the money lasts."""
        due = steps - self.had.get(point, 0)
        if not 0 < due <= self.left:
            return
        loss = self.train({"learning_rate": point[0], "weight_decay": point[1]}, due)
        self.left -= due
        self.had[point] = steps
        self.loss[point] = math.inf if math.isnan(loss) else loss

    def ranked(self, steps: int) -> list[tuple[float, float]]:
        return sorted((p for p in self.had if self.had[p] == steps), key=self.loss.__getitem__)


@exercise("5.5")
def search(
    train: Callable[[dict[str, float], int], float],
    space: dict[str, dict[str, Any]],
    full_steps: int,
    max_total_steps: int,
    seed: int,
) -> dict[str, float]:
    """Halton points a sixth of the way, two of them in full, then full trials beside the best one."""
    names = ("learning_rate", "weight_decay")
    low = np.log([space[name]["low"] for name in names])
    high = np.log([space[name]["high"] for name in names])

    def inside(logs: np.ndarray) -> tuple[float, float]:
        rate, decay = np.exp(np.clip(logs, low + 1e-9, high - 1e-9))
        return float(rate), float(decay)

    purse = Purse(train, max_total_steps)
    for unit in qmc.Halton(2, seed=np.random.default_rng(seed)).random(12):
        purse.bring(inside(low + unit * (high - low)), max(1, full_steps // 6))
    for point in purse.ranked(max(1, full_steps // 6))[:2]:
        purse.bring(point, full_steps)
    stride = (high - low)[0] / 16
    while purse.left >= full_steps:  # a step to either side, then half as far
        best = np.log(purse.ranked(full_steps)[0])
        tried = len(purse.had)
        for side in (1.0, -1.0):
            purse.bring(inside(best + np.array([side * stride, 0.0])), full_steps)
        if len(purse.had) == tried:
            break
        stride /= 2
    return dict(zip(names, purse.ranked(full_steps)[0], strict=True))
