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
# # 06 · Distributed training basics
#
# *About 125 minutes: 35 of reading and quiz, 90 for 6 exercises*
#
# Several processes train one model, and end with the weights that one process would have. In this lesson you start
# such processes on your own machine, watch what they say to each other, and measure what the talking costs. You write
# the core of DDP by hand, then a script that runs the same on a laptop and on a cluster.
#
# | Part | What happens there |
# |---|---|
# | [Why it matters](#Why-it-matters) | one picture, and a ladder that says when more processes are the answer |
# | [Watch it happen](#Watch-it-happen) | ranks, the moments of a DDP step, scaling: predicted, then measured |
# | [Worked example](#Worked-example) | a whole script in plain torch, then the same with `course_lib` |
# | [What ranks share](#What-ranks-share) | shards and epochs, `no_sync`, metrics, uneven inputs, turns |
# | [When the model does not fit](#When-the-model-does-not-fit) | FSDP2 and distributed checkpoints, working |
# | [Exercises](#Exercises) | 6.1 to 6.6, each checked by measurement |
# | [In the wild](#In-the-wild) | the same in Accelerate, Hugging Face Trainer and Lightning |
# | [When it goes wrong](#When-it-goes-wrong) | nine mistakes, reproduced |
# | [Drills](#Drills), [checklist](#The-distributed-checklist), [quiz](#Quiz) | practice, a page to keep, the test |
#
# Everything runs on two CPU processes. The code of the figures is folded; the three dots open it. No cell outside the
# exercises depends on your solutions.

# %%
import json
import linecache
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from autograder import check, check_quiz, compare, exercise, predict, quiz
from autograder.plots import BLUE, GREEN, GREY, ORANGE, RED, bars, figure, show
from course_lib import data, distributed, fsdp, loop
from course_lib.data.batching import Batches
from course_lib.distributed import Ranks, ShardedOrder
from course_lib.errors import UserError
from course_lib.models import ModelConfig, TextClassifier

# One thread a process: two processes on two cores then do not get into each other's way.
torch.set_num_threads(1)
num_cores = (
    len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
)
print(f"torch {torch.__version__}, {num_cores} cores, {torch.cuda.device_count()} NVIDIA GPUs")
if num_cores < 2:
    print("With one core two processes take turns: expect speedups below 1 in this lesson.")

# %% [markdown]
# ## Why it matters
#
# You have done what lessons [01](../01_efficient_training_loops/01_efficient_training_loops.ipynb) to
# [05](../05_hyperparameter_tuning/05_hyperparameter_tuning.ipynb) teach, and a run still takes eight hours. Now a
# second device can help, up to twice; four of them up to four times. You pay for all of them.
#
# In [lesson 01](../01_efficient_training_loops/01_efficient_training_loops.ipynb#The-program) a training loop was an
# assembly line: load → batch → forward → backward → step.
# **Data-parallel training builds the same line several times.** Each line has the whole model and its own part of the
# data. Once in every step, between backward and step, the lines compare notes: they average their gradients. All then
# make the same step from the same weights, so the weights stay equal.
#
# Three words:
#
# - A **rank** is one of the processes, and its number. Rank 0 does what must be done once.
# - The **world size** is how many there are.
# - An **all-reduce** is one message exchange in which all ranks end with the sum of what each had.
#
# More devices are not the first thing to try. Each rung of this ladder costs more trouble than the one before:
#
# | Rung | Take it when | What it costs you |
# |---|---|---|
# | one device, a lean loop | always first ([lesson 01](../01_efficient_training_loops/01_efficient_training_loops.ipynb)) | an afternoon |
# | mixed precision, clean data | the hardware has it ([lesson 02](../02_mixed_precision/02_mixed_precision.ipynb)) | a few lines |
# | **DDP** | the model fits on one device, and the run is too long | this lesson; a larger batch |
# | activation checkpointing | activations do not fit | one more forward |
# | **FSDP / ZeRO** | weights, gradients and optimizer state do not fit | more traffic, other checkpoints |
# | many nodes | one machine is not enough | a network to wait for, machines that fail |
#
# ### Start two processes
#
# A notebook is one process. The next cell writes a cell of this notebook into a file and starts that file twice with
# **torchrun**. This is the real thing: on a cluster you give torchrun a file too.

# %%
temporary = tempfile.TemporaryDirectory(prefix="lesson-06-")
folder = Path(temporary.name)  # it goes with the kernel


def launch(main, num_processes=2, *arguments, seconds=600):
    """Write the cell that defines `main` to a file, and start it on so many processes."""
    script = folder / f"{main.__name__}.py"
    script.write_text("".join(linecache.getlines(main.__code__.co_filename)))
    command = [sys.executable, "-m", "torch.distributed.run"]  # torchrun, in this environment
    command += ["--nproc-per-node", str(num_processes)]
    command += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]  # any free port
    done = subprocess.run(
        [*command, str(script), *map(str, arguments or [folder])],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    return done.stdout


# %%
import os


def say_who_i_am():
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
    line = "  ".join(f"{name}={os.environ[name]}" for name in names)
    print(line + "\n", end="")  # in one piece: the other process writes at the same time


if "RANK" in os.environ:  # torchrun has started this file; in the notebook nothing happens
    say_who_i_am()

# %%
print("\n".join(sorted(launch(say_who_i_am).splitlines())))

# %% [markdown]
# The same file ran twice, and only the environment differs. That is all that torchrun gives a script:
#
# | Variable | Meaning | Use it for |
# |---|---|---|
# | `RANK` | number among all processes, 0 … W − 1 | which samples are mine; who writes files |
# | `LOCAL_RANK` | number on this machine | which GPU is mine |
# | `WORLD_SIZE` | W, how many processes there are | shares, means |
# | `MASTER_ADDR`, `MASTER_PORT` | where rank 0 can be reached | `init_process_group` reads them |
#
# On one machine `RANK` and `LOCAL_RANK` are equal, so mixing them up shows no symptom. On two machines it does.
#
# ## Watch it happen
#
# ### How much must cross?
#
# The ranks average every gradient, and a gradient has the shape of its weight.

# %%
predict(
    "6a",
    "A model of 100 million float32 weights: MB of gradients per rank and step?",
    unit="MB",
)

# %%
num_weights, bytes_each = 100e6, 4
megabytes = num_weights * bytes_each / 1e6
print(f"gradients: {megabytes:.0f} MB, in every step, however small the batch is")
for world_size in (2, 8, 64):  # a ring all-reduce sends each byte twice, but for 1/W of it
    sent = 2 * (world_size - 1) / world_size * megabytes
    print(f"  a ring of {world_size:>2} ranks: each sends {sent:.0f} MB and receives as much")
compare("6a", megabytes, unit="MB")

# %% [markdown]
# In a *ring* each rank sends to its neighbour only: pieces go round once to be summed, once more to be handed out.
#
# The size of the message depends on the model alone. The time to compute a gradient depends on the batch. So there is
# always a batch that is too small for two devices to pay. You will measure it below.
#
# ### The moments of a DDP step
#
# `DistributedDataParallel` wraps a model and does three things:
#
# 1. **Once, at the start:** it copies rank 0's weights to all ranks.
# 2. **In backward:** it packs gradients into *buckets*. As soon as a bucket is full, its all-reduce starts, while
#    backward goes on with the layers below.
# 3. **At the end of backward:** it waits for the last bucket. `.grad` then holds the mean over the ranks, on all ranks.
#
# `optimizer.step()` is not touched: equal weights and equal gradients give equal steps. The next cell traces a step,
# once with DDP and once with an all-reduce for each parameter after backward. What carries the messages is called a
# *backend*: `gloo` between CPUs, NCCL between NVIDIA GPUs.

# %%
import gc
import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from course_lib.models import ModelConfig, TextClassifier


def trace_steps(folder):
    dist.init_process_group("gloo")  # on GPUs "nccl"; the rest stays
    torch.set_num_threads(1)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)  # other weights on each rank, to see what wrapping does
    sizes = {"vocab_size": 4096, "num_classes": 16, "max_length": 64, "dropout": 0.0}
    model = TextClassifier(ModelConfig(d_model=128, num_layers=4, **sizes))
    before = [torch.zeros(()) for _ in range(world_size)]
    dist.all_gather(before, model.head.weight.sum().detach())
    ddp = DistributedDataParallel(model, bucket_cap_mb=1)
    after = [torch.zeros(()) for _ in range(world_size)]
    dist.all_gather(after, model.head.weight.sum().detach())

    reductions = []  # start, end and bytes of each all-reduce

    def timed_hook(state, bucket):
        start, size = time.perf_counter(), bucket.buffer().nbytes
        future = dist.all_reduce(bucket.buffer().div_(world_size), async_op=True).get_future()

        def done(finished):
            reductions.append((start, time.perf_counter(), size))
            return finished.value()[0]

        return future.then(done)

    ddp.register_comm_hook(None, timed_hook)
    ids = torch.randint(3, 4096, (16, 48))
    mask, labels = torch.ones_like(ids, dtype=torch.bool), torch.randint(16, (16,))

    def step(by_hand):
        reductions.clear()
        model.zero_grad()
        dist.barrier()
        clock = [time.perf_counter()]
        loss = F.cross_entropy((model if by_hand else ddp)(ids, mask), labels)
        clock.append(time.perf_counter())
        loss.backward()
        clock.append(time.perf_counter())
        if by_hand:
            for parameter in model.parameters():
                start = time.perf_counter()
                dist.all_reduce(parameter.grad.div_(world_size))
                size = parameter.grad.nbytes
                reductions.append((start, time.perf_counter(), size))
        return {"clock": [*clock, time.perf_counter()], "reductions": list(reductions)}

    def length(trace):
        return trace["clock"][-1] - trace["clock"][0]

    traces = {}
    for name, by_hand in (("DDP", False), ("by hand", True)):
        found = sorted([step(by_hand) for _ in range(12)][3:], key=length)  # three warm up
        traces[name] = found[len(found) // 2]  # the median step
    if rank == 0:
        weights = {"before": [w.item() for w in before], "after": [w.item() for w in after]}
        text = json.dumps({"traces": traces, "weights": weights})
        Path(folder, "trace.json").write_text(text)


if "RANK" in os.environ:
    trace_steps(sys.argv[1])
    gc.collect()  # DDP's wrapper stands in a cycle, and with it the threads of the group
    dist.destroy_process_group()  # last: what DDP wraps is gone by now

# %%
launch(trace_steps)
traced = json.loads((folder / "trace.json").read_text())
print("sum of the head's weights on ranks 0 and 1")
for when, sums in traced["weights"].items():
    print(f"  {when:<6} wrapping: " + "   ".join(f"{value:+.4f}" for value in sums))
for name, trace in traced["traces"].items():
    sent = sum(size for *_, size in trace["reductions"]) / 1e6
    print(f"{name}: {len(trace['reductions'])} all-reduces, {sent:.1f} MB of gradients")

# %% jupyter={"source_hidden": true}
fig, axes = figure(2, 1, height=3.8, sharex=True)
said = []
for ax, (name, trace) in zip(axes, traced["traces"].items(), strict=True):
    zero, *later = (1000 * second for second in trace["clock"])
    forward_end, backward_end, end = (t - zero for t in later)
    ax.barh([0], forward_end, color=GREY, height=0.55, label="forward")
    ax.barh(
        [0],
        backward_end - forward_end,
        left=forward_end,
        color=BLUE,
        height=0.55,
        label="backward",
    )
    starts = [1000 * start - zero for start, *_ in trace["reductions"]]
    widths = [1000 * (stop - start) for start, stop, _ in trace["reductions"]]
    is_few = len(starts) < 10
    ax.barh([1] * len(starts), widths, left=starts, color=ORANGE, height=0.55,
            edgecolor="white" if is_few else None, linewidth=1.0 if is_few else 0.0)  # fmt: skip
    ax.set_yticks([0, 1], labels=["compute", "all-reduce"])
    ax.set_ylim(1.6, -0.6)
    ax.set_title(f"{name}: {end:.1f} ms, {len(starts)} messages")
    said.append(f"{name}: {end:.1f} ms; backward ends at {backward_end:.1f} ms, "
                f"the first of {len(starts)} all-reduces begins at {starts[0]:.1f} ms.")  # fmt: skip
axes[0].set_xlim(0, 1.22 * axes[0].get_xlim()[1])  # room for the legend
axes[0].legend(loc="lower right")
axes[-1].set_xlabel("milliseconds since the step began, on rank 0")
show(fig, alt="Timeline of one step. " + " ".join(said))

# %% [markdown]
# Under DDP the orange bars begin while backward still runs: communication hides behind computation. By hand they come
# afterwards, one for each parameter. On a GPU the hidden part is nearly free. Here the same cores that compute also
# carry the messages, so look at your own two totals before you say which is shorter.
#
# ### Does it pay?
#
# Two processes, one thread each, against one process with one thread. Each rank takes micro-batches of the same size.
# *Scaling efficiency* is the speedup divided by the number of processes: 100 % would be perfect.

# %%
predict("6b", "Micro-batch of 32 texts: samples/s of two processes over one?", unit="×")

# %%
import gc
import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from course_lib.models import ModelConfig, TextClassifier


def measure_scaling(folder):
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    sizes = {"vocab_size": 2000, "num_classes": 16, "max_length": 48, "dropout": 0.0}
    model = TextClassifier(ModelConfig(d_model=64, num_layers=2, **sizes))
    ddp = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def samples_per_sec(network, rows, num_steps):
        ids = torch.randint(3, 2000, (rows, 48))
        mask, labels = torch.ones_like(ids, dtype=torch.bool), torch.randint(16, (rows,))
        for number in range(num_steps + 2):
            if number == 2:  # the first two warm up
                start = time.perf_counter()
            optimizer.zero_grad()
            F.cross_entropy(network(ids, mask), labels).backward()
            optimizer.step()
        return rows * num_steps / (time.perf_counter() - start)

    found = {}
    for rows in (1, 4, 16, 32):
        num_steps = max(4, 96 // rows)
        rates = {1: [], world_size: []}
        for together in (False, True, True, False):  # in turns
            dist.barrier()
            if together:
                rates[world_size].append(world_size * samples_per_sec(ddp, rows, num_steps))
            elif rank == 0:  # the others wait at the next barrier, and take no core
                rates[1].append(samples_per_sec(model, rows, num_steps))
        found[rows] = rates
    if rank == 0:
        Path(folder, "scaling.json").write_text(json.dumps(found))


if "RANK" in os.environ:
    measure_scaling(sys.argv[1])
    gc.collect()
    dist.destroy_process_group()

# %%
launch(measure_scaling)
rates = json.loads((folder / "scaling.json").read_text())
speedups = {
    int(rows): float(np.median(found["2"]) / np.median(found["1"]))
    for rows, found in rates.items()
}
for rows, speedup in speedups.items():
    print(f"micro-batch {rows:>2}: speedup {speedup:.2f}×, efficiency {speedup / 2:.0%}")
compare("6b", speedups[32], unit="×")

# %% jupyter={"source_hidden": true}
fig, ax = figure(height=2.4)
ax.plot(list(speedups), [100 * s / 2 for s in speedups.values()], marker="o", color=BLUE)
ax.axhline(100, color=GREY, linestyle=":")
ax.annotate("perfect", (1, 100), (0, -4), textcoords="offset points", va="top", color=GREY)
ax.set_xscale("log", base=2)
ax.set_xticks(list(speedups), labels=[str(rows) for rows in speedups])
ax.set(xlabel="texts per micro-batch", ylabel="%", ylim=(0, 112))
ax.set_title("Scaling efficiency of two processes on this machine")
show(fig, alt="Scaling efficiency by micro-batch: "
     + ", ".join(f"{rows} texts {50 * s:.0f} %" for rows, s in speedups.items()))  # fmt: skip

# %% [markdown]
# **Why is it not 2, and why does the batch matter?** Decide before you open this.
#
# <details><summary>An answer</summary>
#
# Four things eat scaling. *Communication*: the same number of bytes for any batch, so it weighs most on small ones.
# *Waiting*: a step ends when the slowest rank ends. *What every rank does alike*: the optimizer step is not divided,
# each rank makes all of it. *Contention*: two processes share memory, caches, and here the network too. With larger
# micro-batches the first and the third shrink against the rest.
#
# </details>
#
# Waiting can be counted without a clock. A batch costs about rows × width, and the widest rank sets the pace.

# %%
train, _ = data.docstring_store(max_length=256)
lengths = train.lengths
order = np.random.default_rng(0).permutation(len(lengths))
random_batches = [order[i : i + 16] for i in range(0, len(order) - 15, 16)]


def idle_share(batches, num_ranks):
    """Share of the ranks' time spent on waiting for the widest batch of each step."""
    widths = np.array([lengths[batch].max() for batch in batches])
    widths = widths[: len(widths) // num_ranks * num_ranks].reshape(-1, num_ranks)
    return 1 - widths.sum() / (widths.max(axis=1) * num_ranks).sum()


sampler = data.BucketBatchSampler(lengths, 16, seed=0)
ranks = [Ranks(rank=rank, local_rank=rank, world_size=8) for rank in range(8)]
matched = [
    batch
    for step in zip(*(ShardedOrder(sampler, r) for r in ranks), strict=True)
    for batch in step
]
waiting = {
    "random batches": idle_share(random_batches, 8),
    "buckets, dealt at random": idle_share(list(sampler), 8),
    "buckets, like widths together": idle_share(matched, 8),
}

# %% jupyter={"source_hidden": true}
fig, ax = figure(height=1.8)
bars(
    ax,
    list(waiting),
    [100 * share for share in waiting.values()],
    unit="%",
    colors=[ORANGE, RED, GREEN],
)
ax.set_title("8 ranks: share of time spent waiting for the widest batch")
show(fig, alt="Share of time waiting, 8 ranks: "
     + ", ".join(f"{name} {100 * share:.1f} %" for name, share in waiting.items()))  # fmt: skip

# %% [markdown]
# Random batches hardly wait, for all of them are wide: padding has taken that time. Length bucketing from lesson 01
# saves the padding, and makes waiting *worse* when one rank gets short texts and another long ones. Give all ranks of a
# step batches of about the same width, and the waiting is gone. `course_lib`'s `ShardedOrder` does so.
#
# ## Worked example
#
# ### A whole script, in plain torch
#
# Nine lines make it distributed; the comments number them. The rest is the loop of lesson 01.

# %%
import gc
import os
import sys
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from course_lib import data
from course_lib.models import ModelConfig, TextClassifier


def train_plainly(folder):
    rank, local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])  # 1 who am I
    has_gpus = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
    device = torch.device("cuda", local_rank) if has_gpus else torch.device("cpu")  # 2 my GPU
    dist.init_process_group("nccl" if has_gpus else "gloo")  # 3 join the others
    torch.set_num_threads(1)

    store, _ = data.docstring_store(max_length=64, progress=False)
    samples = store.subset(np.linspace(0, len(store) - 1, 320, dtype=int))
    torch.manual_seed(0)  # the same weights on all ranks ...
    sizes = ModelConfig(
        vocab_size=store.vocab_size, num_classes=len(store.label_names), max_length=64,
        d_model=32, num_layers=1, dropout=0.0,
    )  # fmt: skip
    model = TextClassifier(sizes).to(device)
    torch.manual_seed(1 + rank)  # 4 ... and other dropout masks on each
    ddp = DistributedDataParallel(model)  # 5 gradients are averaged from now on
    sampler = DistributedSampler(samples, seed=0)  # 6 my share of the samples
    loader = DataLoader(samples, batch_size=16, sampler=sampler, collate_fn=data.collate)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for epoch in range(2):
        sampler.set_epoch(epoch)  # 7 other shares in each epoch
        ddp.train()
        sums = torch.zeros(2, device=device)
        for batch in loader:
            batch = {name: tensor.to(device) for name, tensor in batch.items()}
            loss = F.cross_entropy(
                ddp(batch["input_ids"], batch["attention_mask"]), batch["labels"]
            )
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(
                model.parameters(), 1.0
            )  # the mean: equal on all ranks
            optimizer.step()
            rows = len(batch["labels"])
            sums += torch.stack(
                [loss.detach() * rows, torch.tensor(float(rows), device=device)]
            )
        dist.all_reduce(sums)  # 8 sums and counts, then one division
        if rank == 0:
            print(f"epoch {epoch}: mean loss {(sums[0] / sums[1]).item():.4f}")
    if rank == 0:  # 9 once, and the plain model, not the wrapper
        torch.save(model.state_dict(), Path(folder, "plain.pt"))
    dist.barrier()  # nobody leaves before the file is there
    del ddp
    gc.collect()  # it uses the group, so it goes first, and with it the cycle it stands in
    dist.destroy_process_group()


if "RANK" in os.environ:
    train_plainly(sys.argv[1])

# %%
print(launch(train_plainly))

# %% [markdown]
# Now one process, here in the notebook, on the same samples: its batch of 32 is what the two ranks have together.

# %%
small_store, _ = data.docstring_store(max_length=64)
samples = small_store.subset(np.linspace(0, len(small_store) - 1, 320, dtype=int))


def small_classifier():
    torch.manual_seed(0)
    sizes = {"d_model": 32, "num_layers": 1, "dropout": 0.0, "max_length": 64}
    num_classes = len(small_store.label_names)
    return TextClassifier(
        ModelConfig(vocab_size=small_store.vocab_size, num_classes=num_classes, **sizes)
    )


def largest_difference(weights, others):
    pairs = zip(weights.values(), others.values(), strict=True)
    return max((a.cpu() - b.cpu()).abs().max().item() for a, b in pairs)


alone = small_classifier()
optimizer = torch.optim.SGD(alone.parameters(), lr=0.5)
shards = [
    torch.utils.data.DistributedSampler(samples, num_replicas=2, rank=rank, seed=0)
    for rank in range(2)
]
for epoch in range(2):
    for shard in shards:
        shard.set_epoch(epoch)
    mine, theirs = map(list, shards)
    for start in range(0, len(mine), 16):
        indices = mine[start : start + 16] + theirs[start : start + 16]
        loop.train_step(alone, data.collate([samples[i] for i in indices]), optimizer)

saved = torch.load(folder / "plain.pt", weights_only=True)
print(
    f"two processes and one: weights differ by {largest_difference(saved, alone.state_dict()):.1e}"
)

# %% [markdown]
# The difference is rounding: sums in another order. **This is the test of every distributed script: on two ranks it
# must end where one process ends.** A script that fails it still trains, and the loss still falls. Nothing else tells you.
#
# ### The same with `course_lib`

# %%
import os
import sys

import numpy as np
import torch

from course_lib import data, distributed, loop
from course_lib.data.batching import Batches
from course_lib.distributed import ShardedOrder
from course_lib.models import ModelConfig, TextClassifier


def train_with_library(folder):
    ranks = distributed.setup("cpu")  # 1 2 3; "auto" takes the GPU of the local rank
    torch.set_num_threads(1)
    store, _ = data.docstring_store(max_length=64, progress=False)
    # 331 samples: no number of ranks divides them
    samples = store.subset(np.linspace(0, len(store) - 1, 331, dtype=int))
    torch.manual_seed(0)
    sizes = {"d_model": 32, "num_layers": 1, "dropout": 0.0, "max_length": 64}
    config = ModelConfig(
        vocab_size=store.vocab_size, num_classes=len(store.label_names), **sizes
    )
    model = TextClassifier(config)
    torch.manual_seed(ranks.seed(1))  # 4
    ddp = distributed.wrap_ddp(model)  # 5
    sampler = data.BucketBatchSampler(samples.lengths, 16, seed=0)
    batches = Batches(samples, ShardedOrder(sampler, ranks))  # 6
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    history = loop.fit(ddp, batches, optimizer, max_epochs=2)  # 7 8
    if ranks.is_main_process:  # 9
        losses = [record["loss"] for record in history if record["kind"] == "train"]
        print("mean loss of each epoch:", [round(loss, 4) for loss in losses])
        torch.save(model.state_dict(), f"{folder}/library.pt")


if "RANK" in os.environ:
    train_with_library(sys.argv[1])
    distributed.cleanup()

# %%
print(launch(train_with_library))
odd_samples = small_store.subset(np.linspace(0, len(small_store) - 1, 331, dtype=int))
alone = small_classifier()
order = ShardedOrder(
    data.BucketBatchSampler(odd_samples.lengths, 16, seed=0), Ranks(), grad_accum_steps=2
)
loop.fit(
    alone,
    Batches(odd_samples, order),
    torch.optim.SGD(alone.parameters(), lr=0.5),
    max_epochs=2,
    grad_accum_steps=2,
)
saved = torch.load(folder / "library.pt", weights_only=True)
print(
    "2 processes, or 1 that accumulates twice: "
    f"weights differ by {largest_difference(saved, alone.state_dict()):.1e}"
)

# %% [markdown]
# | Plain torch | `course_lib` | What changed in meaning |
# |---|---|---|
# | environment, device, `init_process_group` | `distributed.setup()` | nothing; it refuses more processes than GPUs |
# | `DistributedDataParallel(model)` | `wrap_ddp(model)` | on one process it is the model itself |
# | `DistributedSampler` | `ShardedOrder` | like widths meet in a step; an epoch's tail is dealt out, not repeated |
# | mean of each rank's loss | sum over items / items of all ranks | exact also when ranks have different numbers |
# | `if rank == 0` | `ranks.is_main_process` | nothing |
#
# The script knows nothing of two. **The same file** runs on one process, on eight GPUs, on four machines:
#
# ```
# python train.py                                                    one process
# torchrun --nproc-per-node 8 train.py                               8 GPUs, one machine
# torchrun --nnodes 4 --nproc-per-node 8 --max-restarts 3 \
#     --rdzv-backend c10d --rdzv-endpoint node0:29400 train.py       on each of 4 machines
# ```
#
# The last line is *elastic*: when a machine fails, torchrun starts all processes again, and the script goes on from its
# last checkpoint ([lesson 04](../04_checkpointing_and_early_stopping/04_checkpointing_and_early_stopping.ipynb)).
#
# ### The batch has grown
#
# **Effective batch = micro-batch × ranks × accumulation steps.** Sixteen texts on each of two ranks are a batch of 32.
# That is another training, unless you change something else:
#
# | You keep | and get |
# |---|---|
# | the micro-batch of each rank | steps that take as long as before, W times fewer of them in an epoch, a larger batch: raise the learning rate, as [lesson 03](../03_batch_size_and_accumulation/03_batch_size_and_accumulation.ipynb) measures |
# | the effective batch | the same training, smaller micro-batches, worse scaling (the figure above) |
#
# Write the effective batch into the log of every run. "Batch 32" alone says nothing.

# %%
for num_ranks, accumulation in ((1, 1), (2, 1), (8, 1), (8, 4)):
    effective = 16 * num_ranks * accumulation
    updates = math.ceil(len(train) / effective)
    print(
        f"16 × {num_ranks} ranks × {accumulation}: batch {effective:>3}, {updates:>5,} updates per epoch"
    )

# %% [markdown]
# ## What ranks share
#
# ### Shards and epochs
#
# `DistributedSampler` deals out indices. All ranks make the *same* random order, from seed and epoch, and each takes
# every W-th index of it. Where N does not divide, it fills up with the first indices of the order, so that all ranks
# make equally many steps. Ten samples, four ranks:

# %%
from torch.utils.data import DistributedSampler

dealt = {}
for epoch in (0, 1):
    for rank in range(4):
        sampler = DistributedSampler(range(10), num_replicas=4, rank=rank, seed=0)
        sampler.set_epoch(epoch)
        dealt[epoch, rank] = list(sampler)
    counts = np.bincount(np.concatenate([dealt[epoch, rank] for rank in range(4)]))
    print(f"epoch {epoch}: twice this time: {np.flatnonzero(counts == 2).tolist()}")

# %% jupyter={"source_hidden": true}
fig, axes = figure(1, 2, height=1.9, sharey=True)
for epoch, ax in enumerate(axes):
    for rank, color in enumerate([BLUE, ORANGE, GREEN, RED]):
        for step, index in enumerate(dealt[epoch, rank]):
            ax.barh(rank, 0.92, left=step, color=color, height=0.8)
            ax.annotate(
                str(index), (step + 0.46, rank), ha="center", va="center", color="white"
            )
    ax.set_title(f"epoch {epoch}")
    ax.set_yticks(range(4), labels=[f"rank {rank}" for rank in range(4)])
    ax.set_xticks([0.46, 1.46, 2.46], labels=["1", "2", "3"])
    ax.set_xlabel("place in the shard")
axes[0].invert_yaxis()
show(fig, alt="Which of 10 samples each of 4 ranks takes. "
     + " ".join(f"Epoch {epoch}: " + "; ".join(f"rank {rank} {dealt[epoch, rank]}" for rank in range(4)) + "."
                for epoch in (0, 1)))  # fmt: skip

# %% [markdown]
# Two samples count twice: harmless in training, wrong in an evaluation. Without `set_epoch` the second picture would
# equal the first, in every epoch.
#
# ### Accumulate, then exchange once
#
# With gradient accumulation only the last backward of an update needs the other ranks. `ddp.no_sync()` switches the
# all-reduce off for the micro-batches before. The count needs no clock.

# %%
predict("6c", "3 buckets, 4 micro-batches, 10 updates, no_sync: how many all-reduces?")

# %%
import json
import os
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel

from course_lib import distributed
from course_lib.counters import count_events


def share_things(folder):
    ranks = distributed.setup("cpu")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Linear(300, 300), nn.Linear(300, 300), nn.Linear(300, 300), nn.Linear(300, 1)
    )
    ddp = DistributedDataParallel(network, bucket_cap_mb=0.3)
    x = torch.randn(32, 300)
    for _ in range(
        2
    ):  # the first backward finds the order of gradients, and cuts the buckets anew
        with count_events(ddp, operators=False) as one:
            ddp(x).sum().backward()
    found = {"buckets": one.num_gradient_all_reduces, "all_reduces": {}, "seconds": {}}

    def ten_updates(use_no_sync):
        for _ in range(10):
            network.zero_grad()
            for number in range(4):
                with ddp.no_sync() if use_no_sync and number < 3 else nullcontext():
                    ddp(x).sum().backward()

    for name, use_no_sync in (
        ("every time", False),
        ("no_sync", True),
        ("no_sync", True),
        ("every time", False),
    ):
        dist.barrier()
        start = time.perf_counter()
        with count_events(ddp, operators=False) as counts:
            ten_updates(use_no_sync)
        found["seconds"][name] = found["seconds"].get(name, 0) + time.perf_counter() - start
        found["all_reduces"][name] = counts.num_gradient_all_reduces

    # A metric: this rank has seen `right` of `seen`. Rank 1 has a short shard of hard samples.
    right, seen = (90.0, 100.0) if ranks.rank == 0 else (2.0, 10.0)
    mean = torch.tensor(right / seen)
    dist.all_reduce(mean)
    sums = torch.tensor([right, seen])
    dist.all_reduce(sums)
    found["metric"] = {
        "mean of rank means": mean.item() / ranks.world_size,
        "sums, then one division": (sums[0] / sums[1]).item(),
    }

    # Uneven inputs: five batches here, three there. Join answers for those that are done.
    num_batches = 5 - 2 * ranks.rank
    with Join([ddp]):
        for _ in range(num_batches):
            network.zero_grad()
            ddp(x).sum().backward()
    found["joined"] = distributed.gather_objects(num_batches)

    # Rank 0 builds a file while the others wait; then they find it.
    with distributed.main_process_first(ranks):
        is_there = Path(folder, "built").exists()
        Path(folder, "built").touch()
    found["found_built"] = distributed.gather_objects(is_there)
    if ranks.is_main_process:
        Path(folder, "shared.json").write_text(json.dumps(found))


if "RANK" in os.environ:
    share_things(sys.argv[1])
    distributed.cleanup()

# %%
launch(share_things)
shared = json.loads((folder / "shared.json").read_text())
print(f"{shared['buckets']} buckets, 10 updates of 4 micro-batches")
for name, number in shared["all_reduces"].items():
    print(f"  {name:<11} {number:>4} all-reduces, {500 * shared['seconds'][name]:.0f} ms")
compare("6c", shared["all_reduces"]["no_sync"])

# %% [markdown]
# Put **forward and backward** inside `no_sync`: DDP decides in forward. And rescale: DDP divides the sum over ranks by
# W, whatever the ranks had. With uneven micro-batches, weigh by samples:
#
# > loss of a micro-batch = (sum of its losses) × W / (samples of all ranks in this update)
#
# The mean that DDP makes of it is then the mean over samples.
#
# ### Metrics: sums and counts

# %%
for name, value in shared["metric"].items():
    print(f"{name:<24} {100 * value:.1f} %")

# %% [markdown]
# Rank 0 got 90 of 100 right, rank 1 got 2 of 10. It is the mean of batch means of lesson 01 again, one level up.
#
# ### Uneven inputs, and turns
#
# A collective is a meeting: **all ranks must come, in the same order, equally often.** A rank that has run out of batches
# is missed by the others. Three ways out: fill up (DistributedSampler), deal the tail out (`ShardedOrder`), or
# `Join`, which answers for ranks that are done.

# %%
print(f"batches per rank under Join: {shared['joined']}; all came to the end")
print(
    f"main_process_first: was the file there when I came? rank 0 and 1: {shared['found_built']}"
)

# %% [markdown]
# What must happen once (downloading, tokenising, writing a checkpoint, printing) belongs to rank 0. Where the others
# need the result they wait at a **barrier**, and that barrier must be reached by all.
#
# A **checkpoint** in DDP is that of one process: rank 0 saves `ddp.module.state_dict()`; all ranks load it. The random
# states of ranks differ, so a resumed run is the same to the bit only if each rank's state is saved too.
#
# ## When the model does not fit
#
# Under DDP every rank holds everything. For AdamW in fp32 that is 16 bytes per weight: 4 for the weight, 4 for the
# gradient, 8 for two averages. **Sharding** splits them over the ranks ([ZeRO](https://arxiv.org/abs/1910.02054)).

# %%
predict("6d", "1 billion weights, AdamW, 8 ranks, all of it sharded: GB per rank?", unit="GB")

# %%
num_ranks, billions = 8, 1.0  # 10^9 weights: a byte each is 1 GB
gigabytes = {
    "DDP: everything everywhere": 16 * billions,
    "ZeRO-1: averages sharded": (4 + 4 + 8 / num_ranks) * billions,
    "ZeRO-2: gradients too": (4 + 12 / num_ranks) * billions,
    "ZeRO-3, FSDP: weights too": 16 * billions / num_ranks,
}
compare("6d", gigabytes["ZeRO-3, FSDP: weights too"], unit="GB")

# %% jupyter={"source_hidden": true}
fig, ax = figure(height=2.0)
bars(ax, list(gigabytes), gigabytes.values(), unit="GB", colors=[RED, ORANGE, ORANGE, GREEN])
ax.set_title("Per rank: 1 billion weights with AdamW, 8 ranks")
show(fig, alt="Gigabytes per rank: " + ", ".join(f"{k} {v:.1f}" for k, v in gigabytes.items()))

# %% [markdown]
# **FSDP2** (`fully_shard`) does the last row. Each rank keeps 1/W of every weight. Before a block computes, its weights
# are gathered from all ranks; afterwards they are freed. Gradients are summed and scattered. It moves about half as much
# again as DDP, and it needs one line for each block, before the optimizer is made.

# %%
import json
import os
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch.distributed.fsdp import fully_shard

from course_lib import distributed, fsdp
from course_lib.models import ModelConfig, TextClassifier


def train_sharded(folder):
    ranks = distributed.setup("cpu")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    sizes = {"vocab_size": 2000, "num_classes": 16, "max_length": 48, "dropout": 0.0}
    model = TextClassifier(ModelConfig(d_model=64, num_layers=4, **sizes))
    total = sum(p.numel() for p in model.parameters())
    for block in model.blocks:  # a block is what is gathered at a time
        fully_shard(block)
    fully_shard(model)  # the rest: embeddings and head
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(ranks.rank)
    for _ in range(3):
        ids = torch.randint(3, 2000, (8, 48), generator=generator)
        labels = torch.randint(16, (8,), generator=generator)
        loss = F.cross_entropy(model(ids, torch.ones_like(ids, dtype=torch.bool)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    own = sum(p.to_local().numel() for p in model.parameters())
    fsdp.save_sharded(Path(folder, "sharded"), model, optimizer)  # each rank writes its part
    full = fsdp.full_state_dict(
        model
    )  # all must call it: the parts are put together on rank 0
    shares = distributed.gather_objects(own)
    if ranks.is_main_process:
        torch.save(full, Path(folder, "whole.pt"))
        Path(folder, "fsdp.json").write_text(json.dumps({"total": total, "own": shares}))


if "RANK" in os.environ:
    train_sharded(sys.argv[1])
    distributed.cleanup()

# %%
launch(train_sharded)
counted = json.loads((folder / "fsdp.json").read_text())
for rank, own in enumerate(counted["own"]):
    print(f"rank {rank} keeps {own:,} of {counted['total']:,} weights")
print("files:", ", ".join(sorted(path.name for path in (folder / "sharded").iterdir())))

torch.manual_seed(1)  # other weights, which loading replaces
sizes = {"vocab_size": 2000, "num_classes": 16, "max_length": 48, "dropout": 0.0}
model = TextClassifier(ModelConfig(d_model=64, num_layers=4, **sizes))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
fsdp.load_sharded(folder / "sharded", model, optimizer)
whole = torch.load(folder / "whole.pt", weights_only=True)
same = all(
    torch.equal(a, b) for a, b in zip(whole.values(), model.state_dict().values(), strict=True)
)
print(f"two ranks saved, one process loads: equal to the bit: {same}")

# %% [markdown]
# This is a **distributed checkpoint** (`torch.distributed.checkpoint`): a folder with a part of each rank. Any number
# of ranks can load it, so you may go on with another number of GPUs. With `course_lib` the same is
# `course-lib train --set sharding=fsdp` under torchrun.
#
# ## Exercises
#
# The rules are those of [lesson 01](../01_efficient_training_loops/01_efficient_training_loops.ipynb#How-exercises-work): write
# where the cell raises `NotImplementedError`, and put all that your code needs into that cell, imports too. Here the
# check also starts the *ranks*, up to eight of them, joined by gloo. Inside your code `dist` is ready, unless the
# exercise says that you set it up. A *batch* is a dict of `input_ids` int64 [B, T], `attention_mask` bool [B, T] and
# `labels` int64 [B], and a model maps the first two to logits [B, C]. Arguments have the types that stand beside them;
# numbers among them are finite, and seeds and epochs lie between 0 and `2**32 - 1`, unless the text says otherwise.
#
# ### 6.1 · Which samples are mine?
#
# > Difficulty ●●○○○ · Importance ●●●●● · 10 minutes · property · imports: all that is installed
#
# Write what `DistributedSampler` does. No process is needed for it: a shard is arithmetic that all ranks agree on.
#
# <details><summary>Hint: "some indices are on none, others on several ranks"</summary>
#
# Do your ranks shuffle alike? The order comes from seed and epoch alone. The rank only says which part of it is taken.
#
# </details>
# <details><summary>Hint: "ranks get different numbers of samples"</summary>
#
# Make the order longer before you divide it: ceil(N / W) × W. `np.resize` repeats an array from its start.
#
# </details>
# <details><summary>Hint: "the same samples in the next epoch"</summary>
#
# Shuffle first, divide afterwards. The other way round, a rank sees the same part of the data for ever.
#
# </details>

# %%
import math
from collections.abc import Iterator

import numpy as np

from autograder import exercise


@exercise("6.1")
class ShardSampler:
    """The indices of one rank, out of N samples on W ranks.

    num_samples: N, up to a million. rank: 0 … W - 1. world_size: W, may be larger than N.
    seed: the same on all ranks. The same seed and epoch give the same shards, another seed others.
    """

    def __init__(self, num_samples: int, rank: int, world_size: int, seed: int = 0) -> None:
        self.num_samples = num_samples
        self.rank = rank
        self.world_size = world_size
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Choose the shards: another epoch, other samples on this rank. Called before each pass."""
        ### BEGIN SOLUTION
        self.epoch = epoch
        ### END SOLUTION

    def __len__(self) -> int:
        """Number of indices that one rank yields: ceil(N / W), on every rank."""
        ### BEGIN SOLUTION
        return math.ceil(self.num_samples / self.world_size)
        ### END SOLUTION

    def __iter__(self) -> Iterator[int]:
        """Yield this rank's indices, plain Python ints: its part of all indices in shuffled order,
        every W-th of it or one piece.

        Together the ranks yield each index 0 … N-1 at least once, and W x ceil(N / W) in all: what
        is missing is filled up from the start of the order, again and again where W is large.
        """
        ### BEGIN SOLUTION
        # The same on every rank: its number is not in the seed.
        order = np.random.default_rng([self.seed, self.epoch]).permutation(self.num_samples)
        order = np.resize(order, len(self) * self.world_size)  # repeats from the start
        yield from order[self.rank :: self.world_size].tolist()
        ### END SOLUTION


# %%
check("6.1")

# %% [markdown]
# ### 6.2 · DDP by hand
#
# > Difficulty ●●●○○ · Importance ●●●●● · 15 minutes · property · imports: all that is installed
#
# The three things that DDP does, without buckets and without overlap. Each rank calls your class with a model whose
# weights differ from the other ranks', and then with batches of its own, of other sizes than theirs.
#
# <details><summary>Hint: "rank 0's weights on rank 1"</summary>
#
# `dist.broadcast(tensor, src=0)` writes into the tensor in place. `model.state_dict().values()` are the tensors.
#
# </details>
# <details><summary>Hint: "mean of rank means"</summary>
#
# Divide the *sum* of this rank's losses by the number of samples of *all* ranks: an all-reduce of one number before
# backward. Then gradients need only be summed.
#
# </details>
# <details><summary>Hint: "gradients 2 times too large"</summary>
#
# `all_reduce` sums. Either your loss is divided by all samples, or the sum by W; not neither, not both.
#
# </details>
# <details><summary>Hint: "NoneType has no attribute …"</summary>
#
# Frozen parameters have no gradient. They have none on *any* rank, so all ranks skip the same ones.
#
# </details>

# %%
import torch
import torch.distributed as dist
import torch.nn.functional as F

from autograder import exercise


@exercise("6.2")
class PlainDDP:
    """A model whose replicas on all ranks stay equal."""

    def __init__(self, model: torch.nn.Module) -> None:
        """Afterwards every rank's `model` has rank 0's `state_dict`, weights and buffers, in place
        and to the last bit. All of them are contiguous.
        """
        ### BEGIN SOLUTION
        self.model = model
        for tensor in model.state_dict().values():
            dist.broadcast(tensor, src=0)
        ### END SOLUTION

    def loss_and_gradients(self, batch: dict[str, torch.Tensor]) -> float:
        """Forward, backward and exchange. All ranks call it, each with a batch of its own size, in
        whose loss each trained parameter has a part; only its own rows go through a rank's model.

        The mode of each part, weights and batch are left as they are. Afterwards `.grad` of every
        parameter that is trained is, on all ranks, the gradient of the mean cross-entropy over the
        samples of *all* ranks. It is None before the call, and stays None for those that are
        frozen, from `__init__` on. Returns that mean: of the forward whose gradients these are.
        """
        ### BEGIN SOLUTION
        logits = self.model(batch["input_ids"], batch["attention_mask"])
        loss_sum = F.cross_entropy(logits, batch["labels"], reduction="sum")
        totals = torch.stack([loss_sum.detach(), torch.tensor(float(len(batch["labels"])))])
        dist.all_reduce(totals)
        # Divided by the samples of all ranks, so that the sum over ranks is the mean over samples.
        (loss_sum / totals[1]).backward()
        for parameter in self.model.parameters():
            if parameter.grad is not None:
                dist.all_reduce(parameter.grad)
        return (totals[0] / totals[1]).item()
        ### END SOLUTION


# %%
check("6.2")

# %% [markdown]
# ### 6.3 · A script for torchrun
#
# > Difficulty ●●●●○ · Importance ●●●●● · 25 minutes · property · imports: all that is installed
#
# This cell *is* the script: the check writes it into a file. First it runs `main` on ranks that it can watch, also as
# two machines of one process each. At last it launches the file with a real torchrun. That takes up to ten seconds.
#
# <details><summary>Hint: "where do I start?"</summary>
#
# The [worked example](#A-whole-script,-in-plain-torch) has all nine lines. Here the batches are given; of each batch a rank takes
# some rows.
#
# </details>
# <details><summary>Hint: "the ranks agree with each other but not with one process"</summary>
#
# A batch of 13 rows is 7 and 6. DDP makes the mean of the ranks: scale each rank's *sum* by W / 13.
#
# </details>
# <details><summary>Hint: "two machines of one process each"</summary>
#
# There `LOCAL_RANK` is 0 on both. It is for the device alone; everything else goes by `RANK`.
#
# </details>
# <details><summary>Hint: "one rank waits in a collective"</summary>
#
# `if rank == 0:` is right around saving, and wrong around anything that all must reach: barrier, all-reduce, forward of
# a DDP model.
#
# </details>
# <details><summary>Hint: "I want to run it myself"</summary>
#
# In a new cell: make a folder with a `job.pt` as the docstring says, then `launch(main, 2, that_folder)`.
#
# </details>

# %%
import gc
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from autograder import exercise
from course_lib.models import ModelConfig, TextClassifier


def choose_device(local_rank: int, num_gpus: int) -> torch.device:
    """The device of a process: the CPU without GPUs, else the GPU of its local rank.

    Raises ValueError when there is no GPU left for it.
    """
    ### BEGIN SOLUTION
    if num_gpus == 0:
        return torch.device("cpu")
    if local_rank >= num_gpus:
        raise ValueError(
            f"local rank {local_rank}, but only {num_gpus} GPUs: start one process per GPU"
        )
    return torch.device("cuda", local_rank)
    ### END SOLUTION


@exercise("6.3")
def main(folder: Path) -> torch.nn.Module:
    """Train on all processes that torchrun has started, at least two, and return the trained model,
    unwrapped.

    `folder / "job.pt"` (torch.load, weights_only=True) holds a dict:
        "model"          arguments of `ModelConfig` for a `TextClassifier`
        "seed"           `torch.manual_seed` of it, just before the model is made
        "learning_rate"  of plain `torch.optim.SGD`
        "batches"        list of batches, each the *whole* batch of one step, at least one row a rank

    A step is that of one process on the whole batch: SGD on the mean cross-entropy over its rows. Each
    row is computed on one rank. All ranks end with equal weights. Dropout masks differ between ranks
    and steps.
    Rank 0, and nobody else, saves the state dict of the plain model as `folder / "last.pt"`.
    It sets up the process group, and takes it down.
    """
    ### BEGIN SOLUTION
    rank, local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    world_size = int(os.environ["WORLD_SIZE"])
    device = choose_device(local_rank, torch.cuda.device_count())
    dist.init_process_group("gloo" if device.type == "cpu" else "nccl")
    job = torch.load(folder / "job.pt", weights_only=True)
    torch.manual_seed(job["seed"])  # equal weights
    model = TextClassifier(ModelConfig(**job["model"])).to(device)
    torch.manual_seed(job["seed"] + 1 + rank)  # other dropout masks
    ddp = DistributedDataParallel(model)
    ddp.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=job["learning_rate"])
    for batch in job["batches"]:
        share = {name: tensor[rank::world_size].to(device) for name, tensor in batch.items()}
        logits = ddp(share["input_ids"], share["attention_mask"])
        loss_sum = F.cross_entropy(logits, share["labels"], reduction="sum")
        optimizer.zero_grad(set_to_none=True)
        # DDP divides the sum over ranks by world_size: taken back here, so that rows weigh alike.
        (loss_sum * world_size / len(batch["labels"])).backward()
        optimizer.step()
    if rank == 0:
        torch.save(model.state_dict(), folder / "last.pt")
    dist.barrier()  # nobody leaves before the file is there
    del ddp
    gc.collect()  # it uses the group, so it goes first, and with it the cycle it stands in
    dist.destroy_process_group()
    return model
    ### END SOLUTION


if "RANK" in os.environ:
    main(Path(sys.argv[1]))

# %%
check("6.3")

# %% [markdown]
# ### 6.4 · Accumulate, then exchange once
#
# > Difficulty ●●●○○ · Importance ●●●●○ · 15 minutes · property, count (all-reduces = buckets × optimizer steps) · imports: all that is installed
#
# One update from several micro-batches, on a model that is wrapped in DDP. The check counts the all-reduces with a
# communication hook. It also hands in a micro-batch that cannot be computed, and looks at the step after it.
#
# <details><summary>Hint: "too many all-reduces, although no_sync is there"</summary>
#
# Is forward inside it as well? DDP decides in forward whether this backward will exchange.
#
# </details>
# <details><summary>Hint: "the ranks' weights differ"</summary>
#
# The last micro-batch must be *outside* `no_sync`. Its all-reduce carries what all micro-batches have added up.
#
# </details>
# <details><summary>Hint: "weights differ from one process"</summary>
#
# Count the samples of the update over all ranks first (one small all-reduce). Then each micro-batch is
# loss sum × W / that number.
#
# </details>
# <details><summary>Hint: "left open when an exception is raised"</summary>
#
# A flag that you set by hand stays set when the line after it raises. What does `with` do on its way out?
#
# </details>

# %%
from collections.abc import Sequence
from contextlib import nullcontext

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from autograder import exercise


@exercise("6.4")
def accumulate_step(
    model: DistributedDataParallel,
    micro_batches: Sequence[dict[str, torch.Tensor]],
    optimizer: torch.optim.Optimizer,
) -> None:
    """One update of `model` from all micro-batches of all ranks.

    Each rank calls it with equally many micro-batches (at least 2), whose numbers of rows differ;
    they are left as they are, and so is the mode of each part of the model. The optimizer's
    old gradients are dropped first; what is frozen stays as it is. The step is that of one process
    on all the samples as one batch: the gradient of their mean cross-entropy. Gradients cross ranks
    once: in the last backward. At most two further messages carry other numbers. When a micro-batch raises, on all
    ranks alike, that error passes on, the weights stay, and the next step, which drops old gradients
    first, ends with the right weights, whether by this function or not.
    """
    ### BEGIN SOLUTION
    num_samples = torch.tensor(float(sum(len(batch["labels"]) for batch in micro_batches)))
    dist.all_reduce(num_samples)
    share = dist.get_world_size() / num_samples
    optimizer.zero_grad(set_to_none=True)
    for number, batch in enumerate(micro_batches, start=1):
        is_last = number == len(micro_batches)
        with nullcontext() if is_last else model.no_sync():
            logits = model(batch["input_ids"], batch["attention_mask"])
            loss_sum = F.cross_entropy(logits, batch["labels"], reduction="sum")
            (loss_sum * share).backward()
    optimizer.step()
    ### END SOLUTION


# %%
check("6.4")

# %% [markdown]
# ### 6.5 · An evaluation that is exact on uneven shards
#
# > Difficulty ●●○○○ · Importance ●●●●● · 10 minutes · property · imports: all that is installed
#
# Every rank evaluates its shard, and all report the same numbers: those of one process on all samples. The shards are
# uneven, and one of them may be empty.
#
# <details><summary>Hint: "one rank waits in a collective"</summary>
#
# A collective inside the loop over batches is called as often as there are batches, and the ranks have different
# numbers. How many meetings are needed for the whole evaluation?
#
# </details>
# <details><summary>Hint: "the loss is slightly off"</summary>
#
# Which numbers can be added over ranks? Sums and counts; no means.
#
# </details>
# <details><summary>Hint: "right on rank 0 alone"</summary>
#
# `reduce` gives the sum to one rank, `all_reduce` to all.
#
# </details>

# %%
from collections.abc import Iterable

import torch
import torch.distributed as dist
import torch.nn.functional as F

from autograder import exercise


@exercise("6.5")
def evaluate_on_ranks(
    model: torch.nn.Module, batches: Iterable[dict[str, torch.Tensor]]
) -> dict[str, float]:
    """Measure `model` on the batches of all ranks; each rank is given its own, perhaps none, and
    only those go through its model.

    The batches are left as they are. `model` is not wrapped; its weights may be of any float type,
    its logits are float32. It is evaluated without dropout and without gradients. When it returns, its
    parameters, its mode (`model.training`, one for all parts) and the switch of gradients are as
    before. Returns the same plain Python numbers on every rank, unrounded:
        "loss"         mean over all samples of all ranks of the cross-entropy
        "accuracy"     share of all samples whose largest logit is the label, 0 … 1
        "num_samples"  samples of all ranks
    """
    ### BEGIN SOLUTION
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    sums = torch.zeros(3, device=device)  # loss, right, samples
    try:
        with torch.no_grad():
            for batch in batches:
                batch = {name: tensor.to(device) for name, tensor in batch.items()}
                logits = model(batch["input_ids"], batch["attention_mask"])
                sums[0] += F.cross_entropy(logits, batch["labels"], reduction="sum")
                sums[1] += (logits.argmax(dim=-1) == batch["labels"]).sum()
                sums[2] += len(batch["labels"])
    finally:
        model.train(was_training)
    dist.all_reduce(sums)  # one meeting, however many batches each rank had
    loss, right, num_samples = sums.tolist()
    return {
        "loss": loss / num_samples,
        "accuracy": right / num_samples,
        "num_samples": int(num_samples),
    }
    ### END SOLUTION


# %%
check("6.5")

# %% [markdown]
# ### 6.6 · Challenge: two processes, one model, more samples per second
#
# > Difficulty ●●●○○ · Importance ●●●●○ · 15 minutes · property, count, speed (at least 1.3× the samples/s of one process, where there are 2 cores) · imports: all that is installed
#
# The baseline is the plain loop in one process with one thread. Your function runs in two processes with one thread
# each, and must end with the weights of the baseline. The check counts the rows that each rank computes; on a
# machine with one core all points rest on that count, and the check says so.
#
# <details><summary>Hint: "every rank computes the whole batch"</summary>
#
# Right, and no faster. `tensor[rank::world_size]` shares the rows out.
#
# </details>
# <details><summary>Hint: "weights differ from one process"</summary>
#
# The last batch has an odd number of rows. See the formula under
# [Accumulate, then exchange once](#Accumulate,-then-exchange-once).
#
# </details>
# <details><summary>Hint: "it is no faster"</summary>
#
# How often do the ranks meet in a step? Each meeting has a fixed price. DDP's buckets make a few large messages of many
# small ones. And do they compute at the *same time*, or in turns?
#
# </details>
# <details><summary>Hint: "inconclusive: the second core is busy"</summary>
#
# Close what else computes, such as another notebook, and check again. What was measured so far is kept.
#
# </details>

# %%
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from autograder import exercise


@exercise("6.6")
def train_in_parallel(
    model: torch.nn.Module,
    batches: list[dict[str, torch.Tensor]],
    optimizer: torch.optim.Optimizer,
) -> None:
    """Train `model` in place, on both ranks at once. `dist` is set up; weights are equal at the
    start, none is frozen, and each has a part in every loss.

    batches: the *whole* batch of each step, the same list on both ranks, and left as it is. The last
    one may be odd; each has at least one row a rank.
    A step is that of one process on the whole batch: gradient of the mean cross-entropy over its
    rows and of nothing older, then `optimizer.step()`. Each row is computed on one rank, about half
    of every batch on each. Afterwards both ranks have the weights that one process would have.
    """
    ### BEGIN SOLUTION
    rank, world_size = dist.get_rank(), dist.get_world_size()
    model.train()
    ddp = DistributedDataParallel(model, gradient_as_bucket_view=True)
    for batch in batches:
        share = {name: tensor[rank::world_size] for name, tensor in batch.items()}
        logits = ddp(share["input_ids"], share["attention_mask"])
        loss_sum = F.cross_entropy(logits, share["labels"], reduction="sum")
        optimizer.zero_grad(set_to_none=True)
        (loss_sum * world_size / len(batch["labels"])).backward()
        optimizer.step()
    ### END SOLUTION


# %%
check("6.6")

# %% [markdown]
# ## In the wild
#
# The frameworks start from the same file and the same torchrun. The defaults below are those of Accelerate 1.15,
# Transformers 5.23 and Lightning 2.6. The next cell runs what is installed, on two processes; of Lightning it takes
# Fabric, the part that leaves the loop to you. To install them: `%pip install accelerate transformers lightning` in a
# new cell.
#
# ### Accelerate
#
# Your own loop; `prepare` wraps the model, shards the loader and moves batches. `accelerate launch` is torchrun with a
# config file; `notebook_launcher` starts processes from a notebook. How each framework accumulates and divides is in
# [lesson 03](../03_batch_size_and_accumulation/03_batch_size_and_accumulation.ipynb#In-the-wild).
#
# | This lesson | Accelerate | Default | What surprises |
# |---|---|---|---|
# | shards | `prepare(loader)` | `split_batches=False` | the batch size is *per process*: the effective batch grows |
# | filling up | `even_batches` | `True` | the last batches hold samples from the start again: `gather_for_metrics` takes them out |
# | schedule | `step_scheduler_with_optimizer` | `True` | one `scheduler.step()` steps W times: plan it as for one process |
# | rank 0 | `is_main_process`, `wait_for_everyone()` | – | `is_local_main_process` is true once per *machine* |
#
# ### Hugging Face Trainer
#
# | This lesson | `TrainingArguments` | Default | What surprises |
# |---|---|---|---|
# | how it starts | – | – | plain `python` on a machine with several GPUs takes `nn.DataParallel`: one process, slow. Use torchrun |
# | parameters without gradient | `ddp_find_unused_parameters` | `None`, which becomes `True` for most models | a walk over the graph in every step: say `False` |
# | who saves | `save_on_each_node` | `False` | `True` where machines share no disk |
# | waiting for a lost rank | `ddp_timeout` | 1800 s | half an hour of GPUs that wait |
#
# ### Lightning
#
# | This lesson | `Trainer` | Default | What surprises |
# |---|---|---|---|
# | how many ranks | `devices`, `strategy="ddp"` | `"auto"` | it starts your script again for each rank: what stands outside `main` runs W times |
# | sampler and `set_epoch` | `use_distributed_sampler` | `True` | validation is filled up too: its metrics count some samples twice |
# | metrics | `self.log(…, sync_dist=…)` | `False` | **the logged value is rank 0's shard** |
# | rank 0 | `@rank_zero_only` | – | never put a collective into it |

# %%
import contextlib
import gc
import importlib.util
import logging
import os
import sys
import warnings

import numpy as np
import torch
import torch.nn.functional as F

from course_lib import data
from course_lib.models import ModelConfig, TextClassifier


def try_frameworks(folder):
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    rank = int(os.environ["RANK"])
    store, _ = data.docstring_store(max_length=64, progress=False)
    # 50 samples: two shards of 25, batches of 8
    samples = store.subset(np.linspace(0, len(store) - 1, 50, dtype=int))
    torch.manual_seed(0)
    sizes = {"d_model": 32, "num_layers": 1, "dropout": 0.0, "max_length": 64}
    num_classes = len(store.label_names)
    config = ModelConfig(vocab_size=store.vocab_size, num_classes=num_classes, **sizes)

    def say(text):
        if rank == 0:
            print(text)

    if importlib.util.find_spec("transformers") and importlib.util.find_spec("accelerate"):
        from transformers import Trainer, TrainingArguments

        class WithLoss(torch.nn.Module):
            """The form that the Trainer expects: the model computes its own loss."""

            def __init__(self):
                super().__init__()
                self.model = TextClassifier(config)

            def forward(self, input_ids, attention_mask, labels):
                logits = self.model(input_ids, attention_mask)
                return {"loss": F.cross_entropy(logits, labels), "logits": logits}

        arguments = TrainingArguments(
            output_dir=folder,
            use_cpu=True,
            num_train_epochs=1,
            per_device_train_batch_size=8,
            ddp_find_unused_parameters=False,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            dataloader_pin_memory=False,
        )
        trainer = Trainer(
            WithLoss(), arguments, data_collator=data.collate, train_dataset=samples
        )
        with contextlib.redirect_stdout(None):
            num_steps = trainer.train().global_step
        say(f"Trainer: {arguments.world_size} processes, {num_steps} steps each")

    if importlib.util.find_spec("accelerate"):
        from accelerate import Accelerator

        accelerator = Accelerator(cpu=True)
        model = TextClassifier(config)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        loader = torch.utils.data.DataLoader(samples, batch_size=8, collate_fn=data.collate)
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        gathered = for_metrics = 0
        for batch in loader:
            logits = model(batch["input_ids"], batch["attention_mask"])
            optimizer.zero_grad()
            accelerator.backward(F.cross_entropy(logits, batch["labels"]))
            optimizer.step()
            gathered += len(accelerator.gather(batch["labels"]))
            for_metrics += len(accelerator.gather_for_metrics(batch["labels"]))
        say(f"Accelerate: {accelerator.num_processes} processes, {len(loader)} steps each")
        say(
            f"  of {len(samples)} samples gather saw {gathered}, gather_for_metrics {for_metrics}"
        )

    if importlib.util.find_spec("lightning"):
        from lightning.fabric import Fabric

        fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
        fabric.launch()  # under torchrun the processes are there already
        model = TextClassifier(config)
        model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.5))
        loader = fabric.setup_dataloaders(
            torch.utils.data.DataLoader(samples, batch_size=8, collate_fn=data.collate)
        )
        for batch in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(
                model(batch["input_ids"], batch["attention_mask"]), batch["labels"]
            )
            fabric.backward(loss)
            optimizer.step()
        say(f"Lightning Fabric: {fabric.world_size} processes, {len(loader)} steps each")


def in_the_wild(folder):
    try_frameworks(folder)
    gc.collect()  # what wraps a model goes before the group that it uses
    torch.distributed.destroy_process_group()


if "RANK" in os.environ:
    in_the_wild(sys.argv[1])

# %%
packages = ("transformers", "accelerate", "lightning")
installed = [name for name in packages if importlib.util.find_spec(name)]
for name in packages:
    if name not in installed:
        print(f"{name} is not installed, so its part runs nothing. Nothing later needs it.")
if {"accelerate", "lightning"} & set(installed):
    print(launch(in_the_wild))

# %% [markdown]
# ## When it goes wrong
#
# Nine mistakes, each made here in small. Most of them raise no error, and the loss falls all the same. One run on two
# processes makes five of them, one after the other:

# %%
import json
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from course_lib import distributed


def make_mistakes(folder):
    ranks = distributed.setup("cpu")
    torch.set_num_threads(1)
    rank, found = ranks.rank, {}

    # Every rank writes the checkpoint: 200 pieces of 1,000 bytes each, into the same file.
    dist.barrier()
    with Path(folder, "both.bin").open("wb", buffering=0) as file:
        for _ in range(200):
            file.write(bytes([rank]) * 1000)
            time.sleep(0.0003)
    dist.barrier()
    pieces = Path(folder, "both.bin").read_bytes()
    found["written"] = [pieces.count(bytes([r])) // 1000 for r in range(2)]

    # Loss not rescaled: 12 rows here, 3 rows there.
    torch.manual_seed(0)
    x, y = torch.randn(15, 6), torch.randint(3, (15,))
    mine = slice(0, 12) if rank == 0 else slice(12, 15)
    model = nn.Linear(6, 3)
    F.cross_entropy(model(x), y).backward()
    truth = model.weight.grad.clone()
    ddp = DistributedDataParallel(model)
    for name in ("mean of each rank", "sum × W / all rows"):
        model.zero_grad()
        total = F.cross_entropy(ddp(x[mine]), y[mine], reduction="sum")
        rows = len(y[mine])
        (total / rows if name == "mean of each rank" else total * 2 / len(y)).backward()
        away = (model.weight.grad - truth).norm() / truth.norm()
        found.setdefault("gradient_error", {})[name] = away.item()

    # no_sync left open: a flag set by hand, and an error on the way.
    def difference_after(steps):
        torch.manual_seed(rank)  # other samples on each rank
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(steps):
            model.zero_grad()
            F.cross_entropy(ddp(torch.randn(8, 6)), torch.randint(3, (8,))).backward()
            optimizer.step()
        weights = distributed.gather_objects(model.weight.detach().clone())
        return (weights[0] - weights[1]).abs().max().item()

    found["difference"] = {"before": difference_after(5)}
    try:
        ddp.require_backward_grad_sync = False  # what no_sync does, but without its way out
        raise ValueError("a bad micro-batch")
    except ValueError:
        pass  # "we skip bad batches"
    found["difference"]["5 steps after"] = difference_after(5)

    # One seed for everything: the masks of dropout.
    for name, seed in (("the same seed", 7), ("a seed of its own", ranks.seed(7))):
        torch.manual_seed(seed)
        mask = nn.functional.dropout(torch.ones(10_000), 0.5) > 0
        masks = distributed.gather_objects(mask)
        found.setdefault("masks", {})[name] = (masks[0] == masks[1]).float().mean().item()

    # A barrier in one branch only. Real jobs wait for 30 minutes and not for 2 seconds.
    group = dist.new_group(timeout=timedelta(seconds=2))
    start = time.perf_counter()
    if rank == 0:
        try:
            dist.barrier(group=group)
        except RuntimeError as error:
            found["barrier"] = [time.perf_counter() - start, str(error).splitlines()[0]]
    dist.barrier()
    if rank == 0:
        Path(folder, "mistakes.json").write_text(json.dumps(found))


if "RANK" in os.environ:
    make_mistakes(sys.argv[1])
    distributed.cleanup()

# %%
launch(make_mistakes)
seen = json.loads((folder / "mistakes.json").read_text())

# %% [markdown]
# ### No sampler
# *Symptom:* two GPUs, and an epoch takes as long as with one. The loss curve is that of one GPU, too.

# %%
num_samples = 1000
without = [list(range(num_samples)) for rank in range(2)]
with_sampler = [
    list(DistributedSampler(range(num_samples), num_replicas=2, rank=r)) for r in range(2)
]
for name, shards in (("no sampler", without), ("DistributedSampler", with_sampler)):
    print(f"{name:<19} {[len(shard) for shard in shards]} samples per rank, "
          f"{len(set(shards[0]) & set(shards[1]))} of them on both")  # fmt: skip

# %% [markdown]
# *Cure:* a sampler that knows the rank. Log the number of steps of an epoch: it must fall when ranks are added. Caught by
# [6.1](#6.1-·-Which-samples-are-mine?), [6.3](#6.3-·-A-script-for-torchrun) and
# [6.6](#6.6-·-Challenge:-two-processes,-one-model,-more-samples-per-second).
#
# ### Forgot `set_epoch`
# *Symptom:* every epoch has the same batches in the same order; on each rank the same half of the data.

# %%
for calls_it in (False, True):
    sampler = DistributedSampler(range(1000), num_replicas=2, rank=0)
    epochs = []
    for epoch in range(3):
        if calls_it:
            sampler.set_epoch(epoch)
        epochs.append(set(sampler))
    name = "set_epoch" if calls_it else "forgotten"
    print(
        f"{name:<10} samples that rank 0 has seen after 3 epochs: {len(set.union(*epochs))} of 1000"
    )

# %% [markdown]
# *Cure:* `sampler.set_epoch(epoch)` before each epoch. Caught by [6.1](#6.1-·-Which-samples-are-mine?).
#
# ### Every rank writes the checkpoint
# *Symptom:* now and then a checkpoint cannot be read, or is older than it should be.

# %%
print(
    f"200 pieces in the file: {seen['written'][0]} by rank 0, {seen['written'][1]} by rank 1"
)

# %% [markdown]
# Both write into one file at the same time, and each piece is that of whoever came last. *Cure:* `if rank == 0:`, an
# atomic save, and a barrier that all reach. By `RANK`, for `LOCAL_RANK` is 0 once on every machine. Caught by
# [6.3](#6.3-·-A-script-for-torchrun).
#
# ### The mean of rank means
# *Symptom:* the metric changes when you change the number of GPUs.

# %%
for name, value in shared["metric"].items():
    print(f"{name:<24} {100 * value:.1f} %")

# %% [markdown]
# *Cure:* sums and counts cross the ranks, the division comes last. Caught by
# [6.5](#6.5-·-An-evaluation-that-is-exact-on-uneven-shards).
#
# ### A barrier in one branch only
# *Symptom:* the job hangs, all devices are at 0 % or 100 %, the log stands still. Half an hour later it times out.

# %%
print(f"rank 0 waited {seen['barrier'][0]:.1f} s, then:")
print(seen["barrier"][1][:150])

# %% [markdown]
# *Cure:* no collective inside `if rank == 0:`, nor in a loop whose length differs between ranks. While you develop, set a
# short timeout: `init_process_group(timeout=timedelta(seconds=30))`. Caught by [6.2](#6.2-·-DDP-by-hand),
# [6.3](#6.3-·-A-script-for-torchrun) and [6.5](#6.5-·-An-evaluation-that-is-exact-on-uneven-shards).
#
# ### Loss not rescaled
# *Symptom:* a run on W ranks and one on a single device with the same effective batch part ways.

# %%
for name, error in seen["gradient_error"].items():
    print(f"{name:<20} gradient is {100 * error:.4f} % away from that of one process")

# %% [markdown]
# *Cure:* with 12 rows here and 3 there, weigh rows and not ranks: sum of losses × W / rows of all ranks. Caught by
# [6.2](#6.2-·-DDP-by-hand), [6.4](#6.4-·-Accumulate,-then-exchange-once) and
# [6.6](#6.6-·-Challenge:-two-processes,-one-model,-more-samples-per-second).
#
# ### `no_sync` left open when an exception is raised
# *Symptom:* none. The loss falls on every rank. The models drift apart, and the checkpoint is rank 0's alone.

# %%
for when, difference in seen["difference"].items():
    print(f"{when:<14} largest difference between the ranks' weights: {difference:.1e}")

# %% [markdown]
# *Cure:* `with ddp.no_sync():`, never the flag by hand. Now and then compare a checksum of the weights over ranks: it costs
# one small all-gather. Caught by [6.4](#6.4-·-Accumulate,-then-exchange-once).
#
# ### One seed for shuffling and for dropout
# *Symptom:* more ranks regularise less than they should: all drop the same units.

# %%
for name, share in seen["masks"].items():
    print(f"{name:<18} {100 * share:.0f} % of the mask is equal on both ranks")

# %% [markdown]
# Shuffling *must* have the same seed on all ranks, and so must the first weights. Dropout must not. *Cure:* one seed
# until the model is made, then `seed + rank`. Caught by [6.3](#6.3-·-A-script-for-torchrun).
#
# ### Device 0 on every rank
# *Symptom:* out of memory on GPU 0, and the other GPUs are idle.

# %%
for local_rank in range(2):
    place = Ranks(rank=local_rank, local_rank=local_rank, world_size=2)
    try:
        print(f"local rank {local_rank}: {place.device('cuda')}")
    except UserError as error:
        print(f"local rank {local_rank}: {error}")
if torch.cuda.device_count() < 2:
    print("With two GPUs these would be cuda:0 and cuda:1.")

# %% [markdown]
# `torch.device("cuda")` means GPU 0, in every process. *Cure:* `torch.device("cuda", local_rank)`, or
# `torch.cuda.set_device(local_rank)` first of all. Caught by [6.3](#6.3-·-A-script-for-torchrun).
#
# ## Drills
#
# Not graded. Each takes a few minutes: predict, run, then change the value that says `try` and run again.
#
# **Drill 1 · Samples that count twice.** An evaluation over 1,003 samples uses DistributedSampler on 64 ranks. How many
# samples are counted twice?

# %%
predict("6e", "1,003 samples on 64 ranks: how many are counted twice?")

# %%
drill_samples, drill_ranks = 1003, 64  # try 1,024, then 40 samples
drill_shards = [
    DistributedSampler(range(drill_samples), num_replicas=drill_ranks, rank=rank)
    for rank in range(drill_ranks)
]
num_extra = sum(map(len, drill_shards)) - drill_samples
print(
    f"{len(drill_shards[0])} a rank, {num_extra} too many: {100 * num_extra / drill_samples:.1f} % of the data"
)
compare("6e", num_extra)

# %% [markdown]
# **Drill 2 · How long must backward be?** A network moves 10 GB/s, both ways. How long does the all-reduce of 100
# million fp32 gradients take on 8 ranks, as a ring? If backward is longer, it can hide.

# %%
predict("6f", "Ring all-reduce of 400 MB on 8 ranks at 10 GB/s: milliseconds?", unit="ms")

# %%
drill_world_size, gigabytes_per_second = 8, 10.0  # try 1.25: a 10-gigabit network card
milliseconds = (
    2 * (drill_world_size - 1) / drill_world_size * 0.4 / gigabytes_per_second * 1000
)
print(f"{milliseconds:.0f} ms; with gradients in bf16 {milliseconds / 2:.0f} ms; "
      f"with no_sync over 4 micro-batches {milliseconds / 4:.1f} ms per micro-batch")  # fmt: skip
compare("6f", milliseconds, unit="ms")

# %% [markdown]
# **Drill 3 · A fixed price.** A step computes for 80 ms on one device, and its all-reduce takes 20 ms that do not hide.
# The effective batch stays. What is the speedup of 4 devices?

# %%
predict("6g", "80 ms of work shared by 4, and 20 ms on top: speedup?", unit="×")

# %%
compute_ms, exchange_ms, drill_devices = 80.0, 20.0, 4  # try 16 devices, then 64
for devices in sorted({2, 8, drill_devices}):
    speedup = compute_ms / (compute_ms / devices + exchange_ms)
    print(f"{devices:>2} devices: {speedup:.2f}×, efficiency {speedup / devices:.0%}")
compare("6g", compute_ms / (compute_ms / drill_devices + exchange_ms), unit="×")

# %% [markdown]
# However many devices you buy, this step never takes less than 20 ms: the speedup stays below 4. Larger micro-batches,
# overlap and accumulation attack the 20; more devices do not.

# %% [markdown]
# ## The distributed checklist
#
# | # | Question | If the answer is no |
# |---|---|---|
# | 1 | Does one device do all it can: no data-wait, low precision, no padding? | lessons 01 and 02 first: two slow lines are two slow lines |
# | 2 | Do two ranks end with the weights of one process, on a few uneven batches? | seeds, shards, rescaling |
# | 3 | Do the steps of an epoch fall as ranks are added? | no sampler |
# | 4 | Are the weights of all ranks equal in the middle of the run? | `no_sync`, a missed exchange, a skipped step on one rank |
# | 5 | Does each rank say another device, and another dropout seed? | `LOCAL_RANK`, seeds |
# | 6 | Is every collective reached by all ranks, equally often? | a branch on the rank, loops of unequal length |
# | 7 | Is the metric the same on 1 and on 2 ranks? | means of means, samples that count twice |
# | 8 | Does one rank write, atomically, and do all resume from it? | checkpoints |
# | 9 | Is the efficiency above 80 %, as a rule of thumb? | larger micro-batches, accumulation, like widths together |
#
# ## Quiz
#
# You pass with 70 %. One of the questions is measured on this machine when you answer. Without a mouse:
# `from autograder import answer`, then `answer("06.3", "b")`.

# %%
quiz("06")

# %%
check_quiz("06")

# %% [markdown]
# ## What next
#
# You can start a training on any number of processes, prove that it is the same training, and say what the exchange
# costs.
#
# - Run `torchrun --nproc-per-node 2 -m course_lib train --data your.csv --out runs/two` in a terminal, and compare its
#   report with that of one process.
# - Take one training script that you use. Ask question 2 of the checklist of it.
# - [Lesson 07](../07_gpus_and_cost/07_gpus_and_cost.ipynb) asks whether what you bought is used, and what a result costs.
# - The [start page](../00_start_here/00_start_here.ipynb) shows your progress and the map.
