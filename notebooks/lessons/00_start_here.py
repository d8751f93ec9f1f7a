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
# # Start here
#
# This workbook teaches you to train neural networks fast, cheaply and reliably, and to *measure* each of these words
# on your own machine. You need Python and the basics of PyTorch.
#
# This page takes ten minutes. It looks at your machine, shows the map, and lets you try the three things that every
# lesson uses: **check**, **predict** and **quiz**.
#
# Run a cell with **Shift + Enter**. Run them from top to bottom. Try the next one.

# %%
import os
import platform

import psutil
import torch

from autograder import check, compare, exercise, predict
from autograder.progress import progress_html
from autograder.sandbox import probe

# %% [markdown]
# ## Your machine

# %%
cores = psutil.cpu_count(logical=False) or os.cpu_count() or 1
memory = psutil.virtual_memory().total / 2**30
gpu = torch.cuda.get_device_name(0) if torch.cuda.is_available() else None
sandbox = probe()

print(f"Python {platform.python_version()} and torch {torch.__version__} on {platform.system()}")
print(f"{cores} cores, {memory:.0f} GiB of memory, {'GPU: ' + gpu if gpu else 'no CUDA GPU'}\n")

if cores < 2:
    print("One core: timings will be noisier. A verdict may come out as inconclusive; that is not a fail.")
if memory < 4:
    print("Less than 4 GiB of memory: close other programs before you run a check.")

print(
    "Measured here, with a clock: padding, bucketing, loaders, the whole loop. Each is a speedup of one piece of"
)
print("code over another on this machine, so a slow machine is no disadvantage.")
if gpu:
    print("On your GPU the loops run there, and waiting for the device can be felt as well as counted.")
else:
    print(
        "Counted here, without a clock: waits for the device. They cost time on a GPU only, but the line of code is the"
    )
    print("same, so the count tells you what you would pay. Nothing in the course needs a GPU.")

where = {
    "bubblewrap": "shut off from your files and from the network",
    "limits": "with limits on time and memory",
}
print(f"\nYour solutions are checked in a process of their own, {where[sandbox.level]}.")
if sandbox.fix:
    print(f"A stronger wall is possible ({sandbox.reason}). To get it: {sandbox.fix}")

# %% [markdown]
# Something looks wrong? `workbook doctor` in a terminal tests more, and prints one fix for each failure.
#
# ## The map
#
# | Lesson | You learn to | |
# |---|---|---|
# | [01 · Efficient training loops](../01_efficient_training_loops/01_efficient_training_loops.ipynb) | find where an epoch's time goes, and take it back | **ready** |
# | 02 · Mixed precision | compute in fewer bits, where it is safe | in preparation |
# | 03 · Batch size and gradient accumulation | train with batches larger than memory | in preparation |
# | 04 · Checkpointing and early stopping | lose no work, and stop in time | in preparation |
# | 05 · Hyperparameter tuning | find good settings within a budget | in preparation |
# | 06 · Distributed training | use many processes and get the same weights | in preparation |
# | 07 · GPUs and cost | pay for results, not for hours | in preparation |
# | 08 · Reproducibility | get the same numbers again, and know when you should not | in preparation |
# | Exam, mini-project | show what you can do, on your own data | in preparation |
#
# A lesson takes 60 to 90 minutes. You can leave at any time: each answer is saved when you give it, each check when it
# ends. Your progress:

# %%
progress_html()

# %% [markdown]
# ## How a lesson works
#
# ### 1. Predict, then measure
#
# Before an experiment you commit to a number. Being right does not matter. Having looked does: a surprise is the
# moment in which you learn. So, a guess: adding up a million numbers one by one in a Python loop takes how many times
# as long as letting torch add them?

# %%
predict("0a", "A Python loop over a million numbers takes how many times as long as torch's sum?", unit="×")

# %%
from course_lib.bench import paired_speedup

torch.set_num_threads(1)
numbers = torch.rand(1_000_000)
as_list = numbers.tolist()


def in_python():
    total = 0.0
    for number in as_list:
        total += number
    return total


measured = paired_speedup(in_python, numbers.sum, blocks=4, min_seconds=0.002)
print(f"speedup {measured}")
compare("0a", measured.estimate, unit="×", digits=0)

# %% [markdown]
# That is how this course measures speed: both sides in turn, several times, on the same machine, and a speedup with an
# interval. **A speedup of 2× means half the time.** It never says "% faster", because nobody knows what that means.
#
# ### 2. Write, then check
#
# An exercise is a cell with a gap. Replace the `raise NotImplementedError()` by your code, run the cell, then run the
# check under it.
#
# ### 0.1 · Speedup
#
# > Difficulty ●○○○○ · Importance ●●●●● · 3 minutes · property
#
# <details><summary>Hint: "my number is below 1 although the candidate is faster"</summary>
#
# A faster candidate has a smaller time and a larger speedup. So which of the two stands below the line?
#
# </details>
# <details><summary>Hint: "what shall I do with zero?"</summary>
#
# A time of zero means that the clock was not running. Refuse it: `raise ValueError("…")`, with a text that helps.
#
# </details>

# %%
from autograder import exercise


@exercise("0.1")
def speedup(baseline_seconds: float, candidate_seconds: float) -> float:
    """How many times faster the candidate is than the baseline.

    Takes two durations of the same work, in seconds.
    Returns 2.0 when the candidate needs half the time of the baseline, 1.0 when nothing changed.
    Raises ValueError when a duration is zero or negative.
    """
    ### BEGIN SOLUTION
    if baseline_seconds <= 0 or candidate_seconds <= 0:
        raise ValueError("durations must be above zero")
    return baseline_seconds / candidate_seconds
    ### END SOLUTION


# %%
check("0.1")

# %% [markdown]
# What the card tells you:
#
# - **pass**: right on inputs that nobody has seen before. They are new in every check.
# - **fail**: what was expected, what came, the likely cause, where to look next. Never the answer.
# - **inconclusive**: only for speed. The machine was too noisy to decide. Run it again; it goes on from where it was.
# - **error**: the code did not run to its end, and why.
#
# You may check as often as you like. Checks of speed count their attempts, and say so. Your code runs in another
# process: it cannot see the names of other cells, so **everything a solution needs stands in its own cell, imports
# too**.
#
# The hints above are folded, and titled by what you see when you need them. Open one only after you have tried.
#
# ### 3. Quiz
#
# A lesson ends with a quiz: a log to diagnose, a loop with a bug, a number to estimate. Click, or use the arrow keys.
# Each choice is saved at once, in a file beside the notebook. Seventy percent pass.
#
# ## When you are stuck
#
# | You see | Do this |
# |---|---|
# | a cell that hangs | the square button, *Interrupt*, then run it again |
# | names that are not defined | *Run → Run All Above Selected Cell* |
# | strange things, after much trying | *Kernel → Restart Kernel*; your answers are on disk |
# | a red error you do not understand | its last line first |
#
# ## Go
#
# **[Lesson 01 · Efficient training loops →](../01_efficient_training_loops/01_efficient_training_loops.ipynb)**
