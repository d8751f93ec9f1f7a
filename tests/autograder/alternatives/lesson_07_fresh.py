# Right solutions of lesson 07 by people who knew the notebook alone.

# %%
# Numpy: boolean matrices "launch lies in range" and sums by matrix product, no loop over events.
from typing import Any

import numpy as np

from autograder import exercise

STAGES = ("data", "transfer", "forward", "backward", "optimizer")


def _ranges(events):
    """Starts, ends and lengths, in microseconds, as three columns."""
    start = np.array([e["ts"] for e in events], dtype=np.float64)
    length = np.array([e["dur"] for e in events], dtype=np.float64)
    return start, start + length, length


def _inside(points, start, end):
    return (points[:, None] >= start[None, :]) & (points[:, None] < end[None, :])


@exercise("7.1")
def step_breakdown(events: list[dict[str, Any]], num_warmup_steps: int) -> dict[str, Any]:
    """Mean seconds a step, by stage, on the host and on the device."""
    marks = [e for e in events if e.get("cat") == "user_annotation"]
    steps = sorted((e for e in marks if e["name"].startswith("ProfilerStep#")), key=lambda e: e["ts"])[
        num_warmup_steps:
    ]
    stages = [e for e in marks if e["name"] in {f"stage: {s}" for s in STAGES}]
    launched = {
        e["args"]["correlation"]: e["ts"]
        for e in events
        if e.get("cat") == "cuda_runtime" and "correlation" in e.get("args", {})
    }
    kernels = [e for e in events if e.get("cat") == "kernel" and e["args"]["correlation"] in launched]

    count = len(steps)
    scale = 1e-6 / count if count else 0.0
    step_start, step_end, step_length = _ranges(steps)
    stage_start, stage_end, stage_length = _ranges(stages)
    which = np.array([STAGES.index(e["name"][len("stage: ") :]) for e in stages], dtype=int)
    one_hot = np.eye(len(STAGES))[which] if len(stages) else np.zeros((0, len(STAGES)))

    counts = _inside(stage_start, step_start, step_end).any(1)  # stages of the steps that count
    host = (stage_length * counts) @ one_hot

    queued = np.array([launched[e["args"]["correlation"]] for e in kernels], dtype=np.float64)
    work = np.array([e["dur"] for e in kernels], dtype=np.float64)
    in_step = _inside(queued, step_start, step_end).any(1)
    in_stage = _inside(queued, stage_start, stage_end) & counts[None, :] & in_step[:, None]
    device = (work @ in_stage.astype(np.float64)) @ one_hot
    in_no_stage = work[in_step & ~in_stage.any(1)].sum()

    total = step_length.sum()
    return {
        "num_steps": count,
        "step_time": float(total * scale),
        "host": {s: float(v * scale) for s, v in zip(STAGES, host, strict=True)}
        | {"other": float((total - host.sum()) * scale)},
        "device": {s: float(v * scale) for s, v in zip(STAGES, device, strict=True)}
        | {"other": float(in_no_stage * scale)},
    }


# %%
# Structural pattern matching in a generator that tells the paid seconds of each validation; prices in exact
# decimals.
import math
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from autograder import exercise


class Price(NamedTuple):
    amount: Decimal
    currency: str
    per_seconds: int

    @classmethod
    def parse(cls, text: str) -> "Price":
        problem = ValueError(f'write a price as "2.40 EUR/h", per s, min, h or day; got {text!r}')
        money, stroke, unit = text.partition("/")
        match [*money.split(), stroke, unit.strip()]:
            case [amount, currency, "/", "s" | "min" | "h" | "day" as unit]:
                pass
            case _:
                raise problem
        if any(c.isdigit() for c in currency):
            raise problem
        try:
            value = Decimal(amount)
        except InvalidOperation:
            raise problem from None
        if not value.is_finite() or value < 0:
            raise problem
        return cls(value, currency, {"s": 1, "min": 60, "h": 3600, "day": 86400}[unit])

    def of(self, seconds: float) -> float:
        return float(self.amount * Decimal(seconds) / self.per_seconds)


def paid(records: list[dict[str, Any]], monitor: str) -> Iterator[tuple[float, float]]:
    """(metric, seconds paid for until then) of each validation; NaN where there is no metric."""
    before = 0.0
    for record in records:
        match record:
            case {"kind": "start", "seconds": seconds}:
                before += seconds
            case {"kind": "stop", "session_seconds": seconds}:
                before += seconds
            case {"kind": "validation", "session_seconds": seconds}:
                value = record.get(monitor)
                yield math.nan if value is None else value, before + seconds


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
    """Paid seconds, hours and money up to the first validation that is at `target` or better."""
    parsed = Price.parse(price)
    reached = (
        seconds
        for value, seconds in paid(records, monitor)
        if (value >= target if higher_is_better else value <= target)
    )
    seconds = next(reached, None)
    if seconds is None:
        return None
    return {
        "seconds": float(seconds),
        "hours": float(seconds) / 3600,
        "cost": num_devices * parsed.of(seconds),
        "currency": parsed.currency,
    }


# %%
# The plan of the session is a coroutine: after_step() sends it the time and gets the verdict back.
import math
from collections.abc import Callable, Generator, Sequence
from typing import Any

from autograder import exercise


@exercise("7.3")
class BudgetGuard:
    """Stops a run, saved, before its budget is spent."""

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
        self.clock = clock
        self.paid_from = self.now = clock()
        self.memory = {"spent": 0.0, "longest": 0.0, "alarms": []}

        def price_of(seconds: float) -> float:
            return seconds * price_per_hour / 3600

        def is_above(money: float, limit: float) -> bool:
            return money > limit and not math.isclose(money, limit, rel_tol=1e-9)

        def plan() -> Generator[bool, float, None]:
            """Receives the clock after each step; yields whether that was the last one."""
            earlier = self.paid_from
            now = yield False
            while True:
                self.memory["longest"] = max(self.memory["longest"], now - earlier)
                spent = self.memory["spent"] + price_of(now - self.paid_from)
                for alarm in alarms:
                    is_due = not is_above(alarm * budget, spent)
                    if is_due and alarm not in self.memory["alarms"]:
                        self.memory["alarms"].append(alarm)
                        notify(alarm)
                if is_above(spent + price_of(self.memory["longest"] + save_seconds), budget):
                    break
                earlier, now = now, (yield False)
            save()
            while True:
                yield True

        self.price_of = price_of
        self.plan = plan()
        next(self.plan)

    def after_step(self) -> bool:
        self.now = self.clock()
        return self.plan.send(self.now)

    def state_dict(self) -> dict[str, Any]:
        spent = self.memory["spent"] + self.price_of(self.now - self.paid_from)
        return {
            "spent": spent,
            "longest": self.memory["longest"],
            "alarms": list(self.memory["alarms"]),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.memory = {
            "spent": state["spent"],
            "longest": state["longest"],
            "alarms": list(state["alarms"]),
        }


# %%
# Batches fetched ahead by threads behind a queue; one bincount for all weights; own clipping loop; a hook
# that catches the head's input.
import queue
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
import torch.nn.functional as F

from autograder import exercise
from course_lib.data import collate
from course_lib.loop import train_step

Batch = dict[str, torch.Tensor]
ILLNESSES = ("input-bound", "sync-bound", "tiny batch", "recomputing")


class Ahead:
    """Makes batches in the background: a feeder thread, and a pool that fetches the rows of each."""

    def __init__(self, samples: Any, rows: int, depth: int = 4) -> None:
        self.samples, self.rows = samples, rows
        self.ready: queue.Queue = queue.Queue(depth)
        self.stopped = threading.Event()

    def _feed(self) -> None:
        try:
            with ThreadPoolExecutor(16) as pool:
                for start in range(0, len(self.samples), self.rows):
                    if self.stopped.is_set():
                        return
                    chosen = range(start, min(start + self.rows, len(self.samples)))
                    self._put(collate(list(pool.map(lambda i: self.samples[i], chosen))))
            self._put(None)
        except BaseException as error:  # handed over to the one who waits
            self._put(error)

    def _put(self, item: Any) -> None:
        while not self.stopped.is_set():
            try:
                return self.ready.put(item, timeout=0.1)
            except queue.Full:
                continue

    def __iter__(self):
        feeder = threading.Thread(target=self._feed, daemon=True)
        feeder.start()
        try:
            while (item := self.ready.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            self.stopped.set()
            feeder.join()


def histograms_of(model: Any) -> dict[str, list[int]]:
    """32 counts for each parameter, by one bincount over all of them and one read."""
    names, parameters = zip(*model.named_parameters(), strict=True)
    with torch.no_grad():
        sizes = torch.cat([p.abs().flatten().float() for p in parameters])
    owner = torch.repeat_interleave(
        torch.arange(len(names)), torch.tensor([p.numel() for p in parameters])
    ).to(sizes.device)
    kept = sizes <= 1.0  # the last bin holds its right edge; NaN is in no bin
    bins = (sizes[kept] * 32).long().clamp(max=31)
    counts = torch.bincount(owner[kept] * 32 + bins, minlength=32 * len(names))
    return dict(zip(names, counts.view(-1, 32).tolist(), strict=True))


@exercise("7.4")
class Ward:
    """The four runs, cured. Arguments and results are those of `SickRuns`."""

    def diagnose(self, run: str) -> str:
        return ILLNESSES["ABCD".index(run)]

    def run_a(self, model: Any, samples: Any, optimizer: Any, micro_batch_size: int) -> list[float]:
        model.train()
        losses = [train_step(model, batch, optimizer)["loss"] for batch in Ahead(samples, micro_batch_size)]
        return torch.stack(losses).tolist()

    def run_b(
        self, model: Any, batches: Sequence[Batch], optimizer: Any, log_every_steps: int
    ) -> list[dict[str, Any]]:
        model.train()
        log = []
        for step, batch in enumerate(batches, start=1):
            loss = train_step(model, batch, optimizer)["loss"]
            if step % log_every_steps == 0:
                log.append({"step": step, "loss": float(loss), "histograms": histograms_of(model)})
        return log

    def run_c(self, model: Any, samples: Any, optimizer: Any, rows_per_update: int) -> list[float]:
        model.train()
        losses, rows = [], []
        for index in range(len(samples)):
            rows.append(samples[index])
            if len(rows) < rows_per_update and index + 1 < len(samples):
                continue
            batch = collate(rows)
            rows = []
            logits = model(batch["input_ids"], batch["attention_mask"])
            loss = F.cross_entropy(logits, batch["labels"])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.detach())
        return torch.stack(losses).tolist()

    def run_d(self, model: Any, batches: Sequence[Batch], optimizer: Any, num_epochs: int) -> list[float]:
        model.eval()
        caught: list[torch.Tensor] = []
        hook = model.head.register_forward_pre_hook(lambda _, inputs: caught.append(inputs[0]))
        try:
            with torch.no_grad():
                for batch in batches if num_epochs else ():
                    model(batch["input_ids"], batch["attention_mask"])
        finally:
            hook.remove()
        losses = []
        for _ in range(num_epochs):
            for features, batch in zip(caught, batches, strict=True):
                optimizer.zero_grad(set_to_none=True)
                loss = F.cross_entropy(model.head(features), batch["labels"])
                loss.backward()
                optimizer.step()
                losses.append(loss.detach())
        return torch.stack(losses).tolist()


# %%
# Transposed matrices and one addmm; the base's tensors are buffers, so they cannot ask for a gradient; shared
# layers get one adapter.
import torch
import torch.nn.functional as F
from torch import nn

from autograder import exercise


class LowRank(nn.Module):
    def __init__(self, base: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        self.register_buffer("weight", base.weight.detach())
        self.register_buffer("bias", None if base.bias is None else base.bias.detach())
        down = base.weight.new_empty(base.in_features, rank)
        nn.init.normal_(down, std=base.in_features**-0.5)
        self.down = nn.Parameter(down)
        self.up = nn.Parameter(base.weight.new_zeros(rank, base.out_features))
        self.factor = alpha / rank
        self.train(base.training)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        known = F.linear(inputs, self.weight, self.bias)
        learned = torch.addmm(
            known.flatten(0, -2) if known.dim() > 1 else known[None],
            inputs.reshape(-1, inputs.shape[-1]) @ self.down,
            self.up,
            alpha=self.factor,
        )
        return learned.view(known.shape)

    def merged(self) -> nn.Linear:
        with torch.no_grad():
            weight = torch.addmm(self.weight, self.up.T, self.down.T, alpha=self.factor)
        layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
        layer.weight = nn.Parameter(weight)
        if self.bias is not None:
            layer.bias = nn.Parameter(self.bias.clone())
        return layer.train(self.training)


@exercise("7.5")
def add_lora(model: nn.Module, rank: int, alpha: float) -> nn.Module:
    """Freeze `model` and put adapters of `rank` beside its linear layers; returns the model."""
    for parameter in model.parameters():
        parameter.requires_grad = False
    places = [
        (name, layer)
        for name, layer in model.named_modules(remove_duplicate=False)
        if isinstance(layer, nn.Linear) and layer is not model.head
    ]
    made: dict[nn.Linear, LowRank] = {}
    for name, layer in places:
        if layer not in made:
            made[layer] = LowRank(layer, rank, alpha)
        owner, _, attribute = name.rpartition(".")
        setattr(model.get_submodule(owner), attribute, made[layer])
    for parameter in model.head.parameters():
        parameter.requires_grad = True
    return model


# %%
# An overlay of layers (ChainMap) on the baseline: three times the rows at twenty times the rate, the padding
# left as it is.
from collections import ChainMap
from typing import Any

from autograder import exercise

FEWER_FIXED_COSTS = {"micro_batch_size": 48}  # each step costs 0.2 s, whatever is in it
FEWER_STEPS = {"learning_rate": 2e-3}  # the baseline's was far too low


@exercise("7.6")
def two_changes(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a run that reaches the same target at least 1.5 times as cheaply."""
    return dict(ChainMap(FEWER_FIXED_COSTS, FEWER_STEPS, settings))
