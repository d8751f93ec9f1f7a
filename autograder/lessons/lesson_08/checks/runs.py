"""The check of 8.4: a run that can be repeated, and interrupted, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import require_same_parts

SIZE, MICRO_BATCH_SIZE, STEPS = 18, 4, 13
STEPS_PER_EPOCH = 5
STOPS = ([7], [STEPS_PER_EPOCH], [2, 9])


def check_run(job: Job) -> None:
    """8.4: equal seeds end with equal weights, in this process, in another, and after an interruption."""
    learner, seed = job.learner(), job.seed() % 2**30
    arguments: dict[str, Any] = {"seed": seed, "size": SIZE, "num_steps": STEPS, "dropout": 0.3}
    whole = _trained(job, learner, arguments, [], job.seed())
    _require_training(job, whole)
    _require_repeated(job, whole, _trained(job, learner, arguments, [], job.seed()), "a second run")
    plain = _trained(job, learner, arguments | {"dropout": 0.0}, [], job.seed())
    job.require(
        np.array_equal(plain["read"], whole["read"]),
        expected="the same order of samples with and without dropout",
        got="another order",
        likely="one generator shared by shuffling and dropout: a change of the model changes the data",
        look="draw the order of an epoch from a generator of its own, made from seed and epoch",
    )
    other = _trained(job, learner, arguments | {"seed": seed + 1}, [], job.seed())
    job.require(
        not np.array_equal(other["first"], whole["first"])
        and not np.array_equal(other["read"], whole["read"]),
        expected="other first weights and another order with another seed",
        got="the same",
        likely="a seed is written into the code: `seed` does not reach the model or the order",
        look="look for a number where `seed` should stand",
    )
    for stops in STOPS:
        _require_resumed(job, whole, _trained(job, learner, arguments, stops, job.seed()), stops)
    again = job.worker("again", job.source)
    _require_repeated(job, whole, _trained(job, again, arguments, [], job.seed()), "a run in another process")


def _trained(
    job: Job, worker: Any, arguments: dict[str, Any], stops: list[int], disturbance: int
) -> dict[str, Any]:
    answer: dict[str, Any] = worker.call("train_run", **arguments, stops=stops, disturbance=disturbance)
    job.require(
        "unsafe" not in answer,
        expected="a state that `torch.load(…, weights_only=True)` reads",
        got=str(answer.get("unsafe")),
        likely="objects in the state, such as a NumPy array or a generator: reading them could run code",
        look="tensors, numbers, texts, lists and dicts; `course_lib.training.reproducibility.rng_state` shows how",
    )
    return answer


def _require_training(job: Job, run: dict[str, Any]) -> None:
    read = run["read"]
    num_epochs, rest = divmod(STEPS, STEPS_PER_EPOCH)
    expected = num_epochs * SIZE + rest * MICRO_BATCH_SIZE
    epochs = [read[i * SIZE : (i + 1) * SIZE] for i in range(num_epochs)]
    job.require(
        len(read) == expected and all(np.array_equal(np.sort(epoch), np.arange(SIZE)) for epoch in epochs),
        expected=f"{STEPS} steps of {MICRO_BATCH_SIZE} samples, the last of each epoch of {SIZE % MICRO_BATCH_SIZE}: "
        f"{expected} readings, each sample once an epoch",
        got=f"{len(read)} readings, {len(np.unique(read[:SIZE]))} different ones in the first epoch",
        likely="samples are dropped, repeated, or read ahead of their step",
        look="read a sample when its step is due: what was read ahead has drawn its noise already",
    )
    job.require(
        not np.array_equal(epochs[0], epochs[1]) and not np.array_equal(epochs[0], np.arange(SIZE)),
        expected="a new random order each epoch",
        got="the same order in two epochs, or that of the data",
        likely="the order depends on the seed alone, not on the epoch",
        look="`np.random.default_rng([seed, epoch])`",
    )
    job.require(
        bool(np.isfinite(run["weights"]).all()) and not np.array_equal(run["weights"], run["first"]),
        expected="weights that training has changed",
        got="the first weights, or NaN",
        likely="no step is taken, or it works on another model than `self.model`",
        look="`optimizer.step()` on the parameters of `self.model`",
    )


_UNSEEDED = {
    "first": (
        "first weights",
        "seeding after the model is built: its weights came from wherever torch stood",
    ),
    "read": ("order of samples", "the order is drawn from a generator that the seed does not reach"),
    "noise": ("noise of the samples", "NumPy's or Python's seed is forgotten: augmentation draws from them"),
    "weights": ("final weights", "torch's generator is not where the seed puts it: dropout differs"),
}
_NOT_SAVED = {
    "read": (
        "samples in another order",
        "the position in the epoch is not saved: samples are repeated or skipped",
    ),
    "noise": (
        "other noise",
        "the states of NumPy's and Python's generators are not saved, or drawn from after",
    ),
    "weights": (
        "other weights",
        "optimizer or torch's generator is not saved: the next step or dropout differs",
    ),
}


def _require_repeated(job: Job, one: dict[str, Any], two: dict[str, Any], what: str) -> None:
    require_same_parts(
        job,
        two,
        one,
        _UNSEEDED,
        expected=f"{what} with equal seed to be equal to the bit",
        said="other WHAT",
        look="print the first place where two runs differ; what was drawn just before it?",
    )


def _require_resumed(job: Job, whole: dict[str, Any], resumed: dict[str, Any], stops: list[int]) -> None:
    require_same_parts(
        job,
        resumed,
        whole,
        _NOT_SAVED,
        expected=f"a run that was stopped after step {stops} and resumed to equal one that was not",
        said="WHAT after the interruption",
        look="what does the next step need that this process knows and the file does not?",
    )
