# Another right solution of each exercise of lesson 03, in another style than the reference.

# %%
import torch
import torch.nn.functional as F

from autograder import exercise


class WindowedTrainer:
    """Goes backward on sums, and divides all gradients once, when the window is full."""

    def __init__(self, model, optimizer):
        self.model, self.optimizer = model.train(), optimizer
        self.window_labels = self.num_labels = self.num_updates = 0
        self.loss_sum = 0.0

    def gather(self, batch):
        logits = self.model(batch["input_ids"], batch["attention_mask"])
        has_label = batch["labels"].ne(-100)
        loss = F.cross_entropy(logits[has_label], batch["labels"][has_label], reduction="sum")
        loss.backward()
        self.loss_sum += loss.item()
        self.window_labels += int(has_label.sum())

    def update(self):
        grads = [p.grad for p in self.model.parameters() if p.grad is not None]
        torch._foreach_div_(grads, self.window_labels)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.num_updates += 1
        self.num_labels += self.window_labels
        self.window_labels = 0


@exercise("3.1")
def train_accumulated(model, micro_batches, optimizer, grad_accum_steps):
    trainer = WindowedTrainer(model, optimizer)
    optimizer.zero_grad()
    position = 0
    for position, batch in enumerate(micro_batches, start=1):
        trainer.gather(batch)
        if position % grad_accum_steps == 0:
            trainer.update()
    if position % grad_accum_steps:
        trainer.update()
    return {
        "loss": trainer.loss_sum / trainer.num_labels,
        "num_updates": trainer.num_updates,
    }


# %%
import bisect
import math

import torch

from autograder import exercise


@exercise("3.2")
def largest_micro_batch_size(try_step, budget_bytes, max_size):
    def peak(size):
        try:
            return try_step(size)
        except torch.OutOfMemoryError:
            return math.inf

    doublings = [2**power for power in range(max_size.bit_length()) if 2**power < max_size]
    doublings.append(max_size)
    # A generator: nothing is tried beyond the first size that is too large.
    num_fitting = next((i for i, size in enumerate(doublings) if peak(size) > budget_bytes), len(doublings))
    if num_fitting in (0, len(doublings)):
        return max_size if num_fitting else 0
    between = range(doublings[num_fitting - 1] + 1, doublings[num_fitting])
    return between.start - 1 + bisect.bisect_right(between, budget_bytes, key=peak)


# %%
from contextlib import ExitStack

import torch

from autograder import exercise


def in_windows(items, size):
    """Lists of up to `size` items, from anything that can be iterated."""
    window = []
    for item in items:
        window.append(item)
        if len(window) == size:
            yield window
            window = []
    if window:
        yield window


@exercise("3.3")
def train_accumulated_mixed(model, micro_batches, optimizer, scheduler, scaler, grad_accum_steps, max_norm):
    model.train()
    parameters = list(model.parameters())
    criterion = torch.nn.CrossEntropyLoss(reduction="none")
    losses, norms = [], []
    model.zero_grad()
    for window in in_windows(micro_batches, grad_accum_steps):
        num_rows = torch.cat([batch["labels"] for batch in window]).numel()
        for batch in window:
            with ExitStack() as stack:
                stack.enter_context(torch.autocast("cpu", torch.bfloat16))
                each = criterion(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
            scaler.scale(each).backward(torch.full_like(each, 1 / num_rows))
            losses.append(each.detach())
        scaler.unscale_(optimizer)
        grads = [p.grad for p in parameters if p.grad is not None]
        norm = torch.nn.utils.get_total_norm(grads)
        torch.nn.utils.clip_grads_with_norm_(parameters, max_norm, norm)
        norms.append(norm)
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        model.zero_grad()
    return {
        "loss": torch.cat(losses).double().mean().item(),
        "grad_norm": torch.stack(norms).mean().item(),
        "num_updates": len(norms),
    }


# %%
from dataclasses import asdict, dataclass

import numpy as np

from autograder import exercise


@dataclass
class Plan:
    micro_batch_size: int
    grad_accum_steps: int
    global_batch_size: int
    learning_rates: list


@exercise("3.4")
def plan_large_batch(
    *,
    target_batch_size,
    max_micro_batch_size,
    world_size,
    base_batch_size,
    base_learning_rate,
    max_steps,
    optimizer,
):
    steps = -(-target_batch_size // (world_size * max_micro_batch_size))
    rows = -(-target_batch_size // (world_size * steps))  # no more than the target asks for
    reached = rows * steps * world_size
    exponent = {"sgd": 1.0, "adamw": 0.5}[optimizer]
    peak = base_learning_rate * (reached / base_batch_size) ** exponent
    warmup = max(1, -(-max_steps // 10))
    knots = [0, warmup, max(warmup, 0.8 * max_steps), max(warmup + 1, max_steps)]
    shares = np.interp(np.arange(max_steps), knots, [1 / (warmup + 1), 1.0, 1.0, 0.2])
    return asdict(Plan(rows, steps, reached, (peak * shares).tolist()))


# %%
import torch
from torch.utils.checkpoint import checkpoint

from autograder import exercise


def recomputing(kind):
    """The same class of block, whose forward is computed again in backward."""

    class Recomputing(kind):
        def forward(self, hidden, key_mask):
            return checkpoint(super().forward, hidden, key_mask, use_reentrant=False)

    return Recomputing


@exercise("3.5")
def checkpoint_blocks(model):
    for block in model.blocks:
        block.__class__ = recomputing(type(block))
    return model


# %%
import bisect

import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence

from autograder import exercise


class Packing:
    """Cuts texts, the longest first, into as few micro-batches as the budget allows."""

    def __init__(self, step_bytes, budget_bytes):
        self.step_bytes, self.budget_bytes = step_bytes, budget_bytes

    def __call__(self, samples):
        queue = sorted(samples, key=lambda sample: -len(sample[0]))
        while queue:
            width, candidates = len(queue[0][0]), range(1, len(queue) + 1)
            rows = bisect.bisect_right(
                candidates, self.budget_bytes, key=lambda n, width=width: self.step_bytes(n, width)
            )
            rows = max(1, rows)
            yield queue[:rows]
            queue = queue[rows:]


@exercise("3.6")
def train_in_budget(model, samples, optimizer, global_batch_size, budget_bytes, step_bytes):
    model.train()
    pack = Packing(step_bytes, budget_bytes)
    loss_sum, num_updates = torch.zeros((), dtype=torch.float64), 0
    for start in range(0, len(samples), global_batch_size):
        update = samples[start : start + global_batch_size]
        optimizer.zero_grad(set_to_none=True)
        for rows in pack(update):
            lengths = torch.tensor([len(ids) for ids, _ in rows])
            input_ids = pad_sequence(
                [torch.as_tensor(ids, dtype=torch.int64) for ids, _ in rows], batch_first=True
            )
            mask = torch.arange(input_ids.shape[1]) < lengths[:, None]
            labels = torch.tensor([label for _, label in rows])
            loss = F.cross_entropy(model(input_ids, mask), labels, reduction="sum") / len(update)
            loss.backward()
            loss_sum += loss.detach() * len(update)
        optimizer.step()
        num_updates += 1
    return {"loss": loss_sum.item() / len(samples), "num_updates": num_updates}
