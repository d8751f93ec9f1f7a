"""A count goes to the grader as it happens: in order, numbered, and nothing that was told can be taken back."""

from __future__ import annotations

import contextlib
import json
import socket
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from autograder.course.lessons import load_lesson
from autograder.engine.sandbox.inside.telling import sealed, teller
from autograder.engine.told import Told
from autograder.engine.workers import Worker, WorkerFailed

KEY = bytes(32)
# What a lesson that counts has, and what these tests call.
HARNESS = (
    load_lesson("01").harness
    + """
def counted_steps(num_steps):
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with counted(model) as counts:
        see("begun", num_steps)
        learner(model, optimizer, num_steps)
        counts.num_syncs = counts.num_optimizer_steps = -1000
    see("ended", num_steps)
    return {"syncs": -1000, "told": "anything"}

def apart(num_steps):
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    pid = os.fork()
    if pid == 0:
        with counted(model, of="child"):
            learner(model, optimizer, num_steps)
        os._exit(0)
    with counted(model, of="parent"):
        learner(model, optimizer, 1)
    os.waitpid(pid, 0)

def say(*messages):
    for kind, *what in messages:
        tell(kind, *what)
"""
)
CELL = """
def train(model, optimizer, num_steps):
    import torch
    for _ in range(num_steps):
        model(torch.ones(3, 2)).sum().backward()
        optimizer.step()
        model.weight.sum().item()
"""


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    made = Worker()
    made.load(HARNESS, CELL, "train")
    yield made
    made.kill()


def test_what_is_told_is_what_happened_whatever_the_process_makes_of_it_later(worker: Worker) -> None:
    _, answer = worker.timed_call("counted_steps", num_steps=3)
    (counts,) = worker.counts()
    assert (counts.num_syncs, counts.num_optimizer_steps, counts.num_forwards, counts.num_rows) == (
        3,
        3,
        3,
        9,
    )
    assert counts.peak_live_bytes > 0 < counts.total_flops
    assert answer["syncs"] == -1000
    assert answer["told"] is worker.told.call
    assert worker.told.call.seen == {"begun": [[3.0]], "ended": [[3.0]]}
    assert [name for name, _ in counts.events if name in ("num_optimizer_steps", "num_syncs")] == [
        *("num_optimizer_steps", "num_syncs") * 3
    ]
    assert worker.told.is_whole


def test_each_call_has_its_own(worker: Worker) -> None:
    worker.call("counted_steps", num_steps=2)
    worker.call("counted_steps", num_steps=1)
    assert worker.counts()[0].num_optimizer_steps == 1
    worker.call("switches")
    assert worker.told.call.counts == []


def test_a_forked_process_has_a_series_of_its_own(worker: Worker) -> None:
    worker.call("apart", num_steps=4)
    steps = {counts.of: counts.num_optimizer_steps for counts in worker.counts(2)}
    assert steps == {"child": 4, "parent": 1}
    assert worker.told.is_whole


def test_as_many_as_a_busy_call_has(worker: Worker) -> None:
    worker.call("counted_steps", num_steps=1500)
    assert worker.counts()[0].num_syncs == 1500
    assert worker.told.is_whole


def test_a_count_that_never_began_is_an_error_and_no_zero(worker: Worker) -> None:
    worker.call("switches")
    with pytest.raises(WorkerFailed, match="of 1 counts 0 were begun"):
        worker.counts()
    assert not worker.told.is_whole
    worker.told.is_whole = True


def _told(*messages: Any) -> Told:
    told = Told(None, KEY)
    told.take(message if isinstance(message, str) else json.dumps(message) for message in messages)
    return told


OPEN = [7, 1, "open", ""]


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param([OPEN, [7, 3, "count", 1, "num_syncs", 1]], id="one is missing"),
        pytest.param([[7, 2, "open", ""]], id="the first is missing"),
        pytest.param([OPEN, OPEN], id="one comes twice"),
        pytest.param([OPEN, [7, 2, "count", 1, "num_syncs", -3]], id="a number that goes back"),
        pytest.param([OPEN, [7, 2, "count", 1, "num_guesses", 1]], id="nothing that is counted"),
        pytest.param([OPEN, [7, 2, "count", 5, "num_syncs", 1]], id="of nothing that was begun"),
        pytest.param(
            [OPEN, [7, 2, "close", 1], [7, 3, "count", 1, "num_syncs", 1]], id="of something that has ended"
        ),
        pytest.param([[7, 1, "sing"]], id="no kind of message"),
        pytest.param(["{"], id="no message"),
        pytest.param(["[" * 10_000], id="nested"),
        pytest.param([OPEN, [8, 2, "open", ""]], id="another process that begins in the middle"),
    ],
)
def test_what_is_not_whole_is_known(messages: list[Any]) -> None:
    assert not _told(*messages).is_whole


def test_two_processes_count_side_by_side_and_what_a_child_has_of_its_parents_is_no_count() -> None:
    told = _told(
        OPEN,
        [8, 1, "count", 1, "num_syncs", 5],
        [7, 2, "count", 1, "num_syncs", 1],
        [8, 2, "open", "child"],
        [8, 3, "count", 2, "num_syncs", 9],
        [8, 4, "close", 2],
        [7, 3, "close", 1],
    )
    assert told.is_whole
    assert [(counts.of, counts.num_syncs) for counts in told.call.counts] == [("", 1), ("child", 9)]


@pytest.mark.skipif(sys.platform != "linux", reason="messages go over a socket on Linux alone")
def test_an_answer_waits_for_all_that_was_told_before_it_and_a_closed_road_is_known() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    told = Told(ours, KEY)
    tell, kept = teller(theirs.detach(), KEY)
    stretch = tell("open", "")
    for _ in range(3000):
        tell("count", stretch, "num_syncs", 1)
    tell("answer", "first")
    told.wait_for("first", 10.0)
    assert (told.call.counts[0].num_syncs, told.is_whole, kept()) == (3000, True, [])
    told.wait_for("second", 0.2)
    assert not told.is_whole


@pytest.mark.skipif(sys.platform != "linux", reason="messages go over a socket on Linux alone")
def test_what_the_worker_did_not_seal_is_not_told() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    told = Told(ours, KEY)
    with contextlib.suppress(BrokenPipeError):  # it may hang up before it has all three
        for message in (
            json.dumps(OPEN).encode(),
            sealed(json.dumps(OPEN).encode(), bytes([1]) * 32),
            b"short",
        ):
            theirs.send(message)
    told.wait_for("none", 10.0)
    with pytest.raises(BrokenPipeError):  # nobody listens to more of it
        theirs.send(sealed(json.dumps(OPEN).encode(), KEY))
    assert not told.call.counts and not told.is_whole


def test_where_there_is_no_socket_messages_come_with_the_answer() -> None:
    tell, kept = teller(None, KEY)
    stretch = tell("open", "")
    tell("count", stretch, "num_syncs", 2)
    tell("answer", "first")
    told = Told(None, KEY)
    told.take(kept())
    told.wait_for("first", 0.0)
    assert (told.call.counts[0].num_syncs, told.is_whole, kept()) == (2, True, [])
