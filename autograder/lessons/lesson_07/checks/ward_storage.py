"""The samples of run A of 7.4: they are stored in another process, behind a latency, and no worker is told of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.engine import Job, Worker

_VOCABULARY, _LONGEST, _NUM_CLASSES = 2000, 32, 5
_LATENCY_SECONDS = 0.002  # of one sample under the clock
_SAMPLES_PER_STEP = 32  # of a segment


def ward_runs(
    job: Job, worker: Worker, run: str, cases: list[dict[str, Any]], only: int | None = None
) -> list[dict[str, Any]]:
    """What a worker's run gives in each case, or in the only one; nothing is timed, so no sample is late.

    "fetched_again": samples of run A that were asked for once more.
    """
    store_cases(job, worker, run, cases)
    answers: list[dict[str, Any]] = worker.call("ward_runs", run=run, cases=cases, only=only)
    for number, answer in zip(range(len(cases)) if only is None else [only], answers, strict=True):
        asked = worker.storage.asked(number) if run == "A" else None
        answer["fetched_again"] = asked.num_asked - len(set(asked.order)) if asked else 0
    return answers


def store_cases(job: Job, worker: Worker, run: str, cases: list[dict[str, Any]]) -> None:
    """The samples of run A, for each case under its number."""
    if run == "A":
        for number, case in enumerate(cases):
            _store(
                job, worker, number, case["num_steps"] * case["argument"] + case["tail"], case["seed"], 0.0
            )


def store_segment(job: Job, run: str, worker: Worker, seed: int, num_steps: int) -> None:
    """The samples of a segment of run A, under their number, as the harness asks for them."""
    if run == "A":
        size = num_steps * _SAMPLES_PER_STEP
        _store(job, worker, size, size, seed, _LATENCY_SECONDS)


def _store(job: Job, worker: Worker, number: int, size: int, seed: int, seconds: float) -> None:
    """New samples, the same for all workers: the label of each, and from half as many ids to as many as may be."""
    rng = job.hidden(seed)
    lengths = rng.integers(_LONGEST // 2, _LONGEST + 1, size=size)
    labels = rng.integers(_NUM_CLASSES, size=size)
    ids = (rng.integers(3, _VOCABULARY, size=length) for length in lengths)
    samples = [np.array([label, *row]).tobytes() for label, row in zip(labels, ids, strict=True)]
    worker.storage.put(number, samples, seconds)
