"""Harness of 5.3 and 5.5: a search talks to a training that runs, and is billed, in the grader's process.

The learner's function runs in a thread. Its `train` hands the request to the main thread, which sends it to the
grader as the answer to one call and gets the loss with the next.
"""

from __future__ import annotations

import queue
import threading
from typing import Any

from autograder.lessons.checking.harness_shared import learner

_asked: queue.SimpleQueue[Any] = queue.SimpleQueue()
_told: queue.SimpleQueue[Any] = queue.SimpleQueue()
_one_at_a_time = threading.Lock()
_raised: list[BaseException] = []


def _train(config: Any, num_steps: Any) -> float:
    """What the learner is given as `train`."""
    if not isinstance(config, dict):
        raise TypeError(f"train(config, num_steps): config must be a dict, not a {type(config).__name__}")
    with _one_at_a_time:
        _asked.put({"config": dict(config), "num_steps": num_steps})
        reply = _told.get()
    if "error" in reply:
        raise ValueError(reply["error"])
    return float(reply["loss"])


def start_search(may_raise: bool = False, **arguments: Any) -> Any:
    """Start the learner's search; returns its first request, or {"answer": …} when it has none.

    With `may_raise` an error that it ends with, at once or later, is told as {"raised": its name}.
    """

    def run() -> None:
        try:
            _asked.put({"answer": learner(train=_train, **arguments)})
        except BaseException as error:  # raised again in the main thread, with the line of the cell
            _raised.append(error)
            _asked.put({"raised": type(error).__name__} if may_raise else error)

    threading.Thread(target=run, daemon=True).start()
    return _next()


def go_on(reply: dict[str, Any]) -> Any:
    """Hand the reply to the search; returns its next request, or {"answer": …}."""
    _told.put(reply)
    return _next()


def raise_again() -> None:
    """The error that the search ended with."""
    raise _raised[-1]


def _next() -> Any:
    request = _asked.get()
    if isinstance(request, BaseException):
        raise request
    return request
