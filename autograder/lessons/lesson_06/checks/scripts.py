"""The check of exercise 6.3: a script that torchrun starts."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import are_equal, require_equal
from autograder.lessons.lesson_06 import baselines
from autograder.lessons.lesson_06.checks.common import SECONDS, require_together

ROWS = [13, 8, 9, 3]  # of the global batches: none divides evenly for every number of ranks
DEVICES = {(0, 0): "cpu", (3, 0): "cpu", (0, 4): "cuda:0", (3, 4): "cuda:3", (1, 2): "cuda:1"}


def check_script(job: Job) -> None:
    """6.3: weights of one process on every rank, one checkpoint, own dropout; at last a real torchrun."""
    job.talks = True
    job.progress("Running the script's function on ranks that are watched", 0.1)
    _require_devices(job)
    # The last: two machines of one process each. There the local rank is 0 on both.
    for number, local_ranks in enumerate(([0, 1], [0], [0, 0])):
        _require_training(job, f"watched-{number}", local_ranks)
    _require_own_dropout(job)
    job.progress("Starting torchrun with two processes: up to ten seconds", 0.5)
    _require_launch(job)


def _require_devices(job: Job) -> None:
    found = job.learner().call("chosen_devices", cases=[list(case) for case in (*DEVICES, (2, 2))])
    for (local_rank, num_gpus), expected, got in zip(DEVICES, DEVICES.values(), found, strict=False):
        job.require(
            got == expected or (got, expected) == ("cuda", "cuda:0"),
            expected=f"choose_device({local_rank}, {num_gpus}) = {expected}",
            got=got,
            likely="device 0 on every rank: all processes of a machine would share one GPU"
            if got in ("cuda", "cuda:0")
            else "the device does not follow the local rank, or a CPU is forgotten",
            look="the local rank counts the processes of one machine, as its GPUs are counted",
        )
    job.require(
        found[-1].startswith("!"),
        expected="choose_device(2, 2) to raise ValueError: two GPUs, and a third process",
        got=found[-1],
        likely="more processes than GPUs are wrapped around or pile up on one",
        look="a clear error at the start is cheaper than an odd one later",
    )


def _require_training(job: Job, name: str, local_ranks: list[int]) -> None:
    arguments: dict[str, Any] = {"seed": job.seed() % 10**6, "rows": ROWS}
    answer = job.learner().call(
        "watched_script", seconds=SECONDS, name=name, dropout=0.0, local_ranks=local_ranks, **arguments
    )
    ranks = require_together(job, answer)
    expected = job.twin(baselines.nothing(job.entry)).call("script_alone", **arguments)
    nodes = (
        " on two machines of one process each" if local_ranks == [0, 0] else f" on {len(ranks)} process(es)"
    )
    for rank, seen in enumerate(ranks):
        job.require(
            seen["in_training_mode"],
            expected="a model that trains in training mode",
            got="no forward pass in training mode",
            likely="`model.train()` is missing, or the batches are never used",
            look="the loop over `job['batches']`",
        )
        _require_weights(job, ranks, seen["weights"], expected, f"rank {rank}{nodes}", local_ranks)
    num_rows = sum(seen["rows"] for seen in ranks)
    job.require(
        num_rows in (0, sum(ROWS)),  # 0: called by keywords
        expected=f"{sum(ROWS)} rows through the model, on all ranks together{nodes}",
        got=f"{num_rows}",
        likely="no sampler: every rank computes the whole batch, many times the work for the same result",
        look="each row of a batch belongs to one rank",
    )
    saves = [seen["num_saves"] for seen in ranks]
    job.require(
        sum(saves[1:]) == 0,
        expected="a checkpoint that rank 0 writes, and nobody else",
        got=f"{', '.join(f'rank {rank}: {number}' for rank, number in enumerate(saves))} saves{nodes}",
        likely="every rank writes the checkpoint, into the same file at the same time"
        if local_ranks != [0, 0]
        else "every rank with *local* rank 0 writes the checkpoint: on two machines there are two of them",
        look="`if rank == 0:`, and a barrier that all ranks reach",
    )
    _require_checkpoint(job, answer["checkpoint"], expected)


def _require_weights(
    job: Job,
    ranks: list[dict[str, Any]],
    got: np.ndarray,
    expected: np.ndarray,
    who: str,
    local_ranks: list[int],
) -> None:
    same_everywhere = all(are_equal(seen["weights"], ranks[0]["weights"], "float32") for seen in ranks)
    if not same_everywhere:
        likely = "the ranks train different models: gradients are not exchanged, or the start is not the same"
    elif local_ranks == [0, 0]:
        likely = "the samples are dealt out by LOCAL_RANK: on two machines both ranks take the same half"
    elif len(ranks) == 1:
        likely = "the start differs from the job's seed, or the step from plain SGD on the batch mean"
    else:
        likely = (
            "the ranks agree with each other but not with one process: all take the same samples, some are dropped, "
            "or the loss is not rescaled (a mean of rank means)"
        )
    require_equal(
        job,
        got,
        expected,
        dtype="float32",
        what=f"weights at the end on {who}",
        likely=likely,
        look="for one batch of 3: which samples has each rank, and what is its loss divided by?",
    )


def _require_checkpoint(job: Job, found: dict[str, Any] | None, expected: np.ndarray) -> None:
    job.require(
        found is not None,
        expected="the file last.pt in the folder",
        got="none",
        likely="nobody saves, or under another name",
        look="`folder / 'last.pt'`",
    )
    assert found is not None
    job.require(
        bool(found["has_same_names"]),
        expected="a state dict with the names of the plain model, such as token_embedding.weight",
        got=str(found["first_name"]) or "no names",
        likely="the wrapper's state dict is saved: its names begin with `module.`, and no plain model can load it",
        look="`ddp.module.state_dict()`",
    )
    job.require(
        are_equal(found["row"], expected, "float32"),
        expected="the trained weights in last.pt",
        got="others",
        likely="saved before the training, or half written",
        look="save after the last step",
    )


def _require_own_dropout(job: Job) -> None:
    answer = job.learner().call(
        "watched_script",
        seconds=SECONDS,
        name="dropout",
        seed=job.seed() % 10**6,
        rows=ROWS,
        dropout=0.5,
        local_ranks=[0, 1],
    )
    states = [seen["random_state"] for seen in require_together(job, answer)]
    job.require(
        len(set(states)) == len(states),
        expected="another random state on each rank when the training begins",
        got="the same on all",
        likely="the seed is equal for dropout too: every rank draws the same masks, for other samples",
        look="one seed for the weights; then, after the model is made, another one that depends on the rank",
    )


def _require_launch(job: Job) -> None:
    arguments: dict[str, Any] = {"seed": job.seed() % 10**6, "rows": ROWS}
    answer = job.learner().call("launched_script", seconds=180.0, name="launched", **arguments)
    job.require(
        answer["status"] == 0 and len(answer["weights"]) == 2,
        expected="`torchrun --nproc-per-node 2 train.py FOLDER` to end with status 0 after `main` has run on both",
        got=f"status {answer['status']}: {answer['said'] or 'main did not run on both ranks'}",
        likely="the cell's last two lines are gone, or something works in a forked process alone",
        look="run it yourself with `launch(main, 2, folder)` and read the error of the first rank",
    )
    expected = job.twin(baselines.nothing(job.entry)).call("script_alone", **arguments)
    for rank, weights in enumerate(answer["weights"]):
        require_equal(
            job,
            weights,
            expected,
            dtype="float32",
            what=f"weights of rank {rank} under torchrun",
            likely="the script does something else when torchrun starts it",
            look="what differs there: environment, folder, arguments",
        )
    _require_checkpoint(job, answer["checkpoint"], expected)
    job.counts["processes_launched"] = 2
