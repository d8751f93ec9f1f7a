"""Right solutions of lesson 07 by a second round of people who knew the notebook alone."""

# %%
from collections import defaultdict
from typing import Any

from autograder import exercise

STAGES = ("data", "transfer", "forward", "backward", "optimizer")
CLOSE, OPEN_STEP, OPEN_STAGE, LAUNCH = range(4)  # what comes first at one moment


@exercise("7.1")
def step_breakdown(events: list[dict[str, Any]], num_warmup_steps: int) -> dict[str, Any]:
    """One sweep over the time line: ranges open and close, launches fall into what is open."""
    kernel_time = defaultdict(float)
    marks = []  # (moment, what, number of the event)
    num_all_steps = 0
    for number, event in enumerate(events):
        match event:
            case {"cat": "kernel", "dur": length, "args": {"correlation": key}}:
                kernel_time[key] += length
            case {"cat": "cuda_runtime", "ts": start, "args": {"correlation": _}}:
                marks.append((start, LAUNCH, number))
            case {"cat": "user_annotation", "name": str(name), "ts": start, "dur": length}:
                if name.startswith("ProfilerStep#"):
                    what = OPEN_STEP
                    num_all_steps += 1
                elif name.startswith("stage: ") and name.removeprefix("stage: ") in STAGES:
                    what = OPEN_STAGE
                    if not length:
                        continue  # holds nothing and lasts no time
                else:
                    continue
                marks.append((start, what, number))
                marks.append((start + length, CLOSE, number))

    steps_seen, step, stage = 0, None, None
    total = 0.0
    host = dict.fromkeys(STAGES, 0.0)
    device = dict.fromkeys((*STAGES, "other"), 0.0)
    for _, what, number in sorted(marks):
        event = events[number]
        counts = step is not None and steps_seen > num_warmup_steps
        if what == OPEN_STEP:
            step, stage = number, None
            steps_seen += 1
            if steps_seen > num_warmup_steps:
                total += event["dur"]
        elif what == OPEN_STAGE:
            stage = number
            if counts:
                host[event["name"].removeprefix("stage: ")] += event["dur"]
        elif what == CLOSE:
            # only what is still open: rounding may let the next range begin a hair early
            step = None if step == number else step
            stage = None if stage == number else stage
        elif counts:
            name = "other" if stage is None else events[stage]["name"].removeprefix("stage: ")
            device[name] += kernel_time.get(event["args"]["correlation"], 0.0)

    num_steps = max(0, num_all_steps - num_warmup_steps)

    def mean(microseconds: float) -> float:
        return microseconds / num_steps / 1e6 if num_steps else 0.0

    host["other"] = total - sum(host.values())
    return {
        "num_steps": num_steps,
        "step_time": mean(total),
        "host": {name: mean(value) for name, value in host.items()},
        "device": {name: mean(value) for name, value in device.items()},
    }


# %%
from typing import Any

import numpy as np

from autograder import exercise


def price_of_an_hour(price: str) -> tuple[float, str]:
    hint = f'expected an amount, a currency and a unit, as in "2.40 EUR/h"; got {price!r}'
    per_hour = {"s": 3600.0, "min": 60.0, "h": 1.0, "day": 1 / 24}
    parts = price.replace("/", " / ").split()
    if len(parts) != 4 or parts[2] != "/" or parts[3] not in per_hour:
        raise ValueError(hint)
    if not set(parts[0]) <= set("0123456789.eE+-") or parts[1][0].isdigit():
        raise ValueError(hint)
    try:
        amount = float(parts[0])
    except ValueError as error:
        raise ValueError(hint) from error
    if amount < 0:
        raise ValueError(hint)
    return amount * per_hour[parts[3]], parts[1]


@exercise("7.2")
def cost_to_target(
    records: list[dict[str, Any]],
    *,
    target: float,
    monitor: str,
    higher_is_better: bool,
    price: str,
    num_devices: int,
) -> dict[str, Any] | None:
    """Columns of numpy: cumulative sums over the whole log, NaN for what is no value, then one argmax."""
    hourly, currency = price_of_an_hour(price)
    if not records:
        return None

    kinds = np.array([record["kind"] for record in records])
    starting = np.array(
        [record.get("seconds", 0.0) if record["kind"] == "start" else 0.0 for record in records], dtype=float
    )
    clock = np.array([record.get("session_seconds", 0.0) for record in records], dtype=float)
    ended = np.where(kinds == "stop", clock, 0.0)
    # the sessions that ended before a record: the sum up to it, without its own
    paid = np.cumsum(starting) + (np.cumsum(ended) - ended) + clock

    values = np.full(len(records), np.nan)
    for i in np.flatnonzero(kinds == "validation"):
        value = records[i].get(monitor)
        if value is not None:
            values[i] = value
    with np.errstate(invalid="ignore"):
        reached = values >= target if higher_is_better else values <= target
    if not reached.any():
        return None

    seconds = float(paid[np.argmax(reached)])
    hours = seconds / 3600
    return {
        "seconds": seconds,
        "hours": hours,
        "cost": hours * hourly * num_devices,
        "currency": currency,
    }


# %%
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from autograder import exercise


def exact(number: float) -> Fraction:
    """The number as it is written: 0.8 is 4/5, not the binary number next to it."""
    return Fraction(str(number))


class Stopwatch:
    """Seconds since it was made, in exact fractions, and the longest lap."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.start = self.now = exact(clock())
        self.longest_lap = Fraction(0)

    def lap(self) -> None:
        previous, self.now = self.now, exact(self.clock())
        self.longest_lap = max(self.longest_lap, self.now - previous)

    @property
    def seconds(self) -> Fraction:
        return self.now - self.start


@exercise("7.3")
class BudgetGuard:
    """Exact fractions instead of floats; the clock is wrapped in a stopwatch of its own."""

    def __init__(
        self,
        *,
        budget: float,
        price_per_hour: float,
        save: Callable[[], None],
        save_seconds: float,
        clock: Callable[[], float],
        notify: Callable[[float], None],
        alarms: Sequence[float] = (0.5, 0.8),
    ) -> None:
        self.watch = Stopwatch(clock)
        self.budget = exact(budget)
        self.price = exact(price_per_hour) / 3600  # for a second
        self.save, self.save_seconds = save, exact(save_seconds)
        self.notify, self.alarms = notify, list(alarms)
        self.before = {"spent": 0.0, "longest_step": 0.0, "given": []}
        self.given_here: list[float] = []
        self.has_stopped = False

    def spent(self) -> Fraction:
        return exact(self.before["spent"]) + self.price * self.watch.seconds

    def longest_step(self) -> Fraction:
        return max(self.watch.longest_lap, exact(self.before["longest_step"]))

    def given(self) -> list[float]:
        return self.before["given"] + self.given_here

    def after_step(self) -> bool:
        self.watch.lap()
        for alarm in self.alarms:
            if alarm not in self.given() and self.spent() >= exact(alarm) * self.budget:
                self.given_here.append(alarm)
                self.notify(alarm)
        needed = self.price * (self.longest_step() + self.save_seconds)
        if self.spent() + needed > self.budget and not self.has_stopped:
            self.save()
            self.has_stopped = True
        return self.has_stopped

    def state_dict(self) -> dict[str, Any]:
        return {
            "spent": float(self.spent()),
            "longest_step": float(self.longest_step()),
            "given": self.given(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.before = {**state, "given": list(state["given"])}


# %%
import copy
from functools import partial

import torch
from torch import nn

from autograder import exercise


def thin_product(adapter: nn.ParameterDict, inputs: torch.Tensor) -> torch.Tensor:
    narrow = torch.einsum("...i,ri->...r", inputs, adapter["A"])
    return torch.einsum("...r,or->...o", narrow, adapter["B"])


def new_adapter(base: nn.Linear, rank: int) -> nn.ParameterDict:
    like = {"dtype": base.weight.dtype, "device": base.weight.device}
    random = torch.randn(rank, base.in_features) / base.in_features**0.5  # drawn in fp32
    return nn.ParameterDict(
        {
            "A": nn.Parameter(random.to(**like)),
            "B": nn.Parameter(torch.zeros(base.out_features, rank, **like)),
        }
    )


class Beside(nn.Module):
    def __init__(self, base: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.adapter = new_adapter(base, rank)
        self.strength = alpha / rank

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.base(inputs).add(thin_product(self.adapter, inputs), alpha=self.strength)

    def merged(self) -> nn.Linear:
        plain = copy.deepcopy(self.base)
        matrix = self.adapter["B"].detach() @ self.adapter["A"].detach()
        plain.weight.detach().add_(matrix, alpha=self.strength)
        return plain


@exercise("7.5")
def add_lora(model: nn.Module, rank: int, alpha: float) -> nn.Module:
    """Free functions on a ParameterDict, einsum, a deep copy to merge; parents are searched for layers in a map."""
    model.requires_grad_(False)
    wrap = partial(Beside, rank=rank, alpha=alpha)
    linears = [m for m in model.modules() if isinstance(m, nn.Linear) and m is not model.head]
    replacements = {linear: wrap(linear) for linear in linears}
    for parent in list(model.modules()):
        if isinstance(parent, Beside):
            continue
        for name, child in list(parent._modules.items()):
            if child in replacements:
                parent.add_module(name, replacements[child])
    model.head.requires_grad_(True)
    return model


# %%
from itertools import combinations
from typing import Any

from autograder import exercise

WIDTH = {"maximum": 96, "longest": 75, "buckets": 45}  # positions of a text, roughly
BASELINE_STEPS = 250.0  # a guess; only ratios between the candidates matter


def bill(new: dict[str, Any], old: dict[str, Any]) -> float:
    """Expected cost of a run, in seconds of the small machine."""
    speed, price = (2.5, 4.0) if new["machine"] == "large" else (1.0, 1.0)
    width = WIDTH[new["padding"]]
    step = 0.2 + new["micro_batch_size"] * width * 3 / 20_000 / speed
    evaluation = 0.05 + 200 * width / 20_000 / speed
    # a higher rate needs fewer steps, not in proportion
    steps = BASELINE_STEPS * (old["learning_rate"] / new["learning_rate"]) ** 0.6
    every = new["evaluate_every_steps"]
    steps += every / 2  # the target is seen late
    seconds = 5 + steps * (step + evaluation / every + 0.6 / new["save_every_steps"])
    return seconds * price


@exercise("7.6")
def two_changes(settings: dict[str, Any]) -> dict[str, Any]:
    """A model of the bill by the tariff of the hint prices every pair of changes; the cheapest is taken."""
    rate = settings["learning_rate"]
    ideas = [
        {"machine": "small"},
        {"padding": "buckets"},
        {"learning_rate": max(rate, min(2.5 * rate, 4e-3))},  # far from the edge
        *({"evaluate_every_steps": every} for every in (5, 10, 20)),
        *({"save_every_steps": every} for every in (20, 50, 100)),
    ]
    pairs = (first | second for first, second in combinations(ideas, 2))
    candidates = [{**settings, **pair} for pair in pairs]
    return min(candidates, key=lambda candidate: bill(candidate, settings))
