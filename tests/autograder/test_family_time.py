"""CPU time of all that a worker starts reaches the grader, however it was started and however it ends."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator

import numpy as np
import pytest

from autograder.engine.job import Job

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere what a parent ignores is not counted"
)

HARNESS = "def run(code):\n    names = {}\n    exec(code, names)\n    return names.get('answer')\n"
BURNT = 0.3  # seconds of CPU time that each way below takes
BURN = f"""
import ctypes, os, signal, threading, time

def burn(seconds={BURNT}):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
"""
WAYS = {
    "a child": """
if os.fork() == 0:
    burn()
    os._exit(0)
os.wait()
""",
    "children whose parent ignores their end": f"""
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(3):
    if os.fork() == 0:
        burn({BURNT / 3})
        os._exit(0)
for _ in range(3):
    os.wait()
""",
    "a child whose parent ignores its end, in a child": """
if os.fork() == 0:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    if os.fork() == 0:
        burn()
        os._exit(0)
    os.wait()
    os._exit(0)
os.wait()
""",
    "many that are born and die": f"""
for _ in range(100):
    if os.fork() == 0:
        burn({BURNT / 100})
        os._exit(0)
    os.wait()
""",
    "a double fork": """
reading, writing = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        burn()
        os._exit(0)
    os._exit(0)
os.wait()
os.close(writing)
os.read(reading, 1)
""",
    "a double fork into a session of its own": """
reading, writing = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        burn()
        os._exit(0)
    os._exit(0)
os.wait()
os.close(writing)
os.read(reading, 1)
""",
    "the lowest priority": """
if os.fork() == 0:
    os.nice(19)
    burn()
    os._exit(0)
os.wait()
""",
    "SCHED_IDLE": """
if os.fork() == 0:
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    burn()
    os._exit(0)
os.wait()
""",
    "SCHED_BATCH": """
if os.fork() == 0:
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    burn()
    os._exit(0)
os.wait()
""",
    "a thread that has ended": """
thread = threading.Thread(target=burn)
thread.start()
thread.join()
""",
    "a child that is left running": """
reading, writing = os.pipe()
if os.fork() == 0:
    burn()
    os.write(writing, b"done")
    time.sleep(60)
os.read(reading, 1)
""",
}


@pytest.fixture(scope="module")
def job() -> Iterator[Job]:
    with contextlib.closing(Job("family", "f", "def f(): pass", HARNESS, np.random.default_rng(0))) as job:
        yield job


@pytest.mark.parametrize("code", WAYS.values(), ids=WAYS)
def test_it_counts(job: Job, code: str) -> None:
    worker = job.learner()
    before = worker.cpu_seconds()
    worker.call("run", code=BURN + code)
    deadline = time.monotonic() + 10.0  # an orphan is counted once its new parent has seen it end
    while worker.cpu_seconds() - before < 0.9 * BURNT and time.monotonic() < deadline:
        time.sleep(0.02)
    assert worker.cpu_seconds() - before >= 0.9 * BURNT


def test_no_namespace_is_made_in_which_children_end_uncounted(job: Job) -> None:
    code = """
import ctypes, errno, os
libc, answer = ctypes.CDLL(None, use_errno=True), {}
numbers = {"x86_64": (56, 272), "aarch64": (220, 97)}[os.uname().machine]
for name, *call in (
    ("clone3", 435, 0, 0),
    ("clone, processes", numbers[0], 0x20000000 | 17, 0, 0, 0, 0),
    ("clone, users", numbers[0], 0x10000000 | 17, 0, 0, 0, 0),
    ("unshare, processes", numbers[1], 0x20000000),
    ("unshare, users", numbers[1], 0x10000000),
):
    if libc.syscall(*call) == 0 and name.startswith("clone"):
        os._exit(0)
    answer[name] = errno.errorcode.get(ctypes.get_errno())
"""
    assert job.learner().call("run", code=code) == {
        "clone3": "ENOSYS",  # the C library then takes clone
        "clone, processes": "EPERM",
        "clone, users": "EPERM",
        "unshare, processes": "EPERM",
        "unshare, users": "EPERM",
    }


def test_what_an_honest_cell_starts_still_works(job: Job) -> None:
    code = """
import multiprocessing, signal, subprocess, threading
from torch.utils.data import DataLoader

done = []
thread = threading.Thread(target=done.append, args=(1,))
thread.start()
thread.join()
signal.signal(signal.SIGCHLD, lambda *_: None)
with multiprocessing.get_context("fork").Pool(2) as pool:
    pooled = pool.map(abs, [-1, 2])
said = subprocess.run(["sh", "-c", "echo it runs"], capture_output=True, text=True).stdout
batches = [batch.tolist() for batch in DataLoader(list(range(4)), batch_size=2, num_workers=2)]
answer = [done, pooled, said, batches]
"""
    assert job.learner().call("run", code=code) == [[1], [1, 2], "it runs\n", [[0, 1], [2, 3]]]


def test_priorities_and_cores_stay_as_they_were_given(job: Job) -> None:
    code = """
import os
before = os.sched_getaffinity(0), os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)
os.nice(19)
os.setpriority(os.PRIO_PROCESS, 0, 10)
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
os.sched_setaffinity(0, {min(before[0])})
answer = before == (os.sched_getaffinity(0), os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0))
"""
    assert job.learner().call("run", code=code) is True
