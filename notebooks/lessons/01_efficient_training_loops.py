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
#
# *About 90 minutes: 25 of reading and quiz, 65 for 6 exercises*
#
# The same model, the same data, the same number of updates: and one loop takes three times as long as the other.
# You begin with a slow program. You find out where its time goes, write a better part, and your part takes the
# place of ours. One picture shows how far you have come.
#
# | Part | What you build there |
# |---|---|
# | [The program](#The-program) | a slow training program, and the number it is judged by |
# | [Less padding](#Less-padding) | 1.1, a batch that pads no more than it must |
# | [Like lengths together](#Like-lengths-together) | 1.2, a sampler |
# | [A handful of waits](#A-handful-of-waits-an-epoch) | 1.3, the training loop |
# | [An honest evaluation](#An-honest-evaluation) | 1.4, the evaluation |
# | [Waiting for data](#Waiting-for-data) | 1.5, the loader |
# | [Read the signals](#Read-the-signals) | six sick runs for you to diagnose |
# | [The challenge](#The-challenge) | 1.6, all of it at once, three times as fast |
# | [Checklist](#The-five-minute-checklist), [quiz](#Quiz) | a page to keep, the test |
# | [More](#More) | outside the 90 minutes: losses, schedules, frameworks, rarer mistakes, drills |
#
# Cells that are folded draw pictures or set things up: run them too; the three dots open them.

# %%
from autograder import check, check_quiz, compare, diagnose, exercise, predict, quiz, reveal
from autograder import so_far, yours

# %% jupyter={"source_hidden": true}
import importlib.util
import logging
import math
import multiprocessing
import tempfile
import time
import warnings
from itertools import cycle, islice
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, Subset

from autograder.lab import SickRuns, SlowSamples, Tokenised, time_stations
from autograder.plots import BLUE, GREEN, ORANGE, RED, bars, figure, mark, show
from course_lib import data, loop
from course_lib.bench import paired_speedup
from course_lib.counters import count_events
from course_lib.models import ModelConfig, TextClassifier
from course_lib.naive import naive_epoch, pad_to_maximum  # noqa: F401
from course_lib.optim import make_optimizer
from course_lib.schedules import warmup_cosine

# One thread: timings are steadier, whatever else your machine does on its other cores.
torch.set_num_threads(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
print(f"torch {torch.__version__} on {device}, {torch.get_num_threads()} thread")

# %% [markdown]
# ## The program
#
# The texts of this course are the docstrings of Python packages. The task: which package was a docstring written for?
# The next cell loads them as *tokens*: ids, one for each word or part of a word. The first time it has to make them,
# and shows a bar for up to a minute.

# %%
train, validation = data.docstring_store(max_length=1024)
lengths = train.lengths
num_classes = len(train.label_names)
print(
    f"{len(train):,} texts to train on, {len(validation):,} to validate, {num_classes} classes"
)

# %% [markdown]
# **A training loop is an assembly line.**
#
# > load → batch → forward → backward → step
#
# Fetch the samples, make one rectangle of them, compute the loss, compute the gradients, update the weights. A line is
# as fast as its slowest station. So the method of this course is always the same: *time the stations, fix the
# slowest, measure again.*
#
# Here is the program that most people write first: an epoch of training, then a validation. Each part can be replaced.

# %% jupyter={"source_hidden": true}
LONGEST = 1024  # longer texts are cut
PAD_TO = 512  # the experiments beside the program cut at 512, to stay quick
VOCAB_SIZE = train.vocab_size
rng = np.random.default_rng(0)
pool = [
    (ids[:PAD_TO], label)
    for ids, label in (train[int(i)] for i in rng.permutation(len(train))[:1024])
]
pool_lengths = np.array([len(ids) for ids, _ in pool])
short = [(ids[:32], label) for ids, label in pool]  # where length plays no part
tokenizer = train.load_tokenizer()
corpus = data.load_docstrings()
chosen = np.random.default_rng(3).permutation(len(corpus.texts))[:24]
texts = [corpus.texts[i] for i in chosen]
labels = [int(corpus.labels[i]) for i in chosen]


def new_model(seed: int = 0, **sizes: int) -> TextClassifier:
    """A fresh small classifier; the same seed gives the same weights."""
    torch.manual_seed(seed)
    settings = {"d_model": 32, "num_layers": 1, "max_length": PAD_TO} | sizes
    return TextClassifier(
        ModelConfig(vocab_size=VOCAB_SIZE, num_classes=num_classes, **settings)
    ).to(device)


print(f"{len(pool):,} texts for the experiments, {len(texts)} for the program")


# %%
def naive_collate(batch):  # samples (ids, label) -> one batch
    return pad_to_maximum(batch, LONGEST)


def naive_train(model, batches, optimizer, scheduler):
    model.train()
    loss_sum = num_samples = 0
    for batch in batches:
        batch = {name: tensor.to(device) for name, tensor in batch.items()}
        loss = F.cross_entropy(
            model(batch["input_ids"], batch["attention_mask"]), batch["labels"]
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        loss_sum += loss.item() * len(batch["labels"])
        num_samples += len(batch["labels"])
    return {"loss": loss_sum / num_samples}


def naive_evaluate(model, batches):
    num_right = num_samples = 0
    for batch in batches:
        batch = {name: tensor.to(device) for name, tensor in batch.items()}
        predicted = model(batch["input_ids"], batch["attention_mask"]).argmax(dim=-1)
        num_right += (predicted == batch["labels"]).sum().item()
        num_samples += len(batch["labels"])
    return {"accuracy": num_right / num_samples}


def naive_loader(dataset, micro_batch_size, collate_fn):
    return DataLoader(dataset, batch_size=micro_batch_size, collate_fn=collate_fn)


program = SimpleNamespace(
    samples=SlowSamples(
        Tokenised(texts, labels, tokenizer, max_length=LONGEST), seconds=0.0005
    ),
    batches=[list(range(start, start + 4)) for start in range(0, 16, 4)],
    collate=naive_collate,
    train_one_epoch=naive_train,
    evaluate=naive_evaluate,
    make_loader=naive_loader,
)

# %% [markdown]
# Each sample takes half a millisecond to arrive, as from a slow disk, and is tokenised when it is read. The next cell
# puts the parts together and runs them.


# %% jupyter={"source_hidden": true}
def build(parts):
    """The program with these parts, as a function: a call trains one epoch and validates."""
    model = new_model(max_length=LONGEST)
    optimizer = make_optimizer(model)
    scheduler = lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    # A worker that is started afresh cannot find a function of a notebook: there the library's stands in.
    is_forked = multiprocessing.get_start_method() == "fork"
    collate_fn = parts.collate if is_forked else data.collate
    order = [index for batch in parts.batches for index in batch]
    loader = parts.make_loader(Subset(parts.samples, order), 4, collate_fn)
    held_out = parts.make_loader(Subset(parts.samples, range(16, 24)), 4, collate_fn)

    def epoch():
        parts.train_one_epoch(model, loader, optimizer, scheduler)
        return parts.evaluate(model, held_out)

    return epoch


naive_program = build(SimpleNamespace(**vars(program)))


def measure():
    """How many times as fast as the naive program is it now? Both run in turns."""
    with warnings.catch_warnings():
        # torch warns about more workers than cores. That is for workers that compute; these wait.
        warnings.filterwarnings("ignore", message="This DataLoader will create")
        return paired_speedup(
            naive_program, build(program), blocks=3, min_seconds=0.05, min_steps=1
        )


naive_program()  # the first run warms up
clock = time.perf_counter()
naive_program()
print(
    f"the naive program: {time.perf_counter() - clock:.2f} s for an epoch of 16 texts and 8 to validate"
)

# %%
naive_line = time_stations(
    new_model(max_length=LONGEST), program.samples, program.batches, program.collate
)

# %% jupyter={"source_hidden": true}
fig, ax = figure(height=2.1)
bars(ax, list(naive_line), naive_line.values(), unit="ms")
ax.set_title("One training step of the naive program, station by station")
show(
    fig,
    alt="Bars, milliseconds a step: "
    + ", ".join(f"{k} {v:.1f}" for k, v in naive_line.items()),
)

# %% [markdown]
# Look for the longest bar. You could think that the model is busy with useful work. What is it busy *with*?
#
# ## Less padding
#
# Real text has a long tail: most texts are short, a few are very long. A batch is a rectangle, so short rows are filled
# up with padding. An *attention mask* marks the real tokens, so that padding does not change the result. The model
# computes on it all the same.
#
# Commit to a number first. A wrong guess with a reason teaches more than a right one without.

# %%
predict("1a", "All batches padded to 1024 tokens: which share is padding?", unit="%")

# %%
order = np.random.default_rng(0).permutation(len(train))
random_batches = [order[i : i + 32] for i in range(0, len(order), 32)]
share = {
    "every batch padded to 1024": 1 - lengths.sum() / (1024 * len(lengths)),
    "padded to the longest of its batch": data.pad_fraction(lengths, random_batches),
}
compare("1a", 100 * share["every batch padded to 1024"], unit="%")

# %% jupyter={"source_hidden": true}
median, p90 = (int(np.percentile(lengths, q)) for q in (50, 90))
fig, (left, right) = figure(1, 2, height=2.7, width_ratios=[1.0, 1.05])
left.hist(lengths, bins=np.geomspace(1, 1100, 45), color=BLUE)
left.set_xscale("log")
left.set_xticks([1, 10, 100, 1000], labels=["1", "10", "100", "1000"])
left.set_ylim(0, 1.12 * left.get_ylim()[1])  # room for the labels
left.set(title="Tokens per text", xlabel="tokens (log scale)", ylabel="texts")
mark(left, median, f"median {median}", y=1.0, side="left")
mark(left, p90, f"90 %: {p90}", y=1.0)
bars(
    right,
    ["to 1024", "dynamic"],
    [100 * s for s in share.values()],
    unit="%",
    colors=[RED, ORANGE],
)
right.set_title("Positions that hold padding")
show(fig, alt=f"Left: histogram of text lengths, median {median}, 90 % below {p90} tokens. "
     + "Right, share of padding: "
     + ", ".join(f"{name}: {100 * s:.1f} %" for name, s in share.items()))  # fmt: skip

# %% [markdown]
# **Dynamic padding** makes each batch as wide as its own longest text. In batches of 32, as in the figure, nearly each has
# one long text, and little is saved. The program's batches have 4. Now you build it.
#
# ### How exercises work
#
# Write your solution where the cell raises `NotImplementedError`. The check under it runs your cell in a process of its
# own, on secret random inputs. Everything that your function needs, imports too, stands in its own cell. Arguments
# have the types that stand beside them; numbers among them are finite, and seeds and epochs lie between 0 and
# `2**32 - 1`, unless the text says otherwise.
#
# Models and batches may lie on different devices: take the device from the model
# (`next(model.parameters()).device`) and move each batch there.
#
# A *sample* is `(ids, label)`, a *batch* is what `collate` of 1.1 returns, B is the number of samples in a batch, T its
# width in tokens, and C the number of classes. **Property** means: the results are right. **Count**: a cost without
# noise, such as padded positions. **Speed**: a speedup over a fixed baseline, measured in pairs. If the machine is too
# noisy to decide, you have the points that need no clock, and the next check goes on from there.
#
# ### 1.1 · A collate function that pads no more than it must
#
# > Difficulty ●●○○○ · Importance ●●●●● · 10 minutes · property, count, speed (at least 1.5× over padding to the maximum) · imports: all that is installed, except `course_lib`
#
# A `DataLoader` hands a list of samples to `collate_fn` and takes back one batch. Write that function.
#
# <details><summary>Hint: "I do not see how rows of different lengths become one array"</summary>
#
# Make the full rectangle first, filled with `PAD_ID`, in NumPy. Then write each text into the left part of its row.
#
# </details>
# <details><summary>Hint: "the check says that the mask is wrong"</summary>
#
# The mask comes from the *lengths*, not from the ids. An id may happen to equal `PAD_ID` inside a text.
#
# </details>
# <details><summary>Hint: "the dtype is wrong", or "NumPy array is not writable"</summary>
#
# Ids and labels are int64, the mask is bool. The ids you get are read-only: copy them into your own array.
#
# </details>
# <details><summary>Hint: "it is right, but not fast enough"</summary>
#
# Count the torch calls per row: `torch.tensor` and `F.pad` for each text can cost more than the padding that they save.
# Which of them could be one call for the whole batch?
#
# </details>

# %%
import numpy as np
import torch

from autograder import exercise

PAD_ID = 0


@exercise("1.1")
def collate(batch: list[tuple[np.ndarray, int]]) -> dict[str, torch.Tensor]:
    """Turn B samples into one batch, padded to the longest sample *of this batch*.

    Takes: a list of B samples `(ids, label)`, B at least 1; `ids` is a 1-D int64 NumPy array
        of one token or more, without padding (read-only, so copy from it), `label` an int.
    Returns a dict of tensors. T is the length of the longest sample in `batch`, or that length
    rounded up to a multiple of 8:
        "input_ids"       int64 [B, T]   the ids from the left, then PAD_ID up to the width T
        "attention_mask"  bool  [B, T]   True where a real token stands
        "labels"          int64 [B]
    The samples themselves stay as they are, and rows keep the order of `batch`.
    """
    ### BEGIN SOLUTION
    width = max(len(ids) for ids, _ in batch)
    # Fill NumPy arrays and convert once: a tensor call per row costs more than the copy.
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
# Your function now takes the place of ours. The bar shows how many times as fast the whole program became: both run in
# turns, which takes some seconds.

# %%
program.collate = yours("1.1", program.collate)
so_far("1.1", "your batches", measure)

# %% [markdown]
# ## Like lengths together
#
# With a random batch there is nearly always one long text in it, and all others are padded to it. **Length bucketing**
# puts texts of like length into the same batch, then shuffles the batches.

# %%
predict(
    "1b", "Bucketed over padded to 512: how many times faster is a training pass?", unit="×"
)


# %%
def make_pass(batches, make_batch):
    """A function that trains once over `batches`; a call is one unit of equal work."""
    model = new_model()
    optimizer = make_optimizer(model)

    def one_pass():
        for indices in batches:
            batch = loop.to_device(make_batch([pool[i] for i in indices]), device)
            loop.train_step(model, batch, optimizer)

    return one_pass


at_random = [list(range(start, start + 8)) for start in range(0, 64, 8)]
bucketed = list(data.BucketBatchSampler(pool_lengths[:64], 8, seed=0))
bucketed_speedup = paired_speedup(
    make_pass(at_random, lambda chosen: pad_to_maximum(chosen, PAD_TO)),
    make_pass(bucketed, data.collate),
    blocks=3,
    min_seconds=0.1,
)
positions = PAD_TO * 64 / sum(pool_lengths[rows].max() * len(rows) for rows in bucketed)
print(
    f"bucketing over padding to {PAD_TO}: {positions:.1f} times fewer positions, speedup {bucketed_speedup}"
)
compare("1b", bucketed_speedup.estimate, unit="×")

# %% jupyter={"source_hidden": true}
fig, axes = figure(3, 4, height=4.2, sharex=True)
picture = {
    f"to {PAD_TO}": at_random[:4],
    "dynamic": at_random[:4],
    "bucketed": bucketed[:4],
}
for row, (name, batches) in zip(axes, picture.items(), strict=True):
    for ax, indices in zip(row, batches, strict=True):
        width = PAD_TO if name == f"to {PAD_TO}" else pool_lengths[indices].max()
        ax.barh(range(len(indices)), width, height=1.0, color="#DCE6EE")
        ax.barh(range(len(indices)), pool_lengths[indices], height=1.0, color=BLUE)
        ax.set(xlim=(0, PAD_TO), ylim=(-0.5, len(indices) - 0.5), yticks=[])
        ax.set_xticks([0, PAD_TO // 2, PAD_TO])
        ax.spines["left"].set_visible(False)
    row[0].set_ylabel(name)
for ax in axes[-1]:
    ax.set_xlabel("position")
show(fig, alt="Four batches of 8 texts a method. Padded to the maximum nearly all is padding; "
     "dynamic padding cuts each batch at its longest text; "
     "bucketed batches are almost full rectangles.")  # fmt: skip

# %% [markdown]
# Each row is a text; the pale part is padding.
#
# <details><summary>Why is the speedup not the ratio of the positions?</summary>
#
# Two effects pull in opposite directions. Attention costs rows × width², so long padding costs *more* than its
# share of positions: that raises the speedup. But each step also has costs that do not shrink with the batch:
# Python, launching operations, the optimizer, and the gradient of the whole embedding table. They lower it. The
# smaller the model, the more the second effect counts.
#
# </details>
#
# ### 1.2 · A batch sampler that puts like lengths together
#
# > Difficulty ●●●○○ · Importance ●●●●○ · 15 minutes · property, count, speed (at least 1.3× over 1.1 with random batches) · imports: all that is installed, except `course_lib`
#
# A batch sampler says which samples form a batch. It makes three promises: every index exactly once an epoch; other
# batches, in another random order, every epoch; at most 15 % padding over a few epochs (on 2,003 secret lengths, 16 to a
# batch). Each is easy alone.
#
# <details><summary>Hint: "sorting by length pads least, but then every epoch is the same"</summary>
#
# The sorting need not be exact. What if it sees only a part of the data at a time, a random part? Or lengths that are
# blurred by a little noise?
#
# </details>
# <details><summary>Hint: "the batches go from short to long"</summary>
#
# Shuffle the batches at the end. A model that sees only short texts for half an epoch learns something you did not
# plan.
#
# </details>
# <details><summary>Hint: "some indices are missing", or "some come twice"</summary>
#
# The number of samples is not a multiple of the batch size. Keep the short batch at the end: do not drop it, do not
# fill it up with others. `__len__` counts it too.
#
# </details>
# <details><summary>Hint: "the same epoch gives different batches when I iterate twice"</summary>
#
# A generator that is kept moves on with every use. Make a new one at the start of `__iter__`, from seed *and* epoch:
# `np.random.default_rng` also takes a list of integers.
#
# </details>

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
    seed: the same seed and the same epoch give the same batches. With another seed at the same
        epoch, or another epoch of the same seed, their order is another one, where N leaves a
        choice; with about 2,000 samples the batches are others too.
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
        """Yield each batch as a list of Python's ints: each index 0 … N-1 exactly once per epoch.

        Batches come in random order, not from short to long; a short one may come last. At most
        15 % of the positions are padding, when there are about 2,000 samples and 16 make a batch.
        """
        ### BEGIN SOLUTION
        rng = np.random.default_rng([self.seed, self.epoch])
        # Up to a tenth of noise on each length: neighbours trade places from epoch to epoch,
        # so that a sample does not meet the same companions every time.
        noisy = self.lengths * rng.uniform(0.9, 1.1, size=len(self.lengths)) + rng.random(
            len(self.lengths)
        )
        order = np.argsort(noisy, kind="stable")
        starts = np.arange(0, len(order), self.micro_batch_size)
        # Batches come in random order: short to long is a curriculum that nobody asked for.
        for start in rng.permutation(starts):
            yield order[start : start + self.micro_batch_size].tolist()
        ### END SOLUTION


# %%
check("1.2")

# %%
sampler = yours("1.2", None)
if sampler is not None:
    program.batches = list(sampler([len(program.samples[i][0]) for i in range(16)], 4, seed=0))
so_far("1.2", "your sampler", measure)

# %% [markdown]
# ## A handful of waits an epoch
#
# A GPU works behind Python's back: a line like `loss.backward()` only *queues* work, and Python runs ahead. The moment
# you ask for a value (`loss.item()`, `float(loss)`, `print(loss)`, `if loss > 3`) Python must wait until the queue is
# empty. That is a **sync**. With one per step the GPU has nothing to do while Python prepares the next step.
#
# Only a GPU makes this show on a clock. It can be counted anywhere, because the line of code is the same.

# %%
counts = {}
batches = [data.collate(short[i : i + 8]) for i in range(0, 256, 8)]
for name, train_epoch in {"naive": naive_train, "course_lib": loop.train_one_epoch}.items():
    model = new_model(d_model=16, num_heads=2)
    optimizer = make_optimizer(model)
    scheduler = lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    with count_events(model) as counts[name]:
        train_epoch(model, batches, optimizer, scheduler)

# %% jupyter={"source_hidden": true}
fig, ax = figure(height=1.5)
num_syncs = [events.num_syncs for events in counts.values()]
bars(ax, ["naive loop", "sums kept on the device"], num_syncs, digits=0, colors=[RED, GREEN])
ax.set_title(f"Syncs in one epoch of {counts['naive'].num_optimizer_steps} steps")
show(
    fig, alt=f"Syncs per epoch: naive {num_syncs[0]}, sums kept on the device {num_syncs[1]}."
)

# %% [markdown]
# The second loop adds tensors to tensors, and reads its sums when the epoch is over. What a training step must do, and
# in which order:
#
# 1. forward, loss: the model is in `train()` mode, so that dropout is on
# 2. `optimizer.zero_grad()`, then `loss.backward()`
# 3. **clip** (`torch.nn.utils.clip_grad_norm_`): take all gradients as one long vector; if its length, the *gradient norm*, is above `max_norm`, scale it
#    down to that length. It keeps one bad batch from throwing the weights far away
# 4. `optimizer.step()`. AdamW scales each weight's step by running averages of its gradient
# 5. `scheduler.step()`: the learning rate's plan, once an update
#
# The naive loop lacks one of these. Yours will have them all, and its report costs a handful of syncs.
#
# ### 1.3 · One epoch of training that never waits for a number
#
# > Difficulty ●●●○○ · Importance ●●●●● · 10 minutes · property, count (at most 8 syncs an epoch) · imports: all that is installed
#
# This loop is the heart of every training script. Its order stands above. What is new is the report:
# exact, and with a handful of syncs for the whole epoch.
#
# <details><summary>Hint: "too many syncs"</summary>
#
# Look for `.item()`, `float(...)`, `int(...)`, `print(...)` and `if tensor` inside the loop. Add tensors to tensors,
# and read the sums after the loop. `attention_mask.sum()` is a tensor too: leave it one.
#
# </details>
# <details><summary>Hint: "the loss is slightly off"</summary>
#
# The last batch is shorter. How much should the mean of 2 samples weigh beside the mean of 12?
#
# </details>
# <details><summary>Hint: "the gradient norm is never above max_norm"</summary>
#
# `clip_grad_norm_` *returns* the norm from before it clips. Measured afterwards it is always small.
#
# </details>
# <details><summary>Hint: "the weights differ from the reference"</summary>
#
# Check the order: clip stands between `backward()` and `optimizer.step()`; `scheduler.step()` comes after
# `optimizer.step()`; gradients are dropped once a step; the model is in `train()` mode.
#
# </details>

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

    Each step minimises the mean cross-entropy of its batch alone. The gradient of all parameters,
    as one vector and in however many groups the optimizer has them, is clipped to `max_norm`.
    The scheduler is stepped once for each batch. There is at least one batch; `batches` can be
    iterated once, and each batch stays as it is.
    `model(input_ids, attention_mask)` returns logits [B, C]. All of it trains in training mode,
    also when it comes in evaluation mode.

    Returns a dict of Python numbers, no tensors:
        "loss"          mean over *samples* of the cross-entropy seen while training
        "grad_norm"     mean over steps of the gradient norm *before* clipping
        "num_samples"   samples seen
        "num_tokens"    real tokens seen (padding does not count)
        "pad_fraction"  1 - real tokens / (rows x width), over the whole epoch

    Bring numbers to Python (`.item()`, `float(...)`, `print`) at most 8 times per *epoch*.
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

# %%
program.train_one_epoch = yours("1.3", program.train_one_epoch)
so_far("1.3", "your loop", measure)

# %% [markdown]
# On a CPU this bar hardly moves, and may fall a little: the work is done when a line returns, so there is nothing to
# wait for, and clipping is new work. On a GPU the count above is what you would save.
#
# ## An honest evaluation
#
# Two switches, and they do different things. `model.eval()` switches off dropout. `torch.inference_mode()` switches off
# the recording of gradients: activations are freed at once, and less is written. The naive evaluation uses neither.
# What does it say of one and the same model, four times?

# %%
picked = np.random.default_rng(1).choice(len(validation), 128, replace=False)
held_out = [
    data.collate(
        [(validation[int(i)][0][:32], validation[int(i)][1]) for i in picked[k : k + 32]]
    )
    for k in range(0, 128, 32)
]
dropping = new_model(dropout=0.3)
endless = cycle(short[:64])
warm_up = [data.collate(list(islice(endless, 16))) for _ in range(30)]
loop.train_one_epoch(dropping, warm_up, make_optimizer(dropping, learning_rate=3e-3))
print(
    "naive:      ",
    [f"{100 * naive_evaluate(dropping, held_out)['accuracy']:.1f} %" for _ in range(4)],
)
print(
    "both switches:",
    [f"{100 * loop.evaluate(dropping, held_out)['accuracy']:.1f} %" for _ in range(4)],
)

# %%
predict(
    "1o",
    "Evaluating with both switches over evaluating with neither: how many times as fast?",
    unit="×",
)

# %%
evaluation_speedup = paired_speedup(
    lambda: naive_evaluate(dropping, held_out),
    lambda: loop.evaluate(dropping, held_out),
    blocks=4,
    min_seconds=0.05,
)
print(f"both switches over neither: speedup {evaluation_speedup}")
compare("1o", evaluation_speedup.estimate, unit="×")

# %% [markdown]
# The switch for gradients saves memory above all. Beside the two switches there is a trap. The last batch is shorter. A mean of batch means gives its samples more weight than the others:

# %%
losses = torch.tensor([0.2] * 32 + [3.0] * 2)  # the last batch holds two hard samples
batch_means = torch.stack([chunk.mean() for chunk in losses.split(16)])
print(f"mean of batch means {batch_means.mean():.3f}   mean over samples {losses.mean():.3f}")

# %% [markdown]
# ### 1.4 · An evaluation that tells the truth
#
# > Difficulty ●●○○○ · Importance ●●●●● · 10 minutes · property · imports: all that is installed
#
# Evaluation decides which model you ship. It must be repeatable, count every sample once, and leave the model as it
# found it.
#
# <details><summary>Hint: "two evaluations of the same model differ"</summary>
#
# Dropout is still on. `model.eval()` switches it off; `torch.inference_mode()` does not, it switches off gradients.
# You need both.
#
# </details>
# <details><summary>Hint: "right when the batches are even, wrong when the last one is short"</summary>
#
# Sum over samples, divide once by the number of samples. `F.cross_entropy(..., reduction="sum")` gives the sum.
#
# </details>
# <details><summary>Hint: "the mode afterwards is wrong"</summary>
#
# Remember `model.training` before you change it, and put that value back, in a `finally`. Not always `train()`: it may
# have come in as `eval()`.
#
# </details>

# %%
from collections.abc import Iterable

import torch
import torch.nn.functional as F

from autograder import exercise


@exercise("1.4")
def evaluate(
    model: torch.nn.Module, batches: Iterable[dict[str, torch.Tensor]]
) -> dict[str, float]:
    """Measure `model` on every batch, and leave no trace, in it or in the batches.

    `model(input_ids, attention_mask)` returns logits [B, C]. The last batch may be short, and
    `batches` can be iterated only once. No dropout, no gradients recorded, no weight changed.
    Returns a dict of Python numbers, no tensors:
        "loss"         mean over *samples* of the cross-entropy
        "accuracy"     share of samples whose largest logit is the label, 0 … 1
        "num_samples"  samples seen
    The model comes in one mode (train or eval), all of it, and is in it again afterwards, after an
    error too.
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
                batch = {
                    key: value.to(device, non_blocking=True) for key, value in batch.items()
                }
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

# %%
program.evaluate = yours("1.4", program.evaluate)
so_far("1.4", "your evaluation", measure)

# %% [markdown]
# ## Waiting for data
#
# Measure again: the line as it was, and the line as you have made it. Forward and backward are work on real tokens
# now. Which station is the slowest of those that are no work on the model?

# %%
line_now = time_stations(
    new_model(max_length=LONGEST), program.samples, program.batches, program.collate
)

# %% jupyter={"source_hidden": true}
fig, axes = figure(1, 2, height=2.1)
for ax, (title, line) in zip(
    axes, {"naive": naive_line, "now": line_now}.items(), strict=True
):
    bars(ax, list(line), line.values(), unit="ms")
    ax.set_xlim(0, 1.25 * max(naive_line.values()))
    ax.set_title(f"{title}: {sum(line.values()):.1f} ms a step")
axes[1].set_yticklabels([])
show(fig, alt=f"Milliseconds a step: naive {sum(naive_line.values()):.1f}, now {sum(line_now.values()):.1f}. "
     "Now: " + ", ".join(f"{k} {v:.1f}" for k, v in line_now.items()) + ".")  # fmt: skip

# %% [markdown]
# Loading does two things here: it waits for a sample, and it tokenises the text. But a text has the same ids in every
# epoch. So tokenise once, store the ids in a file, and read from it what a batch needs.

# %%
predict("1c", "How many times faster is reading stored ids than tokenising again?", unit="×")

# %%
tokenising = Tokenised(texts, labels, tokenizer, max_length=LONGEST)
stored = f"{tempfile.mkdtemp()}/ids.npy"  # the same texts, as ids in a file
np.save(stored, np.concatenate([tokenising[i][0] for i in range(24)]))
ends = np.cumsum([len(tokenising[i][0]) for i in range(24)])
tokenise_speedup = paired_speedup(
    lambda: [tokenising[i] for i in range(24)],
    lambda: np.split(np.load(stored), ends[:-1]),
    blocks=3,
    min_seconds=0.01,
)
print(f"24 samples, reading over tokenising: speedup {tokenise_speedup}")
compare("1c", tokenise_speedup.estimate, unit="×")
program.samples = SlowSamples([tokenising[i] for i in range(len(texts))], seconds=0.0005)

# %% [markdown]
# What is left is waiting, and waiting is not work: nobody computes meanwhile. A `DataLoader` with *workers* (processes
# of its own) waits for several samples at once, and prepares the next batches while you train on this one. Here each
# sample takes 2 ms to arrive, and a batch has 8.

# %%
predict("1d", "How many times faster is a pass with 4 workers than with none?", unit="×")


# %% jupyter={"source_hidden": true}
def loader_pass(num_workers: int):
    loader = DataLoader(
        SlowSamples(short[:64], seconds=0.002),
        batch_size=8,
        collate_fn=data.collate,
        num_workers=num_workers,
        prefetch_factor=2 if num_workers else None,  # batches that each worker prepares ahead
        persistent_workers=num_workers > 0,  # else each epoch starts new processes
        pin_memory=device.type == "cuda",  # without it, non_blocking=True blocks
    )
    model = new_model(d_model=16, num_heads=2)
    optimizer = make_optimizer(model)
    return lambda: loop.train_one_epoch(model, loader, optimizer)


with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="This DataLoader will create")
    passes = {num_workers: loader_pass(num_workers) for num_workers in (0, 1, 2, 4)}
    for one_pass in passes.values():
        one_pass()  # starts the workers
reports = {
    n: min((one_pass() for _ in range(3)), key=lambda r: r["seconds"])
    for n, one_pass in passes.items()
}
worker_speedup = paired_speedup(passes[0], passes[4], blocks=3, min_seconds=0.1)
print(f"4 workers over none: speedup {worker_speedup}")
compare("1d", worker_speedup.estimate, unit="×")
del passes, one_pass  # ends the worker processes

# %% jupyter={"source_hidden": true}
fig, ax = figure(height=2.6)
waits = [
    1000 * r["seconds"] * r["data_wait_fraction"] / r["num_steps"] for r in reports.values()
]
works = [1000 * r["step_time"] - wait for r, wait in zip(reports.values(), waits, strict=True)]
names = [f"{n} worker{'s' if n != 1 else ''}" for n in reports]
ax.barh(names, waits, color=ORANGE, label="waiting for data", height=0.62)
ax.barh(names, works, left=waits, color=BLUE, label="training", height=0.62)
ax.invert_yaxis()
ax.set(title="Where a step's time goes", xlabel="milliseconds a step")
ax.legend(loc="lower right")
show(fig, alt="Milliseconds a step spent waiting for data: "
     + ", ".join(f"{n} {w:.1f}" for n, w in zip(names, waits, strict=True)))  # fmt: skip

# %% [markdown]
# The share of time spent waiting for data is called **data-wait** here. It is the first number to look at when a GPU
# is half idle. One worker alone may cost more than it hides: samples travel between processes. Several overlap their
# waits. Beyond that they only cost memory. The switches of a loader are under [More](#The-switches-of-a-loader).
#
# ### 1.5 · A loader that hides the wait
#
# > Difficulty ●●○○○ · Importance ●●●●○ · 5 minutes · property, speed (at least 2× over a loader without workers) · imports: all that is installed
#
# Each sample takes a while to arrive, as from storage. The sum of the waits is fixed; you choose how many happen at
# the same time. The check makes your loader once and times passes over it, as in a training of several epochs. The
# stored samples change between the passes, so each pass must fetch them anew.
#
# <details><summary>Hint: "how many workers?"</summary>
#
# Here workers wait and do not compute, so more of them than cores is fine. Where they compute, cores are the limit.
# Try 2, 4, 8 and measure.
#
# </details>
# <details><summary>Hint: "it is no faster, or slower"</summary>
#
# Are processes started anew for each epoch? See `persistent_workers`. Is there only one batch per worker? Then
# there is nothing to prepare ahead.
#
# </details>
# <details><summary>Hint: "faster, but not twice"</summary>
#
# Two workers halve the wait at best: count how many fetches overlap. Waiting needs no process of its own either:
# threads wait as well (`concurrent.futures.ThreadPoolExecutor`). Both ways are accepted.
#
# </details>
# <details><summary>Hint: "the order is wrong, or the second pass is empty"</summary>
#
# Order: `shuffle=False`. A generator can be used up; a `DataLoader` can be iterated again and again.
#
# </details>

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

    `dataset[i]` asks storage for its sample and waits some milliseconds for it.
    Overlap those waits with each other and with the training step.
    The result is iterated more than once: one pass is one epoch, and each pass fetches every
    sample again, also after a pass that was broken off. A batch has `micro_batch_size` samples,
    the last one may have fewer. An error of `dataset[i]` reaches whoever iterates.
    """
    ### BEGIN SOLUTION
    return DataLoader(
        dataset,
        batch_size=micro_batch_size,
        shuffle=False,
        collate_fn=collate_fn,
        num_workers=8,  # more than the cores: these workers wait, they do not compute
        prefetch_factor=2,
        persistent_workers=True,  # start them once, not once an epoch
        pin_memory=torch.cuda.is_available(),
    )
    ### END SOLUTION


# %%
check("1.5")

# %%
program.make_loader = yours("1.5", program.make_loader)
so_far("1.5", "your loader, and stored ids", measure)

# %% [markdown]
# ## Read the signals
#
# A sick run says so early, if you know where to look. Here are six, each made ill on purpose. What does each of them
# have? Commit to a diagnosis of all six, then run the cell below them.

# %%
sick = SickRuns(new_model, short, num_classes)
sick.draw()

# %%
illnesses = [
    "the learning rate is far too low",
    "the learning rate dies too early",
    "the weights became NaN",
    "it learns a few texts by heart",
    "some batches disagree with all others",
    "the model waits for its data",
]
for name, letter in zip(["1i", "1j", "1k", "1l", "1m", "1n"], "ABCDEF", strict=True):
    diagnose(name, f"Run **{letter}**", illnesses)

# %% jupyter={"source_hidden": true}
reveal({
    "1i": ("Run A", "a", "The loss lies near ln(classes), which is guessing: nothing is learned. The rate was 1e-7. "
           "Look at the learning rate in the log, at requires_grad, and whether each parameter is in a group."),
    "1j": ("Run B", "c", "A text without tokens was divided by zero. Find the first bad step and look at its batch. "
           "Clamp the divisor, drop empty rows."),
    "1k": ("Run C", "d", "Validation rises while training falls: overfitting, here on 64 texts. More data, more "
           "dropout, stop early (lesson 04); look for leaks in the split."),
    "1l": ("Run D", "e", "Two batches had wrong labels. Look at the batch at the spike: labels, lengths, duplicates. "
           "Clipping limits the harm."),
    "1m": ("Run E", "b", "A decay that was planned by epochs was stepped once a batch. Count in updates."),
    "1n": ("Run F", "f", f"It waits {100 - sick.busy:.0f} % of the time. Below about 40 % of busy time, look at "
           "data-wait first; then syncs; then tiny batches."),
})  # fmt: skip

# %% [markdown]
# A run that turned NaN is lost: NaN in, NaN out, at every weight. `course_lib` stops there and names the step. Log these
# five always, besides the loss: **tokens/s** (real tokens, not padding), **pad fraction**, **learning rate**,
# **gradient norm**, **data-wait**. The library's report has four of them, the scheduler the rate:

# %%
model = new_model(seed=1)
optimizer = make_optimizer(model, learning_rate=3e-3, weight_decay=0.01)
scheduler = warmup_cosine(optimizer, warmup_steps=2, max_steps=len(batches))
report = loop.train_one_epoch(model, batches, optimizer, scheduler, max_norm=1.0)
for name in ("loss", "grad_norm", "pad_fraction", "data_wait_fraction"):
    print(f"{name:>20}  {report[name]:.3f}")
print(f"{'tokens/s':>20}  {report['tokens_per_sec']:,.0f}")
print(f"{'lr after the epoch':>20}  {scheduler.get_last_lr()[0]:.1e}")

# %% [markdown]
# ## The challenge
#
# ### 1.6 · Challenge: the whole loop, three times as fast
#
# > Difficulty ●●●●○ · Importance ●●●●○ · 15 minutes · property, count, speed (at least 3× samples/s over the naive loop, validation accuracy within 0.5 points) · imports: all that is installed
#
# Put the parts together. The naive loop is `naive_epoch` from `course_lib/naive.py`; read it (`naive_epoch??` in a new
# cell shows it): its comments name its costs. You may copy from your own exercises, but everything must stand in this
# cell. The number of updates stays what it is: fewer, larger steps would be another training.
#
# <details><summary>Hint: "where do I start?"</summary>
#
# As always: which station is the slowest? You have written a better part for each of them.
#
# </details>
# <details><summary>Hint: "fast, but the accuracy is lower"</summary>
#
# Are the batches shuffled, or does the epoch go from short to long? Is every sample used? Is the gradient clipped at
# 1.0, as in `naive_epoch`?
#
# </details>
# <details><summary>Hint: "stuck between 2× and 3×"</summary>
#
# Look for what is left per step: a sync, a `torch` call per row, `zero_grad(set_to_none=False)`.
#
# </details>

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
    """One pass over `samples`, training `model` in place, 3 times as fast as the naive loop.

    samples: `len(samples)`, `samples[i] -> (ids, label)`, and `samples.lengths`, int64 [N].
    Each sample is used exactly once and uncut, at most `micro_batch_size` samples to a step, in
    as many steps as the naive loop takes: ceil(N / micro_batch_size). Batches come in a random
    order that `seed` decides. A step is that of the naive loop: mean cross-entropy, gradient
    clipped at 1.0. The epoch saves nothing to disk, and leaves `samples` and the optimizer's
    settings as they are.
    Returns {"loss": mean over samples while training, "num_samples": N}, Python numbers, no tensors.
    The validation accuracy afterwards is within 0.5 points of the naive loop's.
    """
    ### BEGIN SOLUTION
    device = next(model.parameters()).device
    lengths = np.asarray(samples.lengths)
    rng = np.random.default_rng(seed)
    order = np.argsort(
        lengths * rng.uniform(0.9, 1.1, size=len(lengths)) + rng.random(len(lengths))
    )
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
        labels = torch.tensor([label for _, label in batch], dtype=torch.int64).to(
            device, non_blocking=True
        )
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
# ## The five-minute checklist
#
# Run this before any long run, and first of all when something is odd: five questions, one function. Copy it into your
# projects and put your own tokenizer and labels into its first part.


# %% jupyter={"source_hidden": true}
def five_minute_check(make_model, samples, make_batches, num_overfit_steps=60):
    """Print a batch, overfit a few samples, look for NaN, time the loader, log the lr."""
    # 1. Look at one batch. Shapes, types, and does the text match the label?
    batch = next(iter(make_batches()))
    for name, tensor in batch.items():
        print(f"1. {name:<15} {tensor.dtype!s:<12} {list(tensor.shape)}")
    first = batch["input_ids"][0][batch["attention_mask"][0]].tolist()
    print(f"   text  {train.load_tokenizer().decode(first)[:60]!r}")
    print(f"   label {train.label_names[batch['labels'][0]]}")

    # 2. Can it learn 8 samples by heart? If not, it will not learn the corpus.
    model = make_model()
    optimizer = make_optimizer(model, learning_rate=3e-3)
    scheduler = warmup_cosine(optimizer, warmup_steps=6, max_steps=num_overfit_steps)
    tiny = loop.to_device(data.collate(samples[:8]), device)
    history = []
    for _ in range(num_overfit_steps):
        rate = scheduler.get_last_lr()[0]
        metrics = loop.train_step(model, tiny, optimizer, scheduler=scheduler)
        history.append((metrics["loss"].item(), metrics["grad_norm"].item(), rate))
    losses, norms, rates = zip(*history, strict=True)
    word = "good" if losses[-1] < 0.5 else "LOOK HERE"
    print(f"2. loss on 8 samples: {losses[0]:.2f} -> {losses[-1]:.2f}  {word}")

    # 3. NaN or Inf anywhere: loss, gradients, weights?
    is_finite = all(map(math.isfinite, losses + norms)) and all(
        p.isfinite().all() for p in model.parameters()
    )
    print(f"3. all values finite: {is_finite}   largest gradient norm {max(norms):.1f}")

    # 4. Is the loader quicker than the step?
    report = loop.train_one_epoch(model, make_batches(), optimizer)
    wait, padding = 100 * report["data_wait_fraction"], 100 * report["pad_fraction"]
    rate = f"{report['tokens_per_sec']:,.0f} tokens/s"
    print(f"4. data-wait {wait:.0f} % of the time, padding {padding:.0f} %, {rate}")

    # 5. Is the learning rate what you planned?
    print(f"5. lr: first {rates[0]:.1e}, peak {max(rates):.1e}, last {rates[-1]:.1e}")


print("five_minute_check is set up")

# %%
lists = [pool[i : i + 16] for i in range(0, 256, 16)]
five_minute_check(new_model, short, lambda: (data.collate(chosen) for chosen in lists))

# %% [markdown]
# | # | Question | If the answer is no |
# |---|---|---|
# | 1 | Does the printed batch look like the data you meant? | tokenizer, labels, mask, truncation |
# | 2 | Does a tiny subset go to almost zero loss? | the bug is in model or loop, not in the data or the size |
# | 3 | Is everything finite? | empty rows, too high a rate, log of zero, division by zero |
# | 4 | Is data-wait under 10 %, as a rule of thumb? | workers, a store, bucketing |
# | 5 | Is the logged learning rate the planned one? | scheduler stepped in the wrong unit or the wrong order |
#
# ## Quiz
#
# You pass with 70 %. Each answer is saved at once; run the cell again and it is there. Two of the questions are measured
# on this machine when you answer. Without a mouse: `from autograder import answer`, then `answer("01.3", "b")`. The
# cell after the quiz counts your points.

# %%
quiz("01")

# %%
check_quiz("01")

# %% [markdown]
# ## What next
#
# You can now build a batch that wastes little, a loop that never waits without need and an evaluation that counts every
# sample once, and you can read the signs of illness in a log.
#
# - Run `course-lib train --data your.csv --out runs/first` in a terminal, on a CSV of your own with the columns `text`
#   and `label`. Its report shows the curves of this lesson.
# - Take one training script that you use. Run the five-minute checklist on it. Fix the slowest station only.
# - [Lesson 02](../02_mixed_precision/02_mixed_precision.ipynb) makes the arithmetic of this loop cheaper.
# - The [start page](../00_start_here/00_start_here.ipynb) shows your progress and the map.

# %% [markdown]
# ## More
#
# From here on all is outside the 90 minutes. Take what you need. A piece needs the first cells of
# [the program](#The-program) alone; the cells of Accelerate and Lightning also the one of the Trainer.
#
# ### The loop in plain torch, and with `course_lib`
#
# Read it line by line. The comments say what each line costs or prevents.

# %%
sixteen = list(data.BucketBatchSampler(pool_lengths[:256], 16, seed=0))
epoch_batches = [data.collate([pool[i] for i in indices]) for indices in sixteen]


def train_plainly(model, batches, *, learning_rate, max_norm, warmup_steps, max_steps):
    optimizer = torch.optim.AdamW(
        [  # matrices decay; biases and norms do not
            {"params": [p for p in model.parameters() if p.ndim >= 2], "weight_decay": 0.01},
            {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0},
        ],
        lr=learning_rate,
        fused=True,  # one kernel for all parameters
    )

    def factor(step):  # warmup, then half a cosine
        if step < warmup_steps:
            return (step + 1) / warmup_steps
        return 0.5 * (
            1 + math.cos(math.pi * (step - warmup_steps) / max(1, max_steps - warmup_steps))
        )

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    model.train()  # dropout on
    loss_sum = torch.zeros((), device=device)  # a sum on the device: no sync
    for batch in batches:
        batch = {name: tensor.to(device, non_blocking=True) for name, tensor in batch.items()}
        loss = F.cross_entropy(
            model(batch["input_ids"], batch["attention_mask"]), batch["labels"]
        )
        optimizer.zero_grad(set_to_none=True)  # drop the old gradients: no zeros to write
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)  # before step
        optimizer.step()
        scheduler.step()  # after the optimizer, once an update
        # Weighted by the number of samples: the last batch may be short.
        loss_sum += loss.detach() * len(batch["labels"])
    return loss_sum.item() / sum(len(batch["labels"]) for batch in batches)  # the one sync


plain_model = new_model(seed=1)
torch.manual_seed(1)  # dropout
plain_loss = train_plainly(
    plain_model,
    epoch_batches,
    learning_rate=3e-3,
    max_norm=1.0,
    warmup_steps=2,
    max_steps=len(epoch_batches),
)
print(f"mean loss {plain_loss:.6f}")
print(f"guessing evenly would give ln {num_classes} = {math.log(num_classes):.3f}")

# %%
library_model = new_model(seed=1)
optimizer = make_optimizer(library_model, learning_rate=3e-3, weight_decay=0.01)
scheduler = warmup_cosine(optimizer, warmup_steps=2, max_steps=len(epoch_batches))
torch.manual_seed(1)
report = loop.train_one_epoch(library_model, epoch_batches, optimizer, scheduler, max_norm=1.0)

print(f"mean loss {report['loss']:.6f}")

pairs = zip(plain_model.parameters(), library_model.parameters(), strict=True)
largest = max((a - b).abs().max().item() for a, b in pairs)
print(f"\nlargest difference between the two models' weights: {largest:.1e}")

# %% [markdown]
# The weights agree: the library does not change the training.
#
# | Plain torch | `course_lib` | What changed in meaning |
# |---|---|---|
# | two parameter groups by hand | `make_optimizer(model)` | nothing; it takes the fused kernel only where the device has one |
# | the factor function | `warmup_cosine(optimizer, …)` | nothing; it refuses `warmup_steps > max_steps` |
# | the six lines from `loss` to `scheduler.step()` | `train_step(model, batch, optimizer)` | nothing; it returns loss and norm as tensors |
# | `loss_sum` | the report | loss, gradient norm, tokens/s, pad fraction, data-wait: still a handful of syncs an epoch |
# | – | `NonFiniteError` | a NaN stops the run, and the error names the step |
#
# ### Three losses, one function
#
# Classification, token classification and next-token prediction all end in `F.cross_entropy`. They differ in the
# shape of the logits and in which positions count. Positions that must not count get the label `-100`, the default
# `ignore_index`.

# %%
batch = data.collate(pool[:4])
rows, width = batch["input_ids"].shape
is_real = batch["attention_mask"]
torch.manual_seed(0)

# 1. Classification: one label a text. Logits [B, C], labels [B].
classification = F.cross_entropy(torch.randn(rows, num_classes), batch["labels"])

# 2. Token classification: one label a token, padding ignored. Logits [B, T, K], labels [B, T].
num_tags = 5
tag_logits = torch.randn(rows, width, num_tags)
tags = torch.randint(num_tags, (rows, width)).masked_fill(~is_real, -100)
token_loss = F.cross_entropy(tag_logits.flatten(0, 1), tags.flatten(), ignore_index=-100)
by_hand = F.cross_entropy(tag_logits[is_real], tags[is_real])

# 3. Next token: position t predicts the id at t + 1. Shift by one, ignore what would predict padding.
vocabulary_logits = torch.randn(rows, width, VOCAB_SIZE)
targets = batch["input_ids"].masked_fill(~is_real, -100)
next_token = F.cross_entropy(vocabulary_logits[:, :-1].flatten(0, 1), targets[:, 1:].flatten())

print(f"classification        {classification:.3f}")
print(
    f"token classification  {token_loss:.3f}   by hand, over real tokens only: {by_hand:.3f}"
)
print(f"next token            {next_token:.3f}   ln {VOCAB_SIZE} = {math.log(VOCAB_SIZE):.3f}")
print("random logits give about 0.5 more than ln of the number of choices; four texts scatter")

# Forget the mask, give padding the tag 0, and a model that learned "padding is 0" looks excellent:
tag_logits[~is_real, 0] += 6.0
forgotten = F.cross_entropy(tag_logits.flatten(0, 1), tags.clamp_min(0).flatten())
padding = 100 * (1 - is_real.float().mean())
print(f"\nthe same tagger, scored on padding too: {forgotten:.3f}")
print(f"{padding:.0f} % of the positions are padding. No error is raised.")

# %% [markdown]
# ### A learning rate for each group of layers
#
# AdamW takes *groups*: each with its own learning rate and weight decay. In fine-tuning the pretrained body gets a
# small rate and the new head a large one. A schedule multiplies each group's own rate, so their ratio stays.

# %%
model = new_model()
head = list(model.head.parameters())
embeddings = [model.token_embedding.weight, model.position_embedding.weight]
taken = {id(p) for p in head + embeddings}
body = [p for p in model.parameters() if id(p) not in taken]
optimizer = torch.optim.AdamW(
    [
        {"params": embeddings, "lr": 1e-4, "weight_decay": 0.0, "name": "embeddings"},
        {"params": body, "lr": 3e-4, "name": "body"},
        {"params": head, "lr": 1e-3, "name": "head"},
    ],
    weight_decay=0.01,
)
scheduler = warmup_cosine(optimizer, warmup_steps=2, max_steps=10)
for step in range(10):
    if step in (0, 2, 6, 9):  # reads plain floats: no sync
        print(
            f"step {step}: "
            + "   ".join(f"{g['name']} {g['lr']:.1e}" for g in optimizer.param_groups)
        )
    optimizer.step()
    scheduler.step()

covered = sum(p.numel() for group in optimizer.param_groups for p in group["params"])
assert covered == sum(p.numel() for p in model.parameters()), (
    "a parameter is in no group: it would never learn"
)

# %% [markdown]
# Keep the check at the end. A parameter that is in no group never changes, and nothing else tells you.
#
# ### Schedules
#
# A schedule plans the learning rate over the whole run. **Warmup** keeps the first steps small, while AdamW's averages
# are still noise. **Decay** lets the weights settle. Here are six that you will meet, run over 100 steps.

# %%
from torch.optim import lr_scheduler


def run_schedule(make, num_steps=100, losses=None):
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=1e-3)
    scheduler, rates = make(optimizer), []
    for step in range(num_steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if losses is None:
            scheduler.step()
        else:
            scheduler.step(losses[step])  # plateau: it must be told the metric
    return rates


def warmup_then(decay, warmup_steps=10, max_steps=100):
    def factor(step):
        if step < warmup_steps:
            return (step + 1) / warmup_steps
        return decay((step - warmup_steps) / (max_steps - warmup_steps))

    return lambda optimizer: lr_scheduler.LambdaLR(optimizer, factor)


stalling_loss = [max(1.0, 3 - 0.1 * step) for step in range(100)]
schedules = {
    "warmup + cosine": run_schedule(
        lambda o: warmup_cosine(o, warmup_steps=10, max_steps=100)
    ),
    "warmup + linear": run_schedule(warmup_then(lambda progress: 1 - progress)),
    "warmup + constant": run_schedule(warmup_then(lambda progress: 1.0)),
    "cosine with restarts": run_schedule(
        lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, T_0=25)
    ),
    "one cycle": run_schedule(
        lambda o: lr_scheduler.OneCycleLR(o, max_lr=1e-3, total_steps=101)
    ),
    "reduce on plateau": run_schedule(
        lambda o: lr_scheduler.ReduceLROnPlateau(o, factor=0.5, patience=10),
        losses=stalling_loss,
    ),
}

# %% jupyter={"source_hidden": true}
fig, axes = figure(2, 3, height=3.6, sharex=True, sharey=True)
for ax, (name, rates) in zip(axes.flat, schedules.items(), strict=True):
    ax.plot(rates, color=BLUE)
    ax.set_title(name)
    ax.set_ylim(0, 1.08e-3)
    ax.set_yticks([0, 5e-4, 1e-3], labels=["0", "0.0005", "0.001"])
for ax in axes[-1]:
    ax.set_xlabel("step")
axes[0, 0].set_ylabel("learning rate")
axes[1, 0].set_ylabel("learning rate")
show(fig, alt="Six learning-rate curves, 100 steps: warmup then cosine, linear or constant; "
     "a cosine that restarts every 25 steps; one cycle, up then down; "
     "and steps down each time the loss stalls.")  # fmt: skip

# %% [markdown]
# | Schedule | Take it when | Step it |
# |---|---|---|
# | warmup + cosine | you know the number of steps: the default choice | once an update |
# | warmup + linear | fine-tuning a pretrained model, where it is customary | once an update |
# | warmup + constant | you do not know yet how long you will train | once an update |
# | cosine with restarts | you want several good checkpoints in one run | once an update |
# | one cycle | a short run with a high peak rate | once an update; one call too many raises an error |
# | reduce on plateau | the length is open and validation decides | once an *evaluation*, with the metric |
#
# The right column is where loops go wrong. A schedule planned in epochs but stepped once a batch is over in
# minutes: run E of the sick runs is one.

# %% [markdown]
# ### The switches of a loader
#
# | Argument | What it does | When it does nothing |
# |---|---|---|
# | `num_workers=4` | four processes load and collate ahead | loading is already cheap: then it costs more than it gives |
# | `prefetch_factor=2` | each worker keeps two batches ready | `num_workers=0` |
# | `persistent_workers=True` | workers survive the epoch | one epoch only |
# | `pin_memory=True` | batches land in locked memory, from which a GPU can copy by itself | no GPU |
# | `.to(device, non_blocking=True)` | Python does not wait for that copy | memory not pinned, or no GPU |
#
# *Collate* runs in Python once for each batch, so keep it lean: few calls per row.

# %%
if device.type == "cuda":
    pageable = torch.randn(64, 1024, 256)
    pinned = pageable.pin_memory()

    def copy(source, non_blocking):
        return lambda: source.to(device, non_blocking=non_blocking)

    pin_speedup = paired_speedup(
        copy(pageable, False), copy(pinned, True), blocks=6, min_seconds=0.05
    )
    print(f"pinned and non_blocking over pageable: speedup {pin_speedup}")
else:
    print("No GPU here: pinned memory and non_blocking copies have nothing to do.")
    print("Leave them in: pin_memory=torch.cuda.is_available() is right on all machines.")

# %% [markdown]
# ### In the wild
#
# The frameworks do the same things under other names. Know the names, and know the defaults: most of them are safe,
# some are slow. The defaults below are those of Transformers 5.23, Accelerate 1.15 and Lightning 2.6. The cells run the
# real thing where it is installed. To install all three: `%pip install transformers accelerate lightning` in a new cell.
#
# #### Hugging Face Trainer
#
# | This lesson | `TrainingArguments` | Default | What surprises |
# |---|---|---|---|
# | dynamic padding | `data_collator=` of the `Trainer` | pads to the longest of the batch when a tokenizer is given as `processing_class` | `padding="max_length"` while tokenising undoes it, silently |
# | bucketing | `train_sampling_strategy="group_by_length"` | `"random"` | was `group_by_length=True` in version 4 |
# | workers | `dataloader_num_workers` | 0 | nothing is loaded ahead |
# | persistent workers | `dataloader_persistent_workers` | `False` | new processes each epoch |
# | pinned memory | `dataloader_pin_memory` | `True` | nothing: leave it |
# | clipping | `max_grad_norm` | 1.0 | clips without being asked |
# | schedule | `lr_scheduler_type`, `warmup_steps` | `"linear"`, 0 | no warmup; a float below 1 is a share of the run |
# | weight decay | `weight_decay` | 0.0 | AdamW that decays nothing |
# | evaluation | `eval_strategy` | `"no"` | no validation at all |
# | logging | `logging_steps` | 500 | a shorter run logs one mean loss, at its end |
# | NaN | `logging_nan_inf_filter` | `True` | **the log hides NaN losses** |
# | saving | `save_steps`, `save_total_limit` | 500, `None` | every checkpoint is kept, until the disk is full |


# %%
def is_installed(package: str) -> bool:
    found = importlib.util.find_spec(package) is not None
    if not found:
        print(
            f"{package} is not installed, so this cell runs nothing. Nothing later needs it."
        )
    return found


class WithLoss(torch.nn.Module):
    """The form that the Trainer expects: the model computes its own loss."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, labels):
        logits = self.model(input_ids, attention_mask)
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


if is_installed("transformers") and is_installed("accelerate"):
    import logging

    logging.disable(logging.WARNING)  # importing it reports each optional part that is missing
    from transformers import Trainer, TrainingArguments

    logging.disable(logging.NOTSET)

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=4,
            per_device_train_batch_size=16,
            learning_rate=1e-3,
            logging_nan_inf_filter=False,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=device.type == "cpu",
            dataloader_pin_memory=device.type == "cuda",
        )
        trainer = Trainer(
            WithLoss(new_model()),
            arguments,
            data_collator=data.collate,
            train_dataset=pool[:64],
        )
        num_steps = trainer.train().global_step
        mean_loss = trainer.state.log_history[-1]["train_loss"]
        print(f"Trainer: {num_steps} steps, mean loss {mean_loss:.3f}. Some defaults:")
        for name in (
            "max_grad_norm",
            "weight_decay",
            "warmup_steps",
            "dataloader_num_workers",
            "logging_steps",
        ):
            print(f"  {name} = {getattr(TrainingArguments(output_dir=folder), name)}")

# %% [markdown]
# #### Accelerate
#
# Your own loop, with four changes: `prepare`, `accelerator.backward`, `accelerator.clip_grad_norm_`, and no
# `.to(device)`. One default to know on one device: copies wait, even from pinned memory, until you ask for
# `Accelerator(dataloader_config=DataLoaderConfiguration(non_blocking=True))`. What surprises on several is in
# [lesson 06](../06_distributed_training/06_distributed_training.ipynb#Accelerate).

# %%
if is_installed("accelerate"):
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=device.type == "cpu")
    model = new_model()
    optimizer = make_optimizer(model)
    loader = torch.utils.data.DataLoader(pool[:64], batch_size=16, collate_fn=data.collate)
    scheduler = warmup_cosine(optimizer, warmup_steps=1, max_steps=len(loader))
    model, optimizer, loader, scheduler = accelerator.prepare(
        model, optimizer, loader, scheduler
    )
    for batch in loader:
        loss = F.cross_entropy(
            model(batch["input_ids"], batch["attention_mask"]), batch["labels"]
        )
        optimizer.zero_grad()
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
    print(
        f"Accelerate: {len(loader)} steps on {accelerator.device}, last loss {loss.item():.3f}"
    )

# %% [markdown]
# #### Lightning
#
# | This lesson | `Trainer` / `LightningModule` | Default | What surprises |
# |---|---|---|---|
# | clipping | `gradient_clip_val` | `None` | **no clipping** until you ask |
# | schedule | `lr_scheduler_config["interval"]` | `"epoch"` | **a schedule planned in steps crawls**: say `"step"` |
# | logging | `log_every_n_steps` | 50 | a short epoch logs nothing |
# | validation first | `num_sanity_val_steps` | 2 | metrics see two batches of an untrained model |
# | length of a run | `max_epochs` | 1000, if `max_steps` is not given either | a run that seems never to end |
# | eval mode, inference mode | `inference_mode` | `True` | nothing: validation does both for you |
# | saving | `enable_checkpointing` | `True` | one checkpoint an epoch, the last one kept |

# %%
if is_installed("lightning"):
    import logging

    from lightning.pytorch import LightningModule, Trainer

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Lit(LightningModule):
        def __init__(self):
            super().__init__()
            self.model = new_model()

        def training_step(self, batch, batch_idx):
            return F.cross_entropy(
                self.model(batch["input_ids"], batch["attention_mask"]), batch["labels"]
            )

        def configure_optimizers(self):
            optimizer = make_optimizer(self.model)
            scheduler = warmup_cosine(optimizer, warmup_steps=1, max_steps=4)
            return {
                "optimizer": optimizer,
                "lr_scheduler": {"scheduler": scheduler, "interval": "step"},
            }

    with warnings.catch_warnings():
        # The warnings advise about workers and loggers, as this lesson does.
        warnings.simplefilter("ignore")
        trainer = Trainer(
            max_steps=4, gradient_clip_val=1.0, logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False, accelerator="auto", devices=1,
        )  # fmt: skip
        trainer.fit(
            Lit(),
            torch.utils.data.DataLoader(pool[:64], batch_size=16, collate_fn=data.collate),
        )
    print(f"Lightning: {trainer.global_step} steps")

# %% [markdown]
# ### When it goes wrong
#
# Three mistakes that the checks of this lesson do not look for. Learn the *symptom*: it is what you will see.
#
# #### The sampler is never told the epoch
# *Symptom:* the loss curve shows the same bumps at the same place in every epoch.


# %%
def share_of_same_batches(first, second):
    return len({frozenset(b) for b in first} & {frozenset(b) for b in second}) / len(first)


epochs = {}
for told in (False, True):
    sampler = data.BucketBatchSampler(lengths, 32, seed=0)
    first_epoch = list(sampler)
    if told:
        sampler.set_epoch(1)
    epochs[told] = 100 * share_of_same_batches(first_epoch, list(sampler))
print(
    f"without set_epoch: {epochs[False]:.0f} % of the batches are the same in the next epoch"
)
print(f"with set_epoch:    {epochs[True]:.0f} %")

# %% [markdown]
# *Cure:* `sampler.set_epoch(epoch)` before each epoch. `course_lib.fit` does it.
#
# #### The mean-pool ignores the mask
# *Symptom:* the same text gets another score in another batch. Offline and online results disagree.

# %%
torch.manual_seed(0)
hidden, num_real = torch.randn(1, 8, 4), 5  # 5 tokens of a text
for width in (8, 64):
    padded = torch.zeros(1, width, 4)
    padded[:, :8] = hidden
    is_real = (torch.arange(width) < num_real)[None]
    plain_mean = padded.mean(dim=1)
    masked_mean = (padded * is_real[..., None]).sum(dim=1) / is_real.sum(dim=1, keepdim=True)
    print(f"width {width:>2}: plain {plain_mean[0, 0]:+.3f}   masked {masked_mean[0, 0]:+.3f}")

# %% [markdown]
# *Cure:* weigh by the mask, and test that a text scores the same at two widths. A wrong mask has the same symptom;
# [1.1](#1.1-·-A-collate-function-that-pads-no-more-than-it-must) checks yours.
#
# #### A progress bar that asks
# *Symptom:* the GPU is partly idle, and busier when you log less.
#
# `bar.set_postfix(loss=loss.item())` is a sync at every step, and so is a logger that is handed tensors. *Cure:* keep
# sums on the device and read them every hundred steps.
#
#
# ### Drills
#
# Not graded. Each takes a few minutes: predict, run, then change the value that says `try` and run again.
#
# **Drill 1 · Batch size and padding.** With random batches and dynamic padding, does a *larger* batch waste a larger
# or a smaller share? [Less padding](#Less-padding) used batches of 32.

# %%
predict("1e", "Random batches of 128, dynamic padding: share of padding?", unit="%")

# %%
drill_batch_size = 128  # try 1, 8, 32, 512
order = np.random.default_rng(0).permutation(len(train))
drill = [order[i : i + drill_batch_size] for i in range(0, len(order), drill_batch_size)]
in_buckets = list(data.BucketBatchSampler(lengths, drill_batch_size, seed=0))
print(f"random {100 * data.pad_fraction(lengths, drill):.1f} %   bucketed "
      f"{100 * data.pad_fraction(lengths, in_buckets):.1f} %")  # fmt: skip
compare("1e", 100 * data.pad_fraction(lengths, drill), unit="%")

# %% [markdown]
# **Drill 2 · Cutting the tail.** You cut texts at 256 tokens. How many texts lose something, and which share of all
# tokens is gone?

# %%
predict("1f", "Share of all tokens lost when texts are cut at 256?", unit="%")

# %%
cut_at = 256  # try 64, 128, 512
lost = 1 - np.minimum(lengths, cut_at).sum() / lengths.sum()
print(f"{100 * (lengths > cut_at).mean():.1f} % of the texts lose something")
print(f"{100 * lost:.1f} % of the tokens are gone")
compare("1f", 100 * lost, unit="%")

# %% [markdown]
# **Drill 3 · What does clipping do to the norm?** In run D of the sick runs, `max_norm` was infinite. Set it, and predict the
# largest gradient norm *before clipping* in the last 35 steps.

# %%
predict("1g", "With max_norm=1.0: largest norm before clipping in the last 35 steps of run D?")

# %%
drill_max_norm = 1.0  # try 0.1 and 10
sick = SickRuns(new_model, short, num_classes)
clipped = sick.mislabelled_run(max_norm=drill_max_norm)
for name, run in {"without clipping": sick.runs["D"], "with clipping": clipped}.items():
    print(f"{name:<17} {max(run.grad_norm[55:]):.2f}, final loss {run.loss[-1]:.3f}")
compare("1g", max(clipped.grad_norm[55:]))

# %% [markdown]
# The logged norm may be far above `max_norm`: it is measured *before* clipping. Clipping limits the step that a bad
# batch may take; it does not make the batch good. So the norm stays a useful signal with clipping on.

# %% [markdown]
# **Drill 4 · What `zero_grad` writes.** `set_to_none=False` writes zeros instead of dropping the gradients; backward
# then adds to them. What does that cost here?

# %%
predict("1h", "Speedup of set_to_none=True over False, whole forward and backward?", unit="×")


# %%
def backward_with(set_to_none: bool):
    model = new_model()
    batch = loop.to_device(data.collate(short[:16]), device)

    def run():
        loss = F.cross_entropy(
            model(batch["input_ids"], batch["attention_mask"]), batch["labels"]
        )
        model.zero_grad(set_to_none=set_to_none)
        loss.backward()

    return run


zero_grad_speedup = paired_speedup(
    backward_with(False), backward_with(True), blocks=4, min_seconds=0.1
)
print(f"speedup {zero_grad_speedup}")
print(f"numbers in the embedding table alone: {new_model().token_embedding.weight.numel():,}")
compare("1h", zero_grad_speedup.estimate, unit="×")

# %% [markdown]
# Look at the interval, not only at the number. When 1 lies inside it, the honest sentence is "no difference found
# here". Dropping the gradients also frees their memory until the next backward. It is torch's default, so the mistake is
# to switch it off.
