"""What a solution waits for is served by another process, which waits, counts, and tells the grader alone."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from autograder.engine.job import CheckFailed, Job
from autograder.engine.sandbox import start as sandbox
from autograder.engine.sandbox import storage
from autograder.engine.workers import Worker

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "autograder" / "lessons" / "checking" / "harness_storage.py"
HARNESS = (
    CLIENT.read_text()
    + """
import contextlib
import multiprocessing
import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np

def fetched(number, indices, threads=1):
    served, begun = Served(number), time.monotonic()
    with ThreadPoolExecutor(threads) as pool:
        samples = list(pool.map(served.fetch, indices))
    return {"samples": [int(np.frombuffer(each, dtype=np.int64)[0]) for each in samples],
            "seconds": time.monotonic() - begun}

def in_processes(number, indices, method):
    served = Served(number)
    served.fetch(indices[0])  # a connection that children would inherit
    with multiprocessing.get_context(method).Pool(3) as pool:
        return [int(np.frombuffer(each, dtype=np.int64)[0]) for each in pool.map(served.fetch, indices, chunksize=2)]

def ended_by(number, index, token=None):
    served = Served(number)
    served.token = served.token if token is None else token
    try:
        served.fetch(index)
    except OSError as error:
        return type(error).__name__
    return ""

def begin(number, index):
    global _pool, _under_way
    _pool = ThreadPoolExecutor(1)
    _under_way = _pool.submit(Served(number).fetch, index)

def end():
    return int(np.frombuffer(_under_way.result(), dtype=np.int64)[0])

def connected(number):
    served = Served(number)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(served.place)
    return connection, bytes.fromhex(served.token)

def in_advance(number, count):
    connection, token = connected(number)
    connection.sendall(token + b"".join(struct.pack("<II", number, index) for index in range(count)))
    received = b""
    while len(received) < count * 13:
        received += connection.recv(2**16)
    return len(received)

def flood(number, count):
    some = []
    for _ in range(count):
        connection, token = connected(number)
        connection.setblocking(False)
        connection.send(token[:7])
        some.append(connection)
    connection, token = connected(number)
    connection.sendall(b"x" * 1000)
    del some

def asks_and_never_reads(number, count):
    connection, token = connected(number)
    connection.sendall(token)
    try:
        for _ in range(count):
            connection.sendall(struct.pack("<II", number, 0))
    except OSError:
        pass

def found(text):
    where = [path for top in ("/dev/shm", "/tmp", "/storage") for path in Path(top).rglob("*") if path.is_file()]
    seen = [str(path) for path in where if text.encode() in path.read_bytes()]
    with contextlib.suppress(PermissionError):  # as it should be
        seen += ["environ"] * (text.encode() in Path("/proc/self/environ").read_bytes())
    return seen + [name for name, value in os.environ.items() if text in value]

def processes():
    return [int(path.name) for path in Path("/proc").glob("[0-9]*")]
"""
)
SECONDS = 0.02


@pytest.fixture
def job() -> Iterator[Job]:
    job = Job("0.1", "solve", "def solve(): pass", HARNESS, np.random.default_rng(0), serves=True)
    yield job
    job.close()


def put(worker: Worker, values: list[int], seconds: float = SECONDS, **more: list[int]) -> None:
    worker.storage.put(7, [np.int64(value).tobytes() for value in values], seconds, **more)


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_each_request_takes_its_time_asked_for_again_too(job: Job) -> None:
    worker = job.learner()
    put(worker, [5, 6, 7])
    answer = worker.call("fetched", number=7, indices=[0, 1, 2, 0, 0])
    assert answer["samples"] == [5, 6, 7, 5, 5]
    assert answer["seconds"] >= 5 * SECONDS
    asked = worker.storage.asked(7)
    assert (asked.order, asked.num_answered, asked.most_at_once) == ([0, 1, 2, 0, 0], 5, 1)


def test_waits_overlap_where_they_are_asked_for_at_the_same_time(job: Job) -> None:
    worker = job.learner()
    put(worker, list(range(40)), 0.2)
    answer = worker.call("fetched", number=7, indices=list(range(40)), threads=20)
    assert answer["samples"] == list(range(40))
    asked = worker.storage.asked(7)
    assert sorted(asked.order) == list(range(40)) and 1 < asked.most_at_once <= 20


def test_each_sample_may_have_a_latency_of_its_own(job: Job) -> None:
    worker = job.learner()
    worker.storage.put(7, [bytes(8)] * 3, [0.0, 0.3, 0.0])
    assert worker.call("fetched", number=7, indices=[1])["seconds"] >= 0.3


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.further)])
def test_processes_of_the_solutions_own_are_served_and_counted(job: Job, method: str) -> None:
    worker = job.learner()
    put(worker, list(range(100, 120)))
    values = worker.call("in_processes", number=7, indices=list(range(20)), method=method, seconds=90.0)
    assert values == list(range(100, 120))
    asked = worker.storage.asked(7)
    assert asked.num_asked == 21 and sorted(set(asked.order)) == list(range(20))


def test_who_asks_before_other_samples_are_stored_gets_an_old_one(job: Job) -> None:
    """Nothing is gained by a request that is on its way when the clock starts to run."""
    worker = job.learner()
    put(worker, [5], 0.5)
    worker.call("begin", number=7, index=0)
    wait_until(lambda: worker.storage.asked(7).num_asked == 1)
    put(worker, [6])
    assert worker.call("end") == 5
    assert worker.storage.asked(7).num_asked == 0
    assert worker.call("fetched", number=7, indices=[0])["samples"] == [6]


def test_a_lost_sample_is_lost_once(job: Job) -> None:
    worker = job.learner()
    put(worker, [5, 6], lost=[1])
    assert worker.call("ended_by", number=7, index=0) == ""
    assert worker.call("ended_by", number=7, index=1) == "Lost"
    assert worker.call("fetched", number=7, indices=[1])["samples"] == [6]
    assert worker.storage.asked(7).order == [0, 1, 1]


def test_another_token_number_or_index_gets_nothing(job: Job) -> None:
    worker, other = job.learner(), job.worker("other", job.source)
    put(worker, [5])
    put(other, [6])
    for token in ("00" * 16, other.storage.token):
        error = worker.call("ended_by", number=7, index=0, token=token)
        assert error in ("ConnectionError", "ConnectionResetError", "BrokenPipeError")
    assert worker.call("ended_by", number=8, index=0) == "ConnectionError"
    assert worker.call("ended_by", number=7, index=1) == "ConnectionError"
    assert [each.storage.asked(7).num_asked for each in (worker, other)] == [0, 0]
    assert worker.call("fetched", number=7, indices=[0])["samples"] == [5]


def test_requests_in_advance_on_one_connection_wait_one_after_the_other(job: Job) -> None:
    worker = job.learner()
    put(worker, list(range(10)))
    assert worker.call("in_advance", number=7, count=10) == 130
    asked = worker.storage.asked(7)
    assert (asked.num_asked, asked.most_at_once) == (10, 1)


def test_a_flood_harms_nobody_but_whoever_makes_it(job: Job) -> None:
    worker = job.learner()
    put(worker, [5], 0.0)
    worker.call("flood", number=7, count=190)
    worker.call("asks_and_never_reads", number=7, count=20_000)
    assert worker.call("fetched", number=7, indices=[0])["samples"] == [5]


def test_the_solutions_process_knows_nothing_of_what_is_stored(job: Job) -> None:
    """No file, no environment, no process within reach holds a sample, and no seed that it is told draws one."""
    worker, secret = job.learner(), "of this sample nobody knows"
    worker.storage.put(7, [secret.encode()], 0.0)
    worker.call("ended_by", number=7, index=0)
    assert worker.call("found", text=secret) == []
    if worker.level == "bubblewrap":
        assert worker.storage.process.pid not in worker.call("processes")
    drawn = [job.hidden(3).integers(2**62) for _ in range(2)]
    assert drawn[0] == drawn[1] != np.random.default_rng(3).integers(2**62)
    other = Job("0.1", "solve", "", "", np.random.default_rng(0))
    assert other.hidden(3).integers(2**62) != drawn[0]


def test_what_serves_ends_with_its_worker(job: Job) -> None:
    server = psutil.Process(job.learner().storage.process.pid)
    job.close()
    assert not server.is_running()


def test_what_serves_ends_with_the_grader_however_that_ends(tmp_path: Path) -> None:
    code = (
        "import time, numpy as np\nfrom autograder.engine.job import Job\n"
        "harness = 'def use_storage(place, token): pass'\n"
        "job = Job('0.1', 'solve', 'def solve(): pass', harness, np.random.default_rng(0), serves=True)\n"
        "print(job.learner().storage.process.pid, flush=True)\ntime.sleep(600)\n"
    )
    grader = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert grader.stdout
    with grader.stdout:
        server = psutil.Process(int(grader.stdout.readline()))
        grader.send_signal(signal.SIGKILL)
        grader.wait()
        wait_until(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE)


def test_a_job_that_serves_nothing_starts_no_such_process(job: Job) -> None:
    job.serves = False
    assert job.learner().served_by is None


@pytest.mark.further
@pytest.mark.parametrize("level", sandbox.LEVELS)
@pytest.mark.parametrize("can_fork", [True, False])
def test_it_serves_at_each_level_of_the_sandbox(
    job: Job, level: sandbox.Level, can_fork: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sandbox.LEVELS.index(level) < sandbox.LEVELS.index(sandbox.probe().level):
        pytest.skip("this machine has no such level")
    status = sandbox.SandboxStatus(level, "as on a machine with no more")
    monkeypatch.setattr(sandbox, "probe", lambda: status)
    monkeypatch.setattr(sandbox, "CAN_FORK", can_fork and sandbox.CAN_FORK)
    worker = job.learner()
    put(worker, [5, 6])
    assert worker.call("fetched", number=7, indices=[1, 0], threads=2)["samples"] == [6, 5]
    assert worker.level == level or not can_fork


@pytest.mark.further
def test_it_serves_over_loopback_where_there_are_no_unix_sockets(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = sandbox.SandboxStatus("limits", "as on Windows")
    monkeypatch.setattr(sandbox, "probe", lambda: status)
    monkeypatch.setattr(sandbox, "CAN_FORK", False)
    monkeypatch.setattr(storage, "socket", SimpleNamespace())
    worker = job.learner()
    assert worker.storage.place.startswith("127.0.0.1:")
    put(worker, [5, 6])
    assert worker.call("fetched", number=7, indices=[1, 0, 1], threads=2)["samples"] == [6, 5, 6]
    assert worker.call("ended_by", number=7, index=0, token="00" * 16) in (
        "ConnectionError",
        "ConnectionResetError",
        "BrokenPipeError",
    )


def test_a_check_whose_storage_has_died_says_so(job: Job) -> None:
    worker = job.learner()
    put(worker, [5])
    worker.storage.process.kill()
    worker.storage.process.wait()
    with pytest.raises(CheckFailed, match="Connection"):
        worker.call("fetched", number=7, indices=[0])
    with pytest.raises(Exception, match="serves the samples is gone"):
        put(worker, [6])
