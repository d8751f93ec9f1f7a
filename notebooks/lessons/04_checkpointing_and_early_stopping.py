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
# # 04 · Checkpointing and early stopping
#
# *About 105 minutes: 25 of reading and quiz, 80 for 5 exercises*
#
# Long runs are interrupted. You begin with a run that is sent back to its start by each kill. You make it one that does
# not mind: it goes on, and ends with the same weights, to the last bit. Then you let it end itself when more steps no
# longer help, and keep the weights that were best.
#
# | Part | What you build there |
# |---|---|
# | [The program](#The-program) | a training that is killed, and the time until it is through |
# | [A photograph of the line](#A-photograph-of-the-line) | 4.1, a checkpoint with everything in it |
# | [Kills do not wait](#Kills-do-not-wait) | 4.2, a save that survives `kill -9` |
# | [When more steps no longer help](#When-more-steps-no-longer-help) | 4.3, early stopping; 4.4, the best weights |
# | [How often to save](#How-often-to-save) | 4.5, saves at a price that you choose |
# | [Checklist](#The-checklist), [quiz](#Quiz) | a page to keep, the test |
# | [More](#More) | outside the 105 minutes: asynchronous saves, safe loading, export, frameworks, drills |
#
# Cells that are folded draw pictures or set things up; the three dots open them.

# %%
from autograder import check, check_quiz, compare, exercise, predict, quiz, so_far, yours

# %% jupyter={"source_hidden": true}
import contextlib
import copy
import importlib.util
import io
import math
import os
import pickle
import random
import subprocess
import sys
import tempfile
import time
import warnings
import zlib
from itertools import cycle, islice
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F

from autograder.plots import BLUE, GREEN, GREY, ORANGE, RED, bars, figure, mark, show
from course_lib import checkpoint, data, early_stopping, loop
from course_lib.bench import paired_speedup
from course_lib.models import ModelConfig, TextClassifier
from course_lib.optim import make_optimizer
from course_lib.reproducibility import (
    rng_state,
    seed_everything,
    set_rng_state,
    weights_sha256,
)
from course_lib.schedules import warmup_cosine

# One thread: timings are steadier, whatever else your machine does on its other cores.
torch.set_num_threads(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
scratch = tempfile.TemporaryDirectory()  # all files of this lesson; gone when the kernel ends
folder = Path(scratch.name)
print(f"torch {torch.__version__} on {device}, {torch.get_num_threads()} thread")

# %% [markdown]
# ## The program
#
# Real docstrings, cut at 48 tokens, and a small classifier with dropout. You rent a machine that may be taken back at any
# moment. To see a long run in seconds, this program has a clock of its own: a step takes 1 second of it, a validation 1,
# a save 4. The training is real, only its time is played. At three moments of that clock the process is killed.

# %% jupyter={"source_hidden": true}
train, validation = data.docstring_store(max_length=1024)
num_classes = len(train.label_names)


def some(store, number, seed):
    """`number` texts of a store, picked at random, cut at 48 tokens."""
    picked = np.random.default_rng(seed).choice(len(store), number, replace=False)
    return [(ids[:48], label) for ids, label in (store[int(i)] for i in picked)]


pool, held_out = some(train, 1024, seed=0), some(validation, 256, seed=1)
held_out_batches = [data.collate(held_out[i : i + 64]) for i in range(0, 256, 64)]
pool_lengths = [len(ids) for ids, _ in pool]
MAX_STEPS = 60


def new_model(seed: int = 0, **sizes: int) -> TextClassifier:
    """A fresh small classifier; the same seed gives the same weights."""
    torch.manual_seed(seed)
    settings = {"d_model": 32, "num_layers": 1, "num_heads": 2, "max_length": 48} | sizes
    return TextClassifier(
        ModelConfig(vocab_size=train.vocab_size, num_classes=num_classes, **settings)
    ).to(device)


def new_parts(seed: int = 0) -> dict:
    """All parts of a run that keep a state. A part has `state_dict` and `load_state_dict`."""
    seed_everything(seed)
    model = new_model(seed)
    optimizer = make_optimizer(model, learning_rate=3e-3)
    return {
        "model": model,
        "optimizer": optimizer,
        "scheduler": warmup_cosine(optimizer, warmup_steps=5, max_steps=MAX_STEPS),
        "sampler": data.BucketBatchSampler(pool_lengths, 16, seed=seed),
    }


def endless(sampler):
    """Batches of the pool, epoch after epoch, from wherever the sampler stands."""
    sampler.load_state_dict(sampler.state_dict())  # else a new loop begins the epoch anew
    while True:
        for indices in sampler:
            yield data.collate([pool[i] for i in indices])
        sampler.set_epoch(sampler.epoch + 1)


def train_on(parts, num_steps):
    """`num_steps` more steps; returns the losses. A sync at each step: for a look only."""
    parts["model"].train()
    losses = []
    for batch in islice(endless(parts["sampler"]), num_steps):
        metrics = loop.train_step(
            parts["model"],
            loop.to_device(batch, device),
            parts["optimizer"],
            scheduler=parts["scheduler"],
        )
        losses.append(metrics["loss"].item())
    return losses


EVERY, FULL_RUN, KILLS = 10, 180, (56, 155, 290)  # steps; steps; seconds
STORY_TEXTS = 192  # so few that the model will know them by heart


class Killed(BaseException):
    """Stands for kill -9 in a notebook, whose kernel should live on."""


class PlayedClock:
    """Seconds that pass when somebody says so. Passing one of KILLS kills."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def passes(self, seconds):
        before, self.now = self.now, self.now + seconds
        hit = [kill for kill in KILLS if before < kill <= self.now]
        if hit:
            self.now = float(hit[0])
            raise Killed


class Together:
    """Several parts with a state, as one."""

    def __init__(self, **parts):
        self.parts = parts

    def state_dict(self):
        return {name: part.state_dict() for name, part in self.parts.items()}

    def load_state_dict(self, state):
        for name, part in self.parts.items():
            part.load_state_dict(state[name])


class NeverStops:
    """Early stopping that never does."""

    def update(self, metrics, step):
        return False

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


class EveryFiveSteps:
    def __init__(self, clock):
        self.num_steps = 0

    def saved(self, seconds):
        pass

    def is_due(self):
        self.num_steps += 1
        return self.num_steps % 5 == 0


def story_parts():
    """The parts of the program's run: few texts, so that it can know them by heart."""
    seed_everything(3)
    model = new_model(3)
    optimizer = make_optimizer(model, learning_rate=1e-3)
    return {
        "model": model,
        "optimizer": optimizer,
        "scheduler": torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0),
        "sampler": data.BucketBatchSampler(pool_lengths[:STORY_TEXTS], 16, seed=3),
    }


print(f"{len(pool):,} texts to train on, {len(held_out)} to validate")

# %%
program = SimpleNamespace(
    checkpoint=None,  # (parts, stopper) -> an object with save(path, step) and load(path) -> step
    write=None,  # (content, path): how the file gets its name
    stopper=NeverStops,
    cadence=EveryFiveSteps,  # asked after each step whether to save
)


def play(program):
    """Seconds of the played clock until the run is through, killed in between."""
    clock, path, step = PlayedClock(), folder / "story.pt", 0
    path.unlink(missing_ok=True)
    while True:  # each turn is a process that starts anew
        parts, stopper, step = story_parts(), program.stopper(), 0
        cadence = program.cadence(clock)
        cadence.saved(4)
        keeper = program.checkpoint and program.checkpoint(parts, stopper)
        try:
            if (
                keeper and path.exists() and path.stat().st_size > 1000
            ):  # a broken file is none
                step = keeper.load(path)
            for batch in endless(parts["sampler"]):
                loop.train_step(
                    parts["model"].train(), loop.to_device(batch, device), parts["optimizer"]
                )
                step += 1
                clock.passes(1)
                if step % EVERY == 0:
                    scores = loop.evaluate(parts["model"], held_out_batches)
                    clock.passes(1)
                    if step >= FULL_RUN or stopper.update({"loss": scores["loss"]}, step):
                        return clock.now
                if keeper and cadence.is_due():
                    save(keeper, path, step, clock)
                    cadence.saved(4)
        except Killed:
            continue


def save(keeper, path, step, clock):
    try:
        clock.passes(4)
    except Killed:  # in the middle of a save
        if not program.write:
            path.write_bytes(b"half a file")
        raise
    keeper.save(path, step)
    if program.write:
        program.write(torch.load(path, weights_only=True), path)


at_first = play(program)
print(
    f"{FULL_RUN} steps, killed {len(KILLS)} times: through after {at_first:.0f} s, of which {FULL_RUN + FULL_RUN // EVERY} were needed"
)

# %% [markdown]
# Without a checkpoint each kill sends the run back to its start. What must be in a checkpoint follows from the assembly
# line of [lesson 01](../01_efficient_training_loops/01_efficient_training_loops.ipynb#The-program):
#
# > load → batch → forward → backward → step
#
# ## A photograph of the line
#
# **A checkpoint is a photograph of the line: all that the next step reads.** Which batch is next? Which numbers will
# dropout draw? What does the optimizer remember, where is the schedule? What is not in the photograph is made up when the
# line starts again. The run goes on, no error is raised, and it is another run.

# %%
predict("4a", "A checkpoint of everything: how many times the size of the weights?", unit="×")

# %% jupyter={"source_hidden": true}
parts = new_parts()
losses = train_on(parts, 30)


def file_size(content) -> int:
    path = folder / "weighed.pt"
    torch.save(content, path)
    return path.stat().st_size


sizes = {name: file_size(part.state_dict()) for name, part in parts.items()}
sizes["random generators"] = file_size(rng_state())
whole = file_size(
    {name: part.state_dict() for name, part in parts.items()} | {"rng": rng_state()}
)


print(f"a run stands at step {len(losses)}")

# %%
compare("4a", whole / sizes["model"], unit="×")

# %% jupyter={"source_hidden": true}
fig, ax = figure(height=2.2)
bars(ax, list(sizes), [size / 1e3 for size in sizes.values()], unit="kB", digits=0)
ax.set_title("What the parts of a run take on disk")
show(fig, alt="Kilobytes on disk: "
     + ", ".join(f"{name} {size / 1e3:.0f}" for name, size in sizes.items()))  # fmt: skip

# %% [markdown]
# AdamW keeps two averages for each weight, so its state is twice the weights. The rest weighs next to nothing. That is
# why it is forgotten. What is it worth? A run stands at step 30. You save it, go on for 20 steps, and call the end the
# truth. Then you resume from the file several times, and each time you leave one thing out. The measure: the distance of
# the weights to the true end, as a share of the distance that the true run covers in those 20 steps.

# %%
predict("4b", "Only the random generators forgotten: how far off after 20 steps?", unit="%")

# %% jupyter={"source_hidden": true}
saved = copy.deepcopy({name: part.state_dict() for name, part in parts.items()}) | {
    "rng": rng_state()
}


def flat(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def resume_without(*forgotten):
    """What a new process does: fresh parts, then what is in the file."""
    fresh = new_parts()
    seed_everything(123)  # another process draws other numbers
    for name, part in fresh.items():
        if name not in forgotten:
            part.load_state_dict(copy.deepcopy(saved[name]))
    if "rng" not in forgotten:
        set_rng_state(saved["rng"])
    return fresh


at_save = flat(parts["model"]).clone()
true_losses = train_on(parts, 20)
truth = flat(parts["model"])
way = (truth - at_save).norm()


print(f"saved at step 30, and the truth at step {30 + len(true_losses)}")

# %%
left_out = {
    "nothing": (),
    "random generators": ("rng",),
    "sampler position": ("sampler",),
    "scheduler": ("scheduler",),
    "optimizer": ("optimizer",),
    "all but the weights": ("rng", "sampler", "scheduler", "optimizer"),
}
off, resumed_losses = {}, {}
for name, forgotten in left_out.items():
    fresh = resume_without(*forgotten)
    resumed_losses[name] = train_on(fresh, 20)
    off[name] = 100 * ((flat(fresh["model"]) - truth).norm() / way).item()
compare("4b", off["random generators"], unit="%")

# %% jupyter={"source_hidden": true}
fig, (left, right) = figure(1, 2, height=3.0, width_ratios=[1.15, 1.0])
bars(left, list(off), off.values(), unit="%", digits=0,
     colors=[GREEN, *[ORANGE] * 4, RED])  # fmt: skip
left.set_title("Forgotten, and how far off")
steps = range(30, 50)
right.plot(steps, true_losses, color=GREEN, linewidth=5, alpha=0.35, label="uninterrupted")
right.plot(steps, resumed_losses["nothing"], color=GREEN, label="resumed, all of it")
right.plot(steps, resumed_losses["all but the weights"], color=RED, linestyle="--",
           label="weights only")  # fmt: skip
shown = true_losses + resumed_losses["all but the weights"]
right.set(
    title="Loss after the resume", xlabel="step", ylim=(min(shown) - 1.0, max(shown) + 0.1)
)
right.legend(fontsize=9, loc="lower left")
show(fig, alt="Left, distance from the uninterrupted run after 20 steps, by what was forgotten: "
     + ", ".join(f"{name} {value:.0f} %" for name, value in off.items())
     + ". Right: the fully resumed loss lies on the uninterrupted one; weights only does not.")  # fmt: skip

# %% [markdown]
# Look at the dashed line. Where it is *below* the others, the run has not become better: it is seeing the texts of this
# epoch a second time. A resume that looks good can be wrong. And the promise has its condition: bits are equal on a CPU
# with as many threads as before; on a GPU the kernels must be deterministic too.
#
# <details><summary>Why is so little enough?</summary>
#
# Other random numbers give other dropout masks, so other gradients, from the first step on. It need not be a *worse*
# run: it is as good as a run with another seed. But you can no longer compare. A bug after the resume and a bad seed
# look the same, and nobody can repeat what you did.
#
# A forgotten sampler position is worse: this epoch's first texts are seen twice and its last ones perhaps never. A
# forgotten schedule repeats the warmup, then the highest rates, long after their time. Forgotten averages make the first
# steps of AdamW far too large for where the run is: each weight moves by about the learning rate, whatever its gradient.
#
# </details>
#
# The rules are those of [lesson 01](../01_efficient_training_loops/01_efficient_training_loops.ipynb#How-exercises-work): write
# where the cell raises `NotImplementedError`, and put all that your code needs into that cell, imports too. What is
# counted here is steps, and seconds on a simulated clock. Arguments have the types that stand beside them; numbers
# among them are finite, and seeds lie between 0 and `2**32 - 1`, unless the text says otherwise.
#
# ### 4.1 · Save and load everything
#
# > Difficulty ●●○○○ · Importance ●●●●● · 15 minutes · property · imports: all that is installed
#
# The check trains in one process, saves with your class, takes the one file to another process with other seeds and
# other weights, loads it there, and trains on. The result must equal the uninterrupted run, bit for bit. Its training
# step draws from `random`, from NumPy's global generator and from torch. Last, your `load` gets a file from a stranger.
#
# <details><summary>Hint: "another random number"</summary>
#
# Three generators are at work, each with a state to get and to set. `course_lib.reproducibility` has `rng_state` and
# `set_rng_state` for all of them.
#
# </details>
# <details><summary>Hint: "UnpicklingError: Weights only load failed"</summary>
#
# The file holds something that is no tensor and no plain value. NumPy's state has an array in it, for instance: a list
# or a tensor carries the same numbers.
#
# </details>
# <details><summary>Hint: "the call was made" when a foreign file is loaded</summary>
#
# Do not answer an `UnpicklingError` with `weights_only=False`. Change what you save.
#
# </details>

# %%
from pathlib import Path
from typing import Any

import torch

from autograder import exercise


@exercise("4.1")
class RunCheckpoint:
    """A run in one file: all that its next step depends on.

    Each part has `state_dict()` and `load_state_dict(state)`; all states are tensors and plain
    values. The run also draws from Python's `random`, from NumPy's global generator
    (`np.random…`) and from torch's; it runs on a CPU.
    """

    def __init__(
        self, *, model: Any, optimizer: Any, scheduler: Any, scaler: Any, sampler: Any
    ) -> None:
        self.parts = {
            "model": model,
            "optimizer": optimizer,
            "scheduler": scheduler,
            "scaler": scaler,
            "sampler": sampler,
        }

    def save(self, path: Path, step: int) -> None:
        """Write everything into the one file `path`. The run goes on as if nothing had happened.

        Raises an error where the file cannot be written.
        """
        ### BEGIN SOLUTION
        from course_lib.reproducibility import rng_state

        states = {name: part.state_dict() for name, part in self.parts.items()}
        # rng_state gives tensors and plain values: loading needs no pickle of foreign classes.
        torch.save(states | {"step": step, "rng": rng_state()}, path)
        ### END SOLUTION

    def load(self, path: Path) -> int:
        """Put everything back into the parts given to `__init__`; returns the step that was saved.

        Whatever stands in the file, loading it runs no code from it: it may raise an error. Raises one
        where there is no file, or not all of one.
        """
        ### BEGIN SOLUTION
        from course_lib.reproducibility import set_rng_state

        saved = torch.load(path, map_location="cpu", weights_only=True)
        for name, part in self.parts.items():
            part.load_state_dict(saved[name])
        set_rng_state(saved["rng"])  # last: nothing may draw after it
        return saved["step"]
        ### END SOLUTION


# %%
check("4.1")

# %%
RunCheckpoint = yours("4.1", None)
if RunCheckpoint:
    program.checkpoint = lambda parts, stopper: RunCheckpoint(
        model=parts["model"],
        optimizer=parts["optimizer"],
        scheduler=parts["scheduler"],
        scaler=torch.amp.GradScaler(enabled=False),
        sampler=Together(sampler=parts["sampler"], stopper=stopper),
    )
so_far("4.1", "your checkpoint", lambda: play(program), unit="s", start=at_first, digits=0)

# %% [markdown]
# ## Kills do not wait
#
# The program saves every 5 steps, in place. The first of its kills comes in the middle of a save and leaves half a file: what
# was done until then is lost.
# `torch.save(checkpoint, "last.pt")` empties the old file first, then it writes. In between there is no checkpoint at
# all. A kill, a full disk, a power cut: any of them finds the moment, because long runs save thousands of times.
#
# The next cell starts small programs that do nothing but save, and kills each with `kill -9` at a random moment.
# Nothing can be caught or cleaned up then. The file has a checksum, so that it is known whether it is whole.

# %%
predict("4c", "In place: after which share of the kills is the file broken?", unit="%")

# %% jupyter={"source_hidden": true}
SAVER = """
import os, sys, zlib
path, how = sys.argv[1:]
versions = []
for number in range(2):
    body = bytes([number]) * 4_000_000
    versions.append(zlib.crc32(body).to_bytes(4, "big") + body)
print("saving", flush=True)
while True:
    for version in versions:
        target = path if how == "in place" else path + ".tmp"
        with open(target, "wb", buffering=65536) as file:
            for start in range(0, len(version), 65536):
                file.write(version[start : start + 65536])
        if how == "atomic":
            os.replace(target, path)  # one call to the system: the old file or the new one
"""


def is_whole(path: Path) -> bool:
    content = path.read_bytes()
    return len(content) == 4_000_004 and zlib.crc32(content[4:]) == int.from_bytes(
        content[:4], "big"
    )


def kill_many(how: str, num_kills: int) -> float:
    """Percent of the kills after which the file is broken."""
    path, num_broken, rng = folder / "killed.bin", 0, random.Random(0)
    whole = bytes(4_000_000)
    for _ in range(num_kills):
        path.write_bytes(zlib.crc32(whole).to_bytes(4, "big") + whole)
        saver = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", SAVER, str(path), how], stdout=subprocess.PIPE
        )
        saver.stdout.readline()
        time.sleep(rng.uniform(0.0, 0.03))
        saver.kill()  # kill -9
        saver.wait()
        saver.stdout.close()
        num_broken += not is_whole(path)
    return 100 * num_broken / num_kills


print("a program that saves all the time is set up")

# %%
NUM_KILLS = 20
broken = {how: kill_many(how, NUM_KILLS) for how in ("in place", "atomic")}
for how, share in broken.items():
    print(f"{how:>8}: {share:.0f} % of {NUM_KILLS} kills left a broken file")
compare("4c", broken["in place"], unit="%", digits=0)

# %% [markdown]
# These programs save all the time, so nearly each kill hits a save. A real run saves for a small share of its time,
# and a kill hits that share. It is still the checkpoint that you wanted to be safe with.
#
# The **atomic save** has three steps, and each has a reason:
#
# 1. Write everything into another file *in the same folder*. A rename is one indivisible act only within a file system.
# 2. `fsync`: wait until the bytes are on the disk. Until then they are in the machine's memory. A killed *process* does
#    not lose them, a power cut does.
# 3. Rename it to the final name. Whoever looks, at any moment, finds the old file or the new one, whole.
#
# ### 4.2 · A save that survives `kill -9`
#
# > Difficulty ●●●○○ · Importance ●●●●● · 15 minutes · property (many kills) · imports: all that is installed, except `course_lib`
#
# The check looks at the file between any two calls that your save makes to the operating system: what a kill at that
# moment would leave. Then it really kills processes that save, at random moments. And it lets a save fail half way, as on
# a full disk.
#
# <details><summary>Hint: "bytes that are no checkpoint"</summary>
#
# Something writes to `path` itself. Only the last act, the rename, may touch that name. `shutil.copy` and
# `shutil.move` across file systems write byte by byte too; `os.replace` raises "Invalid cross-device link" there.
#
# </details>
# <details><summary>Hint: "no file, or an empty one"</summary>
#
# Removing the old file first is not needed: `os.replace` takes its place in one act.
#
# </details>
# <details><summary>Hint: "may still be in the machine's memory alone"</summary>
#
# `file.flush()` empties Python's buffer, `os.fsync(file.fileno())` the system's. Both come before the rename, while
# the file is open.
#
# </details>
# <details><summary>Hint: "… beside them"</summary>
#
# When writing raises, the temporary file is still there. A `finally` that removes it, if it is there, does both cases.
#
# </details>

# %%
import os
from pathlib import Path
from typing import Any

import torch

from autograder import exercise


@exercise("4.2")
def save_atomically(checkpoint: dict[str, Any], path: Path) -> None:
    """Save `checkpoint` so that `torch.load(path, weights_only=True)` gives it back.

    checkpoint: tensors and plain values, nested in dicts and lists.
    path: a file name in a folder that exists, on a disk of its own; often an older checkpoint has
        that name.

    At every moment, also when the process is killed, `path` is the old whole checkpoint or the
    new whole one. When the function returns, it is the new one, forced to the disk (fsync) before
    it got its name. When saving fails, the error reaches the caller and `path` is what it was.
    Except after a kill, which Ctrl-C is not, the function leaves no other file in the folder.
    """
    ### BEGIN SOLUTION
    temporary = path.with_name(
        f"{path.name}.{os.getpid()}.tmp"
    )  # same folder: same file system
    try:
        with temporary.open("wb") as file:
            torch.save(checkpoint, file)
            file.flush()
            os.fsync(file.fileno())  # before the name: a name must never stand for lost bytes
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)  # after an error; after the rename it is not there
    ### END SOLUTION


# %%
check("4.2")

# %%
program.write = yours("4.2", program.write)
so_far("4.2", "no broken file", lambda: play(program), unit="s", start=at_first, digits=0)

# %% [markdown]
# ## When more steps no longer help
#
# A small model learns 192 texts. It is validated every 5 steps, on other texts. Where will the validation loss be lowest, and
# how much of the run comes after that?

# %%
predict(
    "4f",
    "Stop after 6 validations without a new best: which share of 180 steps is saved?",
    unit="%",
)

# %% jupyter={"source_hidden": true}
EVERY_5 = 5
few = [data.collate(pool[i : i + 16]) for i in range(0, 192, 16)]
model = new_model(seed=3)
optimizer = make_optimizer(model, learning_rate=1e-3)
curve = {"step": [], "train": [], "validation": [], "accuracy": []}
recent = []
for step, batch in enumerate(islice(cycle(few), FULL_RUN), start=1):
    model.train()
    recent.append(loop.train_step(model, loop.to_device(batch, device), optimizer)["loss"])
    if step % EVERY_5 == 0:
        scores = loop.evaluate(model, held_out_batches)
        curve["step"].append(step)
        curve["train"].append(torch.stack(recent).mean().item())
        curve["validation"].append(scores["loss"])
        curve["accuracy"].append(100 * scores["accuracy"])
        recent = []


def stop_on(values, patience, min_delta=0.0, mode="min"):
    """Feed a curve to course_lib's early stopping: (validations until the stop, index of the best)."""
    stopper = early_stopping.EarlyStopping("value", mode, patience, min_delta)
    state = loop.TrainState()
    for number, value in enumerate(values):
        state.step = number
        stopper.on_record(state, {"kind": "validation", "value": value})
        if state.should_stop:
            return number + 1, stopper.best_step
    return len(values), stopper.best_step


print(f"{FULL_RUN} steps, validated every {EVERY_5}")

# %%
num_validations, best_at = stop_on(curve["validation"], patience=6)
stop_step, best_step = curve["step"][num_validations - 1], curve["step"][best_at]
saved_share = 100 * (1 - stop_step / FULL_RUN)
print(f"best validation at step {best_step}, stopped at step {stop_step} of {FULL_RUN}")
compare("4f", saved_share, unit="%")

# %% jupyter={"source_hidden": true}
fig, ax = figure(height=3.5)
ax.plot(curve["step"], curve["train"], color=BLUE, label="training loss")
ax.plot(curve["step"], curve["validation"], color=RED, label="validation loss")
low, high = 0.0, 1.22 * max(curve["validation"])
ax.set(xlim=(0, FULL_RUN), ylim=(low, high), xlabel="step", ylabel="loss",
       title="An early stop, as it happens")  # fmt: skip
ax.axvspan(best_step, stop_step, color=ORANGE, alpha=0.18, linewidth=0)
ax.axvspan(stop_step, FULL_RUN, color=GREY, alpha=0.18, linewidth=0)
ax.plot(best_step, curve["validation"][best_at], "o", color=GREEN, markersize=9, zorder=3)
ax.annotate("best", (best_step, curve["validation"][best_at]), (0, -16),
            textcoords="offset points", ha="center", color=GREEN, weight="bold")  # fmt: skip
for left_edge, right_edge, text in (
    (best_step, stop_step, "patience"),
    (stop_step, FULL_RUN, f"{saved_share:.0f} % saved"),
):
    if right_edge - left_edge > 15:
        ax.text((left_edge + right_edge) / 2, 0.97 * high, text, ha="center", va="top")
ax.legend(loc="center right", bbox_to_anchor=(1.0, 0.32))
show(fig, alt=f"Training loss falls all the time. Validation loss is lowest at step {best_step}, "
     f"and higher ever after. After six validations without a new best the run stops at step {stop_step}; "
     f"the rest, {saved_share:.0f} % of {FULL_RUN} steps, is saved.")  # fmt: skip

# %% [markdown]
# Three numbers tell the story: the **best** step, whose weights you ship; the **stop**, which comes `patience`
# validations later; and what is **saved**. The weights at the stop are not the best ones: they have trained on, for the
# whole patience. So stopping and keeping the best belong together.
#
# | Setting | What it decides | Too small | Too large |
# |---|---|---|---|
# | `monitor` | which number is watched: of *validation*, and the one you report | – | – |
# | `mode` | `"min"` for a loss, `"max"` for an accuracy | inverted, it keeps the worst | – |
# | `patience` | validations in a row without a new best | one unlucky validation ends the run | little is saved |
# | `min_delta` | how much better counts as better | noise counts as progress | slow progress is cut off |
#
# Patience counts *validations*. With twice as many validations per epoch, the same patience is half as long.
#
# Early stopping has a state of its own: the best so far, its step, and the count of bad validations. It belongs into the
# checkpoint. Otherwise a run that is resumed every hour never stops: its patience starts anew each time.
#
# ### 4.3 · Early stopping that can be resumed
#
# > Difficulty ●●○○○ · Importance ●●●●○ · 15 minutes · property · imports: all that is installed, except `course_lib`
#
# A few lines, and a surprising number of ways to get them wrong. The check feeds some 60 random sequences, a few with
# NaN or infinity, to your class, once in one go and once cut in two with only the state in between. Their differences
# are exact: nothing hangs on how a sum of floats is rounded.
#
# <details><summary>Hint: "NaN"</summary>
#
# Every comparison with NaN is False. Then a NaN is never better, which is right, and as the first best it can never be
# beaten, which is wrong.
#
# </details>
# <details><summary>Hint: "one validation late"</summary>
#
# With `patience=1` the first validation without improvement stops the run.
#
# </details>
# <details><summary>Hint: "after a resume, patience starts anew"</summary>
#
# Which attributes change in `update`? All of them belong into `state_dict`.
#
# </details>

# %%
import math
from typing import Any

from autograder import exercise


@exercise("4.3")
class EarlyStopping:
    """Says when `patience` validations in a row have not improved on the best one.

    monitor: name of the metric to watch. mode: "min", where lower is better, or "max".
    patience: at least 1. min_delta: at least 0; a value improves only when it is better than
        `best` by *more* than this. The first value that is not NaN always improves. NaN never.
    """

    def __init__(
        self,
        monitor: str = "loss",
        mode: str = "min",
        patience: int = 3,
        min_delta: float = 0.0,
    ) -> None:
        self.monitor = monitor
        self.mode = mode
        self.patience = patience
        self.min_delta = min_delta
        self.best: float | None = None  # the last value that improved
        self.best_step: int | None = None  # the step given with it
        self.num_bad = 0  # validations in a row that have not improved

    def update(self, metrics: dict[str, float], step: int) -> bool:
        """After a validation at `step`: True when the run should stop now.

        The rule stays the same after a stop: the next one may be False.
        """
        ### BEGIN SOLUTION
        value = metrics[self.monitor]
        sign = 1.0 if self.mode == "max" else -1.0
        gain = math.inf if self.best is None else sign * (value - self.best)
        if not math.isnan(value) and gain > self.min_delta:
            self.best, self.best_step, self.num_bad = value, step, 0
        else:
            self.num_bad += 1
        return self.num_bad >= self.patience
        ### END SOLUTION

    def state_dict(self) -> dict[str, Any]:
        """What a new object with the same settings needs to go on: plain values, as for JSON.

        Later updates change neither this state nor one that was loaded.
        """
        ### BEGIN SOLUTION
        return {"best": self.best, "best_step": self.best_step, "num_bad": self.num_bad}
        ### END SOLUTION

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave, and from nothing that was before."""
        ### BEGIN SOLUTION
        self.best = state["best"]
        self.best_step = state["best_step"]
        self.num_bad = state["num_bad"]
        ### END SOLUTION


# %%
check("4.3")

# %%
EarlyStopping = yours("4.3", None)
if EarlyStopping:
    program.stopper = lambda: EarlyStopping("loss", "min", patience=4)
so_far("4.3", "your early stop", lambda: play(program), unit="s", start=at_first, digits=0)

# %% [markdown]
# ### 4.4 · Stop early, keep the best
#
# > Difficulty ●●●○○ · Importance ●●●●● · 20 minutes · property, count (at least 30 % of the steps saved, accuracy within 3 points) · imports: all that is installed
#
# You get a run and decide how often it is validated and when it ends. The check compares the test accuracy of your weights
# with that at the run's best step, which it finds with all of the validation set: the mean of eight secret runs.
# Validations are not free: each counts as one step. Yours are not exact either: each looks at a random part of the set.
# Some runs learn several times as fast as others.
#
# <details><summary>Hint: "the last weights, not the best"</summary>
#
# `state_dict()` holds references to the live tensors: what you kept has trained on. `copy.deepcopy` makes it yours.
#
# </details>
# <details><summary>Hint: "patience is too small"</summary>
#
# The validation loss jitters. Validate less often, or wait for more validations: what counts is the number of steps
# that you wait.
#
# </details>
# <details><summary>Hint: "patience is too large"</summary>
#
# Steps used = steps to the best + patience × steps between validations + number of validations. Which of the three can
# you lower?
#
# </details>

# %%
import copy
import math
from typing import Any

from autograder import exercise


@exercise("4.4")
def train_with_early_stopping(run: Any) -> dict[str, float]:
    """Train `run` as long as it pays, and leave the best weights in `run.model`.

    run.train(num_steps)  trains so many steps more, returns their mean loss; raises ValueError
                          where that would be more than `run.max_steps` in all
    run.validate()        a dict: "step"; "loss" and "accuracy" on a random part of the
                          validation set; "train_loss", the mean over the last 20 steps
    run.model             the model, an nn.Module
    run.num_steps, run.max_steps   steps so far, and the most that there may be (400, or a few less)

    The best is the validation with the lowest validation loss, and no two are equal; one that is
    NaN never is, and before the first number at most two are. At the end the `state_dict()` of
    `run.model`, weights and buffers, is exactly that of that moment. Returns {"best_step": …,
    "loss": …}: what that validation said, unrounded.
    """
    ### BEGIN SOLUTION
    best, weights, num_bad = {"loss": math.inf}, {}, 0
    while run.num_steps < run.max_steps and num_bad < 5:
        run.train(min(20, run.max_steps - run.num_steps))
        found = run.validate()
        if found["loss"] < best["loss"]:  # NaN is not
            best, num_bad = found, 0
            weights = copy.deepcopy(run.model.state_dict())  # a copy: the model trains on
        else:
            num_bad += 1
    run.model.load_state_dict(weights)
    return {"best_step": best["step"], "loss": best["loss"]}
    ### END SOLUTION


# %%
check("4.4")

# %% [markdown]
# ## How often to save
#
# A save takes time; rare saves risk work.

# %%
predict(
    "4d",
    "A save takes 20 s, a failure comes every 6 hours: save every how many minutes?",
    unit="min",
)

# %% [markdown]
# Say that a save costs *C* seconds, that you save every *τ* seconds of work, and
# that interruptions come *M* seconds apart on average. Then about *C/τ* of the time goes into saves. About *τ/2M* goes
# into work done twice: half an interval is lost per interruption. The sum is smallest at *τ* = √(2*CM*)
# ([Young, 1974](https://doi.org/10.1145/361147.361115)).

# %% jupyter={"source_hidden": true}
SAVE_COST, BETWEEN_FAILURES = 20.0, 6 * 3600.0


def wasted(interval: float, work: float = 200 * 3600.0, seed: int = 0) -> float:
    """Percent of the time that is no progress, on a simulated clock with random failures."""
    rng, clock, done = np.random.default_rng(seed), 0.0, 0.0
    failure = rng.exponential(BETWEEN_FAILURES)
    while done < work:
        end = clock + interval + SAVE_COST
        if failure < end:  # all since the last save is lost
            clock = failure
            failure += rng.exponential(BETWEEN_FAILURES)
        else:
            clock, done = end, done + interval
    return 100 * (1 - done / clock)


intervals = np.geomspace(60, 2 * 3600, 17)
simulated = [np.mean([wasted(t, seed=s) for s in range(5)]) for t in intervals]
per_second = SAVE_COST / intervals + intervals / (2 * BETWEEN_FAILURES)  # wasted, of work
formula = 100 * per_second / (1 + per_second)


print(f"{len(intervals)} intervals simulated")

# %%
best_interval = math.sqrt(2 * SAVE_COST * BETWEEN_FAILURES)
print(f"by the formula: every {best_interval / 60:.1f} minutes")
print(
    f"there the simulation wastes {np.mean([wasted(best_interval, seed=s) for s in range(5)]):.1f} % of the time"
)
compare("4d", best_interval / 60, unit="min", digits=1)

# %% jupyter={"source_hidden": true}
fig, ax = figure(height=2.9)
ax.plot(intervals / 60, simulated, "o", color=BLUE, label="simulated")
ax.plot(intervals / 60, formula, color=GREY, label="by the formula")
ax.set_xscale("log")
ax.set_xticks([1, 4, 15, 60, 120], labels=["1", "4", "15", "60", "120"])
ax.minorticks_off()
ax.set_ylim(0, 1.1 * max(simulated))
ax.set(
    title="Time that is no progress",
    xlabel="minutes between saves (log scale)",
    ylabel="% of the time",
)
mark(ax, best_interval / 60, f"√(2CM) = {best_interval / 60:.1f} min", y=0.95)
ax.legend(loc="upper right")
show(fig, alt=f"A valley: {simulated[0]:.0f} % of the time wasted with a save each minute, "
     f"{min(simulated):.1f} % near {best_interval / 60:.0f} minutes, "
     f"{simulated[-1]:.0f} % with a save every 2 hours. The formula follows the points.")  # fmt: skip

# %% [markdown]
# The valley is flat: half or double the best interval costs little more. So the rule need not be exact. *M* is seldom known; then bound both losses instead: the work at risk, and the share of
# the time in saves. The rule must follow
# the *clock*, though, and not the steps: when steps become slower, the same number of them is more work at risk.
#
# ### 4.5 · How often to save
#
# > Difficulty ●●●○○ · Importance ●●●●○ · 15 minutes · property, count (at most 5 % of the time in saves), speed (pauses at most as long as those of a loop that spends 5 %: at least 1×) · imports: all that is installed
#
# After each step the loop asks your policy whether to save now. There are two limits: at most `max_lost_seconds` of work
# may be at risk, and saves may take at most `max_overhead` of the time. The check plays runs on simulated clocks, each
# with limits of its own: steps that become slower or faster, a disk that becomes slower, a disk that is too slow for
# both limits. Then a real clock times the pauses: a saving loop, with nothing but its pauses left.
#
# <details><summary>Hint: "it counts steps, not seconds"</summary>
#
# A number of steps is a number of seconds only as long as steps stay the same. Ask `self.clock()`.
#
# </details>
# <details><summary>Hint: "the cost of a save is not looked at"</summary>
#
# `saved(seconds)` tells what the save took. How much work must lie between two saves of *s* seconds, if they may take
# 5 % of the time?
#
# </details>
# <details><summary>Hint: "it reads another clock"</summary>
#
# The simulated hours pass on the clock that `__init__` is given. `time.time` knows nothing of them.
#
# </details>

# %%
from collections.abc import Callable

from autograder import exercise


@exercise("4.5")
class Cadence:
    """Says after each step whether it is time to save.

    max_lost_seconds: work since the last save that may be at risk. `is_due` must be True at the
        first step that passes it, or earlier.
    max_overhead: share of all the time, steps and saves together, that saves may take, such as
        0.05, and 0.3 at most. Where both limits cannot hold, this one does, and saves come as
        often as it allows (half as often will do). A save that takes two thirds or more of
        `max_overhead` × `max_lost_seconds` may be treated so, too.
    clock: gives the seconds now, as `time.perf_counter` does. No other clock counts.
    """

    def __init__(
        self, max_lost_seconds: float, max_overhead: float, clock: Callable[[], float]
    ) -> None:
        self.max_lost_seconds = max_lost_seconds
        self.max_overhead = max_overhead
        self.clock = clock

    def saved(self, seconds: float) -> None:
        """A save has just ended, and it took so many seconds. First called before the first step."""
        ### BEGIN SOLUTION
        # Saves of s seconds after t seconds of work take s / (s + t) of the time: 5 % at t = 19 s,
        # and 20 s leave a little room.
        wait = max(self.max_lost_seconds, seconds / self.max_overhead)
        self.due_at = self.clock() + wait
        ### END SOLUTION

    def is_due(self) -> bool:
        """After a step: whether to save now. Called at every step, so it must cost nothing."""
        ### BEGIN SOLUTION
        return self.clock() >= self.due_at
        ### END SOLUTION


# %%
check("4.5")

# %%
Cadence = yours("4.5", None)
if Cadence:  # at most 25 s of work at risk, at most a fifth of the time in saves
    program.cadence = lambda clock: Cadence(25.0, 0.2, clock)
so_far("4.5", "saves by the clock", lambda: play(program), unit="s", start=at_first, digits=0)

# %% [markdown]
# ## The checklist
#
# Before any run that is longer than you would like to repeat:
#
# | # | Question | If the answer is no |
# |---|---|---|
# | 1 | Did you kill it once and resume it, and compare the weights? | five minutes now, or a lost week |
# | 2 | Is each save atomic, and does an error in it stop the run? | other name, fsync, rename; no bare `except` |
# | 3 | Is the interval set by the clock, and by what a save costs? | √(2*CM*), or 20 times the cost of a save |
# | 4 | Is the number of kept files bounded? | `last`, `best`, and a few numbered ones |
# | 5 | Do monitor and mode fit the number that you report? | look at the first two values in the log |
# | 6 | Does the final report load the best weights? | load, evaluate, then export |
# | 7 | Does everything load with `weights_only=True`, tokenizer beside it? | state dicts and plain values |
#
# ## Quiz
#
# You pass with 70 %. One of the questions is measured on this machine when you answer. Without a mouse:
# `from autograder import answer`, then `answer("04.3", "b")`.

# %%
quiz("04")

# %%
check_quiz("04")

# %% [markdown]
# ## What next
#
# Your runs now survive kills, save at a price that you chose, end when more steps do not help, and ship their best.
#
# - Start `course-lib train --data your.csv --out runs/first` in a terminal, kill it (`kill -9`, not Ctrl-C), and run the
#   same line with `--resume`. Compare `weights_sha256` in `run.json` with an undisturbed run.
# - Take one training script that you use. Ask of each line in its loop what state it reads, and whether the checkpoint
#   has it.
# - [Lesson 05](../05_hyperparameter_tuning/05_hyperparameter_tuning.ipynb) runs many short trainings and stops the bad
#   ones early: the same idea, across runs.
# - The [start page](../00_start_here/00_start_here.ipynb) shows your progress and the map.

# %% [markdown]
# ## More
#
# From here on all is outside the 105 minutes. Take what you need. A piece needs the cells of
# [the program](#The-program), and what stands above it under the same heading. What a checkpoint weighs is that of
# [A photograph of the line](#A-photograph-of-the-line), the curve that of
# [When more steps no longer help](#When-more-steps-no-longer-help).
#
# ### What an interruption costs
#
# When interruptions come at random, *M* hours apart on average, a piece of *T* hours that must be done in one go takes
# *M* (e^(*T*/*M*) − 1) hours on average, restarts included. A checkpoint cuts the 30 hours into pieces.

# %%
hours, between = 30.0, 24.0


def expected_hours(piece: float) -> float:
    """Average time to finish all pieces, each begun again until it is done without interruption."""
    return hours / piece * between * (math.exp(piece / between) - 1)


print(
    f"the chance to run {hours:g} hours undisturbed: {100 * math.exp(-hours / between):.0f} %"
)
print(f"without checkpoints: {expected_hours(hours):.1f} hours on average")
for piece in (10.0, 3.0, 1.0, 0.25):
    print(f"a checkpoint every {piece:5.2f} hours: {expected_hours(piece):.1f} hours")

# %% [markdown]
# ### Do not wait for the disk
#
# Most of a save is writing. The loop need not wait for it: it takes a **snapshot** (a copy in memory) and goes on, while
# a thread writes the snapshot. Without the copy, the next step would change the tensors that are being written.

# %%
predict(
    "4e",
    "How many times shorter is the loop's pause with a snapshot than with a save?",
    unit="×",
)

# %%
heavy = new_parts()
train_on(heavy, 1)
live = {name: part.state_dict() for name, part in heavy.items()}

pause_speedup = paired_speedup(
    lambda: checkpoint.save_checkpoint(folder / "paused.pt", live),
    lambda: copy.deepcopy(live),  # a thread writes it while the loop goes on
    blocks=4,
    min_seconds=0.03,
)
print(f"the pause, save over snapshot: speedup {pause_speedup}")
print(f"the price: {whole / 1e6:.1f} MB of memory for the copy, and a core for the writing")
compare("4e", pause_speedup.estimate, unit="×", digits=1)

# %% [markdown]
# An asynchronous save has three more duties. It writes one file at a time, and waits for the last before it begins the
# next. An error in the thread must reach the loop. And the end of the run waits for the last write. `course_lib`'s
# `Checkpointer` does all of it with `is_async=True`. On two cores the writing thread also takes time from the training:
# measure both.

# %% [markdown]
# ### A run that can be killed, in plain torch
#
# Read it line by line. The comments say what each line saves or prevents. A kill is played by an exception that nothing
# catches inside: all that survives is the file.


# %%
def save_whole(content, path):
    temporary = path.with_name(path.name + ".tmp")  # same folder: same file system
    with temporary.open("wb") as file:
        torch.save(content, file)
        file.flush()  # from Python's buffer to the system
        os.fsync(file.fileno())  # from the system to the disk
    temporary.replace(path)  # old or new, never half


def train_plainly(path, *, num_steps, save_every, kill_at=None):
    parts, step = new_parts(), 0
    if path.exists():
        found = torch.load(path, weights_only=True)  # data, never code
        for name, part in parts.items():
            part.load_state_dict(found[name])
        step = found["step"]
        set_rng_state(found["rng"])  # last: building the parts has drawn numbers
    for batch in islice(endless(parts["sampler"]), num_steps - step):
        parts["model"].train()
        loop.train_step(
            parts["model"],
            loop.to_device(batch, device),
            parts["optimizer"],
            scheduler=parts["scheduler"],
        )
        step += 1
        if step % save_every == 0:  # after the step, never inside it
            states = {name: part.state_dict() for name, part in parts.items()}
            save_whole(states | {"step": step, "rng": rng_state()}, path)
        if step == kill_at:
            raise Killed
    return parts["model"]


undisturbed = train_plainly(folder / "a.pt", num_steps=40, save_every=10)
for kill_at in (7, 23, 38):  # killed three times, the first time before there is a checkpoint
    try:
        train_plainly(folder / "b.pt", num_steps=40, save_every=10, kill_at=kill_at)
    except Killed:
        print(f"killed at step {kill_at}")
survivor = train_plainly(folder / "b.pt", num_steps=40, save_every=10)

hashes = [weights_sha256(model) for model in (undisturbed, survivor)]
print(f"undisturbed   {hashes[0][:16]}…\nkilled thrice {hashes[1][:16]}…")
print("equal to the last bit:", hashes[0] == hashes[1])

# %% [markdown]
# | Item | Why it is in the file | If it is missing |
# |---|---|---|
# | model weights | the point of it all | – |
# | optimizer: averages, step count | AdamW's next step depends on averages of all gradients so far | first steps that are too large: a jump in the loss, or none to be seen |
# | scheduler | the next learning rate | warmup again, or a rate that is far too high |
# | gradient scaler ([lesson 02](../02_mixed_precision/02_mixed_precision.ipynb)) | the scale that fits fp16 now | skipped steps until it fits again |
# | sampler: epoch, position | which batch is next | texts seen twice, others never |
# | random generators: Python, NumPy, torch, each GPU | dropout, augmentation, shuffling | another run, silently |
# | step, epoch | how much is left | a run that is too long |
# | early stopping, best so far | when to end, what to beat | a run that never stops; a best that is overwritten |
# | config, fingerprint of the data | to refuse a resume on other data or settings | a run that is half of each |
#
# On a CPU this gives equal bits, provided the number of threads is the same: sums are split among threads. On a GPU it
# also needs deterministic kernels; [lesson 08](../08_reproducibility/08_reproducibility.ipynb#The-price-of-determinism)
# measures what they cost.
#
# ### The same with `course_lib`
#
# `capture` takes the photograph and `restore` puts it back. `Checkpointer` and `EarlyStopping` hang into `fit` as
# callbacks. They have a state, so they are in the file too.

# %%
from course_lib.callbacks import Callback
from course_lib.data.batching import Batches


class KillAt(Callback):
    """Plays the kill: no `name`, so it is in no checkpoint."""

    def __init__(self, step):
        self.step = step

    def on_step(self, state):
        if state.step == self.step:
            raise Killed


def train_with_library(run_folder, *, num_steps, save_every, kill_at=None, **options):
    parts, state = new_parts(), loop.TrainState()
    stopper = early_stopping.EarlyStopping("loss", "min", patience=3)
    checkpointer = checkpoint.Checkpointer(
        run_folder / "last.pt",
        run_folder / "best.pt",
        lambda is_best: checkpoint.capture(
            state=state,
            config={"num_steps": num_steps},
            data_fingerprint=train.fingerprint,
            callbacks=callbacks,
            **parts,
        ),
        every_steps=save_every,
        **options,
    )
    callbacks = [stopper, checkpointer, KillAt(kill_at)]
    if (run_folder / "last.pt").exists():
        found = checkpoint.load_checkpoint(run_folder / "last.pt")
        state = checkpoint.restore(found, callbacks=callbacks, **parts)
    loop.fit(
        parts["model"],
        Batches(pool_samples, parts["sampler"]),
        parts["optimizer"],
        scheduler=parts["scheduler"],
        validation_batches=held_out_batches,
        validate_every_steps=20,
        log_every_steps=save_every,  # a checkpoint is written at a log: nothing is pending there
        max_epochs=10,
        max_steps=num_steps,
        callbacks=callbacks,
        state=state,
    )
    checkpointer.wait()
    return parts["model"], checkpointer


class Listed(list):
    """A list of samples that knows its lengths, as `Batches` asks."""

    lengths = np.array(pool_lengths)


pool_samples = Listed(pool)
library_model, _ = train_with_library(folder / "whole", num_steps=40, save_every=10)
for kill_at in (7, 23, 38):
    try:
        train_with_library(folder / "killed", num_steps=40, save_every=10, kill_at=kill_at)
    except Killed:
        print(f"killed at step {kill_at}")
library_survivor, checkpointer = train_with_library(
    folder / "killed", num_steps=40, save_every=10
)
print(
    "equal to the last bit:", weights_sha256(library_model) == weights_sha256(library_survivor)
)
print("equal to the plain loop:", weights_sha256(library_model) == hashes[0])
print("files:", sorted(path.name for path in (folder / "killed").iterdir()))
best = checkpointer.best
print(f"best so far: {best['monitor']} {best['value']:.3f} at step {best['step']}")

# %% [markdown]
# | Plain torch | `course_lib` | What changed in meaning |
# |---|---|---|
# | the dict of states | `capture(…)` | adds format version, config, data fingerprint, thread count, callbacks |
# | `save_whole` | `save_checkpoint` | also syncs the folder, and cleans up what earlier kills left |
# | `torch.load(…)`, then a loop | `load_checkpoint`, `restore` | refuses other formats with a sentence; the generators come last |
# | `step % save_every` | `Checkpointer(every_steps=…)` or `every_seconds=…` | also writes `best.pt`, numbered copies, and in a thread if asked |
# | – | `EarlyStopping` | its best and its counter are in the checkpoint |
#
# The whole command line is built of these: `course-lib train … --out runs/a`, and after a kill the same line with
# `--resume`.

# %% [markdown]
# ### Keep, load, ship
#
# #### Best and last
#
# Keep two files, because they answer two questions. **`last`** says where to go on; it has everything. **`best`** says
# what to ship; the weights are enough. A few numbered copies of `last` are insurance against a run that goes wrong
# slowly: with `last` alone you can only go back to a moment when it already was.

# %%
_, keeper = train_with_library(
    folder / "kept", num_steps=40, save_every=5, keep=2, is_async=True
)
for path in sorted((folder / "kept").iterdir()):
    print(f"{path.name:<18} {path.stat().st_size / 1e6:.1f} MB")

# %% [markdown]
# Here `best.pt` is as large as `last.pt`: `capture` put everything into both. `course-lib export` takes the weights out.
#
# Without a limit, each save is a file that stays. Three times the weights, every few minutes, for days: the disk is full
# before the run is over, and the first thing that fails then is the next save.
#
# #### Safe loading
#
# A pickle is a program. `torch.load` with `weights_only=True`, the default since torch 2.6, reads tensors and plain
# values and refuses the rest. With `weights_only=False` a file can run anything, at the moment you load it.


# %%
class Trap:
    def __reduce__(self):  # what a pickle calls to build the object again
        return print, ("  this line was printed by the file, while it was loaded",)


torch.save({"weights": torch.zeros(3), "metadata": Trap()}, folder / "from_the_internet.pt")
print("weights_only=False:")
torch.load(folder / "from_the_internet.pt", weights_only=False)
print("weights_only=True:")
try:
    torch.load(folder / "from_the_internet.pt", weights_only=True)
except pickle.UnpicklingError as error:
    print(" ", str(error).splitlines()[0][:90], "…")

# %% [markdown]
# So save state dicts, tensors and plain values; NumPy arrays become tensors first. For weights that you pass on,
# [safetensors](https://huggingface.co/docs/safetensors) goes further: a table of names, types and bytes, nothing that
# could run, and readable without torch.

# %%
if importlib.util.find_spec("safetensors"):
    from safetensors.torch import load_file, save_file

    save_file(survivor.state_dict(), folder / "model.safetensors", metadata={"step": "40"})
    loaded = new_model(seed=9)
    loaded.load_state_dict(load_file(folder / "model.safetensors"))
    print("equal after the round trip:", weights_sha256(loaded) == weights_sha256(survivor))
else:
    print("safetensors is not installed, so this cell runs nothing. Nothing later needs it.")

# %% [markdown]
# #### The tokenizer belongs to the weights
#
# A row of the embedding table means what the tokenizer says it means. With another tokenizer the ids still fit, the model
# still answers, and the answer is noise.

# %%
from course_lib.data import load_tokenizer, save_tokenizer, train_tokenizer

texts = data.load_docstrings().texts[:400]
other_tokenizer = train_tokenizer(texts, vocab_size=train.vocab_size)
save_tokenizer(train.load_tokenizer(), folder / "tokenizer.json")  # beside the model
sentence = texts[0][:60]
for name, tokenizer in {
    "saved beside the model": load_tokenizer(folder / "tokenizer.json"),
    "trained anew, on other texts": other_tokenizer,
}.items():
    print(f"{name}: {tokenizer.encode(sentence).ids[:8]} …")

# %% [markdown]
# `course-lib train` writes `tokenizer.json` into the run folder, and `course-lib export` puts it into the exported file.
#
# #### Report the best, not the last
#
# (The curve is that of [When more steps no longer help](#When-more-steps-no-longer-help).) The run that stopped early ends with weights that are `patience` validations past their best. Load the best before you
# evaluate, report or export.

# %%
print(f"{'':<18} {'step':>5}   validation loss   accuracy")
for name, at in {"best": best_at, "at the stop": num_validations - 1, "full run": -1}.items():
    print(
        f"{name:<18} {curve['step'][at]:>5}   {curve['validation'][at]:>15.3f}   {curve['accuracy'][at]:>6.1f} %"
    )

# %% [markdown]
# Loss and accuracy can disagree. A model that learns its texts by heart becomes too sure of itself, and that costs loss
# before it costs accuracy. So monitor the number that you report. And the validation score of the best is a little too
# good, because it was *chosen*: the honest number for the report comes from a test set that decided nothing.
#
# #### Export
#
# A checkpoint needs your code to be loaded. An export need not. Give each file a name that says which run, which step,
# and which weights: a `model_final_v2.pt` cannot be traced to anything.

# %%
model = survivor.eval()
example = loop.to_device(held_out_batches[0], device)
inputs = (example["input_ids"], example["attention_mask"])
stem = f"docstrings-step40-{weights_sha256(model)[:8]}"

torch.save(
    model.state_dict(), folder / f"{stem}.pt"
)  # weights alone: your code builds the model
batch_size, width = torch.export.Dim("batch"), torch.export.Dim("width", max=48)
exported_program = torch.export.export(
    model, inputs, dynamic_shapes=({0: batch_size, 1: width}, {0: batch_size, 1: width})
)
torch.export.save(exported_program, folder / f"{stem}.pt2")  # a graph: torch alone builds it
with warnings.catch_warnings(action="ignore"):  # it says itself that it is on its way out
    torch.jit.save(torch.jit.trace(model, inputs, check_trace=False), folder / f"{stem}.ts")
    script = torch.jit.load(folder / f"{stem}.ts")

small = tuple(tensor[:3, :20] for tensor in inputs)  # another batch size and width
with torch.inference_mode():
    truth_logits = model(*small)
    for name, exported in {
        "torch.export": torch.export.load(folder / f"{stem}.pt2").module(),
        "TorchScript": script,
    }.items():
        difference = (exported(*small) - truth_logits).abs().max().item()
        print(f"{name:>14}: largest difference of a logit {difference:.1e}")
for path in sorted(folder.glob(f"{stem}*")):
    print(f"{path.name:<34} {path.stat().st_size / 1e3:,.0f} kB")

# %% [markdown]
# | Format | Holds | Take it when |
# |---|---|---|
# | `state_dict` (`.pt`, safetensors) | weights and names | your own code loads it: the default choice |
# | `torch.export` (`.pt2`) | a graph with weights | it must run without your model code |
# | TorchScript (`.ts`) | an older kind of graph | a server that only knows it; torch [calls it deprecated](https://docs.pytorch.org/docs/stable/jit.html) |
# | pickled model | a pickle of the object | never: see [below](#Pickling-the-model-object) |
#
# Always check an exported file against the model, on a batch of another shape than the one it was made with.
# `course-lib export RUN` does all of this, with this kind of name.
#
# ### Pickling the model object
# *Symptom:* after a refactoring, old checkpoints cannot be loaded; and whoever sends you one can run code.


# %%
class Tiny(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)


torch.save(Tiny(), folder / "object.pt")
torch.save(Tiny().state_dict(), folder / "states.pt")
Renamed = Tiny
del Tiny  # the class was moved or renamed since
for name in ("object.pt", "states.pt"):
    try:
        found = torch.load(folder / name, weights_only=name == "states.pt")
        Renamed().load_state_dict(found)
        print(f"{name}: loaded")
    except AttributeError as error:
        print(f"{name}: AttributeError: {str(error)[:60]}")

# %% [markdown]
# *Cure:* state dicts, and `weights_only=True`. Caught by [4.1](#4.1-·-Save-and-load-everything).

# %% [markdown]
# ### In the wild
#
# The frameworks save and stop too. Know the names, and know the defaults: several of them keep the last model where you
# expect the best. The defaults below are those of Transformers 5.23, Accelerate 1.15 and Lightning 2.6. The cells run the
# real thing where it is installed. To install all three: `%pip install transformers accelerate lightning` in a new cell.
#
# #### Hugging Face Trainer
#
# | This lesson | `TrainingArguments` | Default | What surprises |
# |---|---|---|---|
# | cadence | `save_strategy`, `save_steps` | `"steps"`, 500 | a shorter run saves only at its end |
# | retention | `save_total_limit` | `None` | every checkpoint is kept, until the disk is full |
# | resume | `trainer.train(resume_from_checkpoint=…)` | off | starts anew unless you ask |
# | all or weights | `save_only_model` | `False` | `True` keeps the weights alone: no resume is possible |
# | best at the end | `load_best_model_at_end` | `False` | **you evaluate and ship the last model** |
# | monitor | `metric_for_best_model` | `"loss"`, once the line above is `True` | evaluation and saving must have the same rhythm |
# | mode | `greater_is_better` | `True`, unless the name ends in `loss` | **a metric called `perplexity` is maximised** |
# | early stopping | `EarlyStoppingCallback(early_stopping_patience=…)` | 1, when you add it | one bad evaluation ends the run; it warns without `load_best_model_at_end` |


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
    from transformers import EarlyStoppingCallback, Trainer, TrainingArguments

    def trainer_run(run_folder, max_steps, resume=False):
        arguments = TrainingArguments(
            output_dir=run_folder,
            max_steps=max_steps,
            lr_scheduler_type="constant",
            per_device_train_batch_size=16,
            learning_rate=1e-3,
            eval_strategy="steps",
            eval_steps=4,
            save_strategy="steps",
            save_steps=4,
            save_total_limit=2,
            load_best_model_at_end=True,  # else the last model is what you have at the end
            report_to=[],
            disable_tqdm=True,
            use_cpu=device.type == "cpu",
            dataloader_pin_memory=device.type == "cuda",
        )
        trainer = Trainer(
            WithLoss(new_model(dropout=0.1)),
            arguments,
            data_collator=data.collate,
            train_dataset=pool[:256],
            eval_dataset=held_out[:64],
            callbacks=[EarlyStoppingCallback(early_stopping_patience=3)],
        )
        with contextlib.redirect_stdout(io.StringIO()):  # its log
            trainer.train(resume_from_checkpoint=resume or None)
        return trainer

    whole_run = trainer_run(folder / "hf_whole", 8)
    trainer_run(folder / "hf_killed", 4)
    resumed_run = trainer_run(folder / "hf_killed", 8, resume=True)
    logging.disable(logging.NOTSET)
    print("kept:", sorted(path.name for path in (folder / "hf_killed").iterdir()))
    print(
        "in a checkpoint:",
        sorted(p.name for p in (folder / "hf_killed" / "checkpoint-8").iterdir()),
    )
    print("best:", Path(whole_run.state.best_model_checkpoint).name)
    equal = weights_sha256(whole_run.model) == weights_sha256(resumed_run.model)
    print("resumed equals uninterrupted, to the last bit:", equal)

# %% [markdown]
# `rng_state.pth`, `optimizer.pt`, `scheduler.pt`, `trainer_state.json`: the same photograph, in several files. They are
# written one after the other into a folder, so a kill in between leaves half a folder. Resume from the last *whole* one.
#
# #### Accelerate
#
# | Call | What it does | What surprises |
# |---|---|---|
# | `accelerator.save_state(folder)` | model, optimizer, scheduler, sampler, scaler, generators | what you did not `prepare` is not in it |
# | `register_for_checkpointing(object)` | adds whatever has a `state_dict` | loaded with `weights_only=False`: a pickle |
# | `load_state(folder)` | puts all of it back | not the place in the epoch |
# | `skip_first_batches(loader, n)` | goes to that place | you must have saved *n* yourself |
# | `ProjectConfiguration(total_limit=…)` | retention | default `None`: all are kept |

# %%
if is_installed("accelerate"):
    from accelerate import Accelerator

    def accelerate_run(stop_at, has_own_generator, resume=False):
        seed_everything(0)
        accelerator = Accelerator(cpu=device.type == "cpu")
        network = new_model(dropout=0.1)
        optimizer = make_optimizer(network)
        generator = torch.Generator().manual_seed(0) if has_own_generator else None
        loader = torch.utils.data.DataLoader(
            pool[:128], batch_size=16, collate_fn=data.collate, generator=generator
        )
        network, optimizer, loader = accelerator.prepare(network, optimizer, loader)
        first = 0
        if resume:
            seed_everything(99)  # another process
            accelerator.load_state(folder / "accelerate")
            first = 4  # your own bookkeeping
            loader = accelerator.skip_first_batches(loader, first)
        for number, batch in enumerate(loader, start=first):
            if number == stop_at:
                accelerator.save_state(folder / "accelerate")
                break
            loss = F.cross_entropy(
                network(batch["input_ids"], batch["attention_mask"]), batch["labels"]
            )
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
        return weights_sha256(accelerator.unwrap_model(network))

    for has_own_generator in (False, True):
        uninterrupted = accelerate_run(8, has_own_generator)
        accelerate_run(4, has_own_generator)
        resumed_hash = accelerate_run(8, has_own_generator, resume=True)
        name = "a generator of its own" if has_own_generator else "torch's global generator"
        print(
            f"loader with {name}: resumed equals uninterrupted: {resumed_hash == uninterrupted}"
        )
    print("in the folder:", sorted(path.name for path in (folder / "accelerate").iterdir()))

# %% [markdown]
# Where the first line says `False`, this is why: a `DataLoader` that starts draws a seed for its workers from torch's
# global generator, even without workers. The resumed run starts its loader once more, *after* the generators were put
# back, and dropout gets other numbers. With a generator of its own the loader stays out of the way.
#
# #### Lightning
#
# | This lesson | Argument | Default | What surprises |
# |---|---|---|---|
# | best | `ModelCheckpoint(monitor=…)` | `None` | **without `monitor` it keeps the *last* one**, and `best_model_path` names that |
# | mode | `ModelCheckpoint(mode=…)`, `EarlyStopping(mode=…)` | `"min"` | `monitor="accuracy"` alone keeps the worst model |
# | last | `save_last` | `None` | no `last.ckpt` until you ask |
# | retention | `save_top_k` | 1 | −1 keeps all |
# | patience | `EarlyStopping(patience=…)` | 3 | counts validations, not epochs |
# | NaN | `EarlyStopping(check_finite=…)` | `True` | NaN stops the run at once |
# | resume | `trainer.fit(…, ckpt_path=…)` | `None` | `ckpt_path="last"` finds the newest |
# | best at the end | `trainer.test(ckpt_path=…)` | `None` | `trainer.test()` loads the best; **`trainer.test(model)` takes the last** |

# %%
if is_installed("lightning"):
    import logging

    from lightning.pytorch import LightningModule, Trainer
    from lightning.pytorch.callbacks import EarlyStopping as LightningStopping
    from lightning.pytorch.callbacks import ModelCheckpoint

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Lit(LightningModule):
        def __init__(self):
            super().__init__()
            self.model = new_model()

        def training_step(self, batch, batch_idx):
            return F.cross_entropy(
                self.model(batch["input_ids"], batch["attention_mask"]), batch["labels"]
            )

        def validation_step(self, batch, batch_idx):
            self.log(
                "loss", self.training_step(batch, batch_idx), batch_size=len(batch["labels"])
            )

        def configure_optimizers(self):
            return make_optimizer(self.model, learning_rate=3e-3)

    keeper = ModelCheckpoint(folder / "lightning", monitor="loss", mode="min", save_last=True)
    with warnings.catch_warnings():
        # The warnings advise about workers and loggers, as lesson 01 does.
        warnings.simplefilter("ignore")
        trainer = Trainer(
            max_epochs=30, callbacks=[keeper, LightningStopping("loss", mode="min", patience=2)],
            logger=False, enable_progress_bar=False, enable_model_summary=False,
            accelerator="auto", devices=1, num_sanity_val_steps=0,
        )  # fmt: skip
        loaders = [
            torch.utils.data.DataLoader(part, batch_size=32, collate_fn=data.collate)
            for part in (pool[:96], held_out[:96])
        ]
        trainer.fit(Lit(), *loaders)
    print(f"Lightning: {trainer.current_epoch} of 30 epochs")
    print("kept:", sorted(path.name for path in (folder / "lightning").iterdir()))
    print(
        f"best: {Path(keeper.best_model_path).name}, loss {float(keeper.best_model_score):.3f}"
    )

# %% [markdown]
# ### Drills
#
# Not graded. Each takes a few minutes: predict, run, then change the value that says `try` and run again.
#
# **Drill 1 · Patience.** The curve of the early stop above, with another patience. At which step does it end?

# %%
predict("4g", "Patience of 2 validations on that curve: at which step does it stop?")

# %%
drill_patience = 2  # try 1, 4, 12
drill_min_delta = 0.0  # try 0.02
number, best_index = stop_on(curve["validation"], drill_patience, drill_min_delta)
print(f"stops at step {curve['step'][number - 1]}, keeps step {curve['step'][best_index]} "
      f"(loss {curve['validation'][best_index]:.3f}; best of all {min(curve['validation']):.3f})")  # fmt: skip
compare("4g", curve["step"][number - 1], digits=0)

# %% [markdown]
# **Drill 2 · A better disk.** The save of the valley above takes 20 s. A faster disk does it in 5 s. By how much does the
# best interval change, and by how much the waste?

# %%
predict(
    "4h",
    "With saves of 5 s instead of 20 s: the best interval is how many times shorter?",
    unit="×",
)

# %%
drill_cost = 5.0  # try 1 and 80
new_best = math.sqrt(2 * drill_cost * BETWEEN_FAILURES)
for cost, interval in ((SAVE_COST, best_interval), (drill_cost, new_best)):
    share = 100 * (cost / interval + interval / (2 * BETWEEN_FAILURES))
    print(f"saves of {cost:g} s: every {interval / 60:.1f} minutes, {share:.1f} % wasted")
compare("4h", best_interval / new_best, unit="×", digits=1)

# %% [markdown]
# **Drill 3 · Other optimizers.** SGD without momentum keeps nothing, with momentum one number for each weight. What does
# a checkpoint weigh with it?

# %%
predict("4i", "A checkpoint with SGD and momentum: how many times the weights?", unit="×")

# %%
drill_optimizer = "sgd"  # try "adafactor"
network = new_model()
optimizer = make_optimizer(network, drill_optimizer)
loop.train_step(network, loop.to_device(few[0], device), optimizer)
ratio = file_size({"model": network.state_dict(), "optimizer": optimizer.state_dict()})
ratio /= file_size(network.state_dict())
compare("4i", ratio, unit="×")
