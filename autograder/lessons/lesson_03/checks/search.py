"""The check of exercise 3.2: how many rows fit."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.lesson_03 import baselines
from autograder.lessons.lesson_03.checks.searches import (
    Limits,
    any_searches,
    failing_searches,
    far_searches,
    telling_searches,
    tight_searches,
)

MAX_TRIES = 300  # as in the harness


def check_largest_micro_batch_size(job: Job) -> None:
    """3.2: exactly the largest size that fits, found in few steps, none of them far too large."""
    _require_real_steps(job)
    rng = job.rng
    searches = [*telling_searches(rng), *failing_searches(rng), *tight_searches(rng)]
    searches += [*any_searches(rng), *far_searches(rng)]
    peaks, limits = [one.peaks for one in searches], [one.limits for one in searches]
    answers = job.learner().call("searched_all", peaks=peaks, limits=limits)
    for answer, one in zip(answers, searches, strict=True):
        _require_search(job, answer, one.limits, one.fits)
        if answer["ended"] != "error":
            _require_largest(job, answer, one.limits, one.fits, one.where, int(one.peaks[1]))


def _require_real_steps(job: Job) -> None:
    """A search with steps of a real model, whose peaks another process has measured before."""
    rng, max_size, fits = job.rng, 256, int(job.rng.integers(24, 40))
    step = {"seed": job.seed(), "d_model": 4 * int(rng.integers(3, 7)), "width": int(rng.integers(8, 16))}
    trusted = job.worker("trusted", baselines.SEARCH)
    one, last, beyond = map(int, trusted.call("step_peaks", rows=[1, fits, fits + 1], **step))
    limits = {
        "budget_bytes": int(rng.integers(last + 1, beyond)),
        "max_size": max_size,
        "most_rows": 10 * max_size,
    }
    answer = job.learner().call("searched_once", step=step, **limits)
    _require_search(job, answer, limits, fits)
    _require_largest(job, answer, limits, fits, "between", one)
    job.counts |= {
        "budget_bytes": limits["budget_bytes"],
        "peak_bytes": last,
        "steps_tried": len(answer["tried"]),
    }


def _require_search(job: Job, answer: dict[str, Any], limits: Limits, fits: int) -> None:
    tried, ended, max_size = answer["tried"], answer["ended"], limits["max_size"]
    job.require(
        bool(tried),
        expected="sizes that are tried",
        got=f"{answer['answer']:.0f}, and no step",
        likely="an answer is remembered from another call, where another model ran; or it is read off the limits alone",
        look="from one call to the next a step may take more, also where `try_step` and the budget are the same",
    )
    job.require(
        ended != "out of memory",
        expected="a search that goes on when a size is too large for the device",
        got="its OutOfMemoryError, out of your function",
        likely="the out-of-memory error is not caught, or not at every try, or known by its words alone; it says the "
        "same as a peak above the budget: does not fit",
        look="`try` … `except torch.OutOfMemoryError`",
    )
    job.require(
        ended != "another error",
        expected="the error of the step itself, out of your function",
        got="another error, raised in its place",
        likely="an `except` takes every error and raises one of its own: who waits for the step's, such as for "
        "KeyboardInterrupt, waits in vain",
        look="`except torch.OutOfMemoryError` and nothing else",
    )
    job.require(
        ended != "other words",
        expected="the error of the step itself, as it was raised",
        got="the same one with other words, notes or cause",
        likely="something is added to the error on its way out: who looks for its words finds others",
        look="`except torch.OutOfMemoryError` and nothing else",
    )
    fails_at = limits.get("fails_at", 0)
    job.require(
        not 0 < fails_at <= len(tried) or ended == "error",
        expected="the error of a step that has nothing to do with memory, out of your function",
        got="a size, as though the step had run",
        likely="an `except` takes other errors than `torch.OutOfMemoryError` for a full device: what is wrong with the "
        "model, nobody hears",
        look="`except torch.OutOfMemoryError` and nothing else",
    )
    last = tried[-1] if tried else 1.0
    job.require(
        1 <= last <= max_size and not answer["odd_size"],
        expected=f"whole sizes from 1 to {max_size}",
        got=f"{last:g}, a {answer['odd_size']}" if answer["odd_size"] else f"{last:g}",
        likely="a size above `max_size` is tried: doubling or a guess runs past it"
        if last > max_size
        else "a size that is no int, as a division with `/` gives: a step cannot take its rows"
        if answer["odd_size"]
        else "fewer rows than 1 are tried: what lies below 1 is known without a step",
        look="`min(2 * size, max_size)`" if last > max_size else "print each size before it is tried",
    )
    most = math.floor(2 * math.log2(max_size) + 3 + 1e-9)
    job.require(
        len(tried) <= most,
        expected=f"at most {most} steps tried for up to {max_size} rows",
        got=f"{min(len(tried), MAX_TRIES)}" + (" and no end" if ended else ""),
        likely=_why_so_many(tried, fits),
        look="double until one does not fit, then halve the gap",
    )
    largest = int(max(tried, default=0))
    job.require(
        largest <= max(1, 2 * fits),
        expected=f"no step of more than twice the rows that fit: {max(1, 2 * fits)}",
        got=f"one of {largest}",
        likely="the search starts at the top: on a real machine such a step takes the whole device, or all of swap"
        if largest == tried[0] and 4 * largest >= max_size
        else "the search begins with more than one row, and where not even one fits, that is too much"
        if largest == tried[0]
        else "the sizes grow by more than a doubling from what is known to fit"
        if largest > 2 * max(tried[: tried.index(largest)], default=0)
        else "a size is taken for one that fits and is too large: the first that does not fit, or more than the budget",
        look="come from below",
    )


def _why_so_many(tried: list[float], fits: int) -> str:
    steps = np.abs(np.diff(tried))
    if len(set(tried)) < len(tried):
        return "a size is tried again whose peak is known: every try costs a step"
    if 4 * (steps == 1).sum() > 3 * len(steps):
        return "one size after the other: a search that grows with the answer"
    climb = list(itertools.takewhile(lambda size: size <= fits, tried))
    if any(1 < after / before < 2 for before, after in itertools.pairwise(climb[:-1])):
        return "the sizes grow by less than a doubling as long as they fit"
    return "the gap between what fits and what does not is not halved by each try"


def _require_largest(
    job: Job, answer: dict[str, Any], limits: Limits, fits: int, where: str, one_row: int
) -> None:
    got, tried, max_size = answer["answer"], answer["tried"], limits["max_size"]
    job.require(
        answer["kind"] == "number",
        expected="a number of rows",
        got=f"a {answer['kind']}",
        likely="the function returns nothing on one of its ways out, or something else than the size",
        look="follow each `return`, also where nothing fits",
    )
    are_powers = all(math.log2(size).is_integer() for size in tried)
    likely = "the search ends too early, or compares the wrong way round"
    if fits == 0:
        likely = "one row does not fit either, and the answer to that is 0"
    elif got > fits and got in tried:
        likely = (
            "a size is returned that was tried and is too large: the first that does not fit in place of the last that "
            "does, or more than the budget is taken for enough"
        )
    elif got > fits:
        likely = "the answer is computed from other sizes and never tried itself"
    elif got == min(limits["budget_bytes"] // one_row, max_size):
        likely = (
            "memory taken as proportional to the rows: weights' gradients and the optimizer's state are a part that "
            "does not grow"
        )
    elif fits == max_size and got == max_size - 1 and max_size not in tried:
        likely = "`max_size` itself is never tried, and it fits"
    elif where == "exact" and got == fits - 1 and fits in tried:
        likely = "a peak of exactly the budget is taken for too much: `<` where `<=` is meant"
    elif where == "device" and (are_powers or (fits not in tried and tried[-1] > fits)):
        likely = "the search ends at the out-of-memory error: the gap below it is never looked at"
    elif are_powers:
        likely = "doubling alone: only powers of two are ever tried, and up to half of the memory stays free"
    elif got not in tried:
        likely = "the answer is computed from other sizes and never tried itself"
    elif fits not in tried:
        likely = "sizes that fit are never tried: ruled out, as by a line through peaks, or cut off by a count of tries"
    job.require(
        got == fits,
        expected=f"{fits}, the most rows of up to {max_size} that fit",
        got=f"{got:.0f}",
        likely=likely,
        look="print each size tried with its peak and the budget",
    )
