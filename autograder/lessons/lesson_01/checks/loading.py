"""The check of exercise 1.5: the loader."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.engine import Job, measure_speedup


def check_loader(job: Job) -> None:
    """1.5: every sample once and in order, pass after pass, at 2× the speed of fetching one after the other."""
    rng = job.rng
    rows = int(rng.integers(1, 6))
    many = int(rng.integers(9, 20))
    cases = [
        # A last batch of two or more: who leaves out a sample has not left out the batch.
        {"size": many * int(rng.integers(3, 5)) + int(rng.integers(2, 8)), "micro_batch_size": many},
        # An exact fit, of more samples than anybody fetches at the same time.
        {"size": rows * -(-int(rng.integers(60, 80)) // rows), "micro_batch_size": rows, "num_quick": rows},
        {"size": int(rng.integers(1, 4)), "micro_batch_size": 5},  # less than a batch
        {"size": 3, "micro_batch_size": 1},
    ]
    cases = [{"num_quick": 0} | case | {"mark": int(rng.integers(1, 10**6))} for case in cases]
    passes = [[number, job.seed()] for number in (0, 2, 3, 1, 0, 0, 2, 1)]
    together = 5  # the pass after it runs within it
    # Loader processes that are started afresh, as on macOS and Windows, each import torch first.
    looked_at = job.seed()
    answers = job.learner().call(
        "load_all", seconds=90.0, cases=cases, passes=passes, together=together, looked_at=looked_at
    )
    seen: dict[int, np.ndarray] = {}
    for place, ((number, seed), answer) in enumerate(zip(passes, answers, strict=True)):
        before = _stored(looked_at, cases[number]["size"]) if "num_looked" in answer else seen.get(number)
        if place == together:
            _require_undisturbed(job, answers[place : place + 2], passes[place : place + 2], cases)
        _require_pass(job, answer, cases[number], seed, before)
        seen[number] = np.concatenate(answer["ids"])
    _require_fetched_once(job, answers[3]["num_read"], cases[1]["size"])
    _require_ahead(job, answers[-1])
    _require_told(job, cases[0])
    measure_speedup(
        job,
        function="loader_segment",
        max_cores=4.0,  # loader processes may compute too; the sleep is what is to be hidden
        compare=lambda a, b: _require_same_sums(job, a, b),
        likely="the waits stand one after the other: nothing is fetched while something else is waited for",
        look="how many samples are on their way at the same moment?",
    )


def _require_undisturbed(
    job: Job, answers: list[dict[str, Any]], passes: list[list[int]], cases: list[dict[str, int]]
) -> None:
    """Each loader has gone through a whole pass alone, before these two were gone through at the same time."""
    is_right = [
        answer["type"] == "dict"
        and np.array_equal(np.concatenate(answer["ids"] or [[]]), _stored(seed, cases[number]["size"]))
        for (number, seed), answer in zip(passes, answers, strict=True)
    ]
    job.require(
        all(is_right),
        expected="whole passes of two loaders that are gone through at the same time",
        got="other samples in one of them",
        likely="the two disturb each other: what is under way belongs to the class or the cell, not to one pass",
        look="what is under way belongs to one pass: make it in `__iter__`",
    )


def _require_fetched_once(job: Job, num_read: int, size: int) -> None:
    job.require(
        num_read <= size,
        expected=f"{size} samples fetched in a first pass, each once",
        got=f"{num_read} times that one was fetched",
        likely="samples are fetched more often than they are handed out: storage has to be asked once for each",
        look="count the calls of `dataset[i]` in one pass",
    )


def _require_ahead(job: Job, answer: dict[str, Any]) -> None:
    job.require(
        not answer["is_all"],
        expected="a first batch while most samples of the pass are still to be fetched",
        got="all of them fetched before it",
        likely="the whole pass is fetched before its first batch is handed out, so nothing overlaps with training",
        look="hand out a batch as soon as its own samples are there",
    )
    job.require(
        answer["is_ahead"],
        expected="samples that are fetched while a training step runs",
        got="none in half a second, until the next batch is asked for",
        likely="a batch is fetched only when it is asked for, so that waits and training steps stand one after the "
        "other, however many samples of a batch are fetched at once",
        look="ask for the next batches before you hand out this one",
    )


def _require_told(job: Job, case: dict[str, int]) -> None:
    """A sample in the last batch cannot be read, one in the first, one between: its error comes out, and the next
    pass is whole."""
    seed, rows = job.seed(), case["micro_batch_size"]
    lost = [case["size"] - 1, int(job.rng.integers(rows)), int(job.rng.integers(rows, 2 * rows))]
    # In a worker of its own: torch takes long to end loader processes after an error, and these are not waited for.
    worker = job.worker("lost", job.source)
    answers = worker.call("load_lost", seconds=90.0, case=case, seed=seed, lost=lost)
    worker.kill()
    for answer in answers:
        _require_told_once(job, answer, case, seed)


def _require_told_once(job: Job, answer: dict[str, Any], case: dict[str, int], seed: int) -> None:
    told = answer["told"]
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
    job.require(
        not answer["trouble"],
        expected="a whole pass after one that an error ended: the sample can be read again",
        got=answer["trouble"],
        likely="an error leaves the loader unfit for the next pass: its pool is shut down, or what failed is kept",
        look="what is under way, and what fetches it, belongs to one pass: make it in `__iter__`",
    )
    _require_pass(job, answer["after"], case, seed, None)


def _stored(seed: int, size: int) -> np.ndarray:
    """The samples that this seed stores, as in the harness, but not by it."""
    return np.random.default_rng(seed).integers(3, 60, size=(size, 8))


def _require_pass(
    job: Job, answer: dict[str, Any], case: dict[str, int], seed: int, before: np.ndarray | None
) -> None:
    """One pass over a case; `before` are the ids of a pass before it, when other samples were stored."""
    size, rows = case["size"], case["micro_batch_size"]
    job.require(
        answer["type"] == "dict",
        expected="an iterable of the batches that collate_fn makes, which are dicts",
        got=f"a {answer['type']}",
        likely="samples are handed out as they are, or nothing is returned",
        look="what does `next(iter(loader))` look like?",
    )
    job.require(
        len(answer["ids"]) > 0 or before is None,
        expected="the same number of batches in the second pass",
        got="none",
        likely="a generator, which is used up after one pass",
        look="return an object with `__iter__`, such as a DataLoader",
    )
    expected = _stored(seed, size)
    ids = np.concatenate(answer["ids"]) if answer["ids"] else expected[:0]
    starts = range(rows, size, rows)
    rest = next(
        (
            start
            for start in starts
            if _is_of(ids, expected[start:], None if before is None else before[start:])
        ),
        0,
    )
    job.require(
        not (rest and answer.get("num_looked")),
        expected=f"{size} samples in a pass, after one that was broken off",
        got=f"all but the first {rest}",
        likely="the pass goes on where the one before it was broken off: queue and threads belong to the loader",
        look="what is under way belongs to one pass: make it in `__iter__`",
    )
    job.require(
        len(ids) == size,
        expected=f"{size} samples in a pass, in batches of {rows}",
        got=f"{len(ids)}",
        likely=_why_another_number(ids, expected, rows),
        look="count what comes out of an epoch whose last batch is short, and of one whose batches fit exactly",
    )
    job.require(
        np.array_equal(ids, expected),
        expected="the samples in the order of the dataset",
        got="another order" if _same_rows(ids, expected) else "other batches than are stored now",
        likely=_why_another_order(answer["ids"], expected, rows, before),
        look="fetch ahead, but hand out in order, and fetch again in each pass",
    )
    labels = np.concatenate(answer["labels"])
    job.require(
        np.array_equal(labels, expected.sum(axis=1) % 5),
        expected="each sample with its own label",
        got="other labels",
        likely="ids and labels are put together anew",
        look="hand the samples to collate_fn as the dataset gives them",
    )
    sizes = [len(batch) for batch in answer["ids"]]
    job.require(
        all(number == rows for number in sizes[:-1]) and sizes[-1] <= rows,
        expected=f"batches of {rows} samples, the last one of at most so many",
        got=f"batches of {', '.join(map(str, sizes[:6]))} …",
        likely="micro_batch_size is not used, or a batch other than the last is short",
        look="the second argument says how many samples make a batch",
    )
    job.require(
        all(mark == case["mark"] for mark in answer["marks"]),
        expected="batches that collate_fn has made",
        got="batches without what this collate_fn adds to them",
        likely="collate_fn is not used: batches are put together in another way",
        look="the third argument makes a batch of a list of samples",
    )


def _is_of(ids: np.ndarray, now: np.ndarray, before: np.ndarray | None) -> bool:
    """Whether each row is the one stored now at its place, or the one that was stored there before."""
    if len(ids) != len(now):
        return False
    is_now = (ids == now).all(axis=1)
    return bool((is_now if before is None else is_now | (ids == before).all(axis=1)).all())


def _same_rows(a: np.ndarray, b: np.ndarray) -> bool:
    return sorted(map(bytes, a)) == sorted(map(bytes, b))


def _why_another_number(ids: np.ndarray, expected: np.ndarray, rows: int) -> str:
    if len(ids) > len(expected):
        return "some samples come twice, such as those that fill up the last batch"
    if np.array_equal(ids, expected[: len(expected) - len(expected) % rows]):
        return "the tail is dropped: the last, shorter batch is missing"
    if np.array_equal(ids, expected[: len(ids)]):
        return "the pass ends too early: it lacks more, or less, than a last short batch"
    return "samples are lost on the way, and not the last ones"


def _why_another_order(
    batches: list[np.ndarray], expected: np.ndarray, rows: int, before: np.ndarray | None
) -> str:
    ids = np.concatenate(batches)
    if before is not None and np.array_equal(ids, before):
        return (
            "samples kept from the pass before: what is stored has changed since, and each pass fetches anew"
        )
    if before is not None and _is_of(ids, expected, before):
        return "some samples were fetched before this pass began, when others were stored"
    if not _same_rows(ids, expected):
        return "samples of another pass or place: each index is to be fetched once in each pass"
    wanted = [expected[start : start + rows] for start in range(0, len(expected), rows)]
    if len(batches) == len(wanted) and all(map(_same_rows, batches, wanted)):
        return "samples of a batch stand in the order in which they arrived"
    if {batch.tobytes() for batch in batches} == {batch.tobytes() for batch in wanted}:
        return "whole batches come in another order: handed out as they are ready, or shuffled"
    return "the loader shuffles the samples, or hands out whichever arrives first"


def _require_same_sums(job: Job, baseline: dict[str, Any], learner: dict[str, Any]) -> None:
    job.require(
        np.array_equal(baseline["sums"], learner["sums"]),
        expected="the same batches as without overlap",
        got="other batches",
        likely="with more data, samples are lost, repeated or reordered",
        look="compare with a plain loop over a few hundred samples",
    )
