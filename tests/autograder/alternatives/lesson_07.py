"""Another right solution of each exercise of lesson 07, in another style than the reference."""

# %%
from collections import defaultdict
from typing import Any

import numpy as np

from autograder import exercise


class Ranges:
    """Ranges of the host as two arrays, sorted by their starts."""

    def __init__(self, events: list[dict[str, Any]]) -> None:
        self.events = sorted(events, key=lambda event: event["ts"])
        self.starts = np.array([event["ts"] for event in self.events], dtype=float)
        self.lengths = np.array([event["dur"] for event in self.events], dtype=float)

    def of(self, moments: np.ndarray) -> np.ndarray:
        """The number of the range that holds each moment, or -1."""
        if not len(self.events):
            return np.full(len(moments), -1)
        last = np.searchsorted(self.starts, moments, side="right") - 1
        inside = (last >= 0) & (moments <= (self.starts + self.lengths)[last])
        return np.where(inside, last, -1)


@exercise("7.1")
def step_breakdown(events: list[dict[str, Any]], num_warmup_steps: int) -> dict[str, Any]:
    by_category: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        by_category[event.get("cat")].append(event)
    named = by_category["user_annotation"]
    steps = Ranges([e for e in named if e["name"].startswith("ProfilerStep#")])
    stages = Ranges([e for e in named if e["name"].startswith("stage: ")])
    names = [event["name"].removeprefix("stage: ") for event in stages.events]
    num_steps = max(0, len(steps.events) - num_warmup_steps)
    kept = ("data", "transfer", "forward", "backward", "optimizer")
    host, device = dict.fromkeys((*kept, "other"), 0.0), dict.fromkeys((*kept, "other"), 0.0)

    for name, step, length in zip(names, steps.of(stages.starts), stages.lengths, strict=True):
        if step >= num_warmup_steps and name in kept:
            host[name] += length
    total = float(steps.lengths[num_warmup_steps:].sum())
    host["other"] = total - sum(host.values())

    launches = [e for e in by_category["cuda_runtime"] if "correlation" in e.get("args", {})]
    queued = np.array([event["ts"] for event in launches], dtype=float)
    places = {
        event["args"]["correlation"]: (step, stage)
        for event, step, stage in zip(launches, steps.of(queued), stages.of(queued), strict=True)
    }
    for kernel in by_category["kernel"]:
        step, stage = places.get(kernel["args"]["correlation"], (-1, -1))
        if step >= num_warmup_steps:
            device[names[stage] if stage >= 0 else "other"] += kernel["dur"]

    mean = 1e-6 / max(1, num_steps)
    return {
        "num_steps": num_steps,
        "step_time": total * mean,
        "host": {name: float(value * mean) for name, value in host.items()},
        "device": {name: float(value * mean) for name, value in device.items()},
    }


# %%
from collections.abc import Iterator
from datetime import timedelta
from fractions import Fraction
from typing import Any, NamedTuple

from autograder import exercise

UNITS = {
    "s": timedelta(seconds=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "day": timedelta(days=1),
}


class Price(NamedTuple):
    per_second: Fraction
    currency: str

    @classmethod
    def parse(cls, text: str) -> "Price":
        match text.replace("/", " / ").split():
            case [amount, currency, "/", unit] if unit in UNITS and currency.isalpha():
                try:
                    value = Fraction(amount)
                except ValueError:
                    pass
                else:
                    return cls(value / int(UNITS[unit].total_seconds()), currency)
        raise ValueError(f"{text!r} is not a price such as '2.40 EUR/h'")


def paid_validations(records: list[dict[str, Any]], monitor: str) -> Iterator[tuple[float, float]]:
    """Paid seconds and metric of each validation."""
    paid_before = 0.0
    for record in records:
        match record:
            case {"kind": "start", "seconds": seconds}:
                paid_before += seconds
            case {"kind": "stop", "session_seconds": seconds}:
                paid_before += seconds
            case {"kind": "validation", "session_seconds": seconds}:
                value = record.get(monitor)
                yield paid_before + seconds, float("nan") if value is None else value


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
    parsed = Price.parse(price)
    good = (lambda v: v >= target) if higher_is_better else (lambda v: v <= target)
    reached = (paid for paid, value in paid_validations(records, monitor) if good(value))
    seconds = next(reached, None)
    if seconds is None:
        return None
    return {
        "seconds": seconds,
        "hours": seconds / 3600,
        "cost": float(seconds * num_devices * parsed.per_second),
        "currency": parsed.currency,
    }


# %%
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from autograder import exercise


@exercise("7.3")
@dataclass
class BudgetGuard:
    _: KW_ONLY
    budget: float
    price_per_hour: float
    save: Callable[[], None]
    save_seconds: float
    clock: Callable[[], float]
    notify: Callable[[float], None]
    alarms: Sequence[float] = (0.5, 0.8)
    paid_seconds: float = field(default=0.0, init=False)
    longest_step: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self.rate = self.price_per_hour / 3600
        self.pending = list(self.alarms)
        self.last = self.clock()

    def _tick(self) -> float:
        now = self.clock()
        length, self.last = now - self.last, now
        self.paid_seconds += length
        return length

    def after_step(self) -> bool:
        self.longest_step = max(self.longest_step, self._tick())
        while self.pending and self.paid_seconds * self.rate >= self.pending[0] * self.budget:
            self.notify(self.pending.pop(0))
        reserve = self.longest_step + self.save_seconds
        if (self.paid_seconds + reserve) * self.rate <= self.budget:
            return False
        self.save()
        self._tick()
        return True

    def state_dict(self) -> dict[str, Any]:
        return {
            "spent": self.paid_seconds * self.rate,
            "longest_step": self.longest_step,
            "pending": list(self.pending),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.paid_seconds += state["spent"] / self.rate
        self.longest_step = state["longest_step"]
        self.pending = list(state["pending"])


# %%
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import cycle, islice
from multiprocessing.pool import ThreadPool
from typing import Any

import torch
import torch.nn.functional as F

from autograder import exercise
from course_lib.data import collate
from course_lib.training.loop import train_step
from course_lib.models.transformers import masked_mean


def groups(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """`size` items at a time, as they arrive."""
    arriving = iter(items)
    return iter(lambda: list(islice(arriving, size)), [])


@exercise("7.4")
class Ward:
    def diagnose(self, run: str) -> str:
        return ["input-bound", "sync-bound", "tiny batch", "recomputing"][ord(run) - ord("A")]

    def run_a(self, model: Any, samples: Any, optimizer: Any, micro_batch_size: int) -> list[float]:
        model.train()
        with ThreadPool(16) as pool:
            arriving = pool.imap(samples.__getitem__, range(len(samples)))
            return torch.stack(
                [
                    train_step(model, collate(rows), optimizer)["loss"]
                    for rows in groups(arriving, micro_batch_size)
                ]
            ).tolist()

    def run_b(self, model: Any, batches: Any, optimizer: Any, log_every_steps: int) -> list[dict[str, Any]]:
        return list(self._entries(model.train(), batches, optimizer, log_every_steps))

    def _entries(self, model: Any, batches: Any, optimizer: Any, every: int) -> Iterator[dict[str, Any]]:
        parameters = dict(model.named_parameters())
        for step, batch in enumerate(batches, start=1):
            loss = train_step(model, batch, optimizer)["loss"]
            if step % every:
                continue
            counts = torch.stack([torch.histc(p.detach().abs(), 32, 0.0, 1.0) for p in parameters.values()])
            rows = counts.to(torch.int64).tolist()
            yield {
                "step": step,
                "loss": loss.item(),
                "histograms": dict(zip(parameters, rows, strict=True)),
            }

    def run_c(self, model: Any, samples: Any, optimizer: Any, rows_per_update: int) -> list[float]:
        model.train()
        losses = []
        for indices in groups(range(len(samples)), rows_per_update):
            batch = collate(list(map(samples.__getitem__, indices)))
            model.zero_grad()
            logits = model(batch["input_ids"], batch["attention_mask"])
            loss = F.nll_loss(logits.log_softmax(-1), batch["labels"], reduction="sum")
            loss = loss / len(indices)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.detach())
        return torch.stack(losses).tolist()

    def run_d(self, model: Any, batches: Any, optimizer: Any, num_epochs: int) -> list[float]:
        model.eval()

        @cache
        @torch.no_grad()
        def features(number: int) -> torch.Tensor:
            ids, mask = batches[number]["input_ids"], batches[number]["attention_mask"]
            return masked_mean(model.encode(ids, mask), mask)

        losses = torch.zeros(num_epochs * len(batches))
        order = islice(cycle(range(len(batches))), len(losses))
        for step, number in enumerate(order):
            optimizer.zero_grad()
            loss = F.cross_entropy(model.head(features(number)), batches[number]["labels"])
            loss.backward()
            optimizer.step()
            losses[step] = loss.detach()
        return losses.tolist()


# %%
import torch
from torch import nn

from autograder import exercise


class LowRankLinear(nn.Linear):
    """A linear layer that keeps its frozen weight and learns a low-rank change of it."""

    def __init__(self, base: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__(base.in_features, base.out_features, bias=base.bias is not None)
        self.weight, self.bias = base.weight, base.bias
        self.requires_grad_(False)
        self.down = nn.Parameter(base.weight.new_empty(base.in_features, rank).normal_(0, 0.1))
        self.up = nn.Parameter(base.weight.new_zeros(rank, base.out_features))
        self.scale = alpha / rank

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return super().forward(inputs) + inputs @ self.down @ self.up * self.scale

    @torch.no_grad()
    def merged(self) -> nn.Linear:
        plain = nn.Linear(
            self.in_features, self.out_features, bias=self.bias is not None, dtype=self.weight.dtype
        )
        plain.weight.copy_(self.weight + (self.down @ self.up).T * self.scale)
        if self.bias is not None:
            plain.bias.copy_(self.bias)
        return plain


@exercise("7.5")
def add_lora(model: nn.Module, rank: int, alpha: float) -> nn.Module:
    model.requires_grad_(False).get_submodule("head").requires_grad_(True)

    def adapt(parent: nn.Module) -> None:
        for name, child in parent.named_children():
            if child is model.head:
                continue
            if isinstance(child, nn.Linear):
                setattr(parent, name, LowRankLinear(child, rank, alpha))
            else:
                adapt(child)

    adapt(model)
    return model


# %%
from typing import Any

from autograder import exercise

CHANGES = {"padding": "buckets", "save_every_steps": 200}  # less of a step is spent on nothing


@exercise("7.6")
def two_changes(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: CHANGES.get(name, value) for name, value in settings.items()}
