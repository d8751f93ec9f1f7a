"""Harness of 5.3 and 5.5: a search talks to a training that runs, and is billed, in the grader's process.

The learner's function runs in a thread. Its `train` hands the request to the main thread, which sends it to the
grader as the answer to one call and gets the loss with the next.
"""

from __future__ import annotations

import copy
import queue
import threading
from typing import Any

from autograder.lessons.checking.harness_shared import learner, same_everywhere

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
    """Start the learner's search; returns its first request, or {"answer": …, "changed": names} when it has none.

    "changed" are the arguments that it has not left as they were.

    With `may_raise` an error that it ends with, at once or later, is told: {"raised": its name, "message": its words}.
    """

    before = copy.deepcopy(arguments)

    def run() -> None:
        try:
            answer = _with_kinds(learner(train=_train, **arguments))
            changed = [name for name, value in before.items() if arguments[name] != value]
            _asked.put({"answer": answer, "changed": changed})
        except BaseException as error:  # raised again in the main thread, with the line of the cell
            _raised.append(error)
            name = "ValueError" if isinstance(error, ValueError) else type(error).__name__
            told = {"raised": name, "message": str(error)[:200]}
            _asked.put(told if may_raise else error)

    threading.Thread(target=run, daemon=True).start()
    return _next()


def _with_kinds(answer: Any) -> Any:
    """A tuple that is a value of the answer would get to the grader as a list; so it is told as what it is."""
    if not isinstance(answer, dict):
        return answer
    return {name: str(value) if isinstance(value, tuple) else value for name, value in answer.items()}


def go_on(reply: dict[str, Any]) -> Any:
    """Hand the reply to the search; returns its next request, or {"answer": …}."""
    _told.put(reply)
    return _next()


def raise_again() -> None:
    """The error that the search ended with."""
    raise _raised[-1]


# Losses need no sense here, only to be the same again.
_SEARCH = """
import zlib
asked = []
def train(config, num_steps):
    asked.append([sorted(config.items()), num_steps])
    return 1.0 + zlib.crc32(repr(asked[-1]).encode()) / 2**32
answer = learner(train=train, **request)
say(repr([asked, sorted(answer.items())]))
"""


def searched_elsewhere(source: str, entry: str, given: dict[str, Any]) -> dict[str, Any]:
    """Whether two fresh interpreters, which order sets otherwise, search as this process; what one said that failed."""
    return same_everywhere(_SEARCH, source, entry, given)


def _next() -> Any:
    request = _asked.get()
    if isinstance(request, BaseException):
        raise request
    return request
