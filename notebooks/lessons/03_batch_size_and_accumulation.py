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
# # 03 · Batch size and gradient accumulation
#
# *About 100 minutes: 25 of reading and quiz, 75 for 6 exercises*
#
# How many texts fit on the device, how many make an update, and how large the step should be: three numbers that are
# often taken for one. You begin with an update that does not fit into memory. You cut it and fill the memory that there
# is. Then the batch itself grows, and you scale the learning rate to it.
#
# | Part | What you build there |
# |---|---|
# | [The program](#The-program) | one update of 64 texts, and its peak of memory |
# | [Who weighs what](#Who-weighs-what) | 3.1, many small batches with one large gradient |
# | [The largest micro-batch](#The-largest-micro-batch) | 3.2, found by search |
# | [Once an update](#Once-an-update) | 3.3, scaler, clipping and schedule in their places |
# | [The larger batch](#The-larger-batch) | 3.4, learning rates for it |
# | [Activations, computed again](#Activations,-computed-again) | 3.5, less memory for more arithmetic |
# | [The challenge](#The-challenge) | 3.6, a fixed budget, the best throughput |
# | [Checklist](#The-batch-size-checklist), [quiz](#Quiz) | a page to keep, the test |
# | [More](#More) | outside the 100 minutes: when larger batches stop paying, optimizers, frameworks, drills |
#
# Cells that are folded draw pictures or set things up; the three dots open them.

# %%
from autograder import check, check_quiz, compare, exercise, predict, quiz, so_far, yours

# %% jupyter={"source_hidden": true}
import importlib.util
import math
import tempfile
import warnings
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F

from autograder.plots import BLUE, GREEN, GREY, ORANGE, RED, bars, figure, show
from course_lib import data, loop
from course_lib.bench import paired_speedup
from course_lib.counters import count_events, peak_bytes
from course_lib.memory import apply_activation_checkpointing
from course_lib.micro_batch import find_executable_micro_batch_size
from course_lib.models import ModelConfig, TextClassifier, TokenClassifier
from course_lib.optim import OPTIMIZERS, make_optimizer
from course_lib.schedules import scaled_learning_rate, schedule_values, warmup_cosine

# One thread: timings are steadier, whatever else your machine does on its other cores.
torch.set_num_threads(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
print(f"torch {torch.__version__} on {device}, {torch.get_num_threads()} thread")

# %% [markdown]
# ## The program
#
# A colleague sends you a recipe: learning rate 0.001, batch 64. It was found on a large GPU. Yours has 10 MB left for it.
# Three numbers are at work. Give the assembly line of
# [lesson 01](../01_efficient_training_loops/01_efficient_training_loops.ipynb#The-program) trays and a truck:
#
# > - **the tray** is the *micro-batch*: what goes through forward and backward together. Memory limits it.
# > - **the truck** is the *effective batch*: what is gathered before one optimizer step. It decides what is learned.
# > - **the speed of the truck** is the learning rate. A fuller truck may go faster.
#
# **effective batch = micro-batch × devices × accumulation steps**
#
# Here is the recipe as it stands: one tray, as large as the truck.

# %% jupyter={"source_hidden": true}
# The docstrings of lesson 01, as lists of token ids; the task: which package was one written for?
train, validation = data.docstring_store(max_length=1024)
num_classes = len(train.label_names)
WIDTH = 64  # each text of the experiments is 64 tokens long, so that rows are all the same
order = np.random.default_rng(0).permutation(len(train))
long_enough = order[train.lengths[order] >= WIDTH]
pool = [(ids[:WIDTH], label) for ids, label in (train[int(i)] for i in long_enough[:512])]


def new_model(seed: int = 0, **sizes: float) -> TextClassifier:
    """A fresh small classifier; the same seed gives the same weights."""
    torch.manual_seed(seed)
    settings = {"d_model": 32, "num_layers": 2, "max_length": WIDTH, "dropout": 0.0} | sizes
    config = ModelConfig(vocab_size=train.vocab_size, num_classes=num_classes, **settings)
    return TextClassifier(config).to(device)


def cut(samples, micro_batch_size):
    """The samples as micro-batches on the device."""
    return [
        loop.to_device(data.collate(samples[i : i + micro_batch_size]), device)
        for i in range(0, len(samples), micro_batch_size)
    ]


UPDATE = pool[:64]
BUDGET = 10_000_000  # bytes


print(f"{len(pool)} texts of {WIDTH} tokens, {num_classes} classes")


# %%
def update_at_once(model, micro_batches, optimizer):
    (batch,) = micro_batches
    loss = F.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()


program = SimpleNamespace(
    micro_batch_size=64,
    update=update_at_once,
    prepare=lambda model: model,
)


def peak_megabytes():
    """Peak of what is alive at the same time in two updates: AdamW makes its state in the first."""
    model, micro_batches = program.prepare(new_model()), cut(UPDATE, program.micro_batch_size)
    optimizer = make_optimizer(model)
    return (
        peak_bytes(
            lambda: [program.update(model, micro_batches, optimizer) for _ in range(2)], device
        )
        / 1e6
    )


at_first = peak_megabytes()
print(f"one update of 64 texts peaks at {at_first:.1f} MB; there are {BUDGET / 1e6:.0f} MB")

# %% [markdown]
# It does not fit. The number is a count of bytes, activations, gradients and the optimizer's state together: the same on
# each run. What happens when the update is cut? The same 64 texts, the same optimizer step at the end, the same gradient:
# in one piece, in two of 32, and so on down to 64 of one text each.

# %%
predict(
    "3b", "Peak bytes of the update in one piece, over the update in pieces of 8?", unit="×"
)

# %%
predict("3a", "64 micro-batches of 1 text: how many times as long as one of 64?", unit="×")

# %% jupyter={"source_hidden": true}
SIZES = [1, 2, 4, 8, 16, 32, 64]


def update_with(micro_batch_size: int):
    """A function that does one whole update of the 64 texts."""
    model, micro_batches = new_model(), cut(UPDATE, micro_batch_size)
    optimizer = make_optimizer(model)
    return lambda: loop.train_step(model, micro_batches, optimizer)


def peak_of(micro_batch_size: int, num_texts: int = 64, **sizes: float) -> int:
    """Peak bytes of two updates, in micro-batches of this size."""
    model, micro_batches = new_model(**sizes), cut(pool[:num_texts], micro_batch_size)
    optimizer = make_optimizer(model)

    def two_updates():
        for _ in range(2):
            loop.train_step(model, micro_batches, optimizer)

    return peak_bytes(two_updates, device)


# Each against the update in one piece, in pairs: a speedup below 1 is a slowdown.
quick = {"blocks": 3, "min_steps": 1, "min_seconds": 0.03}


print(f"the update can be cut in pieces of {', '.join(map(str, SIZES))}")

# %%
against_one_piece = {
    size: paired_speedup(update_with(64), update_with(size), **quick) for size in SIZES[:-1]
}
slowdown = {size: 1 / found.estimate for size, found in against_one_piece.items()} | {64: 1.0}
peaks = {size: peak_of(size) for size in SIZES}
per_row = (peaks[32] - peaks[16]) / 16
fixed = peaks[32] - 32 * per_row
print(
    f"a row of {WIDTH} tokens adds {per_row / 1e6:.2f} MB; {fixed / 1e6:.1f} MB are there at any size"
)
compare("3b", peaks[64] / peaks[8], unit="×")
compare("3a", slowdown[1], unit="×")

# %% jupyter={"source_hidden": true}
fig, (left, right) = figure(1, 2, height=3.2)
left.plot(SIZES, [1 / slowdown[size] for size in SIZES], color=BLUE, marker="o")
left.set_xscale("log", base=2)
left.set_xticks(SIZES, labels=SIZES)
left.set_ylim(0, None)
left.set(title="Throughput", xlabel="micro-batch size", ylabel="share of that at 64")
right.plot(SIZES, [peaks[size] / 1e6 for size in SIZES], color=RED, marker="o")
right.axhline(fixed / 1e6, color=GREY, linestyle=":")
right.annotate("gradients and optimizer state", (64, fixed / 1e6), (0, 4),
               textcoords="offset points", ha="right", fontsize=9.5)  # fmt: skip
right.set_xticks([1, 16, 32, 64])
right.set_ylim(0, None)
right.set(title="Peak memory", xlabel="micro-batch size", ylabel="MB")
show(fig, alt="Left, throughput as a share of that at 64: "
     + ", ".join(f"{size}: {1 / times:.2f}" for size, times in slowdown.items())
     + ". Right, peak memory in MB: "
     + ", ".join(f"{size}: {peak / 1e6:.1f}" for size, peak in peaks.items()))  # fmt: skip

# %% [markdown]
# The two curves have different shapes, and all decisions of this lesson rest on that:
#
# - **Throughput saturates.** Each micro-batch has costs that do not depend on its size: Python, the launch of each
#   operation, one more addition into every gradient. Once the arithmetic of a micro-batch outweighs them, a larger one
#   gains little. A GPU has far more units to fill, so there the bend comes later.
# - **Memory is a straight line**, with an offset. Activations grow with rows × width. Gradients and the optimizer's
#   state do not grow at all; with one or two rows they are the whole peak.
#
# So take the largest micro-batch that fits, as long as the curve still rises. And look at the left curve from right to
# left: cutting the update did not make it faster. **Accumulation saves memory, not time.**
#
# ## Who weighs what
#
# `backward()` *adds* to `p.grad`. That is all that accumulation needs: leave out `zero_grad` between the micro-batches.
# The rest is bookkeeping. With one label for each *token* the micro-batches of a window differ widely: short texts,
# padding, positions marked -100. What should each label weigh? In one big batch all weigh the same, 1 / (labels of the
# batch). Here are three micro-batches of one window, and four ways to divide.

# %% jupyter={"source_hidden": true}
torch.manual_seed(0)
tagger = TokenClassifier(
    ModelConfig(
        vocab_size=train.vocab_size, num_classes=5, max_length=WIDTH, d_model=32, dropout=0.0
    )
).to(device)
rng = np.random.default_rng(0)


def tagged(num_texts, length, share):
    """Texts of one length; that share of their tokens has a label, the rest is -100."""
    samples = []
    for ids, _ in pool[:num_texts]:
        tags = np.where(rng.random(length) < share, rng.integers(5, size=length), -100)
        samples.append((ids[:length], tags))
    return loop.to_device(data.collate(samples), device)


def gradient(divisors):
    """The gradient of the window when the summed loss of each micro-batch is divided by its divisor."""
    tagger.zero_grad(set_to_none=True)
    for batch, divisor in zip(window, divisors, strict=True):
        logits = tagger(batch["input_ids"], batch["attention_mask"])
        loss = F.cross_entropy(
            logits.flatten(0, 1), batch["labels"].flatten(), reduction="sum"
        )
        (loss / divisor).backward()
    return torch.cat([p.grad.flatten() for p in tagger.parameters()])


print("a tagger is set up")

# %%
window = [tagged(4, 60, 1.0), tagged(4, 12, 0.5), tagged(1, 8, 0.5)]
labels = [int((batch["labels"] != -100).sum()) for batch in window]
print("labels in the three micro-batches:", labels)
right = gradient([sum(labels)] * 3)  # one big batch: the same rows, padded to one width
ways = {
    "labels of the window": right,
    "mean of means": gradient([len(window) * count for count in labels]),
    "positions": gradient([sum(batch["labels"].numel() for batch in window)] * 3),
    "sum of means": gradient(labels),
}
error = {name: ((found - right).norm() / right.norm()).item() for name, found in ways.items()}
length = {name: (found.norm() / right.norm()).item() for name, found in ways.items()}

# %% jupyter={"source_hidden": true}
fig, (left, right_ax) = figure(1, 2, height=2.4, width_ratios=[1.35, 1.0])
colors = [GREEN, RED, RED, RED]
bars(
    left,
    list(error),
    [100 * value for value in error.values()],
    unit="%",
    digits=0,
    colors=colors,
)
left.set_title("Error of the gradient")
bars(right_ax, list(length), length.values(), unit="×", digits=2, colors=colors)
right_ax.set_yticklabels([])
right_ax.set_title("Its length")
show(fig, alt="Four ways to divide the loss of a window. "
     + "; ".join(f"{name}: error {100 * error[name]:.0f} %, length {length[name]:.2f}×" for name in error))  # fmt: skip

# %% [markdown]
# - **Labels of the window** is the big batch, to the last rounding.
# - **Mean of means** divides each micro-batch by its own count, then by the number of micro-batches. A label in the
#   smallest micro-batch weighs many times as much as one in the largest. The direction is wrong, not only the length.
#   This bug lived in several libraries for years, until it was [found and mended in autumn
#   2024](https://huggingface.co/blog/gradient_accumulation), there for models that take the count.
# - **Positions** has the right direction and is too short: padding and -100 are in the divisor.
# - **Sum of means**, the loss not divided at all, is too long and has the wrong direction. With AdamW the length matters little and the run looks
#   fine, which makes the mistake hard to see; clipping then acts on another number.
#
# The count must be known *before* the first backward, or the gradients scaled *after* the last one. Both are right:
# `(loss_sum / labels).backward()` each time, or `loss_sum.backward()` and one division of all gradients at the end.
#
# An epoch of 9 micro-batches in windows of 4 leaves one over. It makes a window of its own, divided by its own count.
# Divided by 4 all the same, it is a step of a quarter of the length: the default of two frameworks, as
# [In the wild](#In-the-wild) measures.
#
# ### The words of this lesson
#
# The rules are those of [lesson 01](../01_efficient_training_loops/01_efficient_training_loops.ipynb#How-exercises-work): write
# where the cell raises `NotImplementedError`, and put all that your code needs into that cell, imports too. Arguments
# have the types that stand beside them; numbers among them are finite, and seeds lie between 0 and `2**32 - 1`, unless
# the text says otherwise.
#
# A *micro-batch* is a dict of `input_ids` int64 [B, T], `attention_mask` bool [B, T] and `labels`. A *window* is what
# makes one update. B differs from micro-batch to micro-batch.
#
# ### 3.1 · Many small batches, one large gradient
#
# > Difficulty ●●●○○ · Importance ●●●●● · 15 minutes · property, count (optimizer steps, bytes kept for backward) · imports: all that is installed
#
# Train a tagger by accumulation, so that nobody can tell from its weights that there was not one big batch.
#
# <details><summary>Hint: "other weights", and each micro-batch alone is right</summary>
#
# Two micro-batches, one with 1 label and one with 3. In one big batch each label weighs 1/4. What do yours weigh?
#
# </details>
# <details><summary>Hint: "I need the number of labels before I have seen the micro-batches"</summary>
#
# Take the whole window out of the iterator first (`itertools.islice`): batches of ids are small, activations are not.
# Or go backward on the sums, and divide all gradients once before the step.
#
# </details>
# <details><summary>Hint: "NaN in the weights"</summary>
#
# A micro-batch may have no label at all. The mean over nothing is NaN; the sum over nothing is 0.
#
# </details>
# <details><summary>Hint: "every graph is alive until then"</summary>
#
# `backward()` on each micro-batch frees its activations at once. Adding up losses keeps them all.
#
# </details>

# %%
from collections.abc import Iterable
from itertools import islice

import torch
import torch.nn.functional as F

from autograder import exercise


@exercise("3.1")
def train_accumulated(
    model: torch.nn.Module,
    micro_batches: Iterable[dict[str, torch.Tensor]],
    optimizer: torch.optim.Optimizer,
    grad_accum_steps: int,
) -> dict[str, float]:
    """Train `model` in place, all of it in training mode.

    Each `grad_accum_steps` micro-batches make one update. `micro_batches` can be iterated once;
    its dicts and their tensors stay as they are. `labels` is int64 [B, T], -100 where there is
    none; `model(input_ids, attention_mask)` returns logits [B, T, K]. The gradient of an update is
    that of the mean cross-entropy over all labels of its window, whatever stood in `p.grad` before,
    None or NaN too; parameters that came frozen stay as they are (`optimizer` holds them too). The
    last window may have fewer micro-batches and is an update as well. A micro-batch may have no
    label, a window has some, and its loss reaches every parameter that learns. Each micro-batch
    goes through the model alone, and its activations are freed before the next, its logits and
    whatever is as large soon after.

    Returns plain numbers:
        "loss"         mean over all *labels* of the pass of the cross-entropy seen while training
        "num_updates"  optimizer steps
    """
    ### BEGIN SOLUTION
    model.train()
    iterator = iter(micro_batches)
    loss_sum, num_labels, num_updates = 0.0, 0, 0
    while window := list(islice(iterator, grad_accum_steps)):
        labels_in_window = sum(int((batch["labels"] != -100).sum()) for batch in window)
        optimizer.zero_grad(set_to_none=True)
        for batch in window:
            logits = model(batch["input_ids"], batch["attention_mask"])
            loss = F.cross_entropy(
                logits.flatten(0, 1), batch["labels"].flatten(), reduction="sum"
            )  # -100 is the default ignore_index
            (loss / labels_in_window).backward()
            loss_sum = loss_sum + loss.detach()
        optimizer.step()
        num_labels += labels_in_window
        num_updates += 1
    return {"loss": float(loss_sum) / num_labels, "num_updates": num_updates}
    ### END SOLUTION


# %%
check("3.1")


# %% jupyter={"source_hidden": true}
class OneToken(torch.nn.Module):
    """The classifier as a tagger of texts that have one token: its label."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids, attention_mask)[:, None]


def as_tagged(batches):
    return [batch | {"labels": batch["labels"][:, None]} for batch in batches]


print("set up: the classifier as a tagger of texts with one token")

# %%
accumulate = yours("3.1", None)
if accumulate:
    program.micro_batch_size = 8
    program.update = lambda model, micro_batches, optimizer: accumulate(
        OneToken(model), as_tagged(micro_batches), optimizer, len(micro_batches)
    )
so_far("3.1", "in pieces of 8", peak_megabytes, unit="MB", start=at_first)

# %% [markdown]
# ## The largest micro-batch
#
# Pieces of 8 fit. But the throughput curve says: take the largest that does. Nobody computes the limit by hand. You try a
# step, read its peak, and search. Three details decide whether the answer is right:
#
# - Try the **longest** texts that can come. A limit found on short ones fails in the middle of an epoch.
# - Try **whole** updates. A forward pass alone holds neither gradients nor the optimizer's state, and AdamW makes its state
#   in the first step: the peak comes in the second.
# - Take a budget with a margin. The allocator of a GPU keeps blocks of its own, and a full device fragments.

# %%
predict("3i", "Within 10 MB: how many texts of 64 tokens fit into a micro-batch?")

# %%
# The line of the figure, solved for its rows: a guess that a search has to confirm.
compare("3i", (BUDGET - fixed) / per_row, digits=0)

# %% [markdown]
# ### 3.2 · The largest micro-batch that fits
#
# > Difficulty ●●○○○ · Importance ●●●●○ · 10 minutes · property, count (peak live bytes, steps tried) · imports: all that is installed, except `course_lib`
#
# `try_step(size)` runs a real training step and tells its peak of live bytes. Find the largest size within the budget,
# without trying every size, and without ever asking for far too much.
#
# <details><summary>Hint: "one size after the other"</summary>
#
# 1, 2, 4, 8, … until one does not fit. The answer lies between the last two. Halve that gap until it is 1.
#
# </details>
# <details><summary>Hint: "memory taken as proportional to the rows"</summary>
#
# Look at the right curve of the first figure: a line, and it does not start at 0. If you compute the answer from two
# tries, then try it too, and the size above it.
#
# </details>
# <details><summary>Hint: "an error comes out of my function"</summary>
#
# A device that is full raises `torch.OutOfMemoryError`. It says the same as a peak above the budget.
#
# </details>

# %%
from collections.abc import Callable

import torch

from autograder import exercise


@exercise("3.2")
def largest_micro_batch_size(
    try_step: Callable[[int], int], budget_bytes: int, max_size: int
) -> int:
    """The most rows, 1 … max_size, whose training step peaks at no more than `budget_bytes`.

    `try_step(size)` runs one whole step of `size` rows on a fresh copy of the model and returns its
    peak of live bytes, which grows with `size`. Where the device has no more memory it raises
    `torch.OutOfMemoryError`; any other error, KeyboardInterrupt too, is no answer, and reaches the
    caller as it is (a step raises no StopIteration). Returns 0 when one row is too many. Both
    numbers come as `int`; the sizes tried and returned are whole numbers, of Python or of NumPy.

    Every try costs a step: at most 2 · log2(max_size) + 3 of them. None may have more than twice
    the rows that fit (one row is always allowed), and none less than 1 or more than `max_size`.
    """
    ### BEGIN SOLUTION

    def fits(size: int) -> bool:
        try:
            return try_step(size) <= budget_bytes
        except torch.OutOfMemoryError:
            return False

    good, bad = 0, max_size + 1  # the largest known to fit, the smallest known not to
    while good + 1 < bad:
        is_doubling = bad > max_size
        size = min(max(1, 2 * good), max_size) if is_doubling else (good + bad) // 2
        if fits(size):
            good = size
        else:
            bad = size
    return good
    ### END SOLUTION


# %%
check("3.2")

# %%
search = yours("3.2", None)
if search and accumulate:
    tried = []

    def try_step(size):
        tried.append(size)
        return peak_of(size, num_texts=2 * size)

    program.micro_batch_size = min(64, search(try_step, BUDGET, 64))
    print(f"sizes tried: {tried}; found: {program.micro_batch_size}")
so_far("3.2", "as large as fits", peak_megabytes, unit="MB", start=at_first)

# %% [markdown]
# More memory than with pieces of 8, on purpose: it is there, and fewer pieces cost less time. In `course_lib` this is
# `micro_batch_size: auto`.
#
# ## Once an update
#
# Mixed precision, clipping and a schedule come on top. Each of their calls belongs to the micro-step or to the update,
# and a wrong place gives no error. A schedule of 100 updates, stepped once a micro-batch in windows of 4:

# %%
optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
scheduler = warmup_cosine(optimizer, warmup_steps=10, max_steps=100)
rates = []
for _ in range(100):
    rates.append(optimizer.param_groups[0]["lr"])
    optimizer.step()
    for _micro_step in range(4):
        scheduler.step()
dead = next(i for i, rate in enumerate(rates) if i > 5 and rate < 1e-6)
print(f"planned for 100 updates; the rate is zero from update {dead} on")

# %% [markdown]
# ### 3.3 · Everything in its place
#
# > Difficulty ●●●●○ · Importance ●●●●● · 10 minutes · property · imports: all that is installed
#
# Accumulation together with mixed precision, clipping and a schedule. Each of these calls belongs to the micro-step or
# to the update. Sort them. [Lesson 02](../02_mixed_precision/02_mixed_precision.ipynb) has the order for one batch:
# scale → backward → unscale → clip → step → update.
#
# Another order of the same arithmetic, such as a division after the backward, rounds otherwise in bfloat16: by about
# 1 % in a gradient's length, which is no mistake.
#
# <details><summary>Hint: "unscale_() has already been called"</summary>
#
# The scaler remembers until `update()`. Unscale once, when the gradient of the window is complete.
#
# </details>
# <details><summary>Hint: "the clip sees scaled gradients"</summary>
#
# With a scale of 1024 the norm is 1024 times too long, so clipping always strikes. Unscale first.
#
# </details>
# <details><summary>Hint: "the learning rate falls too fast"</summary>
#
# `scheduler.step()` is for updates. Inside the inner loop it comes `grad_accum_steps` times too often.
#
# </details>

# %%
from collections.abc import Iterable
from itertools import islice
from typing import Any

import torch
import torch.nn.functional as F

from autograder import exercise


@exercise("3.3")
def train_accumulated_mixed(
    model: torch.nn.Module,
    micro_batches: Iterable[dict[str, torch.Tensor]],
    optimizer: torch.optim.Optimizer,
    scheduler: Any,
    scaler: torch.amp.GradScaler,
    grad_accum_steps: int,
    max_norm: float,
) -> dict[str, float]:
    """Train `model` in place, all of it in training mode, in bfloat16 under autocast, on the CPU.

    `micro_batches` can be iterated once, its dicts and their tensors stay as they are, and each
    goes through the model alone; `labels` is int64 [B], logits are [B, C]. Forward and loss run
    under `torch.autocast("cpu", torch.bfloat16)`, which takes float32 for `F.cross_entropy`, though
    not for `log_softmax`: the loss is a float32 one. The weights stay float32. `grad_accum_steps`
    micro-batches make one update. Losses are scaled by `scaler`. The gradient of an update is that
    of the mean over the samples of its window, whatever stood in `p.grad` before, None or NaN too,
    unscaled, then clipped to `max_norm`; parameters that came frozen stay as they are (`optimizer`
    holds them too). `scaler` and `scheduler` move once an update; nothing overflows, so that the
    scaler skips no step. The last window may have fewer micro-batches.

    Returns plain numbers:
        "loss"         mean over all samples of the cross-entropy seen while training
        "grad_norm"    mean over updates of the norm of the unscaled gradient *before* clipping
        "num_updates"  optimizer steps
    """
    ### BEGIN SOLUTION
    model.train()
    iterator = iter(micro_batches)
    loss_sum, num_samples, norms = 0.0, 0, []
    while window := list(islice(iterator, grad_accum_steps)):
        rows = sum(len(batch["labels"]) for batch in window)
        optimizer.zero_grad(set_to_none=True)
        for batch in window:  # the micro-step: forward, scale, backward
            with torch.autocast("cpu", torch.bfloat16):
                logits = model(batch["input_ids"], batch["attention_mask"])
                loss = F.cross_entropy(logits, batch["labels"], reduction="sum")
            scaler.scale(loss / rows).backward()
            loss_sum = loss_sum + loss.detach()
        scaler.unscale_(optimizer)  # the update: everything else
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm))
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        num_samples += rows
    return {
        "loss": float(loss_sum) / num_samples,
        "grad_norm": float(torch.stack(norms).mean()),
        "num_updates": len(norms),
    }
    ### END SOLUTION


# %%
check("3.3")

# %%
accumulate_mixed = yours("3.3", None)
if accumulate_mixed and device.type == "cpu":  # it is written for the CPU

    def update(model, micro_batches, optimizer):
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
        scaler = torch.amp.GradScaler("cpu", enabled=False)  # bf16 needs none
        accumulate_mixed(
            model, micro_batches, optimizer, scheduler, scaler, len(micro_batches), 1.0
        )

    program.update = update
so_far("3.3", "in bf16", peak_megabytes, unit="MB", start=at_first)

# %% [markdown]
# ## The larger batch
#
# Until here nothing that the model learns has changed: the same gradient, cut in other ways. Now the truck itself
# grows. Take another recipe: 0.001 at a batch of 8. A batch 8 times as large means an eighth of the updates for each epoch. The gradient of a batch is an average,
# so it does not grow with the batch: it only gets less noisy. With the same rate and an eighth of the updates the
# weights travel about an eighth of the way. The rate has to make up for it. Two rules are in use:
#
# | Rule | Rate for a batch k times as large | Meant for | Source |
# |---|---|---|---|
# | linear | × k | SGD: k small steps in nearly the same direction make one large one | [Goyal et al., 2017](https://arxiv.org/abs/1706.02677) |
# | square root | × √k | Adam, LAMB: they divide by the gradient's size, noise included, and noise falls with √k | [Malladi et al., 2022](https://arxiv.org/abs/2205.10287) |
#
# Both come with **warmup**. A rate that is 8 times as large meets weights that are still far from settled, and the
# first steps can throw them where they never come back from. How likely that is depends on the model: a small one may
# do without. A warmup costs a few updates, a run that diverged costs all of them.
#
# Here is a base run with batches of 8 and four runs with batches of 64, all on the same texts, all by AdamW.

# %%
predict(
    "3c",
    "Batch 8 gains so much on the loss of guessing. Batch 64 at the same rate: which share of that gain?",
    unit="%",
)

# %% jupyter={"source_hidden": true}
SHORT = 32
picked = order[train.lengths[order] >= 8][:3072]
short = [(ids[:SHORT], label) for ids, label in (train[int(i)] for i in picked)]
held_out = cut([(ids[:SHORT], label) for ids, label in (validation[int(i)] for i in
               np.random.default_rng(1).choice(len(validation), 512, replace=False))], 128)  # fmt: skip
BASE_BATCH, BASE_RATE, NUM_TEXTS = 8, 1e-3, 2048


def train_run(batch_size, rates, *, optimizer="adamw", texts=short[:NUM_TEXTS], seed=0):
    """One update for each rate, on fresh batches. Returns the losses of the updates, and the model."""
    model = new_model(seed, d_model=32, num_layers=1)
    update = make_optimizer(model, optimizer, learning_rate=1.0, weight_decay=0.0)
    losses = []
    model.train()
    for step, rate in enumerate(rates):
        for group in update.param_groups:
            group["lr"] = float(rate)
        rows = [texts[(step * batch_size + i) % len(texts)] for i in range(batch_size)]
        batch = loop.to_device(data.collate(rows), device)
        losses.append(loop.train_step(model, batch, update)["loss"])
    return torch.stack(losses).cpu().numpy(), model


def rates_for(batch_size, rule, warmup_share=0.15):
    """One pass over the texts: constant at the scaled rate, after a warmup."""
    num_updates = NUM_TEXTS // batch_size
    peak = scaled_learning_rate(rule, BASE_RATE, batch_size, BASE_BATCH)
    warmup = round(warmup_share * num_updates)
    return schedule_values("constant", peak, num_updates, warmup_steps=warmup)


print(f"{len(short):,} texts of at most {SHORT} tokens to train on")

# %%
plans = {
    "batch 8, the base": (8, rates_for(8, "none", 0.0)),
    "64, rate unchanged": (64, rates_for(64, "none", 0.0)),
    "64, × √8, warmup": (64, rates_for(64, "sqrt")),
    "64, × 8, warmup": (64, rates_for(64, "linear")),
    "64, × 8, no warmup": (64, rates_for(64, "linear", 0.0)),
}
runs, scores = {}, {}
for name, (batch_size, rates) in plans.items():
    losses, model = train_run(batch_size, rates)
    runs[name], scores[name] = losses, loop.evaluate(model, held_out)["loss"]
    print(f"{name:<20} {len(rates):>3} updates   validation loss {scores[name]:.3f}")
guessing = math.log(num_classes)  # the loss where each class is as likely as any other
gains = {name: guessing - score for name, score in scores.items()}
print(f"guessing: {guessing:.3f}")
compare("3c", 100 * gains["64, rate unchanged"] / gains["batch 8, the base"], unit="%")

# %% jupyter={"source_hidden": true}
fig, (left, right) = figure(1, 2, height=3.4, width_ratios=[1.0, 1.35])
styles = dict(
    zip(
        plans,
        ((GREY, "-"), (RED, "-"), (GREEN, "-"), (BLUE, "-"), (ORANGE, "--")),
        strict=True,
    )
)
for name, (batch_size, rates) in plans.items():
    color, line = styles[name]
    seen = np.arange(1, len(rates) + 1) * batch_size
    left.plot(seen, rates, color=color, linestyle=line)
    window_size = 256 // batch_size
    smooth = np.convolve(runs[name], np.ones(window_size) / window_size, mode="valid")
    right.plot(seen[window_size - 1 :], smooth, color=color, linestyle=line, label=name)
left.set(title="Learning rate", xlabel="texts seen", ylim=(0, None))
right.set(title="Training loss, mean of 256 texts", xlabel="texts seen")
right.legend(fontsize=9)
show(fig, alt="Left: the learning rates of five runs. Right: their training losses against texts seen. Validation "
     + "losses at the end: " + ", ".join(f"{name}: {score:.2f}" for name, score in scores.items()))  # fmt: skip

# %% [markdown]
# Compare the runs at the right edge, where all have seen the same texts. The red line is the recipe with
# one number changed: the same data, an eighth of the updates, steps of the old length. It still gains most, because the
# first steps gain most. The scaled runs make up for part of the rest or for all of it. Which rule is best depends on optimizer, model and moment: in a run as short as this one even × 8 may win with AdamW. The
# rules are where you *start*, and the root is the safer start.
# Take the one that did best here, and vary it by a factor of 2 in both directions
# ([lesson 05](../05_hyperparameter_tuning/05_hyperparameter_tuning.ipynb)).
#
# If you move from a large recipe to a small machine, read it the other way round: the batch falls, so the rate falls,
# or you accumulate up to the recipe's batch and change nothing.
#
# ### 3.4 · Eight times the batch, as good a model
#
# > Difficulty ●●●○○ · Importance ●●●●● · 10 minutes · property (sizes, rates, and a target loss within a step budget) · imports: all that is installed
#
# A recipe, a machine, a target batch: make the plan. The check does the arithmetic on secret machines. Then it trains a
# model of its own by your rates: SGD, 8 times the batch, an eighth of the updates, and the loss of the small batch must
# be reached.
#
# <details><summary>Hint: "rounded down"</summary>
#
# The target batch is seldom a multiple of what fits. Reach it or exceed it: `math.ceil`. Then scale the rate to the
# batch that you *have*.
#
# </details>
# <details><summary>Hint: "the other optimizer's rule"</summary>
#
# Linear for SGD, square root for AdamW. [The larger batch](#The-larger-batch) says why.
#
# </details>
# <details><summary>Hint: "too low for most of the run"</summary>
#
# A tenth of the updates is enough warmup here. After it a constant rate will do, or a schedule that falls late.
#
# </details>

# %%
import math
from typing import Any

from autograder import exercise


@exercise("3.4")
def plan_large_batch(
    *,
    target_batch_size: int,
    max_micro_batch_size: int,
    world_size: int,
    base_batch_size: int,
    base_learning_rate: float,
    max_steps: int,
    optimizer: str,
) -> dict[str, Any]:
    """Plan a training with a larger effective batch than the recipe's.

    The recipe: `base_learning_rate` at an effective batch of `base_batch_size`.
    The machine: `world_size` devices, each of which holds up to `max_micro_batch_size` rows.
    The wish: an effective batch of at least `target_batch_size`, in as few accumulation steps as
    possible, for `max_steps` updates, 2 or more. `optimizer` is "sgd" (linear scaling) or "adamw"
    (square root).

    Returns a dict, its sizes as ints:
        "micro_batch_size"   rows per device and forward pass
        "grad_accum_steps"   micro-batches per device and update
        "global_batch_size"  the effective batch that comes of it
        "learning_rates"     a list of `max_steps` floats, the rate of each update. The peak is the
                             base rate scaled to `global_batch_size`; up to it, and counting it, a
                             warmup over at least 5 % of the updates, from at most half the peak.
    """
    ### BEGIN SOLUTION
    grad_accum_steps = math.ceil(target_batch_size / (max_micro_batch_size * world_size))
    # As many steps as needed, then as few rows as reach the target.
    micro_batch_size = math.ceil(target_batch_size / (grad_accum_steps * world_size))
    global_batch_size = micro_batch_size * grad_accum_steps * world_size
    growth = global_batch_size / base_batch_size
    peak = base_learning_rate * (growth if optimizer == "sgd" else math.sqrt(growth))
    warmup_steps = max(2, max_steps // 10)
    return {
        "micro_batch_size": micro_batch_size,
        "grad_accum_steps": grad_accum_steps,
        "global_batch_size": global_batch_size,
        "learning_rates": [
            peak * min(1.0, (step + 1) / warmup_steps) for step in range(max_steps)
        ],
    }
    ### END SOLUTION


# %%
check("3.4")

# %%
plan = yours("3.4", None)
if plan:
    planned = plan(
        target_batch_size=64,
        max_micro_batch_size=program.micro_batch_size,
        world_size=1,
        base_batch_size=BASE_BATCH,
        base_learning_rate=BASE_RATE,
        max_steps=NUM_TEXTS // 64,
        optimizer="adamw",
    )
    _, model = train_run(planned["global_batch_size"], planned["learning_rates"])
    print(
        f"your plan: {planned['grad_accum_steps']} × {planned['micro_batch_size']} texts, validation loss "
        f"{loop.evaluate(model, held_out)['loss']:.3f}; unchanged rate {scores['64, rate unchanged']:.3f}"
    )

# %% [markdown]
# ## Activations, computed again
#
# Forward keeps what backward will need. **Activation checkpointing** keeps only the input of each block, and computes
# the block again when backward arrives there ([Chen et al., 2016](https://arxiv.org/abs/1604.06174)). Memory for
# arithmetic: one more forward pass. How much of each?

# %%
predict(
    "3e",
    "Peak bytes with checkpoints in each block, as a share of the plain model's?",
    unit="%",
)

# %% jupyter={"source_hidden": true}
DEEP = {"num_layers": 6, "d_model": 64, "dropout": 0.1}


def deep_step(is_checkpointed: bool):
    model = new_model(**DEEP)
    if is_checkpointed:
        apply_activation_checkpointing(model)
    batches, optimizer = cut(UPDATE[:16], 16), make_optimizer(model)
    return lambda: loop.train_step(model, batches, optimizer)


plain_peak, checkpointed_peak = (peak_bytes(deep_step(flag), device) for flag in (False, True))
checkpoint_speedup = paired_speedup(deep_step(False), deep_step(True), **quick)
share = 100 * checkpointed_peak / plain_peak
print(f"peak: plain {plain_peak / 1e6:.1f} MB, checkpointed {checkpointed_peak / 1e6:.1f} MB")
print(f"time of a step, checkpointed over plain: {1 / checkpoint_speedup.estimate:.2f}×")
compare("3e", share, unit="%")

# %% [markdown]
# Backward costs about twice a forward, so by arithmetic one more forward makes the step a third longer. A small model
# pays more: Python and the state of the random generator count twice too. The room it makes can be filled with a larger micro-batch. Whether that pays is read off the throughput
# curve: on its flat part you pay and gain nothing. Checkpointing is for models and widths that do not fit
# *at all*, or whose micro-batch would be 1.
#
# The second forward must be the *same* forward. Dropout draws random numbers, so torch keeps the generator's state at
# each checkpoint and puts it back. Without it the gradients are wrong, silently.
#
# `torch.utils.checkpoint.checkpoint(function, *inputs, use_reentrant=False)` is one such block. The older form,
# `use_reentrant=True`, gives no gradients where no input has one, as behind frozen embeddings.
#
# ### 3.5 · Compute again instead of keeping
#
# > Difficulty ●●●○○ · Importance ●●●○○ · 10 minutes · property, count (peak bytes at most 0.6×), speed (a step in at most 1.6× the time) · imports: all that is installed
#
# Give a classifier activation checkpoints: by hand, or by anything that is installed. Its gradients must stay as they
# are, with dropout on. A bound on the time is a speed verdict too: plain over checkpointed must be at least
# 1 / 1.6 = 0.625×.
#
# <details><summary>Hint: "how do I get between a block and its caller?"</summary>
#
# Replace `block.forward` by a function that calls `checkpoint` on the old one, or put a module of yours in the place of
# the block. Mind the loop variable: a lambda sees its last value. `functools.partial` does not.
#
# </details>
# <details><summary>Hint: "one checkpoint around everything"</summary>
#
# When backward starts, everything in it is computed again at once, and all of it is alive. Smaller pieces: one for each
# block.
#
# </details>
# <details><summary>Hint: "the gradients differ, but only with dropout"</summary>
#
# The second forward must drop the same values. `checkpoint` takes care of it unless it is told not to.
#
# </details>

# %%
import functools

import torch
from torch.utils.checkpoint import checkpoint

from autograder import exercise


@exercise("3.5")
def checkpoint_blocks(model: torch.nn.Module) -> torch.nn.Module:
    """Make `model` keep less for backward, and compute the rest again; returns the model.

    `model` is a `TextClassifier`: `model.blocks` is a `ModuleList` whose modules are called as
    `block(hidden [B, T, D], key_mask bool [B, 1, 1, T])` and return [B, T, D]. Changed in place or
    wrapped, what you return is called as `model(input_ids, attention_mask)`, and has the very
    parameters that `model` had, in the same order: an optimizer may hold them already. The model's
    mode, its gradients and what is frozen stay as they are, and nothing is drawn. Logits and
    gradients are those of the plain model under the same seed, in training with dropout as well as
    in evaluation, also where the embeddings are frozen, or where several batches go forward before
    their losses go backward together.
    """
    ### BEGIN SOLUTION
    for block in model.blocks:
        # The input of the block is kept; what happens inside is computed again in backward.
        block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)
    return model
    ### END SOLUTION


# %%
check("3.5")

# %%
checkpoint_it = yours("3.5", None)
if checkpoint_it:
    program.prepare = checkpoint_it
so_far("3.5", "with checkpoints", peak_megabytes, unit="MB", start=at_first)

# %% [markdown]
# The model of this program has two blocks, so there is little to compute again. What it buys grows with the depth.
#
# ## The challenge
#
# ### 3.6 · Challenge: a fixed budget, the best throughput
#
# > Difficulty ●●●●○ · Importance ●●●●○ · 20 minutes · property, count (peak bytes), speed (at least 1.3× over micro-batches of 4) · imports: all that is installed
#
# Everything together: updates of a given size, a budget in bytes, texts of very different lengths. Somebody chose
# micro-batches of 4, because that always fits. You know better.
#
# <details><summary>Hint: "too large for the longest texts"</summary>
#
# What does a micro-batch cost: its rows, or rows × width? `step_bytes` knows. Ask it before you add a row.
#
# </details>
# <details><summary>Hint: "it fits, but it is hardly faster"</summary>
#
# Count your micro-batches for each update. If the longest text of a mixed micro-batch decides how many rows fit,
# which texts should stand together? Lesson 01 has the answer, and inside one update the order is yours.
#
# </details>
# <details><summary>Hint: "other weights"</summary>
#
# Your micro-batches are uneven now. Divide by the texts of the update; its last one may be shorter.
#
# </details>

# %%
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from autograder import exercise


@exercise("3.6")
def train_in_budget(
    model: torch.nn.Module,
    samples: list[tuple[np.ndarray, int]],
    optimizer: torch.optim.Optimizer,
    global_batch_size: int,
    budget_bytes: int,
    step_bytes: Callable[[int, int], int],
) -> dict[str, float]:
    """Train `model` in place, all of it in training mode, on each of `samples` once.

    samples: `(ids, label)`, of uneven lengths, none of them cut; any id may stand in them, 0 too,
        and a sample may stand in the list twice. The list and its arrays stay as they are. Update
        number k is made of the samples k · global_batch_size … (k + 1) · global_batch_size - 1, the
        last one of what is left, in whatever micro-batches you cut it into. Its gradient is that of
        the mean cross-entropy over its samples, whatever stood in `p.grad` before, None or NaN too;
        parameters that came frozen stay as they are (`optimizer` holds them too); nothing is
        clipped.
    step_bytes(rows, width): peak bytes of an update whose largest micro-batch is rows × width,
        measured before, as in 3.2; it may grow faster than a line in both. The peak of every
        update is at most `budget_bytes` by that measure; the check adds 5 % for batches themselves.
    `model(input_ids, attention_mask)` returns logits [B, C].
    Returns plain numbers: {"loss": mean over samples while training, "num_updates": optimizer steps}.
    """
    ### BEGIN SOLUTION
    device = next(model.parameters()).device
    model.train()
    loss_sum = torch.zeros((), device=device)
    num_updates = 0
    for start in range(0, len(samples), global_batch_size):
        # Like lengths together: then what fits is decided by rows that are about as wide.
        window = sorted(samples[start : start + global_batch_size], key=lambda s: len(s[0]))
        cuts: list[list[Any]] = [[]]
        for sample in window:  # sorted: the sample that is added is the widest
            if cuts[-1] and step_bytes(len(cuts[-1]) + 1, len(sample[0])) > budget_bytes:
                cuts.append([])
            cuts[-1].append(sample)
        optimizer.zero_grad(set_to_none=True)
        for rows in cuts:
            width = len(rows[-1][0])
            ids = np.zeros((len(rows), width), dtype=np.int64)
            mask = np.zeros((len(rows), width), dtype=np.bool_)
            for row, (text, _) in enumerate(rows):
                ids[row, : len(text)] = text
                mask[row, : len(text)] = True
            labels = torch.tensor([label for _, label in rows], device=device)
            logits = model(torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device))
            loss = F.cross_entropy(logits, labels, reduction="sum")
            (loss / len(window)).backward()
            loss_sum += loss.detach()
        optimizer.step()
        num_updates += 1
    return {"loss": loss_sum.item() / len(samples), "num_updates": num_updates}
    ### END SOLUTION


# %%
check("3.6")

# %% [markdown]
# ## The batch-size checklist
#
# | # | Question | Where to look |
# |---|---|---|
# | 1 | What is the effective batch? Write it down: micro-batch × devices × accumulation steps | the config, and the count of updates per epoch |
# | 2 | Does the micro-batch fit with the longest texts, a whole step, and a margin? | 3.2 |
# | 3 | Is the throughput curve still rising at your micro-batch? If not, a smaller one is as fast and leaves memory | the first figure, on your machine |
# | 4 | Is the loss of an update divided by the items of its window, -100 left out? | one big batch against accumulation, weights after one step of SGD |
# | 5 | Does the tail step, with its own count? | updates per epoch, rounded up |
# | 6 | Unscale, clip, step, schedule: once an update? | the log of the learning rate |
# | 7 | Was the rate scaled with the batch, and warmed up? | linear for SGD, square root for AdamW, then vary by 2 |
# | 8 | Memory still short? In this order: smaller micro-batch and accumulation, mixed precision, checkpointing, an optimizer with less state | each measured before the next |
#
# ## Quiz
#
# You pass with 70 %. One of the questions is measured on this machine when you answer. Without a mouse:
# `from autograder import answer`, then `answer("03.3", "b")`.

# %%
quiz("03")

# %%
check_quiz("03")

# %% [markdown]
# ## What next
#
# You can now choose trays for speed and trucks for learning, and prove that how you cut a batch changes nothing else.
#
# - Run `course-lib train --data your.csv --set micro_batch_size=auto --set lr_scaling=sqrt --out runs/third` in a
#   terminal. The record says which size was found, and why.
# - Take a recipe that you use. Compute its effective batch. Then train it with half the micro-batch and twice the
#   accumulation: if the loss curve changes, something is divided by the wrong count.
# - [Lesson 04](../04_checkpointing_and_early_stopping/04_checkpointing_and_early_stopping.ipynb) saves what you have
#   trained, and [lesson 06](../06_distributed_training/06_distributed_training.ipynb) takes the same window over
#   several devices.
# - The [start page](../00_start_here/00_start_here.ipynb) shows your progress and the map.

# %% [markdown]
# ## More
#
# From here on all is outside the 100 minutes. Take what you need. A piece needs the cells of
# [the program](#The-program), and what stands above it under the same heading; drill 3 also those of
# [Activations, computed again](#Activations,-computed-again).
#
# ### Accumulation in plain torch
#
# `backward()` *adds* to `p.grad`. That is all that accumulation needs: leave out `zero_grad` between the micro-batches.
# The rest is bookkeeping, and every line of it can be wrong.


# %%
def train_accumulated_plainly(model, micro_batches, optimizer, scheduler, *, grad_accum_steps):
    model.train()
    for start in range(0, len(micro_batches), grad_accum_steps):
        window = micro_batches[start : start + grad_accum_steps]  # the last may be shorter
        rows = sum(len(batch["labels"]) for batch in window)  # known before the first backward
        optimizer.zero_grad(set_to_none=True)  # once a window
        for batch in window:
            logits = model(batch["input_ids"], batch["attention_mask"])
            loss = F.cross_entropy(logits, batch["labels"], reduction="sum")
            (loss / rows).backward()  # adds to the gradients, and frees the activations
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # the whole gradient, once
        optimizer.step()
        scheduler.step()  # the schedule counts updates


uneven = cut(pool[:100], 12)  # 8 micro-batches of 12 and one of 4
num_updates = math.ceil(len(uneven) / 4)
plain_model = new_model(seed=1)
optimizer = torch.optim.SGD(plain_model.parameters(), lr=0.1)
scheduler = warmup_cosine(optimizer, warmup_steps=1, max_steps=num_updates)
train_accumulated_plainly(plain_model, uneven, optimizer, scheduler, grad_accum_steps=4)
print(
    f"{len(uneven)} micro-batches in windows of 4: {num_updates} updates, the last of 1 micro-batch"
)

# %% [markdown]
# ### The same with `course_lib`
#
# `train_step` takes one batch, or a list of micro-batches that make one update. `fit` gathers the lists by itself:
# `grad_accum_steps=4`.

# %%
library_model = new_model(seed=1)
optimizer = torch.optim.SGD(library_model.parameters(), lr=0.1)
scheduler = warmup_cosine(optimizer, warmup_steps=1, max_steps=num_updates)
with count_events(library_model) as counts:
    loop.fit(
        library_model, uneven, optimizer, scheduler=scheduler, max_epochs=1, grad_accum_steps=4
    )

one_piece = new_model(seed=1)
optimizer = torch.optim.SGD(one_piece.parameters(), lr=0.1)
scheduler = warmup_cosine(optimizer, warmup_steps=1, max_steps=num_updates)
loop.fit(one_piece, cut(pool[:100], 48), optimizer, scheduler=scheduler, max_epochs=1)


def distance(first, second):
    pairs = zip(first.parameters(), second.parameters(), strict=True)
    return max((a - b).abs().max().item() for a, b in pairs)


print(f"forward passes {counts.num_forwards}, optimizer steps {counts.num_optimizer_steps}")
print(
    f"library against plain torch:      weights differ by {distance(library_model, plain_model):.1e}"
)
print(
    f"library against batches of 48:    weights differ by {distance(library_model, one_piece):.1e}"
)

# %% [markdown]
# | Plain torch | `course_lib` | What changed in meaning |
# |---|---|---|
# | slices of a list | `grad_accum_steps=4` | nothing; any iterator will do, also one that never fits in memory |
# | `rows` by hand | items of the window, summed | tokens where labels are per token; -100 counts nothing |
# | – | summed over processes too | with several devices an item still weighs the same ([lesson 06](../06_distributed_training/06_distributed_training.ipynb#Accumulate,-then-exchange-once)) |
# | – | `no_sync` around all but the last micro-batch | devices exchange gradients once an update |
#
# Equal up to rounding: sums in another order. Exercise [3.1](#3.1-·-Many-small-batches,-one-large-gradient) asks for
# exactly this equality.
#
# ### When larger batches stop paying
#
# (The runs are those of [The larger batch](#The-larger-batch).) Doubling the batch halves the updates that reach a target, up to a point. Why only up to a point? A gradient has a
# part that all texts agree on, and noise that averages out. Once the noise is gone there is nothing left to average.
# The **gradient noise scale** says where: the variance of one text's gradient over the squared length of the true one
# ([McCandlish et al., 2018](https://arxiv.org/abs/1812.06162)). It needs only gradient norms at two batch sizes:
#
# > |G|² ≈ (B·|g_B|² − b·|g_b|²) / (B − b)  and  S ≈ (|g_b|² − |g_B|²) / (1/b − 1/B),  noise scale = S / |G|²
#
# Far below it, a doubled batch is worth nearly twice as much. Far above it, nearly nothing. At the beginning of a
# training the gradient is clear and the noise scale small; it grows as the loss falls.

# %%
predict(
    "3d",
    "A batch of 128 instead of 8: how many times fewer updates to the same loss?",
    unit="×",
)


# %%
def squared_norm(model, texts):
    model.zero_grad(set_to_none=True)
    (batch,) = cut(texts, len(texts))
    logits = model(batch["input_ids"], batch["attention_mask"])
    F.cross_entropy(logits, batch["labels"]).backward()
    return sum(p.grad.square().sum() for p in model.parameters()).item()


def noise_scale(model, small=4, large=64, num_batches=6):
    """Texts at which the noise of a batch's gradient is as long as the gradient itself."""
    big = np.mean(
        [squared_norm(model, short[i * large : (i + 1) * large]) for i in range(num_batches)]
    )
    little = np.mean(
        [
            squared_norm(model, short[i * small : (i + 1) * small])
            for i in range(4 * num_batches)
        ]
    )
    signal = (large * big - small * little) / (large - small)
    noise = (little - big) / (1 / small - 1 / large)
    return noise / signal if signal > 0 else math.inf


def updates_to(target, batch_size, max_updates):
    """Updates until the mean loss of the last 256 texts is at most `target`."""
    rate = scaled_learning_rate("sqrt", 1e-3, batch_size, 8)
    warmup = min(10, 128 // batch_size)
    rates = schedule_values("constant", rate, max_updates, warmup_steps=warmup)
    losses, _ = train_run(batch_size, rates, texts=short)
    size = max(1, 256 // batch_size)
    smooth = np.convolve(losses, np.ones(size) / size, mode="valid")
    reached = np.flatnonzero(smooth <= target)
    return int(reached[0]) + size if len(reached) else None


TARGET = float(np.mean(runs["batch 8, the base"][-32:]))
needed = {size: updates_to(TARGET, size, 2560 // size) for size in (8, 16, 32, 64, 128)}
needed = {size: number for size, number in needed.items() if number}
first, trained = (
    new_model(d_model=32, num_layers=1),
    train_run(64, plans["64, × √8, warmup"][1])[1],
)
print(f"noise scale at the start:  about {noise_scale(first):.0f} texts")
print(f"after {NUM_TEXTS} texts:          about {noise_scale(trained):.0f} texts")
for size, number in needed.items():
    print(
        f"batch {size:>3}: {number:>4} updates, {number * size:>5} texts, to a loss of {TARGET:.2f}"
    )
largest = max(needed)
compare("3d", needed[8] / needed[largest], unit="×")

# %% jupyter={"source_hidden": true}
fig, (left, right) = figure(1, 2, height=3.0)
batch_sizes = list(needed)
left.plot(
    batch_sizes, [needed[8] * 8 / size for size in batch_sizes], color=GREY, linestyle=":"
)
left.plot(batch_sizes, list(needed.values()), color=BLUE, marker="o")
left.annotate("perfect scaling", (64, needed[8] / 8), (-8, -8), textcoords="offset points",
              ha="right", va="top", fontsize=9.5)  # fmt: skip
right.plot(
    batch_sizes, [size * number for size, number in needed.items()], color=RED, marker="o"
)
for ax in (left, right):
    ax.set_xscale("log", base=2)
    ax.set_xticks(batch_sizes, labels=batch_sizes)
    ax.set_xlabel("batch size")
left.set_yscale("log", base=2)
left.set_yticks(list(needed.values()), labels=list(needed.values()))
left.set_title("Updates to the target loss")
right.set(title="Texts to the target loss", ylim=(0, None))
show(fig, alt="Updates and texts to the same loss: "
     + ", ".join(f"batch {size}: {number} updates, {number * size} texts" for size, number in needed.items()))  # fmt: skip

# %% [markdown]
# The right panel is the bill: texts are computing time. As long as it is flat, a larger batch costs
# nothing and can be spread over more devices. Where it rises, you buy fewer updates with more work. On *one* device
# there is nothing to spread: beyond the bend of the throughput curve a larger batch only costs.
#
# ### Optimizers that keep less
#
# AdamW keeps two numbers for each weight. What do others keep? Measured, after one step:


# %%
def is_installed(package: str) -> bool:
    found = importlib.util.find_spec(package) is not None
    if not found:
        print(f"{package} is not installed, so it is left out here. Nothing later needs it.")
    return found


def tensors_in(value):
    """All tensors of an optimizer's state, however it nests them."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [tensor for item in value.values() for tensor in tensors_in(item)]
    return []


def state_bytes_per_weight(name: str) -> float:
    model = new_model()
    optimizer = make_optimizer(model, name)
    loop.train_step(model, cut(UPDATE, 8)[:1], optimizer)
    storages = {
        tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes()
        for state in optimizer.state.values()
        for tensor in tensors_in(state)
    }
    return sum(storages.values()) / sum(p.numel() for p in model.parameters())


needs = {"lamb": "pytorch_optimizer", "adamw-8bit": "bitsandbytes"}
state = {
    name: state_bytes_per_weight(name)
    for name in OPTIMIZERS
    if name != "adam" and (name not in needs or is_installed(needs[name]))
}

# %% jupyter={"source_hidden": true}
fig, ax = figure(height=0.5 + 0.4 * len(state))
bars(ax, list(state), state.values(), unit="bytes", digits=2,
     colors=[GREEN if value < 3 else BLUE for value in state.values()])  # fmt: skip
ax.set_title("State that the optimizer keeps, for each weight of 4 bytes")
show(fig, alt="Bytes of optimizer state per weight: "
     + ", ".join(f"{name} {value:.2f}" for name, value in state.items()))  # fmt: skip

# %% [markdown]
# | Optimizer | What it keeps | Take it when |
# |---|---|---|
# | SGD with momentum | one average | you know that it suits your model; convolutions, often |
# | AdamW | averages of gradient and square | the default for transformers |
# | LAMB ([You et al., 2020](https://arxiv.org/abs/1904.00962)) | the same, and scales each layer's step | very large batches: it saves no memory, it makes them learn |
# | LARS ([You et al., 2017](https://arxiv.org/abs/1708.03888)) | as SGD, and scales each layer's step | the same for convolutions |
# | Adafactor ([Shazeer and Stern, 2018](https://arxiv.org/abs/1804.04235)) | one row and one column of squares for each matrix | weights and state do not fit otherwise |
# | 8-bit AdamW ([Dettmers et al., 2022](https://arxiv.org/abs/2110.02861)) | both averages in 8 bits, with a scale for each block | as AdamW, at about a quarter of its state |
#
# LARS and LAMB answer another question than memory: at a large batch and a large rate, some layers take steps as long
# as the layer itself. The *trust ratio* is the length of a layer's weights over that of its step; with
# plain SGD the step is the gradient times the rate. One rate for all layers cannot fit when the ratios differ as they
# do here:

# %%
model = new_model()
(batch,) = cut(UPDATE, 64)
F.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"]).backward()
ratios = {
    name.removesuffix(".weight"): (p.norm() / p.grad.norm()).item()
    for name, p in model.named_parameters()
    if p.ndim == 2 and "blocks.1" not in name
}
for name, ratio in ratios.items():
    print(f"{name:<30} length of the weights / length of the gradient: {ratio:8.1f}")
print(f"the largest is {max(ratios.values()) / min(ratios.values()):.0f} times the smallest")

# %% [markdown]

# %% [markdown]
# ### Muon beside AdamW
#
# Muon ([Jordan, 2024](https://kellerjordan.github.io/posts/muon/)) makes the step of each matrix orthogonal, so that no
# direction of it is learned much faster than the others. It keeps one average for a matrix of the blocks where AdamW keeps two; embeddings and head, most of this model, stay with
# AdamW. Here
# are both, and LAMB where it is installed, on the same batches of 64 at the same rates. (It needs
# [The larger batch](#The-larger-batch) and `is_installed` from the piece above. The rates are AdamW's; LAMB wants others.)

# %%
names = ["adamw", "muon", *(["lamb"] if is_installed("pytorch_optimizer") else [])]
for name in names:
    losses = []
    for seed in range(3):
        _, model = train_run(64, rates_for(64, "sqrt"), optimizer=name, seed=seed)
        losses.append(loop.evaluate(model, held_out)["loss"])
    print(
        f"{name:<6} validation loss at three seeds: " + "  ".join(f"{x:.3f}" for x in losses)
    )

# %% [markdown]
# ### Batch norm does not accumulate
#
# All the equalities of this lesson need one thing: rows must not see each other. In a transformer with LayerNorm they
# do not. *Batch norm* normalises by the mean and variance of the micro-batch, so there the micro-batch size changes the
# function itself, and no division makes up for it.


# %%
def norm_gap(norm):
    """Relative difference of the gradients: one batch of 32 against 8 accumulated pieces of 4."""
    torch.manual_seed(0)
    inputs, targets = torch.randn(32, 10), torch.randint(3, (32,))
    net = torch.nn.Sequential(
        torch.nn.Linear(10, 16), norm, torch.nn.ReLU(), torch.nn.Linear(16, 3)
    )
    found = []
    for size in (32, 4):
        net.zero_grad()
        for rows in torch.arange(32).split(size):
            (
                F.cross_entropy(net(inputs[rows]), targets[rows], reduction="sum") / 32
            ).backward()
        found.append(torch.cat([p.grad.flatten() for p in net.parameters()]))
    return ((found[0] - found[1]).norm() / found[0].norm()).item()


print(f"LayerNorm:   gradients differ by {100 * norm_gap(torch.nn.LayerNorm(16)):.4f} %")
print(f"BatchNorm1d: gradients differ by {100 * norm_gap(torch.nn.BatchNorm1d(16)):.1f} %")

# %% [markdown]
# With batch norm, keep the micro-batch at the size that the recipe had, or freeze the norms (`eval()` on
# them), or take GroupNorm. Over several devices `SyncBatchNorm` computes the statistics across them; across
# accumulation steps nothing does.
#
# ### In the wild
#
# The frameworks count and divide for you, each in its own way. The cells measure it with a model of one weight, whose
# gradient is exactly 1 for every micro-batch: five micro-batches, windows of 4, SGD with rate 1. A right update moves
# the weight by −1, twice: once for the window of four, once for the tail of one. The defaults below are those of
# Transformers 5.23, Accelerate 1.15 and Lightning 2.6.


# %%
class OneWeight(torch.nn.Module):
    """The loss is the weight times the mean of x: its gradient is 1 where x is 1."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))

    def forward(self, x):
        return {"loss": self.weight * x.mean()}


FIVE = [{"x": torch.ones(())} for _ in range(5)]


def report_moves(name, positions):
    moves = np.diff([0.0, *positions])
    print(f"{name}: the weight moves by " + ", ".join(f"{move:+.2f}" for move in moves))


# %% [markdown]
# #### Hugging Face Trainer
#
# | This lesson | `TrainingArguments` | Default | What surprises |
# |---|---|---|---|
# | micro-batch | `per_device_train_batch_size` | 8 | per device: the effective batch grows with the devices |
# | accumulation | `gradient_accumulation_steps` | 1 | `max_steps`, `logging_steps`, `save_steps` and `warmup_steps` count *updates* |
# | token weights | `num_items_in_batch`, given to models that take it, or to `compute_loss_func` | – | **a model with a loss of its own gets the mean of means**: the Trainer only divides by the micro-batches of the window |
# | over devices | `average_tokens_across_devices` | `True` | nothing: the devices agree on the number of labels. Leave it |
# | search for what fits | `auto_find_batch_size` | `False` | takes 0.9 of the size at each failure; rate and accumulation stay, so **the effective batch shrinks silently** |
# | checkpointing | `activation_checkpointing` | `False` | its older name `gradient_checkpointing` still works, and warns |
# | optimizer | `optim` | `"adamw_torch_fused"` | `"adafactor"`, `"adamw_bnb_8bit"` and others by name |

# %%
if is_installed("transformers") and is_installed("accelerate"):
    import logging

    logging.disable(logging.WARNING)  # importing it reports each optional part that is missing
    from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

    logging.disable(logging.NOTSET)

    class Positions(TrainerCallback):
        def __init__(self):
            self.seen = []

        def on_step_end(self, args, state, control, model=None, **kwargs):
            self.seen.append(model.weight.item())

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            num_train_epochs=1,
            per_device_train_batch_size=1,
            gradient_accumulation_steps=4,
            max_grad_norm=0.0,  # 0 switches clipping off
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=device.type == "cpu",
            dataloader_pin_memory=device.type == "cuda",
        )
        one_weight, positions = OneWeight(), Positions()
        sgd = torch.optim.SGD(one_weight.parameters(), lr=1.0)
        constant = torch.optim.lr_scheduler.LambdaLR(sgd, lambda step: 1.0)
        trainer = Trainer(one_weight, arguments, train_dataset=FIVE, callbacks=[positions],
                          optimizers=(sgd, constant))  # fmt: skip
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        report_moves("Trainer", positions.seen)
    print("defaults:")
    for name in ("per_device_train_batch_size", "gradient_accumulation_steps",
                 "average_tokens_across_devices", "auto_find_batch_size"):  # fmt: skip
        print(f"  {name} = {TrainingArguments.__dataclass_fields__[name].default}")

# %% [markdown]
# #### Accelerate
#
# | This lesson | `Accelerator` | Default | What surprises |
# |---|---|---|---|
# | accumulation | `gradient_accumulation_steps`, and `with accelerator.accumulate(model):` | 1 | `optimizer.step()`, `zero_grad()` and `scheduler.step()` stand in the loop and do nothing until the window is full |
# | the divisor | in `accelerator.backward(loss)` | – | **always the full number of steps**, also for the tail; and means of means unless you pass sums |
# | clipping | `if accelerator.sync_gradients: accelerator.clip_grad_norm_(…)` | – | without the `if` it clips at every micro-step |
# | the tail | `GradientAccumulationPlugin(sync_with_dataloader=True)` | `True` | the end of the loader ends the window |
# | search | `find_executable_batch_size` | – | catches out-of-memory and goes on with 0.9 of the size |

# %%
if is_installed("accelerate"):
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=device.type == "cpu", gradient_accumulation_steps=4)
    one_weight = OneWeight()
    sgd = torch.optim.SGD(one_weight.parameters(), lr=1.0)
    loader = torch.utils.data.DataLoader(FIVE, batch_size=1)
    one_weight, sgd, loader = accelerator.prepare(one_weight, sgd, loader)
    seen = []
    for batch in loader:
        with accelerator.accumulate(one_weight):
            accelerator.backward(one_weight(batch["x"])["loss"])
            sgd.step()
            sgd.zero_grad()
            if accelerator.sync_gradients:
                seen.append(one_weight.weight.item())
    report_moves("Accelerate", seen)

# %% [markdown]
# #### Lightning
#
# | This lesson | `Trainer` / `LightningModule` | Default | What surprises |
# |---|---|---|---|
# | accumulation | `accumulate_grad_batches` | 1 | `max_steps` counts updates, `log_every_n_steps` too; `limit_train_batches` counts micro-batches |
# | the divisor | inside | – | **always the full number**, also for the tail; means of means |
# | the tail | inside | – | the last batch of an epoch always steps |
# | another number later | `GradientAccumulationScheduler` | – | the effective batch changes in the middle, the rate does not |
# | search | `BatchSizeFinder` | – | `mode="power"` gives powers of two only; `"binsearch"` is 3.2, less a margin of 5 % |
# | batch norm over devices | `sync_batchnorm` | `False` | across accumulation steps nothing helps |

# %%
if is_installed("lightning"):
    import logging

    from lightning.pytorch import LightningModule, Trainer

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class LitOneWeight(LightningModule):
        def __init__(self):
            super().__init__()
            self.model, self.seen = OneWeight(), []

        def training_step(self, batch, batch_idx):
            return self.model(batch["x"])["loss"]

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=1.0)

        def optimizer_step(self, *args, **kwargs):
            super().optimizer_step(*args, **kwargs)
            self.seen.append(self.model.weight.item())

    with warnings.catch_warnings():
        # The warnings advise about workers and loggers, as lesson 01 does.
        warnings.simplefilter("ignore")
        trainer = Trainer(
            max_epochs=1, accumulate_grad_batches=4, logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False, accelerator="auto", devices=1,
        )  # fmt: skip
        lit = LitOneWeight()
        trainer.fit(lit, torch.utils.data.DataLoader(FIVE, batch_size=1))
    report_moves("Lightning", lit.seen)

# %% [markdown]
# A second move of −0.25 is the tail divided by 4, though it is one micro-batch. In an epoch of thousands
# of updates it is one short step and hurts nobody. In a fine-tuning of 20 updates, or with windows of 64, it is a part
# of your data at a fraction of its weight. The cure is the same everywhere: drop nothing, divide by what is there, or
# choose sizes that leave no rest.
#
# ### Drills
#
# Not graded. Each takes a few minutes: predict, run, then change the value that says `try` and run again.
#
# **Drill 1 · Half the width.** [3.2](#3.2-·-The-largest-micro-batch-that-fits) found a micro-batch for texts of 64 tokens in 10 MB, with
# another one before it. Here an update is one piece. Now the texts
# have 32.

# %%
predict("3f", "Largest micro-batch in 10 MB at 32 tokens a text?")

# %%
drill_width = 32  # try 16 and 48


def step_at_width(size: int) -> int:
    model = new_model()
    rows = loop.to_device(
        data.collate([(ids[:drill_width], label) for ids, label in pool[:size]]), device
    )
    optimizer = make_optimizer(model)
    return peak_bytes(
        lambda: [loop.train_step(model, rows, optimizer) for _ in range(2)], device
    )


at_width, _ = find_executable_micro_batch_size(
    step_at_width, max_size=512, memory_limit_bytes=BUDGET
)
print(f"{drill_width} tokens: {at_width} texts")
compare("3f", at_width)

# %% [markdown]
# **Drill 2 · What AdamW's state is worth.** In the same 10 MB, SGD without momentum keeps no state. How
# many more texts of 64 tokens fit?

# %%
predict("3g", "Texts in 10 MB with plain SGD, over those with AdamW?", unit="×")

# %%
drill_budget = 10_000_000  # try 5_000_000 and 50_000_000


def most_texts(make):
    def step(size):
        model, micro_batches = new_model(), cut(pool[:size], size)
        optimizer = make(model)
        return peak_bytes(
            lambda: [loop.train_step(model, micro_batches, optimizer) for _ in range(2)],
            device,
        )

    return find_executable_micro_batch_size(
        step, max_size=512, memory_limit_bytes=drill_budget
    )[0]


with_sgd = most_texts(lambda model: torch.optim.SGD(model.parameters(), lr=0.1))
with_adamw = most_texts(make_optimizer)
print(f"plain SGD {with_sgd} texts, AdamW {with_adamw}")
compare("3g", with_sgd / with_adamw, unit="×")

# %% [markdown]
# The state is a fixed part. In a small budget it decides; in a large one it hardly shows.
#
# **Drill 3 · Checkpoints for a larger micro-batch.** The deep model, the same memory: plain micro-batches of 4 against
# checkpointed ones of 16, for the same update of 32 texts. Which is faster?

# %%
predict("3h", "Speedup of checkpointed micro-batches of 16 over plain ones of 4?", unit="×")

# %%
drill_plain, drill_checkpointed = 4, 16  # try 1 and 8, or 8 and 32


def deep_update(size, is_checkpointed):
    model = new_model(**DEEP)
    if is_checkpointed:
        apply_activation_checkpointing(model)
    micro_batches, optimizer = cut(UPDATE[:32], size), make_optimizer(model)
    return lambda: loop.train_step(model, micro_batches, optimizer)


for size, flag in ((drill_plain, False), (drill_checkpointed, True)):
    peak = peak_bytes(deep_update(size, flag), device)
    print(
        f"{'checkpointed' if flag else 'plain':<13} {size:>2} texts: peak {peak / 1e6:.1f} MB"
    )
trade = paired_speedup(
    deep_update(drill_plain, False), deep_update(drill_checkpointed, True), **quick
)
print(f"speedup {trade}")
compare("3h", trade.estimate, unit="×")

# %% [markdown]
# Above 1, the larger micro-batch won back more than the second forward costs; below 1, less.
