"""The check of 8.1: every random number of a run follows from its seed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.engine import Job, Worker
from autograder.lessons.checking import may_hash_texts, require_same_parts
from autograder.lessons.lesson_08.checks.elsewhere import require_same_elsewhere
from autograder.lessons.lesson_08.checks.loaded import SOURCES, require_loaded, require_new_each_epoch

_LOOK = "who seeds each generator, in which process, and when?"


def check_seed_everything(job: Job) -> None:
    """8.1: equal seeds give equal order and noise, whatever dropout draws; other seeds, epochs and workers do not."""
    rng = job.rng
    micro_batch_size, num_workers = int(rng.integers(4, 8)), int(rng.integers(2, 4))
    asked: list[dict[str, Any]] = [
        {"size": 6 * micro_batch_size + 1, "settings": {"micro_batch_size": micro_batch_size}},
        {"seed": 0, "size": 32 * 2 + int(rng.choice([0, 7])), "settings": {}},
        {
            "size": 7 * (micro_batch_size - 1) + 2,
            "settings": {"micro_batch_size": micro_batch_size - 1, "num_workers": num_workers},
        },
    ]
    for case, further in zip(asked, ((2, 2**20), (1,), (2**20,)), strict=True):
        arguments = {"seed": job.seed() % 2**30, "num_epochs": 2} | case
        num_workers = case["settings"].get("num_workers", 0)
        disturbance = job.seed()
        first = _epochs(job, arguments, disturbance)
        again = _epochs(job, arguments | {"was_used": True}, job.seed())
        if arguments["seed"] == 0:  # another seed has passed already
            _require_zero(job, first, again)
        _require_seeded(job, first, again)
        _require_order(job, first, again, functools.partial(_epochs, job, arguments, disturbance))
        if num_workers:
            # Of four numbers in a row that are mixed with 0 to 3 two become equal in every epoch; of two in some.
            four = {"size": 8, "settings": {"micro_batch_size": 1, "num_workers": 4}, "num_epochs": 1}
            _require_workers_apart(job, _epochs(job, arguments | four, job.seed())["epochs"])
            _require_workers_apart(job, first["epochs"])
        _require_noise(job, first["epochs"], again["epochs"], num_workers)
        require_new_each_epoch(job, first["epochs"])
        for more in further:
            other = _epochs(job, arguments | {"seed": arguments["seed"] + more}, disturbance)
            _require_another(job, first, other, num_workers)
        if num_workers:
            _require_own(job, first, _epochs(job, arguments | {"beside": True}, job.seed()))
    arguments = {"seed": job.seed() % 2**30, "num_epochs": 6, "breaks_off": True} | asked[0]
    require_new_each_epoch(job, _epochs(job, arguments, job.seed())["epochs"])
    one_each = {"micro_batch_size": 1, "num_workers": 1}
    arguments = {"seed": job.seed() % 2**30, "size": 30, "settings": one_each, "num_epochs": 2}
    first, again = _epochs(job, arguments, job.seed()), _epochs(job, arguments, job.seed())
    _require_noise(job, first["epochs"], again["epochs"], 1)
    require_new_each_epoch(job, first["epochs"])
    # Fewer samples than a batch may hold, and more than it holds by default.
    all_at_once = {"size": 50, "settings": {"micro_batch_size": 64}, "num_epochs": 1}
    _epochs(job, {"seed": job.seed() % 2**30} | all_at_once, job.seed())
    if may_hash_texts(job.source):
        elsewhere = job.learner().call(
            "seeded_elsewhere", source=job.source, entry=job.entry, seed=job.seed() % 2**30, seconds=60.0
        )
        require_same_elsewhere(
            job,
            elsewhere,
            what="draws, and the same order",
            likely="a seed comes from the `hash()` of a text, or from the order of a set: both are new each time "
            "Python starts",
        )


def _epochs(
    job: Job, arguments: dict[str, Any], disturbance: int, worker: Worker | None = None
) -> dict[str, Any]:
    worker = worker or job.learner()
    answer: dict[str, Any] = worker.call("seeded_epochs", **arguments, disturbance=disturbance)
    require_loaded(job, answer, arguments["size"], arguments["settings"])
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


def _require_zero(job: Job, first: dict[str, Any], again: dict[str, Any]) -> None:
    of_process = list(SOURCES.values())[:3]
    same_noise = all(
        np.array_equal(a[:, of_process], b[:, of_process])
        for a, b in zip(first["epochs"], again["epochs"], strict=True)
    )
    job.require(
        first["drawn"] == again["drawn"] and _same_order(first, again) and same_noise,
        expected="equal draws, order and noise after a seed of 0 as after any other",
        got="others",
        likely="a seed of 0 is taken for none: to Python 0 is as good as False",
        look="no `if seed:` and no `seed or …`: 0 is a seed",
    )


def _same_order(one: dict[str, Any], two: dict[str, Any]) -> bool:
    return all(np.array_equal(a[:, 0], b[:, 0]) for a, b in zip(one["epochs"], two["epochs"], strict=True))


def _require_order(
    job: Job, first: dict[str, Any], again: dict[str, Any], repeat: Callable[..., dict[str, Any]]
) -> None:
    if _same_order(first, again):
        return
    job.require(
        not _same_order(first, repeat()),
        expected="the same order of samples, however many numbers dropout draws beside it",
        got="another order when dropout draws more",
        likely="one generator shared by shuffling and dropout: torch's global one",
        look="give the loader a generator of its own: `DataLoader(generator=…)`",
    )
    alone, anew = (repeat(worker=job.worker(name, job.source)) for name in ("alone", "anew"))
    job.require(
        not _same_order(alone, anew),
        expected="the same order of samples after the same seed, whatever loaders there were before",
        got="another order than the first loader of this process had",
        likely="what the loaders before have counted or drawn is kept: in the class, or in the module",
        look="what counts epochs belongs to one loader: an attribute of the object, made in the call",
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
    for source, column in list(SOURCES.items())[: 4 if num_workers else 3]:
        job.require(
            all(np.array_equal(a[:, column], b[:, column]) for a, b in zip(first, again, strict=True)),
            expected=f"samples that draw the same numbers from {source} after the same seed ({num_workers} workers)",
            got="other numbers",
            likely="the workers' seeds do not follow from yours, or were forgotten"
            if num_workers
            else "without workers no `worker_init_fn` runs: nobody seeds the data set of this process, or only the "
            "first time",
            look=_LOOK,
        )


def _require_workers_apart(job: Job, epochs: list[np.ndarray]) -> None:
    for epoch in epochs:
        for source, column in SOURCES.items():
            num_different = len(np.unique(epoch[:, column]))
            job.require(
                num_different == len(epoch),
                expected=f"{len(epoch)} samples with noise of their own from {source}",
                got=f"{num_different} different values",
                likely="worker seed forgotten, or one for them all: the workers share a seed, or each has a copy of "
                "one generator, and draws the same numbers"
                if _are_alike(epoch, column)
                else "two of the workers share a seed: `info.seed` holds the worker's number already, and mixing it in "
                "again, or cutting a part off, makes two seeds one",
                look="`worker_init_fn` runs once in each worker; take `get_worker_info().seed` as it is",
            )


def _are_alike(epoch: np.ndarray, column: int) -> bool:
    """Whether all workers begin with the same number."""
    return len({epoch[epoch[:, 1] == worker][0, column] for worker in np.unique(epoch[:, 1])}) == 1


def _require_another(job: Job, first: dict[str, Any], other: dict[str, Any], num_workers: int) -> None:
    one, two = first["epochs"][0], other["epochs"][0]
    equal = [
        f"draws of {name[:-2]}" for name in first["drawn"] if first["drawn"][name] == other["drawn"][name]
    ]
    if np.array_equal(one[:, 0], two[:, 0]):
        equal.append("order")
    equal += [
        f"noise from {source}"
        for source, column in SOURCES.items()
        if np.intersect1d(one[:, column], two[:, column]).size
    ]
    job.require(
        not equal,
        expected=f"another run with another seed ({num_workers} workers)",
        got=f"the same {', '.join(equal)}",
        likely="a seed is written into the code: `seed` does not reach every generator",
        look="look for a 0 or a 42 where `seed` should stand",
    )


def _require_own(job: Job, alone: dict[str, Any], beside: dict[str, Any]) -> None:
    noise = SOURCES["`dataset.rng`"]
    is_same = all(
        np.array_equal(a[:, [0, noise]], b[:, [0, noise]])
        for a, b in zip(alone["epochs"], beside["epochs"], strict=True)
    )
    job.require(
        is_same,
        expected="the same order, and the same noise from `dataset.rng`, when there is another loader beside it",
        got="another order" if not _same_order(alone, beside) else "other noise",
        likely="two loaders share one generator, or one seed: it was made outside the function, or is kept from call "
        "to call",
        look="make the generators of a loader in the call that makes the loader; a worker's seed is `info.seed`",
    )
