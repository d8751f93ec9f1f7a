"""The check of exercise 1.5: the loader."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from autograder.engine import Job, Worker, measure_speedup
from autograder.lessons.lesson_01.checks.one_pass import require_pass

_PASSES = ((0,), (2,), (3,), (1,), (0,), (0, 2), (1,))
"""Which loaders are gone through, pass after pass; where there are two, the second in the midst of the first."""
_LOOKED_AT = 1  # the case with more samples than anybody fetches at the same time
_SECONDS = 0.0005  # that a sample takes to arrive
_QUICK, _SOON, _LATE = 0.0005, 0.015, 0.15
"""And where somebody looks on: one of the first batch, others, which are then on their way, and the last one."""
_SEGMENT_SECONDS, _SEGMENT_SAMPLES = 0.004, 32  # and under the clock; samples of a step


@dataclass(frozen=True)
class _Look:
    """What happened while somebody held a batch and asked for no other.

    Attributes:
        is_ahead: something was fetched.
        is_all: everything was there already.
    """

    is_ahead: bool
    is_all: bool


def check_loader(job: Job) -> None:
    """1.5: every sample once and in order, pass after pass, at 2× the speed of fetching one after the other."""
    job.serves = True
    rng = job.rng
    rows = int(rng.integers(1, 6))
    many = int(rng.integers(9, 20))
    cases = [
        # A last batch of two or more: who leaves out a sample has not left out the batch.
        {"size": many * int(rng.integers(3, 5)) + int(rng.integers(2, 8)), "micro_batch_size": many},
        # An exact fit, of more samples than anybody fetches at the same time.
        {"size": rows * -(-int(rng.integers(60, 80)) // rows), "micro_batch_size": rows},
        {"size": int(rng.integers(1, 4)), "micro_batch_size": 5},  # less than a batch
        {"size": 3, "micro_batch_size": 1},
    ]
    cases = [case | {"mark": int(rng.integers(1, 10**6))} for case in cases]
    at_once = _require_passes(job, cases)
    _require_told(job, cases[0])
    job.counts["samples on their way at once"] = at_once
    measure_speedup(
        job,
        function="loader_segment",
        prepare=partial(_store_segment, job),
        max_cores=4.0,  # loader processes may compute too; the wait is what is to be hidden
        compare=lambda a, b: _require_same_sums(job, a, b),
        likely="the waits stand one after the other: nothing is fetched while something else is waited for"
        if at_once < 2
        else f"never more than {at_once} samples were on their way at once; or batches go from process to process, or "
        "loaders start anew, for longer than that saves",
        look="how many samples are on their way at the same moment?",
    )


def _require_passes(job: Job, cases: list[dict[str, int]]) -> int:
    """All loaders are there until their last pass, and the samples behind each change before each of its passes.

    Returns how many samples were on their way at once, at most.
    """
    worker = job.learner()
    stored = {number: _drawn(job, case) for number, case in enumerate(cases)}
    for number, ids in stored.items():
        worker.storage.put(number, _as_stored(ids), _SECONDS)
    # Loader processes that are started afresh, as on macOS and Windows, each import torch first: hence the seconds.
    worker.call("make_loaders", seconds=90.0, cases=cases)
    seen: dict[int, np.ndarray] = {}
    num_asked: dict[int, int] = {}
    at_once = 0
    look = None
    for place, numbers in enumerate(_PASSES):
        later = {number for some in _PASSES[place + 1 :] for number in some}
        if not later:
            seen[_LOOKED_AT] = _drawn(job, cases[_LOOKED_AT])
            _store(worker, _LOOKED_AT, cases, seen[_LOOKED_AT])
            look = _look(worker, cases[_LOOKED_AT]["size"])
        for number in numbers:
            if number in seen:  # else those that were there when the loader was made
                stored[number] = _drawn(job, cases[number])
            _store(worker, number, cases, stored[number])
        last = [number for number in numbers if number not in later]
        answers = worker.call("pass_over", seconds=90.0, numbers=numbers, last=last)
        if len(numbers) > 1:
            _require_undisturbed(job, answers, [stored[number] for number in numbers])
        for number, answer in zip(numbers, answers, strict=True):
            before = seen.get(number)
            require_pass(job, answer, cases[number], stored[number], before, is_after_look=not later)
            asked = worker.storage.asked(number)
            num_asked.setdefault(number, asked.num_asked)
            at_once = max(at_once, asked.most_at_once)
            seen[number] = stored[number]
    for number, case in enumerate(cases):
        _require_fetched_once(job, num_asked[number], case["size"])
    assert look
    _require_ahead(job, look)
    return at_once


def _drawn(job: Job, case: dict[str, int]) -> np.ndarray:
    """Ids of new samples: int64 [size, 8]. Of them the worker's storage is told, and not the worker."""
    return job.rng.integers(3, 60, size=(case["size"], 8))


def _as_stored(ids: np.ndarray) -> list[bytes]:
    return [row.tobytes() for row in ids]


def _store(worker: Worker, number: int, cases: list[dict[str, int]], ids: np.ndarray) -> None:
    rows, others = cases[number]["micro_batch_size"], len(ids) - cases[number]["micro_batch_size"] - 1
    seconds = [_QUICK] * rows + [_SOON] * others + [_LATE] if number == _LOOKED_AT else _SECONDS
    worker.storage.put(number, _as_stored(ids), seconds)


def _look(worker: Worker, size: int) -> _Look:
    """Take a batch or some, and wait after each as a training step does; the rest of the pass is never asked for.

    On a busy machine it may happen once that everything is there.
    """
    look = _Look(False, False)
    for _ in range(3):
        look = _look_once(worker, size)
        if not look.is_all:
            break
    return look


def _look_once(worker: Worker, size: int) -> _Look:
    def num_answered() -> int:
        return worker.storage.asked(_LOOKED_AT).num_answered

    look, start = _Look(False, False), num_answered()
    worker.call("begin_pass", number=_LOOKED_AT)
    for num_looked in range(5):
        if not worker.call("next_batch", number=_LOOKED_AT):
            break
        # By the storage's count alone: the worker has nothing to say while nothing is asked of it.
        before, until = num_answered(), time.monotonic() + 0.5
        look = _Look(False, num_looked == 0 and before - start >= size)
        while not look.is_ahead and not look.is_all and time.monotonic() < until:
            time.sleep(0.002)
            look = _Look(num_answered() > before, False)
        if look.is_ahead or look.is_all:
            break
    worker.call("break_off", number=_LOOKED_AT)
    return look


def _require_undisturbed(job: Job, answers: list[dict[str, Any]], stored: list[np.ndarray]) -> None:
    """Each loader has gone through a whole pass alone, before these two were gone through at the same time."""
    is_right = [
        answer["type"] == "dict" and np.array_equal(np.concatenate(answer["ids"] or [[]]), ids)
        for answer, ids in zip(answers, stored, strict=True)
    ]
    job.require(
        all(is_right),
        expected="whole passes of two loaders that are gone through at the same time",
        got="other samples in one of them",
        likely="the two disturb each other: what is under way belongs to the class or the cell, not to one pass",
        look="what is under way belongs to one pass: make it in `__iter__`",
    )


def _require_fetched_once(job: Job, num_asked: int, size: int) -> None:
    job.require(
        num_asked <= size,
        expected=f"{size} samples fetched in a first pass, each once",
        got=f"{num_asked} times that one was fetched",
        likely="samples are fetched more often than they are handed out: storage has to be asked once for each",
        look="count the calls of `dataset[i]` in one pass",
    )


def _require_ahead(job: Job, look: _Look) -> None:
    job.require(
        not look.is_all,
        expected="a first batch while most samples of the pass are still to be fetched",
        got="all of them fetched before it",
        likely="the whole pass is fetched before its first batch is handed out, so nothing overlaps with training",
        look="hand out a batch as soon as its own samples are there",
    )
    job.require(
        look.is_ahead,
        expected="samples that are fetched while a training step runs",
        got="none in half a second, until the next batch is asked for",
        likely="a batch is fetched only when it is asked for, so that waits and training steps stand one after the "
        "other, however many samples of a batch are fetched at once",
        look="ask for the next batches before you hand out this one",
    )


def _require_told(job: Job, case: dict[str, int]) -> None:
    """A sample in the last batch cannot be read, one in the first, one between: its error comes out, and the next
    pass is whole."""
    rows, ids = case["micro_batch_size"], _drawn(job, case)
    lost = [case["size"] - 1, int(job.rng.integers(rows)), int(job.rng.integers(rows, 2 * rows))]
    # In a worker of its own: torch takes long to end loader processes after an error, and these are not waited for.
    worker = job.worker("lost", job.source)
    worker.storage.put(0, _as_stored(ids), _SECONDS)
    worker.call("make_loaders", seconds=90.0, cases=[case])
    worker.call("pass_over", seconds=90.0, numbers=[0], last=[])
    for index in lost:
        worker.storage.put(0, _as_stored(ids), _SECONDS, lost=[index])
        _require_error(job, worker.call("pass_to_error", seconds=90.0, number=0))
        worker.storage.put(0, _as_stored(ids), _SECONDS)
        _require_whole_again(job, worker.call("pass_after_error", seconds=90.0, number=0), case, ids)
    worker.kill()


def _require_error(job: Job, told: str) -> None:
    job.require(
        told == "told",
        expected="the error of a sample that cannot be read",
        got={
            "nothing": "a pass that ends as if nothing were missing",
            "never ends": "a pass that waits for ever",
        }.get(told, told),
        likely="the thread that fetches ends by the error, and the pass goes on waiting for it"
        if told == "never ends"
        else "an error is caught on the way, as IndexError at the end of a list is, and its sample left out or read "
        "again: nobody learns of it",
        look="`future.result()` raises what its thread raised; what a queue hands on may be an error too",
    )


def _require_whole_again(job: Job, answer: dict[str, Any], case: dict[str, int], ids: np.ndarray) -> None:
    job.require(
        not answer["trouble"],
        expected="a whole pass after one that an error ended: the sample can be read again",
        got=answer["trouble"],
        likely="an error leaves the loader unfit for the next pass: its pool is shut down, or what failed is kept",
        look="what is under way, and what fetches it, belongs to one pass: make it in `__iter__`",
    )
    require_pass(job, answer, case, ids, None)


def _store_segment(job: Job, worker: Worker, seed: int, num_steps: int) -> None:
    """The samples of a segment, the same for both sides, under their number, as the harness asks for them."""
    size = num_steps * _SEGMENT_SAMPLES
    ids = job.hidden(seed).integers(3, 60, size=(size, 8))
    worker.storage.put(size, _as_stored(ids), _SEGMENT_SECONDS)


def _require_same_sums(job: Job, baseline: dict[str, Any], learner: dict[str, Any]) -> None:
    job.require(
        np.array_equal(baseline["sums"], learner["sums"]),
        expected="the same batches as without overlap",
        got="other batches",
        likely="with more data, samples are lost, repeated or reordered",
        look="compare with a plain loop over a few hundred samples",
    )
