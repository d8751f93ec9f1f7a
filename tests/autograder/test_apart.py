"""What runs apart is ended past its limits, and the next call knows nothing of it."""

from __future__ import annotations

import builtins
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autograder.common import ApartError, run_apart
from course_lib.base import UserError

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited so on Linux alone")


def pid() -> int:
    return int(run_apart(os.getpid))


def test_values_come_back_and_the_process_stays() -> None:
    assert run_apart(json.loads, '{"a": [1, null, "\\ud800"]}') == {"a": [1, None, "\ud800"]}
    assert pid() == pid() != os.getpid()


@pytest.mark.parametrize(
    ("function", "argument", "says"),
    [
        (json.loads, "[" * 100_000, "is nested too deep"),
        (json.loads, "{", "went wrong (JSONDecodeError"),
        (builtins.eval, "{1, 2}", "cannot be passed on"),
        (builtins.exec, "while True: pass", "took more than 1 s"),
        (builtins.exec, "import re; re.match('(a+)+$', 'a' * 60 + 'b')", "took more than 1 s"),
        pytest.param(builtins.eval, "bytearray(2**33)", "took more than 2 GB of memory", marks=LINUX),
        pytest.param(builtins.exec, "a = []\nwhile 1: a.append(bytes(2**28))", "GB of memory", marks=LINUX),
        (builtins.exec, f"import os; os.kill(os.getpid(), {int(signal.SIGTERM)})", "ended the process"),
        (builtins.exec, "import os; os._exit(0)", "ended the process"),
        (builtins.eval, "'x' * 2**27", "more than 64 MB"),
    ],
)
def test_past_a_limit_it_says_which_and_the_next_call_works(
    function: Callable[..., Any], argument: str, says: str
) -> None:
    with pytest.raises(ApartError) as raised:
        run_apart(function, argument, seconds=1.0)
    assert says in str(raised.value)
    assert run_apart(json.loads, "[1]") == [1]


def test_what_it_prints_and_an_error_of_the_users_come_back_as_such() -> None:
    assert run_apart(builtins.print, "hello") is None
    with pytest.raises(UserError, match="mend it"):
        run_apart(builtins.exec, "from course_lib.base import UserError\nraise UserError('mend it')")


def test_what_the_caller_takes_is_not_held_against_the_process() -> None:
    held = b"x" * 700_000_000  # the kernel hands the peak of a process down to those that it starts
    os.kill(pid(), signal.SIGTERM)
    assert pid() == pid() and held


def test_nobody_pays_for_a_process_that_was_ended_between_two_calls() -> None:
    os.kill(pid(), signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
    assert run_apart(json.loads, "[1]") == [1]


@LINUX
def test_an_interrupt_leaves_no_answer_to_the_question_before() -> None:
    before = pid()

    def interrupt(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_apart(time.sleep, 30)
    finally:
        signal.signal(signal.SIGALRM, old)
    assert run_apart(json.loads, "[1]") == [1] and pid() != before


def test_a_relative_path_means_what_it_means_to_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        assert run_apart(os.path.abspath, "file") == str(tmp_path / name / "file")
