"""The check of 8.1: every random number of a run follows from its seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import require_each_once, require_same_parts

SIZE = 40
SOURCES = ("`dataset.rng`", "NumPy", "Python's random", "torch")


def check_seed_everything(job: Job) -> None:
    """8.1: equal seeds give equal order and noise, whatever dropout draws; other seeds, epochs and workers do not."""
    arguments: dict[str, Any] = {"seed": job.seed() % 2**30, "size": SIZE}
    for num_workers in (0, 2):
        arguments["num_workers"] = num_workers
        disturbance, other = job.seed(), job.seed()
        first = _epochs(job, arguments, disturbance)
        again = _epochs(job, arguments, other)
        _require_seeded(job, first, again)
        _require_order(job, first, again, lambda d=disturbance: _epochs(job, arguments, d))
        if num_workers:
            _require_workers_apart(job, first["epochs"])
        _require_noise(job, first["epochs"], again["epochs"], num_workers)
        _require_new_noise(job, first["epochs"])
    _require_another(job, first, _epochs(job, arguments | {"seed": arguments["seed"] + 1}, disturbance))


def _epochs(job: Job, arguments: dict[str, Any], disturbance: int) -> dict[str, Any]:
    answer = job.learner().call("seeded_epochs", **arguments, disturbance=disturbance)
    for epoch in answer["epochs"]:
        require_each_once(
            job,
            epoch[:, 0],
            range(SIZE),
            expected=f"a loader that gives each of {SIZE} samples once an epoch, and can be iterated again",
            likely="samples are dropped or repeated, or the loader is an iterator that is used up",
            look="return the `DataLoader` itself, without `drop_last`",
        )
    return answer


def _require_seeded(job: Job, first: dict[str, Any], again: dict[str, Any]) -> None:
    require_same_parts(
        job,
        again["drawn"],
        first["drawn"],
        {
            name: (name, f"{name[:-2]} is not seeded: each library has a generator of its own")
            for name in first["drawn"]
        },
        expected="WHAT generator to give the same numbers after the same seed",
        said="other numbers",
        look="list every library that can draw a number in your run, and seed each",
    )


def _require_order(job: Job, first: dict[str, Any], again: dict[str, Any], repeat: Any) -> None:
    one, two = first["epochs"][0][:, 0], first["epochs"][1][:, 0]
    job.require(
        not np.array_equal(one, np.sort(one)) and not np.array_equal(one, two),
        expected="a shuffled order, and another one in the next epoch",
        got="the order of the data set"
        if np.array_equal(one, np.sort(one))
        else "the same order in both epochs",
        likely="shuffling is off, or its generator starts anew each epoch",
        look="`shuffle=True`; a generator that is made once goes on by itself",
    )
    same = [np.array_equal(a[:, 0], b[:, 0]) for a, b in zip(first["epochs"], again["epochs"], strict=True)]
    if not all(same):
        repeated = [
            np.array_equal(a[:, 0], b[:, 0]) for a, b in zip(first["epochs"], repeat()["epochs"], strict=True)
        ]
        job.require(
            not all(repeated),
            expected="the same order of samples, however many numbers dropout draws beside it",
            got="another order when dropout draws more",
            likely="one generator shared by shuffling and dropout: torch's global one",
            look="give the loader a generator of its own: `DataLoader(generator=…)`",
        )
        job.require(
            False,
            expected="the same order of samples after the same seed",
            got="another order",
            likely="the loader's generator is not seeded, or seeded from the clock or the system",
            look="`torch.Generator().manual_seed(seed)`",
        )


def _require_noise(job: Job, first: list[np.ndarray], again: list[np.ndarray], num_workers: int) -> None:
    # Without workers, samples draw from this process's torch, where dropout draws too: nothing is promised there.
    for column in range(1, 5 if num_workers else 4):
        source = SOURCES[column - 1]
        job.require(
            all(np.array_equal(a[:, column], b[:, column]) for a, b in zip(first, again, strict=True)),
            expected=f"samples that draw the same numbers from {source} after the same seed ({num_workers} workers)",
            got="other numbers",
            likely="the workers' seeds do not follow from yours, or were forgotten"
            if num_workers
            else "without workers no `worker_init_fn` runs: nobody seeds the data set of this process",
            look="who seeds each generator, in which process, and when?",
        )


def _require_workers_apart(job: Job, epochs: list[np.ndarray]) -> None:
    for epoch in epochs:
        for column, source in enumerate(SOURCES, start=1):
            num_different = len(np.unique(epoch[:, column]))
            job.require(
                num_different == SIZE,
                expected=f"{SIZE} samples with noise of their own from {source}",
                got=f"{num_different} different values",
                likely="worker seed forgotten: each worker has a copy of one generator, and draws the same numbers",
                look="`worker_init_fn` runs once in each worker; `torch.utils.data.get_worker_info()` knows its seed",
            )


def _require_new_noise(job: Job, epochs: list[np.ndarray]) -> None:
    for column, source in enumerate(SOURCES, start=1):
        num_repeated = len(np.intersect1d(epochs[0][:, column], epochs[1][:, column]))
        job.require(
            num_repeated == 0,
            expected=f"new noise from {source} in the second epoch",
            got=f"{num_repeated} of {SIZE} values from the first epoch again",
            likely="the workers are seeded with the same number each epoch: `seed + worker_id` does not know the epoch",
            look="torch gives each worker a seed that is new in each epoch: `get_worker_info().seed`",
        )


def _require_another(job: Job, first: dict[str, Any], other: dict[str, Any]) -> None:
    differs = {
        "what is drawn after seeding": first["drawn"] != other["drawn"],
        "the order": not np.array_equal(first["epochs"][0][:, 0], other["epochs"][0][:, 0]),
        "the noise of the samples": not np.intersect1d(
            first["epochs"][0][:, 1], other["epochs"][0][:, 1]
        ).size,
    }
    equal = [name for name, is_different in differs.items() if not is_different]
    job.require(
        not equal,
        expected="another run with another seed",
        got=f"the same: {', '.join(equal)}",
        likely="a seed is written into the code: `seed` does not reach every generator",
        look="look for a 0 or a 42 where `seed` should stand",
    )
