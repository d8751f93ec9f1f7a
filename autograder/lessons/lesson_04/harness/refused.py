"""Harness of 4.2: saves that are refused, by the disk, by what is saved, or by whoever presses Ctrl-C."""

from __future__ import annotations

import contextlib
from typing import Any

from autograder.lessons.checking.harness_shared import learner
from autograder.lessons.lesson_04.harness.atomic import (
    _as_file,
    _begin,
    _beside,
    _changed_others,
    _content,
    _read,
)
from autograder.lessons.lesson_04.harness.disk import can_be_full, files_of_at_most, refusing


class _Unsavable:
    """What cannot be written: the disk is full by the time it comes to it, or someone presses Ctrl-C."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __reduce__(self) -> tuple[Any, ...]:
        raise self._error


_ERRORS: dict[str, BaseException] = {
    "unsavable": OSError(28, "No space left on device (the check pretends)"),
    "too large": MemoryError("the check pretends"),
    "of no kind": TypeError("cannot pickle this (the check pretends)"),
    "stopped": KeyboardInterrupt("the check pretends"),
}
_STOPPED = ("stopped", "stopped at fsync", "stopped at rename")


def _is_heard(error: BaseException | None, how: str) -> bool:
    """Whether what the caller gets is the error, or an error that says it came of it; Ctrl-C must stay Ctrl-C."""
    if how in _STOPPED:
        return isinstance(error, KeyboardInterrupt)
    if how == "open":
        return not isinstance(error, FileNotFoundError)  # no file is missing: the disk is full
    while error is not None and how in _ERRORS and not isinstance(error, type(_ERRORS[how])):
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return error is not None


def save_refused(seed: int, how: str, is_first: bool = False) -> dict[str, Any]:
    """A save that fails: whether it came to that, whether the caller hears of it, and what is left.

    how: one of `_ERRORS`, for a content that cannot be written; "full" or "nearly", a disk that is full half way, or at
    the end; "fsync", "rename" or "open", a call that fails; "stopped at fsync" or "stopped at rename", Ctrl-C in it.
    `is_first`: there is no older file. "is_there" says whether there is one afterwards.
    """
    path, content, raised = _begin(seed), _content(seed, 1), False
    error: BaseException | None = None
    if is_first:
        path.unlink()
    refused: contextlib.AbstractContextManager[Any] = contextlib.nullcontext(lambda: 1)
    if how in _ERRORS or (how in ("full", "nearly") and not can_be_full()):
        content["too_much"] = _Unsavable(_ERRORS.get(how, _ERRORS["unsavable"]))
    if how in ("fsync", "rename", "open"):
        refused = refusing(how)
    if how.startswith("stopped at "):
        refused = refusing(how.removeprefix("stopped at "), _ERRORS["stopped"])
    small = {"full": 2**16, "nearly": len(_as_file(_content(seed, 1))) - 4000}.get(how)
    with refused as num_refused:
        try:
            with files_of_at_most(small) if small and can_be_full() else contextlib.nullcontext():
                learner(content, path)
        except BaseException as caught:
            raised, error = True, caught
        is_tried = num_refused() > 0
    return {
        "files": [_read(path)],
        "is_there": path.exists(),
        "raised": raised,
        "heard": _is_heard(error, how),
        "is_tried": is_tried,
        "beside": _beside(path),
        "others": _changed_others(),
    }
