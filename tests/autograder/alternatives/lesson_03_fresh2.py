# Right solutions of lesson 03 by people who saw its notebook alone, in a second round.

# %%
import torch

from autograder import exercise

NO_LABEL = -100


def windows(items, size):
    """Lists of `size` items, the last one of what is left."""
    window = []
    for item in items:
        window.append(item)
        if len(window) == size:
            yield window
            window = []
    if window:
        yield window


@torch.no_grad()
def summed_loss_and_gradient(logits, labels):
    """The sum of the cross-entropies, and its derivative by the logits."""
    is_empty = labels.eq(NO_LABEL)
    target = labels.masked_fill(is_empty, 0).unsqueeze(-1)
    log_probs = logits.log_softmax(dim=-1)
    losses = log_probs.gather(-1, target).squeeze(-1).neg().masked_fill(is_empty, 0.0)
    gradient = log_probs.exp()
    gradient.scatter_add_(-1, target, torch.full_like(target, -1, dtype=gradient.dtype))
    gradient.masked_fill_(is_empty.unsqueeze(-1), 0.0)
    return losses.sum(dtype=torch.float64).item(), gradient


@exercise("3.1")
def train_accumulated(model, micro_batches, optimizer, grad_accum_steps):
    """Softmax minus one-hot, by hand: backward starts at the logits, and no loss has a graph."""
    model.train()
    loss_sum, num_labels, num_updates = 0.0, 0, 0
    for window in windows(micro_batches, grad_accum_steps):
        in_window = sum(int(batch["labels"].ne(NO_LABEL).sum()) for batch in window)
        optimizer.zero_grad(set_to_none=True)
        for batch in window:
            logits = model(batch["input_ids"], batch["attention_mask"])
            summed, gradient = summed_loss_and_gradient(logits, batch["labels"])
            logits.backward(gradient.div_(in_window))
            loss_sum += summed
        optimizer.step()
        num_labels += in_window
        num_updates += 1
    return {"loss": loss_sum / num_labels, "num_updates": num_updates}


# %%
import bisect
import itertools
import math

import torch

from autograder import exercise


@exercise("3.2")
def largest_micro_batch_size(try_step, budget_bytes, max_size):
    """The standard library's bisect, with the step as its key, between two powers of two."""

    def peak(size):
        try:
            return try_step(size)
        except torch.OutOfMemoryError:
            return math.inf

    powers = itertools.takewhile(lambda size: size <= max_size, (2**k for k in itertools.count()))
    fitting = list(itertools.takewhile(lambda size: peak(size) <= budget_bytes, powers))
    if not fitting:
        return 0
    between = range(fitting[-1] + 1, min(2 * fitting[-1], max_size + 1))
    return fitting[-1] + bisect.bisect_right(between, budget_bytes, key=peak)


# %%
from itertools import count, groupby

import torch
import torch.nn.functional as F

from autograder import exercise


@exercise("3.3")
def train_accumulated_mixed(model, micro_batches, optimizer, scheduler, scaler, grad_accum_steps, max_norm):
    """A generator makes an update per turn; each text's own loss is weighted by the gradient that backward is given."""

    def micro_step(batch, num_rows):
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(batch["input_ids"], batch["attention_mask"])
            losses = F.cross_entropy(logits, batch["labels"], reduction="none")
        scaler.scale(losses).backward(torch.full_like(losses, 1.0 / num_rows))
        return losses.detach().double().sum().item()

    def updates():
        position = count()
        for _, group in groupby(micro_batches, lambda _: next(position) // grad_accum_steps):
            window = list(group)
            num_rows = sum(len(batch["labels"]) for batch in window)
            optimizer.zero_grad(set_to_none=True)
            loss_sum = sum(micro_step(batch, num_rows) for batch in window)
            scaler.unscale_(optimizer)
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            yield loss_sum, num_rows, norm.item()

    model.train()
    loss_sums, rows, norms = zip(*updates(), strict=True)
    return {
        "loss": sum(loss_sums) / sum(rows),
        "grad_norm": sum(norms) / len(norms),
        "num_updates": len(norms),
    }


# %%
import functools

from torch.utils.checkpoint import checkpoint

from autograder import exercise


@functools.cache
def recomputed(block_class):
    """A subclass that keeps its inputs only."""

    class Recomputed(block_class):
        def forward(self, *args, **kwargs):
            plain = functools.partial(block_class.forward, self)
            return checkpoint(plain, *args, use_reentrant=False, **kwargs)

    return Recomputed


@exercise("3.5")
def checkpoint_blocks(model):
    """Each block changes its class for a subclass made on the fly."""
    for block in set(model.blocks):
        block.__class__ = recomputed(type(block))
    return model


# %%
import bisect
import functools

import numpy as np
import torch
import torch.nn.functional as F

from autograder import exercise

PRICE = 512  # what one more micro-batch costs, in positions


def cheapest_cut(lengths, most_rows):
    """Cut lengths that fall into slices, each as wide as its first."""
    number = len(lengths)
    cost, end = [0.0] * (number + 1), [number] * number
    for start in reversed(range(number)):
        width, cost[start] = lengths[start], float("inf")
        for rows in range(1, min(most_rows(width), number - start) + 1):
            here = rows * width + PRICE + cost[start + rows]
            if here < cost[start]:
                cost[start], end[start] = here, start + rows
    cuts = [(0, end[0])]
    while cuts[-1][1] < number:
        cuts.append((cuts[-1][1], end[cuts[-1][1]]))
    return cuts


def collated(rows):
    """Ids, mask and labels of some samples, padded to the longest."""
    input_ids = np.zeros((len(rows), max(len(ids) for ids, _ in rows)), dtype=np.int64)
    mask = np.zeros(input_ids.shape, dtype=bool)
    for row, (ids, _) in enumerate(rows):
        input_ids[row, : len(ids)] = ids
        mask[row, : len(ids)] = True
    return torch.from_numpy(input_ids), torch.from_numpy(mask), torch.tensor([label for _, label in rows])


@exercise("3.6")
def train_in_budget(model, samples, optimizer, global_batch_size, budget_bytes, step_bytes):
    """The cut with the least work, by dynamic programming over the sorted lengths of an update."""

    @functools.cache
    def most_rows(width):
        sizes = range(1, global_batch_size + 1)
        return max(1, bisect.bisect_right(sizes, budget_bytes, key=lambda rows: step_bytes(rows, width)))

    model.train()
    total, num_updates = 0.0, 0
    for first in range(0, len(samples), global_batch_size):
        update = samples[first : first + global_batch_size]
        update = sorted(update, key=lambda sample: len(sample[0]), reverse=True)
        optimizer.zero_grad(set_to_none=True)
        for start, end in cheapest_cut([len(ids) for ids, _ in update], most_rows):
            input_ids, mask, labels = collated(update[start:end])
            loss = F.cross_entropy(model(input_ids, mask), labels, reduction="sum")
            (loss / len(update)).backward()
            total += loss.item()
        optimizer.step()
        num_updates += 1
    return {"loss": total / len(samples), "num_updates": num_updates}
