"""What the guard closes to a cell stays open to the libraries that a cell uses, and nothing else is noted."""

from __future__ import annotations

import pytest

from autograder.engine.check import check_source

CELL = """
import collections, dataclasses, enum, functools, inspect, logging, traceback, typing, warnings

Pair = collections.namedtuple("Pair", "a b")
T = typing.TypeVar("T")

@dataclasses.dataclass
class Times:
    baseline: float
    candidate: float

class Kind(enum.Enum):
    A = 1

def counted(function):
    @functools.wraps(function)
    def inner(*arguments):
        logging.getLogger("cell").warning("called with %s", arguments)
        warnings.warn("looked at")
        return function(*arguments)
    return inner

@exercise("0.1")
@counted
def speedup(baseline_seconds, candidate_seconds):
    times = Times(*Pair(baseline_seconds, candidate_seconds))
    try:
        assert len(inspect.signature(speedup).parameters) == 2
        return times.baseline / times.candidate if min(times.baseline, times.candidate) > 0 else 1 / 0
    except ZeroDivisionError:
        traceback.format_exc()
        traceback.print_exc()
        raise ValueError from None
"""


def test_what_libraries_ask_of_frames_is_answered() -> None:
    assert check_source("0.1", CELL).verdict == "pass"


@pytest.mark.parametrize(
    "reach",
    [
        "sys._getframe(1)",
        "inspect.currentframe()",
        "inspect.stack()",
        "next(traceback.walk_stack(None))",
        "[x for x in gc.get_objects()]",
        "gc.get_referrers(sys)",
        "sys._current_frames()",
        "sys.settrace(print)",
        "(lambda: (yield))().gi_frame",
        "exec(compile('import sys; sys._getframe(1)', sys.__file__ if False else 'torch.py', 'exec'))",
        "setattr(speedup, '__code__', (lambda a, b: 1).__code__)",
        "sys.modules['wire']",
        "sys.modules['worker']",
    ],
)
def test_what_leads_to_the_callers_is_closed(reach: str) -> None:
    source = (
        "import gc, inspect, sys, traceback\n\n"
        f'@exercise("0.1")\ndef speedup(a, b):\n    found = {reach}\n'
        "    if a <= 0 or b <= 0:\n        raise ValueError\n    return a / b\n"
    )
    result = check_source("0.1", source)
    assert result.verdict == "fail", result
    assert "not open" in str(result.reason) or "KeyError" in str(result.reason)
    assert result.review


def test_a_function_replaced_out_of_sight_is_told() -> None:
    source = (
        "import time\n\ndef put(space, key, value):\n    space.update({key: value})\n\n"
        '@exercise("0.1")\ndef speedup(a, b):\n    put(getattr(time, "__dict__"), "sleep", abs)\n'
        "    if a <= 0 or b <= 0:\n        raise ValueError\n    return a / b\n"
    )
    assert any("time.sleep" in reason for reason in check_source("0.1", source).review)
