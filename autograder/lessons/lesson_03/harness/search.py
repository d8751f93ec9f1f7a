"""Harness of 3.2: how many rows fit."""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import learner, plain_step, small_model
from autograder.lessons.lesson_03.harness.memory import ON_CPU, random_batch
from course_lib.measuring import peak_bytes

MAX_TRIES = 300  # a search that never ends


class OutOfMemoryError(Exception):
    """Another library's, which has the name of torch's and is none of it."""


class DeviceFull(torch.OutOfMemoryError):
    """One of torch's, as a backend makes it."""


# What says that the device is full: by its class, whatever its words are.
FULL = itertools.cycle(
    (
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate more than the device has."),
        torch.OutOfMemoryError(),
        torch.OutOfMemoryError("allocation of 2 GiB failed"),
        DeviceFull("no room"),
    )
)
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
    (RuntimeError, "CUDA out of memory. Tried to allocate 2.00 GiB"),
    (OutOfMemoryError, "CUDA out of memory. Tried to allocate 2.00 GiB"),
    (AttributeError, "'NoneType' object has no attribute 'shape'"),
    (NotImplementedError, "no kernel for this device"),
    (TimeoutError, "the device does not answer"),
    (ConnectionError, "the device is gone"),
    (EOFError, ""),
    (BufferError, "memory is exported"),
    (ReferenceError, "the model is gone"),
    (NameError, "name 'model' is not defined"),
    (ImportError, "no module for this device"),
    (UnicodeError, "a text is broken"),
    (FloatingPointError, "underflow"),
    (UserWarning, "memory is nearly full"),
    (asyncio.CancelledError, ""),
    (Exception, "out of memory"),
    (BaseException, "stop"),
)
# Number len(ERRORS) is a group of errors.


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


class Steps:
    """Steps of one model after the other: one function, as one that reads which model there is."""

    def __init__(self) -> None:
        self.run: Callable[[int], int] = int

    def __call__(self, size: int) -> int:
        return self.run(size)


STEPS = Steps()


def searched_all(peaks: list[np.ndarray], limits: list[dict[str, int]]) -> list[dict[str, Any]]:
    """The learner's searches among peaks that are known: `peaks[case][size]`; behind the last the line goes on."""

    def peak_of(known: np.ndarray) -> Callable[[int], int]:
        *before, last = map(int, known)
        slope = last - before[-1]
        return lambda size: before[size] if size < len(before) else last + slope * (size - len(before))

    return [_searched(peak_of(known), **case) for known, case in zip(peaks, limits, strict=True)]


def _failure(number: int) -> BaseException:
    """An error that is no answer."""
    if number == len(ERRORS):
        return ExceptionGroup("two devices failed", [torch.OutOfMemoryError(), ValueError("a broken step")])
    kind, words = ERRORS[number]
    return kind(words)


def _looks(error: BaseException) -> list[str]:
    """What is to be read in an error, beside where it was raised."""
    return [repr(error.args), repr(getattr(error, "__notes__", [])), repr(error.__cause__)]


def _as_it_is(number: Any) -> int:
    """A whole number as it is, whatever a class of the cell's own says."""
    return int.__add__(number, 0) if isinstance(number, int) else int(np.asarray(number).item())


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
    failure = _failure(error)
    looks = _looks(failure)

    def try_step(size: int) -> int:
        nonlocal odd_size
        if not isinstance(size, Integral):
            odd_size = type(size).__name__
        else:
            size = _as_it_is(size)
        tried.append(float(size))
        if len(tried) > MAX_TRIES or not 1 <= size <= max_size or odd_size:
            raise SearchEnded
        if len(tried) == fails_at:
            raise failure
        if size > most_rows:
            raise next(FULL)
        return peak(int(size))

    STEPS.run = try_step
    answer: Any = None
    ended = ""
    try:
        answer = learner(STEPS, budget_bytes, max_size)
    except torch.OutOfMemoryError:
        ended = "out of memory"
    except SearchEnded:
        ended = "try"
    except BaseException as raised:
        if not 0 < fails_at <= len(tried):
            raise
        ended = (
            "another error"
            if raised is not failure
            else "error"
            if _looks(raised) == looks
            else "other words"
        )
    is_number = isinstance(answer, Integral) and not isinstance(answer, bool)
    number = _as_it_is(answer) if is_number else None
    return {
        "answer": -1.0 if number is None else float(number),
        "kind": type(answer).__name__ if number is None else "number",
        "tried": tried,
        "odd_size": odd_size,
        "ended": ended,
    }
