"""Right solutions of lesson 05 by people who knew the notebook alone."""

# %%
import math
from typing import Any

import numpy as np

from autograder import exercise


class Sampler:
    def __init__(self, space, rng):
        self.space = space
        # One child for each name, whatever the order of the dict. Its seed has 128 bits out of `rng`.
        self.children = {
            name: np.random.default_rng(rng.integers(0, 2**32, size=4, dtype=np.uint64))
            for name in sorted(space)
        }
        self.memo = {}

    @staticmethod
    def below(n, child):
        """A whole number 0 … n - 1, all equally likely: throw away what would spoil that."""
        bits = (n - 1).bit_length()
        num_bytes = (bits + 7) // 8
        while True:
            number = int.from_bytes(child.bytes(num_bytes), "big") >> (8 * num_bytes - bits)
            if number < n:
                return number

    def value(self, name):
        if name not in self.memo:
            part, child = self.space[name], self.children[name]
            kind = part["kind"]
            if kind == "choice":
                drawn = part["values"][self.below(len(part["values"]), child)]
            elif kind == "int":
                drawn = int(part["low"]) + self.below(int(part["high"]) - int(part["low"]) + 1, child)
            else:
                low, high = float(part["low"]), float(part["high"])
                if kind == "log":
                    power = child.uniform(math.log10(low), math.log10(high))
                    drawn = float(min(max(10.0**power, low), high))
                else:
                    drawn = float(child.uniform(low, high))
            self.memo[name] = drawn
        return self.memo[name]

    def is_active(self, name):
        condition = self.space[name].get("when")
        if condition is None:
            return True
        other, wanted = condition
        return other in self.space and bool(self.value(other) == wanted)


@exercise("5.1")
def sample(space: dict[str, dict[str, Any]], rng: np.random.Generator) -> dict[str, Any]:
    """A generator of its own for each name, seeded from `rng`; whole numbers by rejection from raw bytes."""
    problems = [
        name
        for name, part in space.items()
        if part["kind"] in {"log", "float"}
        and (not part["low"] < part["high"] or (part["kind"] == "log" and not part["low"] > 0))
    ]
    if problems:
        raise ValueError("these ranges cannot be: " + ", ".join(map(str, problems)))
    sampler = Sampler(space, rng)
    return {name: sampler.value(name) for name in space if sampler.is_active(name)}


# %%
import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from autograder import exercise


def total_nll(model, batch):
    log_probabilities = F.log_softmax(model(batch["input_ids"], batch["attention_mask"]), dim=-1)
    return F.nll_loss(log_probabilities, batch["labels"], reduction="sum")


def one_trial(task, config, seed, num_steps):
    torch.manual_seed(seed)
    model = task.make_model(config)
    optimizer = task.make_optimizer(model, config)
    stream = iter(task.train_batches(seed))
    model.train()
    for _ in range(num_steps):
        batch = next(stream)

        def closure(batch=batch):
            optimizer.zero_grad()
            loss = total_nll(model, batch) / len(batch["labels"])
            loss.backward()
            return loss

        optimizer.step(closure)

    model.eval()
    with torch.no_grad():
        sums, counts = zip(
            *((total_nll(model, b).item(), len(b["labels"])) for b in task.validation_batches()),
            strict=True,
        )
    mean = sum(sums) / sum(counts)
    return mean if math.isfinite(mean) else math.inf


@exercise("5.2")
def run_trials(task: Any, configs: list[dict[str, float]], seeds: list[int], num_steps: int) -> np.ndarray:
    """`np.vectorize` over the places of the table, steps by closures, torch's generator put back as it was."""

    def cell(i, j):
        return one_trial(task, configs[i], seeds[j], num_steps)

    rows, columns = np.indices((len(configs), len(seeds)))
    with torch.random.fork_rng(devices=[]):  # the caller's random numbers stay as they were
        return np.vectorize(cell, otypes=[np.float64])(rows, columns)


# %%
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import total_ordering
from typing import Any

from autograder import exercise


class Ledger:
    def __init__(self, train, limit):
        self._train, self.limit, self.spent = train, limit, 0

    def affords(self, steps):
        return self.spent + steps <= self.limit

    def train(self, config, steps):
        self.spent += steps
        return self._train(config, steps)


@total_ordering
@dataclass(eq=False)
class Entry:
    place: int
    config: dict
    steps: int = 0
    loss: float = math.nan

    def advance_to(self, steps, ledger):
        due = steps - self.steps
        self.loss = ledger.train(self.config, due)
        self.steps = steps

    def __eq__(self, other):
        return not self < other and not other < self

    def __lt__(self, other):
        if math.isnan(self.loss) or math.isnan(other.loss):
            return math.isnan(other.loss) and not math.isnan(self.loss)
        return self.loss < other.loss


@exercise("5.3")
def successive_halving(
    configs: list[dict[str, float]],
    train: Callable[[dict[str, float], int], float],
    min_steps: int,
    reduction_factor: int,
    max_total_steps: int,
) -> dict[str, Any]:
    """A ledger that alone trains and bills, and trials that order themselves, those that diverged last."""
    ledger = Ledger(train, max_total_steps)
    entries = [Entry(place, config) for place, config in enumerate(configs)]
    racing, target = entries, min_steps
    if not ledger.affords(len(racing) * target):
        raise ValueError("not even the first round fits into the budget")

    while True:
        for entry in racing:
            entry.advance_to(target, ledger)
        podium = sorted(racing)
        if len(podium) == 1:
            break
        survivors = podium[: len(podium) // reduction_factor] or podium[:1]
        next_target = target * reduction_factor
        if not ledger.affords(sum(next_target - entry.steps for entry in survivors)):
            break
        racing, target = survivors, next_target

    return {
        "best": podium[0].place,
        "value": podium[0].loss,
        "num_steps": [entry.steps for entry in entries],
        "total_steps": ledger.spent,
    }


# %%
from functools import cache
from typing import Any

import numpy as np
from scipy import optimize, stats

from autograder import exercise


@cache
def critical_value(k: int, dof: int, confidence: float) -> float:
    """c with P(all of k comparisons with one control have |t| <= c) = confidence."""
    if k == 1:
        return float(stats.t.ppf(0.5 + confidence / 2, dof))
    z, z_weights = np.polynomial.legendre.leggauss(96)
    z, z_weights = 8.5 * z, 8.5 * z_weights  # the control's noise, a standard normal
    z_weights = z_weights * stats.norm.pdf(z)
    v, v_weights = np.polynomial.legendre.leggauss(400)  # v in 0 … 1, u = v³ is dense at 0
    v, v_weights = (v + 1) / 2, v_weights / 2
    u_weights = v_weights * 3 * v**2
    s = np.sqrt(stats.chi2.ppf(v**3, dof) / dof)  # the estimated over the true spread

    def coverage(c):
        reach = c * np.sqrt(2.0) * s[:, None]
        inside = stats.norm.cdf(z + reach) - stats.norm.cdf(z - reach)
        return float(u_weights @ (inside**k @ z_weights))

    smallest = float(stats.t.ppf(0.5 + confidence / 2, dof))
    largest = float(stats.t.ppf(1 - (1 - confidence) / (2 * k), dof))  # Bonferroni's
    if coverage(largest) <= confidence:
        return largest
    return float(optimize.brentq(lambda c: coverage(c) - confidence, smallest, largest, rtol=1e-6))


@exercise("5.4")
def choose_winner(losses: np.ndarray, confidence: float = 0.95) -> dict[str, Any]:
    """Dunnett's exact critical value, many against one control, by integration; the spread pooled over all rows."""
    places = np.flatnonzero(np.isfinite(losses).all(axis=1))  # 0 is among them
    table = np.asarray(losses, dtype=np.float64)[places]
    num_rows, num_seeds = table.shape

    means = table.mean(axis=1)
    differences = table[0] - table  # in pairs: what is the seed's falls out
    residuals = differences - differences.mean(axis=1, keepdims=True)
    residuals = residuals - residuals.mean(axis=0, keepdims=True)  # row 0's own noise, too
    dof = (num_rows - 1) * (num_seeds - 1)
    spread = np.sqrt((residuals**2).sum() / dof)  # the noise of one loss

    best = 1 + int(means[1:].argmin())
    width = critical_value(num_rows - 1, dof, float(confidence)) * spread * np.sqrt(2 / num_seeds)
    gain = float(differences[best].mean())
    low, high = gain - float(width), gain + float(width)
    candidate = int(places[best])
    return {"candidate": candidate, "interval": (low, high), "winner": candidate if low > 0 else 0}


# %%
import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from autograder import exercise

NAMES = ("learning_rate", "weight_decay")


class Run:
    """A trial as a paused generator. `curve` holds the losses at the looks that it has had."""

    def __init__(self, train, point, config, looks):
        self.point, self.config, self.looks, self.curve = point, config, looks, []
        self._going_on = self._looks(train)

    def _looks(self, train):
        for before, after in pairwise([0, *self.looks]):
            loss = train(self.config, after - before)
            self.curve.append(loss if math.isfinite(loss) else math.inf)
            yield

    @property
    def had(self):
        return self.looks[len(self.curve) - 1] if self.curve else 0

    @property
    def is_whole(self):
        return len(self.curve) == len(self.looks)

    def advance(self):
        next(self._going_on)

    def is_behind(self, other):
        """More than 10 % worse than the other one was at the same look: no hope."""
        return self.curve[-1] == math.inf or self.curve[-1] > 1.1 * other.curve[len(self.curve) - 1]


@exercise("5.5")
def search(
    train: Callable[[dict[str, float], int], float],
    space: dict[str, dict[str, Any]],
    full_steps: int,
    max_total_steps: int,
    seed: int,
) -> dict[str, float]:
    """Trials as paused generators: openings, the best to the end, then mutants that end where they fall behind."""
    rng = np.random.default_rng(seed)
    low, high = (np.log([space[name][end] for name in NAMES]) for end in ("low", "high"))
    looks = sorted(
        {max(1, full_steps // 6), max(1, full_steps // 3), max(1, full_steps * 2 // 3), full_steps}
    )
    runs = []

    def start(point):
        values = np.exp(low + point * (high - low))
        config = {
            name: float(min(max(value, space[name]["low"]), space[name]["high"]))
            for name, value in zip(NAMES, values, strict=True)
        }
        run = Run(train, point, config, looks)
        runs.append(run)
        return run

    def left():
        return max_total_steps - sum(run.had for run in runs)

    def finish(run, leader=None):
        """To the end, or until it is behind the leader, or until the end cannot be paid."""
        while not run.is_whole and left() >= full_steps - run.had:
            run.advance()
            if leader is not None and not run.is_whole and run.is_behind(leader):
                break

    # Openings: Latin hypercube, nine rates and nine decays, each in a part of its own.
    columns = [(rng.permutation(9) + rng.random(9)) / 9 for _ in NAMES]
    for point in np.column_stack(columns):
        run = start(point)
        if left() >= full_steps + looks[0]:
            run.advance()
    openings = sorted((run for run in runs if run.curve), key=lambda run: run.curve[0]) or runs
    for run in openings[:2]:
        finish(run)

    def leader():
        whole = [run for run in runs if run.is_whole]
        return min(whole, key=lambda run: run.curve[-1]) if whole else openings[0]

    # Mutants of the leader; beyond an end they are reflected back into the range.
    while left() >= full_steps:
        best = leader()
        point = np.abs(best.point + rng.normal(0.0, [0.07, 0.25]))
        finish(start(np.clip(np.where(point > 1, 2 - point, point), 0, 1)), best)
    return leader().config
