"""Harness of 3.2: how many rows fit."""

from __future__ import annotations

import functools
from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import learner, plain_step, small_model
from autograder.lessons.lesson_03.harness.memory import ON_CPU, random_batch
from course_lib.measuring import peak_bytes

MAX_TRIES = 300  # a search that never ends
ERRORS: tuple[tuple[type[BaseException], str], ...] = (
    (RuntimeError, "CUDA error: an illegal memory access was encountered"),
    (ValueError, "the step of this model is broken"),
    (RuntimeError, "a worker of the loader ran out of memory on the host"),
    (MemoryError, ""),
    (IndexError, "index out of range in self"),
    (KeyboardInterrupt, ""),
    (KeyError, "labels"),
    (SystemExit, ""),
    (AssertionError, "out of memory"),
    (TypeError, "step() takes no rows"),
    (ZeroDivisionError, "division by zero"),
    (OverflowError, "int too large to convert to float"),
    (OSError, "Cannot allocate memory"),
    (RecursionError, "maximum recursion depth exceeded"),
    (StopAsyncIteration, ""),
    (GeneratorExit, ""),
)


class SearchEnded(BaseException):
    """Nothing that a solution catches."""


def step_peak(rows: int, seed: int, d_model: int, width: int) -> int:
    """The peak of training a fresh model with AdamW: activations, gradients, the optimizer's state."""
    model = small_model(seed, d_model=d_model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batch = random_batch(seed, rows, width)
    # Two steps: the activations of the second meet the state that the first one made.
    return peak_bytes(lambda: [plain_step(model, optimizer, batch) for _ in range(2)], ON_CPU)


def step_peaks(rows: list[int], **step: int) -> list[int]:
    return [step_peak(number, **step) for number in rows]


def searched_once(step: dict[str, int], **limits: int) -> dict[str, Any]:
    """The learner's search with real steps."""
    return _searched(functools.partial(step_peak, **step), **limits)


def searched_all(peaks: list[np.ndarray], limits: list[dict[str, int]]) -> list[dict[str, Any]]:
    """The learner's searches among peaks that are known: `peaks[case][size]`."""

    def peak_of(known: np.ndarray) -> Callable[[int], int]:
        return lambda size: int(known[size])

    return [_searched(peak_of(known), **case) for known, case in zip(peaks, limits, strict=True)]


def _searched(
    peak: Callable[[int], int],
    budget_bytes: int,
    max_size: int,
    most_rows: int,
    fails_at: int = 0,
    error: int = 0,
) -> dict[str, Any]:
    """A search on a device that runs out of memory above `most_rows`; and every size that it tried.

    The step of try number `fails_at` ends with that of `ERRORS`, which has nothing to do with memory.
    """
    tried: list[float] = []
    odd_size = ""
    kind, words = ERRORS[error]
    failure = kind(words)

    def try_step(size: int) -> int:
        nonlocal odd_size
        tried.append(float(size))
        if not isinstance(size, Integral):
            odd_size = type(size).__name__
        if len(tried) > MAX_TRIES or not 1 <= size <= max_size or odd_size:
            raise SearchEnded
        if len(tried) == fails_at:
            raise failure
        if size > most_rows:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate more than the device has.")
        return peak(int(size))

    answer: Any = None
    ended = ""
    try:
        answer = learner(try_step, budget_bytes, max_size)
    except torch.OutOfMemoryError:
        ended = "out of memory"
    except SearchEnded:
        ended = "try"
    except BaseException as error:
        if not 0 < fails_at <= len(tried):
            raise
        ended = "error" if error is failure else "another error"
    number = answer if isinstance(answer, Integral) and not isinstance(answer, bool) else None
    return {
        "answer": -1.0 if number is None else float(number),
        "kind": type(answer).__name__ if number is None else "number",
        "tried": tried,
        "odd_size": odd_size,
        "ended": ended,
    }
