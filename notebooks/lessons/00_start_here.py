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
# This page takes ten minutes. It looks at your machine, shows the map of the course, and explains the three things
# that every lesson uses: **predict**, **check** and **quiz**.
#
# Run a cell with **Shift + Enter**, from top to bottom. Start with the next one.

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

print(f"Python {platform.python_version()}, torch {torch.__version__}, {platform.system()}")
print(
    f"{cores} cores, {memory:.0f} GiB of memory, {'GPU: ' + gpu if gpu else 'no CUDA GPU'}\n"
)

if cores < 2:
    print("One core: timings will be noisier. A check may end undecided; that is not a fail.")
if memory < 4:
    print("Less than 4 GiB of memory: close other programs before you run a check.")

print("Measured here, with a clock: how many times faster one piece of code is than another.")
print("Both run on this machine, so a slow machine is no disadvantage.\n")
if gpu:
    print("Counted here, without a clock: how often Python waits for a result of the GPU.")
    print("The lessons' experiments use your GPU, so you can time these waits as well.")
else:
    print("Counted here, without a clock: how often Python would wait for a result of a GPU.")
    print("Only a GPU makes the wait long, but the count is the same. No lesson needs a GPU.")

where = {
    "bubblewrap": "shut off from your files and from the network",
    "limits": "with limits on time and memory",
}
print(f"\nYour solutions are checked in a process of their own, {where[sandbox.level]}.")
if sandbox.fix:
    print(f"A stronger wall is possible: {sandbox.reason}.\nTo get it: {sandbox.fix}")

# %% [markdown]
# Something looks wrong? `workbook doctor` in a terminal tests more, and prints one fix for each failure.
#
# ## The map
#
# | Lesson | You learn to |
# |---|---|
# | [01 · Efficient training loops](../01_efficient_training_loops/01_efficient_training_loops.ipynb) | find where the time of training goes, and take it back |
# | [02 · Mixed precision](../02_mixed_precision/02_mixed_precision.ipynb) | compute in fewer bits, where it is safe |
# | [03 · Batch size and gradient accumulation](../03_batch_size_and_accumulation/03_batch_size_and_accumulation.ipynb) | train with batches larger than memory |
# | [04 · Checkpointing and early stopping](../04_checkpointing_and_early_stopping/04_checkpointing_and_early_stopping.ipynb) | lose no work, and stop in time |
# | [05 · Hyperparameter tuning](../05_hyperparameter_tuning/05_hyperparameter_tuning.ipynb) | find good settings within a budget |
# | [06 · Distributed training basics](../06_distributed_training/06_distributed_training.ipynb) | use many processes and get the same weights |
# | [07 · Managing GPUs and cost](../07_gpus_and_cost/07_gpus_and_cost.ipynb) | pay for results, not for hours |
# | [08 · Reproducibility with seeds and configs](../08_reproducibility/08_reproducibility.ipynb) | get the same numbers again, and know when to expect it |
# | [09 · Skill exam](../09_skill_exam/09_skill_exam.ipynb) | answer 15 questions over all eight lessons |
# | [10 · Mini project](../10_mini_project/10_mini_project.ipynb) | train a classifier on your own data, within a budget |
#
# Take them in order: each builds on those before it. A lesson takes 60 to 90 minutes. You can leave at any time: each
# answer is saved when you give it, the result of each check when it ends. Your code is saved with the notebook
# (**Ctrl + S**). Your progress:

# %%
progress_html()

# %% [markdown]
# ## How a lesson works
#
# ### 1. Predict, then measure
#
# Before an experiment you commit to a number. Whether it is right counts for nothing; how far off it is shows you what
# you did not yet know. Try it:

# %%
predict("0a", "Adding a million numbers: torch over a loop, how many times faster?", unit="×")

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
# That is how this course measures speed. Both sides run in turn on the same machine; four timings, two of each side,
# make a *block*. The *interval* is the range of speedups that the blocks leave open.
#
# **A speedup of 2× means half the time.** You will not read "50 % faster" here: for some that is 1.5×, for others 2×.
#
# ### 2. Write, then check
#
# An exercise is a cell with a gap. Replace the `raise NotImplementedError()` by your code, run the cell, then run the
# check under it.
#
# The line under a title says how hard and how important the exercise is, how long it takes, and what is checked.
# *Property* means that the results must be right.
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
    Returns 2.0 when the candidate needs half the baseline's time, 1.0 when it needs the same.
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
# The card begins with the verdict:
#
# - **Passed**: right on random inputs, which are new in every check.
# - **Not yet**: what was expected, what came, the likely cause, where to look next. Never the answer.
# - **The clock could not decide** (*inconclusive*): only for speed. The machine was too noisy. Run the check again; it
#   goes on from where it was.
# - **Could not be run**: the check did not get to its end, and why.
# - **Not attempted**: the `raise NotImplementedError()` is still there.
#
# You may check as often as you like. Checks of speed count their attempts, and say so. Your code runs in another
# process and cannot see the names of other cells, so **everything that a solution needs stands in its own cell, imports
# too**.
#
# The hints are folded, and titled by what you see when you need them. Open one only after you have tried.
#
# ### 3. Quiz
#
# A lesson ends with a quiz: a log to diagnose, a loop with a bug, a number to estimate. Click, or use the arrow keys.
# Each choice is saved at once, in a file beside the notebook. You pass with 70 %.
#
# ## When you are stuck
#
# | You see | Do this |
# |---|---|
# | a cell that hangs | the square button, *Interrupt*, then run it again |
# | names that are not defined | *Run → Run All Above Selected Cell* |
# | results that make no sense | *Kernel → Restart Kernel*, then run from the top; your answers are on disk |
# | a long red error | read its last line first |
#
# ## Go
#
# **[Lesson 01 · Efficient training loops →](../01_efficient_training_loops/01_efficient_training_loops.ipynb)**
