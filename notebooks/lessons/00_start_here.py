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
# *About 10 minutes*
#
# This workbook teaches you to train neural networks fast, cheaply and reliably, and to *measure* each of these words
# on your own machine. You need Python and the basics of PyTorch.
#
# This page shows where you are in the course, looks at your machine, and explains the three things that every lesson
# uses: **predict**, **check** and **quiz**. Further down are the [glossary](#Glossary) and
# [your certificate](#Your-certificate).
#
# Run a cell with **Shift + Enter**, from top to bottom. Start with the next one. Whenever you come back, run it again:
# it says where to go on.
#
# ## Where you are

# %%
from autograder.progress import progress_html

progress_html()

# %% [markdown]
# Take the lessons in order: each builds on those before it. A lesson takes about two hours, half an hour of them for
# reading; its first line says how long each part takes. You can leave at any time: each answer is saved when you give
# it, the result of each check when it ends. Your code is saved with the notebook (**Ctrl + S**).
#
# <details><summary>The map as a plain table, for when nothing runs</summary>
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
# </details>
#
# ## Your machine

# %%
from autograder.machine import machine

machine()

# %% [markdown]
# ## How a lesson works
#
# ### 1. Predict, then measure
#
# Before an experiment you commit to a number. Whether it is right counts for nothing; how far off it is shows you what
# you did not yet know. Try it:

# %%
from autograder import check, compare, predict

predict("0a", "Adding a million numbers: torch over a loop, how many times faster?", unit="×")

# %%
import torch

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
# *Property* means that the results must be right. *Imports* says what a solution may use: all that is installed,
# `course_lib` too, less what the exercise asks you to build.
#
# ### 0.1 · Speedup
#
# > Difficulty ●○○○○ · Importance ●●●●● · 3 minutes · property · imports: all that is installed
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
# The hints are folded, and titled by what you see when you need them. Open one only after you have tried. In a cell,
# `hint("0.1")` from `autograder` shows them one at a time.
#
# ### 3. Quiz
#
# A lesson ends with a quiz: a log to diagnose, a loop with a bug, a number to estimate. Click, or use the keyboard.
# Each choice is saved at once, in a file beside the notebook. You pass with 70 %. Once every question has an answer, a
# button brings other questions on the same decisions; the better of the two counts.
#
# ## When you are stuck
#
# | You see | Do this |
# |---|---|
# | a cell that hangs | the square button, *Interrupt*, then run it again; a check that is stopped keeps what it has measured |
# | names that are not defined | *Run → Run All Above Selected Cell* |
# | results that make no sense | *Kernel → Restart Kernel*, then run from the top; your answers are on disk |
# | a long red error | read its last line first |
#
# ## Your certificate
#
# You have passed the course when you have 70 % of the points and 70 % in the quiz of each of lessons 01 to 08, 70 % in the
# exam and 70 % of the points of the mini project. Then the next cell writes a page with your name, your results and the
# speedups that you measured. Before that it says what is missing.

# %%
from autograder.certificate import certificate

certificate(name="")  # your name, as it shall stand there

# %% [markdown]
# ## Glossary
#
# The terms of each lesson, in one sentence each.
#
# <details><summary>01 · Efficient training loops</summary>
#
# - **attention mask**: says for each position of a batch whether a real token stands there.
# - **batch**: several samples that go through the model at once, as one rectangle of ids.
# - **clipping**: scaling the gradients down to a largest norm, between backward and step.
# - **collate**: the function that makes one batch of several samples.
# - **data-wait**: the share of the time in which the training step waits for its data.
# - **dynamic padding**: padding to the longest text of the batch, not of the data set.
# - **gradient norm**: the length of all gradients taken as one vector.
# - **length bucketing**: texts of like length in the same batch, the batches in random order.
# - **padding**: ids that fill up the shorter rows of a batch and mean nothing.
# - **paired speedup**: how many times faster one side is, from timings of both in turns on the same machine.
# - **sample**: one text with its label.
# - **schedule**: the plan of the learning rate over all steps.
# - **step, update**: one change of the weights by the optimizer; the lessons use both words.
# - **sync**: a moment at which Python waits until the device has done all that is queued.
# - **token, id**: a word or a part of one, and its number in the vocabulary.
# - **tokenise**: to turn a text into ids.
# - **validation**: measuring a model on texts that it does not learn from, to decide something.
# - **warmup**: the first steps, in which the learning rate rises.
#
# </details>
# <details><summary>02 · Mixed precision</summary>
#
# - **activation**: what a layer computes in forward and autograd keeps until backward has used it.
# - **autocast**: torch's context that chooses the number format of each operation: 16 bits for matrix products, fp32
#   where range or digits are needed.
# - **bf16 (bfloat16)**: a 16-bit format with the range of fp32 and two to three decimal digits.
# - **exponent and fraction**: the bits of a floating-point number that say how large it is, and where it stands
#   between two powers of two.
# - **fp16 (half precision)**: a 16-bit format with three to four decimal digits that ends at 65,504 and whose smallest
#   number is 6e-8.
# - **fp32 (single precision)**: the 32-bit format that torch uses when nothing else is asked for.
# - **GradScaler**: torch's loss scaling: it multiplies the loss, divides the weights' gradients, skips steps with an
#   infinity and looks for the right scale.
# - **loss scaling**: multiplying the loss by a large number before backward and dividing the gradients by it
#   afterwards, so that fp16 does not lose them.
# - **metric parity**: the same validation metric, within a margin set before, as the run to compare with, at equal
#   seeds.
# - **mixed precision**: matrix products in 16 bits, with weights, optimizer and delicate operations in fp32.
# - **overflow and underflow**: a result too large for its format, which becomes infinity, and one too small, which
#   becomes zero.
# - **probe**: a short measurement on the machine itself that decides a setting, such as the time of one layer in bf16
#   and in fp32.
# - **tf32**: a format inside NVIDIA's matrix units that reads 19 bits of each fp32 number.
#
# </details>
# <details><summary>03 · Batch size and gradient accumulation</summary>
#
# - **8-bit Adam**: Adam whose two averages are kept in 8 bits with a scale for each block.
# - **activation checkpointing**: keeping only the input of a block and computing the block again in backward.
# - **Adafactor**: an optimizer that keeps a row and a column of second moments for each matrix instead of the whole.
# - **byte budget**: the most live bytes that a training step may reach.
# - **critical batch size**: the batch size beyond which doubling it no longer nearly halves the updates to a target.
# - **effective batch**: all rows behind one optimizer step: micro-batch × devices (ranks) × accumulation steps.
# - **gradient accumulation**: several backward passes that add to the same gradients before one optimizer step.
# - **gradient noise scale**: the number of samples at which the noise of a batch's gradient is as long as the
#   gradient itself; far above it, larger batches stop paying.
# - **LAMB**: Adam whose step is scaled for each layer by the trust ratio, for very large batches.
# - **LARS**: SGD with momentum whose step is scaled for each layer by the trust ratio.
# - **linear scaling rule**: a learning rate k times as large for a batch k times as large; meant for SGD, with
#   warmup.
# - **mean of means**: the average of the micro-batches' mean losses; it weighs labels of small micro-batches more.
# - **micro-batch**: the rows that go through forward and backward together on one device; memory limits it.
# - **peak live bytes**: the most bytes that were alive at the same time in tensors made during a step; a count
#   without noise.
# - **square-root scaling rule**: a learning rate √k times as large for a batch k times as large; meant for Adam and
#   its kin.
# - **tail window**: the window that is left at the end of an epoch, with fewer micro-batches than the others.
# - **token-weighted normalisation**: dividing the summed loss of a window by its number of labels, so that each label
#   weighs the same.
# - **trust ratio**: the length of a layer's weights over the length of its step; LARS and LAMB scale each layer's
#   step by it.
# - **window**: the micro-batches that make one update; the last window of an epoch may be shorter.
#
# </details>
# <details><summary>04 · Checkpointing and early stopping</summary>
#
# - **asynchronous save**: a save that the loop does not wait for: snapshot first, writing in a thread.
# - **atomic save**: a save after which, at any moment, the name stands for the old whole file or the new whole one;
#   written under another name, forced to the disk, renamed.
# - **cadence**: how often a run saves; set by what a save costs and how much work may be lost.
# - **checkpoint**: a file with all that the next step of a run reads, so that a new process can go on from there.
# - **early stopping**: ending a run when a validation metric has not improved for a while.
# - **export**: writing a trained model as a file that other programs can load.
# - **fsync**: the call that waits until the bytes of a file have left the machine's memory and are on the disk.
# - **last and best**: the two files to keep: `last` says where to go on, `best` what to ship.
# - **min_delta**: how much better a value must be to count as an improvement.
# - **monitor**: the metric that early stopping and best-keeping watch.
# - **patience**: the number of validations in a row without improvement after which a run is stopped.
# - **resume**: to go on from a checkpoint in a new process; done right, the end equals that of an uninterrupted run.
# - **retention**: how many old checkpoints are kept.
# - **safetensors**: a file format for weights that holds names, types and bytes, and nothing that could run.
# - **snapshot**: a copy of the state in memory, which a thread writes while the run goes on.
# - **weights-only loading**: reading tensors and plain values from a file and refusing all else, so that loading
#   cannot run code.
#
# </details>
# <details><summary>05 · Hyperparameter tuning</summary>
#
# - **ASHA**: successive halving that does not wait for a round to be complete, so that many workers stay busy.
# - **Bonferroni correction**: with k comparisons, giving each a k-th of the error that all together may make.
# - **conditional hyperparameter**: one that exists only where another has a certain value, such as momentum for SGD.
# - **fixed hyperparameter**: one that stays the same in all trials, and limits the answer to its value.
# - **grid search**: trying every combination of a few values for each hyperparameter.
# - **hyperparameter importance**: the share of the differences between trials that one hyperparameter explains.
# - **log-uniform**: drawn so that the logarithm is uniform, and each decade gets the same share.
# - **median pruner**: ends a trial whose loss is above the median of earlier trials at the same step.
# - **nuisance hyperparameter**: one that must be tuned again for each value of the scientific one, for a fair
#   comparison.
# - **paired comparison**: comparing two configurations at the same seeds, by their differences.
# - **pruner**: what ends a trial early because others were better at the same step.
# - **random search**: trying independent random points of the search space.
# - **rung**: a number of steps at which trials are compared.
# - **sampler**: what chooses the configuration of the next trial.
# - **scientific hyperparameter**: the one that the question of an experiment is about.
# - **search space**: the ranges and choices that a search draws configurations from, with the scale of each.
# - **seed noise**: how much the result of one configuration varies over seeds.
# - **slice plot**: every trial's result against one hyperparameter.
# - **study**: all trials of one search, with their values and states, kept in a storage.
# - **successive halving**: all trials train a little; the best share goes on with a multiple of the steps, again and
#   again.
# - **training contract**: what is settled before a search and equal in all trials: task, metric, budget, seeds,
#   resume rule.
# - **trial**: one training run with one configuration and one seed, within a search.
#
# </details>
# <details><summary>06 · Distributed training basics</summary>
#
# - **all-reduce**: a collective after which every rank holds the sum of what each rank had.
# - **barrier**: a collective that carries nothing: nobody goes on before all have come.
# - **broadcast**: a collective after which every rank holds what one of them had.
# - **bucket**: several gradients that DDP sends as one message.
# - **collective**: an exchange to which all ranks of a group must come, in the same order.
# - **data parallel**: every rank has the whole model and its own part of the data, and gradients are averaged.
# - **DDP**: torch's `DistributedDataParallel`: data parallel with gradients that are exchanged while backward still
#   runs.
# - **distributed checkpoint**: a folder to which each rank writes its part and which any number of ranks can load.
# - **FSDP / ZeRO**: data parallel in which each rank keeps only its part of weights, gradients and optimizer state.
# - **gloo / NCCL**: the programs that carry tensors between processes: gloo on CPUs, NCCL on NVIDIA GPUs.
# - **local rank**: a process's number among those of its own machine; it chooses the GPU.
# - **no_sync**: DDP's switch that keeps gradients on their rank until the last micro-batch of an update.
# - **process group**: the processes that have joined each other and can exchange tensors.
# - **rank**: one of the processes that train together, and its number, 0 … W − 1.
# - **scaling efficiency**: the speedup over one process divided by the number of processes.
# - **shard**: the part of the data, or of the weights, that one rank has.
# - **straggler**: the slowest rank of a step, for which all others wait.
# - **torchrun**: the program that starts a script once for each rank and tells each who it is.
# - **world size**: the number of processes that train together, on all machines.
#
# </details>
# <details><summary>07 · Managing GPUs and cost</summary>
#
# - **adapter**: the small trainable part beside a frozen layer.
# - **budget guard**: a part of the loop that saves and stops a run before its money is spent.
# - **cost to target**: time to target times the price of all devices.
# - **graph break**: a place in Python code that torch.compile cannot read, where fusing ends and starts again.
# - **intensity (arithmetic intensity)**: floating-point operations of an operation per byte that it moves to and from
#   memory.
# - **kernel**: one program that a GPU runs for one operation, or for several fused ones.
# - **launch**: the moment at which the host queues a kernel; the device runs the kernel later.
# - **LoRA**: fine-tuning in which the weights are frozen and a product of two thin matrices beside each layer learns.
# - **memory ladder**: the order in which to try ways to need less memory, each with its own price.
# - **MFU (model FLOP/s utilisation)**: arithmetic that the model needs for real tokens, per second, as a share of the
#   device's peak.
# - **NVML**: NVIDIA's library of readings: utilisation, memory, power, temperature, energy.
# - **offload**: keeping tensors in main memory until the GPU needs them.
# - **parameter-efficient fine-tuning (PEFT)**: training a small share of a model's parameters, or a few new ones;
#   also the name of a library.
# - **quantisation**: storing weights in fewer bits, such as 8-bit integers with a scale.
# - **rank (of an adapter)**: the number of columns between its two matrices; more rank, more trainable parameters.
# - **roofline**: a picture of the fastest an operation can run: limited by memory at low intensity, by arithmetic at
#   high intensity.
# - **session**: a part of a run on one machine, from its start to its end or interruption; each session pays for
#   loading and compiling again.
# - **spot machine**: a machine at a lower price that its owner may take away at short notice.
# - **time to target**: paid seconds until a validation first reaches the value that was agreed before the run.
# - **trace**: a list of what ran when, on the host and on the device, as a profiler writes it.
# - **utilisation**: the share of time in which a device ran anything at all; it does not say whether the work was
#   needed.
#
# </details>
# <details><summary>08 · Reproducibility with seeds and configs</summary>
#
# - **bitwise reproducibility**: the same code, config, data, seed and machine give the same bits.
# - **confidence interval (95 %)**: made by a method that holds the true value in 95 % of the cases.
# - **`cudnn.benchmark`**: cuDNN times several kernels at the first batch and keeps the fastest, so that the clock
#   decides which one runs.
# - **deterministic algorithm**: a kernel that adds in one order, so that equal inputs give equal bits;
#   `torch.use_deterministic_algorithms(True)` asks for no others.
# - **dirty**: said of a project whose files differ from the recorded commit.
# - **fingerprint**: a hash of content (of a config's values, of a file's bytes) that changes when, and only when,
#   what it stands for changes.
# - **non-inferiority**: the finding that a change is at worst worse by less than a margin fixed beforehand.
# - **peeking**: looking at a test after each new run and stopping when it says what one hoped for.
# - **random generator**: the object that draws; Python, NumPy and torch each have a global one, and a program can
#   have more of its own.
# - **run record**: what a run writes down of itself: config, commit and dirty flag, data fingerprint, environment,
#   hardware, metrics with slices, artifacts, failure.
# - **seed**: the number that a random generator starts from; equal seeds give equal draws.
# - **slice**: a named part of the validation data that a metric is reported for on its own.
# - **statistical reproducibility**: other seeds, and other machines, lead to the same conclusion.
# - **strict config**: one that refuses unknown keys, other types and other versions instead of guessing.
# - **`worker_init_fn`**: a function that a `DataLoader` runs in each of its worker processes before they read.
#
# </details>
#
# ## Go
#
# **[Lesson 01 · Efficient training loops →](../01_efficient_training_loops/01_efficient_training_loops.ipynb)**
