# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 01 · Efficient training loops

# %%
from autograder import answer, check, check_quiz, compare, exercise, predict, quiz

# %% [markdown]
# ## Exercises
#
# ### 1.1 · A collate function that pads no more than it must

# %%
import numpy as np
import torch

from autograder import exercise

PAD_ID = 0


@exercise("1.1")
def collate(batch: list[tuple[np.ndarray, int]]) -> dict[str, torch.Tensor]:
    """Turn B samples into one batch, padded to the longest sample *of this batch*.

    Takes: a list of B samples `(ids, label)`; `ids` is a 1-D int64 NumPy array without padding
        (read-only, so copy from it), `label` an int.
    Returns a dict of tensors, T being the length of the longest sample in `batch`:
        "input_ids"       int64 [B, T]   the ids, then PAD_ID up to the width T
        "attention_mask"  bool  [B, T]   True where a real token stands
        "labels"          int64 [B]
    The samples themselves stay as they are, and rows keep the order of `batch`.
    """
    ### BEGIN SOLUTION
    width = max(len(ids) for ids, _ in batch)
    # Fill NumPy arrays and convert once: a tensor call per row costs more than the copy itself.
    input_ids = np.full((len(batch), width), PAD_ID, dtype=np.int64)
    attention_mask = np.zeros((len(batch), width), dtype=np.bool_)
    for row, (ids, _) in enumerate(batch):
        input_ids[row, : len(ids)] = ids
        attention_mask[row, : len(ids)] = True
    return {
        "input_ids": torch.from_numpy(input_ids),
        "attention_mask": torch.from_numpy(attention_mask),
        "labels": torch.tensor([label for _, label in batch], dtype=torch.int64),
    }
    ### END SOLUTION


# %%
check("1.1")

# %% [markdown]
# ### 1.2 · A batch sampler that puts like lengths together

# %%
import math
from collections.abc import Iterator, Sequence

import numpy as np

from autograder import exercise


@exercise("1.2")
class BucketBatchSampler:
    """Batches of indices whose samples have about the same length.

    lengths: number of tokens of each sample, shape [N].
    micro_batch_size: indices per batch; only one batch of an epoch may be shorter.
    seed: the same seed and the same epoch give the same batches.
    """

    def __init__(self, lengths: Sequence[int], micro_batch_size: int, seed: int = 0) -> None:
        self.lengths = np.asarray(lengths)
        self.micro_batch_size = micro_batch_size
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Choose the order: another epoch, another order. Called before each pass."""
        ### BEGIN SOLUTION
        self.epoch = epoch
        ### END SOLUTION

    def __len__(self) -> int:
        """Number of batches in one epoch."""
        ### BEGIN SOLUTION
        return math.ceil(len(self.lengths) / self.micro_batch_size)
        ### END SOLUTION

    def __iter__(self) -> Iterator[list[int]]:
        """Yield each batch as a list of ints. Each index 0 … N-1 comes exactly once per epoch."""
        ### BEGIN SOLUTION
        rng = np.random.default_rng([self.seed, self.epoch])
        # Up to a tenth of noise on each length: close neighbours trade places from epoch to epoch,
        # so that a sample does not meet the same companions every time.
        noisy = self.lengths * rng.uniform(0.9, 1.1, size=len(self.lengths)) + rng.random(len(self.lengths))
        order = np.argsort(noisy, kind="stable")
        starts = np.arange(0, len(order), self.micro_batch_size)
        # Batches come in random order: short to long all through an epoch is a curriculum nobody asked for.
        for start in rng.permutation(starts):
            yield order[start : start + self.micro_batch_size].tolist()
        ### END SOLUTION


# %%
check("1.2")

# %% [markdown]
# ### 1.3 · One epoch of training that never waits for a number

# %%
from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F

from autograder import exercise


@exercise("1.3")
def train_one_epoch(
    model: torch.nn.Module,
    batches: Iterable[dict[str, torch.Tensor]],
    optimizer: torch.optim.Optimizer,
    scheduler: Any,
    max_norm: float = 1.0,
) -> dict[str, float]:
    """Train `model` in place on every batch once, and report what happened.

    Each step minimises the mean cross-entropy of its batch, with the gradient clipped to `max_norm`.
    `model(input_ids, attention_mask)` returns logits [B, C]. `scheduler.step()` is called once a step.

    Returns plain Python numbers:
        "loss"          mean over *samples* of the cross-entropy seen while training
        "grad_norm"     mean over steps of the gradient norm *before* clipping
        "num_samples"   samples seen
        "num_tokens"    real tokens seen (padding does not count)
        "pad_fraction"  1 - real tokens / (rows x width), over the whole epoch

    Bring numbers to Python (`.item()`, `float(...)`, `print`) at most a handful of times per *epoch*.
    """
    ### BEGIN SOLUTION
    device = next(model.parameters()).device
    model.train()
    loss_sum = torch.zeros((), device=device)
    grad_norm_sum = torch.zeros((), device=device)
    num_tokens = torch.zeros((), dtype=torch.int64, device=device)
    num_steps = num_samples = num_slots = 0
    for batch in batches:
        batch = {key: value.to(device, non_blocking=True) for key, value in batch.items()}
        logits = model(batch["input_ids"], batch["attention_mask"])
        loss = F.cross_entropy(logits, batch["labels"])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        scheduler.step()
        # Sums stay on the device: nothing here asks it to finish.
        rows = batch["labels"].shape[0]
        loss_sum += loss.detach() * rows
        grad_norm_sum += grad_norm
        num_tokens += batch["attention_mask"].sum()
        num_steps += 1
        num_samples += rows
        num_slots += batch["input_ids"].numel()
    # The only waits of the epoch.
    return {
        "loss": loss_sum.item() / num_samples,
        "grad_norm": grad_norm_sum.item() / num_steps,
        "num_samples": num_samples,
        "num_tokens": int(num_tokens.item()),
        "pad_fraction": 1.0 - num_tokens.item() / num_slots,
    }
    ### END SOLUTION


# %%
check("1.3")

# %% [markdown]
# ### 1.4 · An evaluation that tells the truth

# %%
from collections.abc import Iterable

import torch
import torch.nn.functional as F

from autograder import exercise


@exercise("1.4")
def evaluate(model: torch.nn.Module, batches: Iterable[dict[str, torch.Tensor]]) -> dict[str, float]:
    """Measure `model` on every batch, and leave no trace.

    `model(input_ids, attention_mask)` returns logits [B, C]. The last batch may be short.
    Returns plain Python numbers:
        "loss"         mean over *samples* of the cross-entropy
        "accuracy"     share of samples whose largest logit is the label, 0 … 1
        "num_samples"  samples seen
    Afterwards the model is in the mode (train or eval) it came in, and holds no new gradients.
    """
    ### BEGIN SOLUTION
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    loss_sum = torch.zeros((), device=device)
    num_correct = torch.zeros((), dtype=torch.int64, device=device)
    num_samples = 0
    try:
        with torch.inference_mode():
            for batch in batches:
                batch = {key: value.to(device, non_blocking=True) for key, value in batch.items()}
                logits = model(batch["input_ids"], batch["attention_mask"])
                loss_sum += F.cross_entropy(logits, batch["labels"], reduction="sum")
                num_correct += (logits.argmax(dim=-1) == batch["labels"]).sum()
                num_samples += batch["labels"].shape[0]
    finally:
        model.train(was_training)
    return {
        "loss": loss_sum.item() / num_samples,
        "accuracy": num_correct.item() / num_samples,
        "num_samples": num_samples,
    }
    ### END SOLUTION


# %%
check("1.4")

# %% [markdown]
# ### 1.5 · A loader that hides the wait

# %%
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from autograder import exercise


@exercise("1.5")
def make_loader(
    dataset: Dataset,
    micro_batch_size: int,
    collate_fn: Callable[[list[Any]], dict[str, torch.Tensor]],
) -> Iterable[dict[str, torch.Tensor]]:
    """An iterable of collated batches, in the order of the dataset, each sample exactly once.

    `dataset[i]` sleeps for some milliseconds before it returns, as a disk or a bucket would.
    Overlap those waits with each other and with the training step.
    The result is iterated more than once: one pass is one epoch. The last batch may be short.
    """
    ### BEGIN SOLUTION
    return DataLoader(
        dataset,
        batch_size=micro_batch_size,
        shuffle=False,
        collate_fn=collate_fn,
        num_workers=4,  # more than the cores: these workers wait, they do not compute
        prefetch_factor=2,
        persistent_workers=True,  # start them once, not once an epoch
        pin_memory=torch.cuda.is_available(),
    )
    ### END SOLUTION


# %%
check("1.5")

# %% [markdown]
# ### 1.6 · Challenge: the whole loop, three times as fast

# %%
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from autograder import exercise

PAD_ID = 0


@exercise("1.6")
def fast_epoch(
    model: torch.nn.Module,
    samples: Any,
    optimizer: torch.optim.Optimizer,
    micro_batch_size: int,
    seed: int,
) -> dict[str, float]:
    """One pass over `samples`, training `model` in place, in a third of the naive loop's time or less.

    samples: `len(samples)`, `samples[i] -> (ids, label)`, and `samples.lengths`, int64 [N].
    Each sample is used exactly once, in an order that depends on `seed`, at most `micro_batch_size`
    samples to a step, in the same number of steps as the naive loop: ceil(N / micro_batch_size).
    Returns {"loss": mean over samples while training, "num_samples": N}.
    The validation accuracy afterwards is within 0.5 points of the naive loop's.
    """
    ### BEGIN SOLUTION
    device = next(model.parameters()).device
    lengths = np.asarray(samples.lengths)
    rng = np.random.default_rng(seed)
    order = np.argsort(lengths * rng.uniform(0.9, 1.1, size=len(lengths)) + rng.random(len(lengths)))
    starts = rng.permutation(np.arange(0, len(order), micro_batch_size))
    model.train()
    loss_sum = torch.zeros((), device=device)
    for start in starts:
        batch = [samples[int(index)] for index in order[start : start + micro_batch_size]]
        width = max(len(ids) for ids, _ in batch)
        ids_array = np.full((len(batch), width), PAD_ID, dtype=np.int64)
        mask_array = np.zeros((len(batch), width), dtype=np.bool_)
        for row, (ids, _) in enumerate(batch):
            ids_array[row, : len(ids)] = ids
            mask_array[row, : len(ids)] = True
        input_ids = torch.from_numpy(ids_array).to(device, non_blocking=True)
        attention_mask = torch.from_numpy(mask_array).to(device, non_blocking=True)
        labels = torch.tensor([label for _, label in batch], dtype=torch.int64).to(device, non_blocking=True)
        loss = F.cross_entropy(model(input_ids, attention_mask), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss_sum += loss.detach() * len(batch)
    return {"loss": loss_sum.item() / len(order), "num_samples": len(order)}
    ### END SOLUTION


# %%
check("1.6")

# %% [markdown]
# ## Quiz

# %%
quiz("01")

# %%
check_quiz("01")
