"""Right solutions of lesson 05 by the next people who knew the notebook alone."""

# %%
from typing import Any

import numpy as np

from autograder import exercise


class Lazy(dict):
    """A sample in the making: `self[name]` draws the value if nobody has asked before."""

    def __init__(self, space: dict[str, dict[str, Any]], rng: np.random.Generator) -> None:
        super().__init__()
        self.space, self.rng = space, rng
        self.draws = {
            "log": self.draw_log,
            "float": self.draw_float,
            "int": self.draw_int,
            "choice": self.draw_choice,
        }

    def __missing__(self, name: str) -> Any:
        part = self.space[name]
        self[name] = self.draws[part["kind"]](part)
        return self[name]

    def draw_log(self, part: dict[str, Any]) -> float:
        exponent = self.rng.uniform(np.log2(part["low"]), np.log2(part["high"]))
        return float(np.clip(np.exp2(exponent), part["low"], part["high"]))  # rounding alone

    def draw_float(self, part: dict[str, Any]) -> float:
        share = self.rng.random()
        return float((1.0 - share) * part["low"] + share * part["high"])

    def draw_int(self, part: dict[str, Any]) -> int:
        return int(self.rng.integers(part["low"], part["high"], endpoint=True))

    def draw_choice(self, part: dict[str, Any]) -> Any:
        place = self.rng.permutation(len(part["values"]))[0]
        return part["values"][place]


def is_possible(part: dict[str, Any]) -> bool:
    if part["kind"] == "log":
        return 0 < part["low"] < part["high"]
    return part["kind"] != "float" or part["low"] < part["high"]


@exercise("5.1")
def sample(space: dict[str, dict[str, Any]], rng: np.random.Generator) -> dict[str, Any]:
    """A lazy dict draws a name when it is first asked for, so that the order of the keys plays no part."""
    impossible = [name for name, part in space.items() if not is_possible(part)]
    if impossible:
        raise ValueError(f"ranges that cannot be: {', '.join(map(str, impossible))}")
    lazy = Lazy(space, rng)
    result = {}
    for name, part in space.items():
        match part.get("when"):
            case None:
                result[name] = lazy[name]
            case (other, value):
                if lazy[other] == value:
                    result[name] = lazy[name]
    return result


# %%
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from autograder import exercise


class RandomState:
    """torch's global generator as one trial sees it, put in place while that trial runs."""

    def __init__(self, seed: int) -> None:
        before = torch.get_rng_state()
        torch.manual_seed(seed)
        self.state = torch.get_rng_state()
        torch.set_rng_state(before)

    def __enter__(self) -> None:
        self.outside = torch.get_rng_state()
        torch.set_rng_state(self.state)

    def __exit__(self, *_) -> None:
        self.state = torch.get_rng_state()
        torch.set_rng_state(self.outside)


def trial(task: Any, config: dict[str, float], seed: int):
    """Send it batches; send None, and it answers with its validation loss."""
    random_state = RandomState(seed)
    with random_state:
        model = task.make_model(config)
        optimizer = task.make_optimizer(model, config)
        model.train()
    while (batch := (yield)) is not None:
        with random_state:
            logits = model(batch["input_ids"], batch["attention_mask"])
            optimizer.zero_grad()
            F.cross_entropy(logits, batch["labels"]).backward()
            optimizer.step()

    model.eval()
    with torch.no_grad():
        parts = [
            (
                F.cross_entropy(
                    model(batch["input_ids"], batch["attention_mask"]).double(), batch["labels"]
                ).item(),
                batch["labels"].shape[0],
            )
            for batch in task.validation_batches()
        ]
    means, sizes = np.array(parts, dtype=np.float64).T
    yield float(np.average(means, weights=sizes))


@exercise("5.2")
def run_trials(task: Any, configs: list[dict[str, float]], seeds: list[int], num_steps: int) -> np.ndarray:
    """A coroutine for each trial, with a random state of its own: all trials of a seed take their steps in turn."""
    table = np.full((len(configs), len(seeds)), np.inf, dtype=np.float64)
    for column, seed in enumerate(seeds):
        trials = [trial(task, config, seed) for config in configs]
        for one in trials:
            next(one)  # model and optimizer are made here
        stream = task.train_batches(seed)
        for _ in range(num_steps):
            batch = next(stream)
            for one in trials:  # the same batch for all
                one.send(batch)
        for row, one in enumerate(trials):
            loss = one.send(None)
            if np.isfinite(loss):
                table[row, column] = loss
    return table


# %%
from collections.abc import Callable
from typing import Any

import numpy as np

from autograder import exercise


@exercise("5.3")
def successive_halving(
    configs: list[dict[str, float]],
    train: Callable[[dict[str, float], int], float],
    min_steps: int,
    reduction_factor: int,
    max_total_steps: int,
) -> dict[str, Any]:
    """Recursion over rounds, with arrays that are never changed; `np.argsort` puts NaN last."""

    def play(alive: np.ndarray, target: int, bill: np.ndarray) -> tuple[int, float, np.ndarray]:
        """This round and all that follow. `bill`: steps of each trial so far."""
        due = target - bill[alive]
        losses = np.array(
            [train(configs[int(i)], int(more)) for i, more in zip(alive, due, strict=True)],
            dtype=np.float64,
        )
        bill = bill.copy()
        bill[alive] = target

        ranked = alive[np.argsort(losses, kind="stable")]
        following = ranked[: max(1, len(alive) // reduction_factor)]
        next_target = target * reduction_factor
        after = bill.sum() + (next_target - bill[following]).sum()
        if len(alive) == 1 or next_target <= target or after > max_total_steps:
            return int(ranked[0]), float(np.sort(losses)[0]), bill
        return play(following, next_target, bill)

    if len(configs) * min_steps > max_total_steps:
        raise ValueError("the first round does not fit into max_total_steps")
    everyone = np.arange(len(configs))
    best, value, bill = play(everyone, min_steps, np.zeros(len(configs), dtype=np.int64))
    return {
        "best": best,
        "value": value,
        "num_steps": bill.tolist(),
        "total_steps": int(bill.sum()),
    }


# %%
from typing import Any

import numpy as np
from scipy import stats

from autograder import exercise


@exercise("5.4")
def choose_winner(losses: np.ndarray, confidence: float = 0.95) -> dict[str, Any]:
    """Two-way analysis of variance: the spread pooled from all rows, and Šidák's share of the error."""
    losses = np.asarray(losses, dtype=np.float64)
    places = np.flatnonzero(np.isfinite(losses).all(axis=1))  # row 0 is among them
    # Against row 0, column by column: what a seed does to all rows is gone. Row 0 itself is zeros.
    improvements = losses[0] - losses[places]
    num_rows, num_seeds = improvements.shape
    num_candidates = num_rows - 1

    row_means = improvements.mean(axis=1, keepdims=True)
    residuals = improvements - row_means - (improvements - row_means).mean(axis=0)
    freedom = (num_rows - 1) * (num_seeds - 1)
    spread = np.sqrt((residuals**2).sum() / freedom)  # of one loss, the same for every row
    error = spread * np.sqrt(2 / num_seeds)  # of the difference of two means

    miss_of_one = -np.expm1(np.log(confidence) / num_candidates)  # 1 - confidence^(1/k)
    width = stats.t.isf(miss_of_one / 2, freedom) * error

    picked = 1 + int(np.argmax(row_means[1:, 0]))
    gain = float(row_means[picked, 0])
    low, high = float(gain - width), float(gain + width)
    candidate = int(places[picked])
    return {
        "candidate": candidate,
        "interval": (low, high),
        "winner": candidate if low > 0 else 0,
    }


# %%
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from autograder import exercise


@dataclass
class Run:
    config: dict[str, float]
    steps: int = 0
    loss: float = math.inf


@exercise("5.5")
def search(
    train: Callable[[dict[str, float], int], float],
    space: dict[str, dict[str, Any]],
    full_steps: int,
    max_total_steps: int,
    seed: int,
) -> dict[str, float]:
    """No chance at all: a comb of rates with staggered decays, a cross around the best, the best few in full."""

    # `seed` has nothing to decide: no random number is drawn.
    def config_at(rate_share: float, decay_share: float) -> dict[str, float]:
        """Shares between 0 and 1 of the ranges' logarithms."""
        config = {}
        for name, share in (("learning_rate", rate_share), ("weight_decay", decay_share)):
            low, high = space[name]["low"], space[name]["high"]
            share = min(max(share, 0.0), 1.0)
            config[name] = min(max(low ** (1 - share) * high**share, low), high)
        return config

    paid = 0

    def advance(run: Run, target: int) -> Run:
        nonlocal paid
        due = target - run.steps
        if due <= 0 or paid + due > max_total_steps:
            return run
        paid += due
        loss = train(run.config, due)
        run.steps, run.loss = target, (loss if math.isfinite(loss) else math.inf)
        return run

    short, middle = full_steps // 6, full_steps // 2
    golden = (math.sqrt(5) - 1) / 2

    # 12 rates, each with another decay: 2 full trainings
    teeth = [((i + 0.5) / 12, (0.5 + i * golden) % 1.0) for i in range(12)]
    runs = [advance(Run(config_at(*tooth)), short) for tooth in teeth]
    rate, decay = teeth[min(range(12), key=lambda i: runs[i].loss)]

    # between the best tooth and its neighbours, and at two other decays: 2/3
    around = [(-1 / 36, 0.0), (1 / 36, 0.0), (-1 / 72, -0.3), (1 / 72, 0.3)]
    for rate_step, decay_step in around:
        moved = decay + decay_step
        if not 0 <= moved <= 1:
            moved = decay - decay_step
        runs.append(advance(Run(config_at(rate + rate_step, moved)), short))

    # the five best to the middle, the three best of those to the end: 3 1/6
    for keep, target in ((5, middle), (3, full_steps)):
        runs = [advance(run, target) for run in sorted(runs, key=lambda run: run.loss)[:keep]]
    return min(runs, key=lambda run: (-run.steps, run.loss)).config
