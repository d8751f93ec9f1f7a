# Right solutions of lesson 03 by people who had seen its notebook and nothing else.

# %%
import torch

from autograder import exercise


def labelled_loss_sum(logits, labels):
    """Summed cross-entropy over the positions that have a label, and how many there are."""
    has_label = labels.ne(-100)
    scores, targets = logits[has_label], labels[has_label]
    picked = scores.gather(1, targets.unsqueeze(1)).squeeze(1)
    return (torch.logsumexp(scores, dim=1) - picked).sum(), targets.numel()


class GradientSum:
    """Adds up gradients of scalars outside of `p.grad`."""

    def __init__(self, parameters):
        self.parameters = parameters
        self.sums = [None] * len(parameters)

    def add(self, scalar):
        found = torch.autograd.grad(scalar, self.parameters, allow_unused=True)
        for i, gradient in enumerate(found):
            if gradient is not None:
                self.sums[i] = gradient if self.sums[i] is None else self.sums[i] + gradient

    def hand_over(self, divisor):
        for parameter, total in zip(self.parameters, self.sums, strict=True):
            parameter.grad = None if total is None else total / divisor


@exercise("3.1")
def train_accumulated(model, micro_batches, optimizer, grad_accum_steps):
    """Gradients by `torch.autograd.grad` into buffers of its own; `p.grad` is filled before the step alone."""
    model.train()
    optimizer.zero_grad(set_to_none=True)
    trainable = [p for p in model.parameters() if p.requires_grad]
    stream = iter(micro_batches)
    pass_loss, pass_labels, num_updates, is_exhausted = 0.0, 0, 0, False
    while not is_exhausted:
        gradients, window_labels, taken = GradientSum(trainable), 0, 0
        while taken < grad_accum_steps:
            batch = next(stream, None)
            if batch is None:
                is_exhausted = True
                break
            taken += 1
            loss, count = labelled_loss_sum(
                model(batch["input_ids"], batch["attention_mask"]), batch["labels"]
            )
            gradients.add(loss)
            pass_loss += loss.item()
            window_labels += count
            del loss
        if taken:
            gradients.hand_over(window_labels)
            optimizer.step()
            num_updates += 1
            pass_labels += window_labels
    return {"loss": pass_loss / pass_labels, "num_updates": num_updates}


# %%
from contextlib import suppress

import torch

from autograder import exercise


class Fits:
    """Whether a size fits; false where the device is full."""

    def __init__(self, try_step, budget_bytes, max_size):
        self.try_step, self.budget_bytes, self.max_size = try_step, budget_bytes, max_size

    def __call__(self, size):
        if size > self.max_size:
            return False  # known without a try
        with suppress(torch.OutOfMemoryError):
            return self.try_step(size) <= self.budget_bytes
        return False


@exercise("3.2")
def largest_micro_batch_size(try_step, budget_bytes, max_size):
    """Builds the answer from its highest binary digit down; no interval is kept."""
    fits = Fits(try_step, budget_bytes, max_size)
    bit = 1
    while fits(bit):
        bit <<= 1
    size = bit >> 1  # the highest digit, or 0
    bit = size >> 1
    while bit:
        if fits(size | bit):
            size |= bit
        bit >>= 1
    return size


# %%
import torch
import torch.nn.functional as F

from autograder import exercise


class Update:
    """Gathers the gradient of one window as a sum; `close` turns it into a step."""

    def __init__(self, optimizer, scaler):
        self.optimizer, self.scaler = optimizer, scaler
        self.rows = self.micro_batches = 0
        optimizer.zero_grad()

    def add(self, loss_sum, rows):
        self.scaler.scale(loss_sum).backward()
        self.rows += rows
        self.micro_batches += 1

    def close(self, max_norm):
        """Unscale, divide, clip, step. Returns the norm before clipping."""
        self.scaler.unscale_(self.optimizer)
        gradients = [
            p.grad for group in self.optimizer.param_groups for p in group["params"] if p.grad is not None
        ]
        torch._foreach_div_(gradients, self.rows)
        norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
        torch._foreach_mul_(gradients, torch.clamp(max_norm / (norm + 1e-6), max=1.0).item())
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return norm.item()


@exercise("3.3")
def train_accumulated_mixed(model, micro_batches, optimizer, scheduler, scaler, grad_accum_steps, max_norm):
    """One flat pass with a class that is told of each micro-batch; sums go backward, the division comes after."""
    model.train()
    totals = {"loss": 0.0, "rows": 0, "norm": 0.0, "updates": 0}
    update = None

    def finish():
        totals["norm"] += update.close(max_norm)
        totals["updates"] += 1
        totals["rows"] += update.rows
        scheduler.step()

    for batch in micro_batches:
        if update is None:
            update = Update(optimizer, scaler)
        with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
            logits = model(batch["input_ids"], batch["attention_mask"])
            log_probabilities = F.log_softmax(logits, dim=-1, dtype=torch.float32)
            rows = torch.arange(len(log_probabilities))
            loss = -log_probabilities[rows, batch["labels"]].sum()
        update.add(loss, len(rows))
        totals["loss"] += loss.item()
        if update.micro_batches == grad_accum_steps:
            finish()
            update = None
    if update is not None:
        finish()
    return {
        "loss": totals["loss"] / totals["rows"],
        "grad_norm": totals["norm"] / totals["updates"],
        "num_updates": totals["updates"],
    }


# %%
import torch

from autograder import exercise

SCALING = {"sgd": lambda factor: factor, "adamw": lambda factor: factor**0.5}


def ceil_div(numerator, denominator):
    whole, rest = divmod(numerator, denominator)
    return whole + bool(rest)


def recorded_rates(peak, max_steps):
    """What a torch optimizer shows as its rate at each of `max_steps` updates."""
    dummy = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=peak)
    num_warmup = min(max_steps - 1, ceil_div(max_steps, 10))
    schedulers = torch.optim.lr_scheduler
    scheduler = schedulers.SequentialLR(
        dummy,
        [
            schedulers.LinearLR(dummy, start_factor=1 / (num_warmup + 1), total_iters=num_warmup),
            schedulers.ConstantLR(dummy, factor=1.0, total_iters=0),
        ],
        milestones=[num_warmup],
    )
    rates = []
    for _ in range(max_steps):
        rates.append(dummy.param_groups[0]["lr"])
        dummy.step()
        scheduler.step()
    return rates


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
    """The rates are recorded from torch's schedulers; the sizes are whole numbers throughout."""
    per_device = ceil_div(target_batch_size, world_size)
    grad_accum_steps = ceil_div(per_device, max_micro_batch_size)
    micro_batch_size = ceil_div(per_device, grad_accum_steps)
    global_batch_size = micro_batch_size * grad_accum_steps * world_size
    peak = base_learning_rate * SCALING[optimizer](global_batch_size / base_batch_size)
    return {
        "micro_batch_size": micro_batch_size,
        "grad_accum_steps": grad_accum_steps,
        "global_batch_size": global_batch_size,
        "learning_rates": recorded_rates(peak, max_steps),
    }


# %%
import functools

import torch

from autograder import exercise


class RunAgain(torch.autograd.Function):
    """Forward without a graph; backward runs the block once more, with the same random numbers."""

    @staticmethod
    def forward(ctx, run, hidden, key_mask, *parameters):
        device = hidden.device
        ctx.run, ctx.cpu_state = run, torch.get_rng_state()
        ctx.cuda_state = torch.cuda.get_rng_state(device) if hidden.is_cuda else None
        ctx.autocast = torch.is_autocast_enabled(device.type), torch.get_autocast_dtype(device.type)
        ctx.save_for_backward(hidden, key_mask, *parameters)
        return run(hidden, key_mask)

    @staticmethod
    def backward(ctx, grad_output):
        hidden, key_mask, *parameters = ctx.saved_tensors
        device = hidden.device
        hidden = hidden.detach().requires_grad_(ctx.needs_input_grad[1])
        is_enabled, dtype = ctx.autocast
        with (
            torch.random.fork_rng(devices=[device] if hidden.is_cuda else []),
            torch.enable_grad(),
            torch.autocast(device.type, dtype=dtype, enabled=is_enabled),
        ):
            torch.set_rng_state(ctx.cpu_state)
            if ctx.cuda_state is not None:
                torch.cuda.set_rng_state(ctx.cuda_state, device)
            output = ctx.run(hidden, key_mask)
        inputs = [hidden, *parameters]
        wanted = [i for i, tensor in enumerate(inputs) if tensor.requires_grad]
        found = torch.autograd.grad(output, [inputs[i] for i in wanted], grad_output, allow_unused=True)
        gradients = [None] * len(inputs)
        for i, gradient in zip(wanted, found, strict=True):
            gradients[i] = gradient
        return None, gradients[0], None, *gradients[1:]


def run_twice(block, original, hidden, key_mask):
    if not torch.is_grad_enabled():
        return original(hidden, key_mask)
    return RunAgain.apply(original, hidden, key_mask, *block.parameters())


@exercise("3.5")
def checkpoint_blocks(model):
    """Nothing of `torch.utils.checkpoint`: a function of its own that takes the block's parameters as inputs."""
    for block in model.blocks:
        block.forward = functools.partial(run_twice, block, block.forward)
    return model


# %%
from bisect import bisect_right
from collections import deque
from functools import cache

import torch
from torch.nn.functional import nll_loss
from torch.nn.utils.rnn import pad_sequence

from autograder import exercise


@exercise("3.6")
def train_in_budget(model, samples, optimizer, global_batch_size, budget_bytes, step_bytes):
    """Works down from the longest text; the rows for its width are found by bisection, once for each width."""

    @cache
    def rows_that_fit(width):
        more = range(2, global_batch_size + 1)  # a single row is always possible
        return 1 + bisect_right(more, budget_bytes, key=lambda rows: step_bytes(rows, width))

    def micro_batches(texts):
        waiting = deque(sorted(texts, key=lambda text: text[0].shape[0], reverse=True))
        while waiting:
            size = min(rows_that_fit(len(waiting[0][0])), len(waiting))
            yield zip(*(waiting.popleft() for _ in range(size)), strict=True)

    device = next(model.parameters()).device
    model.train()
    update_losses = []
    updates = [samples[i : i + global_batch_size] for i in range(0, len(samples), global_batch_size)]
    for texts in updates:
        optimizer.zero_grad()
        update_loss = torch.zeros((), device=device)
        for ids, labels in micro_batches(texts):
            rows = [torch.tensor(row, dtype=torch.int64) for row in ids]
            input_ids = pad_sequence(rows, batch_first=True)
            mask = pad_sequence([torch.ones(len(row), dtype=torch.bool) for row in rows], batch_first=True)
            logits = model(input_ids.to(device), mask.to(device))
            targets = torch.tensor(labels, dtype=torch.int64, device=device)
            loss = nll_loss(logits.log_softmax(dim=1), targets, reduction="sum") / len(texts)
            loss.backward()
            update_loss += loss.detach()
        optimizer.step()
        update_losses.append(update_loss.item() * len(texts))
    return {"loss": sum(update_losses) / len(samples), "num_updates": len(updates)}
