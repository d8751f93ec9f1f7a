"""What one pass over a loader of 1.5 has to yield, and the mistake that another yield shows."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.engine import Job


def require_pass(
    job: Job,
    answer: dict[str, Any],
    case: dict[str, int],
    expected: np.ndarray,
    before: np.ndarray | None,
    *,
    is_after_look: bool = False,
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
        not (rest and is_after_look),
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
