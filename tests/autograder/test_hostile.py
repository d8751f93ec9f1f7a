"""Code that breaks things: each ends with a kind reason, nothing of it stays, and the next worker works."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from autograder.engine.sandbox import start as sandbox
from autograder.engine.sandbox import view as sandbox_view
from autograder.engine.sandbox import watch
from autograder.engine.workers import CheckFailed, OutOfTime, Worker, WorkerFailed
from tests.everyday import first_of

HARNESS = (
    "def run(code):\n    space = {}\n    exec(code, space)\n    return space.get('answer')\n"
    "def size(array):\n    return array.nbytes\n"
)
FORK_LINUX = pytest.mark.skipif(not sandbox.CAN_FORK, reason="workers are forked on Linux alone")
HANG = "while True: pass\n"
IGNORE = (
    "import os, signal\n"
    "for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:\n"
    "    signal.signal(number, signal.SIG_IGN)\n"
)
CASES = {
    "never ends": (HANG, "did not finish"),
    "ignores signals": (IGNORE + HANG, "did not finish"),
    "stops itself": ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", "did not finish"),
    "children that ignore signals": (
        IGNORE + "for _ in range(3):\n    if os.fork() == 0:\n        os.setsid()\n" + HANG,
        "did not finish",
    ),
    "one large block of memory": ("answer = len(bytearray(2**45))", "more memory"),
    "one large tensor": ("import torch; answer = torch.ones(2**43).sum().item()", "more memory"),
    "memory that grows": ("blocks = []\nwhile True: blocks.append(bytearray(2**28))", "more memory"),
    "fork bomb": ("import os\nwhile True: os.fork()", "processes"),
    "fork bomb that swallows errors": (
        "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError: pass",
        "processes",
    ),
    "thread bomb": (
        "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(99,)).start()",
        "processes",
    ),
    "prints for ever": ("while True: print('x' * 2**16)", "printed"),
    "a huge file": (
        "with open('f', 'wb') as file:\n    while True: file.write(bytes(2**24))",
        "wrote or printed",
    ),
    "many large files": (
        "i = 0\nwhile True:\n    i += 1\n    open(str(i), 'wb').write(bytes(2**26))",
        "wrote or printed",
    ),
    "ends itself": ("import os; os._exit(7)", "status 7"),
    "kills itself": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "status -9"),
    "crashes": ("import ctypes; ctypes.string_at(0)", "status -11.*crashed"),
    "closes its pipes": ("import os; os.closerange(0, 99)", "ended"),
    "closes its pipes and goes on": ("import os; os.closerange(0, 99)\n" + HANG, "ended"),
    "half a frame": (
        "import os; os.write(4, (100).to_bytes(8, 'little') + b'half a frame')\n" + HANG,
        "did not finish",
    ),
}


@pytest.fixture(scope="module", autouse=True)
def _no_server_stays() -> Iterator[None]:
    yield
    sandbox.close()


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """What these bombs break is shared with other tests."""
    monkeypatch.setattr(watch, "MAX_PROCESSES", 60)
    monkeypatch.setattr(sandbox_view, "MAX_MEMORY", 2**30)


@pytest.fixture(params=["bubblewrap", "landlock"])
def at_level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> sandbox.Level:
    """At the level of this machine, and at one lower, as without bubblewrap."""
    level: sandbox.Level = request.param
    if sandbox.LEVELS.index(sandbox.probe().level) > sandbox.LEVELS.index(level):
        pytest.skip(f"the sandbox here is {sandbox.probe().level}")
    monkeypatch.setattr(sandbox, "probe", lambda: sandbox.SandboxStatus(level, "for a test"))
    return level


@pytest.fixture
def start() -> Iterator[Callable[[], Worker]]:
    workers: list[Worker] = []

    def new() -> Worker:
        workers.append(Worker())
        workers[-1].load(HARNESS, "def solve(): pass", "solve")
        return workers[-1]

    yield new
    for worker in workers:
        worker.kill()


def families(*workers: Worker) -> list[psutil.Process]:
    return [process for worker in workers for process in worker.process.family()]


@FORK_LINUX
@pytest.mark.parametrize("name", CASES)
def test_a_kind_reason_and_nothing_stays(start: Callable[[], Worker], name: str) -> None:
    code, says = CASES[name]
    worker = start()
    family = families(worker)
    with pytest.raises(WorkerFailed, match=says):
        worker.call("run", code=code, seconds=2.0 if says == "did not finish" else 20.0)
    assert not psutil.wait_procs(family, timeout=5)[1]
    with pytest.raises(WorkerFailed, match="has ended"):
        worker.call("run", code="answer = 1")
    assert start().call("run", code="answer = 1") == 1


@pytest.mark.further
@FORK_LINUX
def test_at_the_level_of_landlock_a_fork_bomb_ends_too(
    at_level: sandbox.Level, start: Callable[[], Worker]
) -> None:
    worker = start()
    assert worker.level == at_level
    with pytest.raises(WorkerFailed, match="processes"):
        worker.call("run", code=CASES["fork bomb"][0], seconds=20.0)
    assert start().call("run", code="answer = 1") == 1


@FORK_LINUX
def test_memory_of_many_processes_is_added_up(start: Callable[[], Worker]) -> None:
    worker, other = start(), start()
    worker.process.memory_limit = 600 * 2**20
    code = (
        "import os, time\nfor _ in range(8):\n"
        "    if os.fork() == 0:\n        held = bytearray(os.urandom(2**20)) * 150\n        time.sleep(60)\n"
        "time.sleep(60)"
    )
    with pytest.raises(WorkerFailed, match=r"more than 0\.6 GiB of memory"):
        worker.call("run", code=code, seconds=30.0)
    assert other.call("run", code="answer = 1") == 1


@FORK_LINUX
@pytest.mark.parametrize(
    "code",
    [
        "import os; os.memfd_create('hidden')",
        "import ctypes; libc = ctypes.CDLL(None, use_errno=True)\n"
        "if libc.shmget(0, 2**20, 0o1600) < 0: raise OSError(ctypes.get_errno(), 'shmget')",
        "import ctypes; libc = ctypes.CDLL(None, use_errno=True)\n"
        "if libc.msgget(0, 0o1600) < 0: raise OSError(ctypes.get_errno(), 'msgget')",
        "import ctypes; libc = ctypes.CDLL(None, use_errno=True)\n"
        "if libc.semget(0, 30000, 0o1600) < 0: raise OSError(ctypes.get_errno(), 'semget')",
    ],
)
def test_no_memory_is_had_that_no_process_shows(start: Callable[[], Worker], code: str) -> None:
    with pytest.raises(CheckFailed, match=r"Function not implemented|shmget|msgget|semget"):
        start().call("run", code=code)


SOCKETS = """
import os, socket
def fill(most):
    held, taken = [], 0
    while len(held) < most:
        pair = socket.socketpair()
        held.append(pair)
        for one in pair:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**22)
            one.setblocking(False)
            try:
                while True:
                    taken += one.send(bytes(100_000))
            except BlockingIOError:
                pass
    return held, taken
"""


@FORK_LINUX
def test_what_waits_in_sockets_stays_small(start: Callable[[], Worker]) -> None:
    """It is no process's memory: an innocent worker would be ended for it."""
    worker, other = start(), start()
    assert worker.call("run", code=SOCKETS + "answer = fill(20)[1]") < 20 * 2**20
    # Passed on to other processes, they are the worker's still.
    code = SOCKETS + (
        "for _ in range(30):\n    if os.fork() == 0:\n        held = fill(10)\n        import time; time.sleep(60)\n"
        "import time; time.sleep(60)"
    )
    with pytest.raises(WorkerFailed, match="more than 512 sockets"):
        worker.call("run", code=code, seconds=30.0)
    assert other.call("run", code="answer = 1") == 1


@FORK_LINUX
def test_no_session_is_begun_that_the_scheduler_would_give_a_share_to(start: Callable[[], Worker]) -> None:
    code = (
        "import os\nbefore = os.getsid(0)\nif os.fork() == 0:\n"
        "    os.setsid()\n    os._exit(os.getsid(0) != before)\n"
    )
    assert start().call("run", code=code + "answer = os.wait()[1]") == 0


@FORK_LINUX
def test_whoever_had_no_core_gets_the_time_back(start: Callable[[], Worker]) -> None:
    def work() -> None:
        end = time.monotonic() + 6.0
        while time.monotonic() < end:
            pass

    worker = start()
    core = {min(os.sched_getaffinity(0))}
    for thread in Path(f"/proc/{worker.pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), core)
    others = [multiprocessing.get_context("fork").Process(target=work) for _ in range(6)]
    for other in others:
        other.start()
        os.sched_setaffinity(other.pid or 0, core)
    try:
        code = (
            "import time\nend = time.process_time() + 1.0\nwhile time.process_time() < end: pass\nanswer = 1"
        )
        assert worker.call("run", code=code, seconds=2.0) == 1
        with pytest.raises(OutOfTime):
            worker.call("run", code="import time; time.sleep(30)", seconds=1.0)
    finally:
        for other in others:
            other.kill()


@FORK_LINUX
def test_a_machine_that_runs_out_of_memory_ends_the_largest(
    start: Callable[[], Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = start(), start()
    large.call("run", code="import builtins; builtins.held = bytearray(b'x') * 3 * 10**8")
    monkeypatch.setattr(watch, "MIN_FREE_MEMORY", 1.0)
    with pytest.raises(WorkerFailed, match="machine ran out of memory"):
        large.call("run", code=HANG)
    monkeypatch.undo()
    assert small.call("run", code="answer = 1") == 1


@FORK_LINUX
def test_a_worker_that_stops_reading_does_not_hold_the_grader(start: Callable[[], Worker]) -> None:
    import numpy as np

    worker = start()
    assert worker.call("size", array=np.zeros(10**6)) == 8 * 10**6
    code = "import os, signal, time\nif os.fork() == 0:\n    time.sleep(0.3); os.kill(2, signal.SIGSTOP); os._exit(0)"
    worker.call("run", code=code)
    time.sleep(0.6)
    before = time.monotonic()
    with pytest.raises(WorkerFailed, match="did not finish"):
        worker.call("size", array=np.zeros(10**6), seconds=1.0)
    assert time.monotonic() - before < 5


@FORK_LINUX
def test_threads_that_go_on_end_with_the_worker(start: Callable[[], Worker]) -> None:
    worker = start()
    code = "import threading\ndef go():\n    while True: pass\nfor _ in range(4): threading.Thread(target=go).start()"
    worker.call("run", code=code)
    family = families(worker)
    worker.kill()
    assert not psutil.wait_procs(family, timeout=5)[1]


SIBLING = {
    "kill": "os.kill(pid, 0)",
    "stop": "os.kill(pid, 19)",
    "read its memory": "open(f'/proc/{pid}/mem', 'rb')",
    "map of its memory": "open(f'/proc/{pid}/maps').read()",
    "environment": "open(f'/proc/{pid}/environ').read()",
    "its files": "os.listdir(f'/proc/{pid}/fd')",
    "its root": "os.listdir(f'/proc/{pid}/root/dev/shm')",
    "what it takes": "open(f'/proc/{pid}/stat').read()",
    "trace": "import ctypes\n    if ctypes.CDLL(None).ptrace(16, pid, None, None): raise OSError",
    "read its memory by a call": (
        "import ctypes, struct; c = ctypes.CDLL(None, use_errno=True); b = ctypes.create_string_buffer(8)\n"
        "    v = struct.pack('QQ', ctypes.addressof(b), 8); w = struct.pack('QQ', id(b), 8)\n"
        "    if c.process_vm_readv(pid, v, 1, w, 1, 0) < 0: raise OSError"
    ),
    "take its descriptors": "os.pidfd_open(pid)",
}


@FORK_LINUX
@pytest.mark.parametrize("name", SIBLING)
def test_siblings_and_the_server_are_out_of_reach(
    at_level: sandbox.Level, start: Callable[[], Worker], name: str
) -> None:
    attacker, victim = start(), start()
    code = (
        "import os\nanswer, own = [], set()\n"
        "for task in os.listdir('/proc/self/task'): own.add(int(task))\n"
        "own |= {int(os.readlink('/proc/self')), os.getpid(), os.getppid()}\n"
        "def attack(pid):\n    {attack}\n"
        "for pid in {pids}:\n"
        "    if pid not in own:\n"
        "        try:\n            attack(pid)\n            answer.append(pid)\n        except OSError: pass\n"
    )
    outside = [process.pid for process in families(attacker, victim)] + [os.getpid()]
    pids = [*range(1, 60), *outside]
    code = code.replace("{attack}", SIBLING[name]).replace("{pids}", str(pids)).replace("{{", "{")
    assert attacker.call("run", code=code.replace("}}", "}")) == []
    assert victim.call("run", code="answer = 1") == 1


@FORK_LINUX
def test_siblings_share_no_file_no_memory_and_no_address(
    at_level: sandbox.Level, start: Callable[[], Worker]
) -> None:
    one, other = start(), start()
    code = (
        "import builtins, ctypes, os, pathlib, socket, tempfile\n"
        "from multiprocessing import shared_memory\n"
        "builtins.kept = [shared_memory.SharedMemory('seen', create=True, size=8)]\n"
        "for place in (os.getcwd(), tempfile.gettempdir(), '/tmp', '/dev/shm'):\n"
        "    try:\n        pathlib.Path(place, 'seen-file').write_text('x')\n    except OSError: pass\n"
        "answer = ctypes.CDLL(None).shmget(4711, 8, 0o1666)\n"
        "server = socket.create_server(('127.0.0.1', 4711)); builtins.kept.append(server)\n"
        "unix = socket.socket(socket.AF_UNIX); unix.bind('\\0seen'); unix.listen(); builtins.kept.append(unix)"
    )
    one.call("run", code=code)
    look = (
        "import ctypes, os, socket, tempfile\nanswer = []\n"
        "for place in (os.getcwd(), tempfile.gettempdir(), '/tmp', '/dev/shm', '/'):\n"
        "    try:\n        answer += [name for name in os.listdir(place) if 'seen' in name]\n    except OSError: pass\n"
        "if ctypes.CDLL(None).shmget(4711, 8, 0o666) >= 0: answer.append('sysv')\n"
        "for family, address in ((socket.AF_INET, ('127.0.0.1', 4711)), (socket.AF_UNIX, '\\0seen')):\n"
        "    try:\n        socket.socket(family).connect(address); answer.append(str(address))\n"
        "    except OSError: pass\n"
    )
    assert other.call("run", code=look) == []


@FORK_LINUX
def test_a_worker_holds_its_own_pipes_alone(at_level: sandbox.Level, start: Callable[[], Worker]) -> None:
    code = (
        "import os; paths = [f'/proc/self/fd/{n}' for n in range(999)]\n"
        "answer = [os.readlink(path) for path in paths if os.path.lexists(path)]"
    )
    null, *logs, requests, answers, tells = start().call("run", code=code)
    assert null == "/dev/null" and len(logs) == 2
    assert requests.startswith("pipe:") and answers.startswith("pipe:") and tells.startswith("socket:")


@FORK_LINUX
def test_no_privilege_is_left_and_none_comes_back(
    at_level: sandbox.Level, start: Callable[[], Worker]
) -> None:
    worker = start()
    code = "answer = [line.split()[1] for line in open('/proc/self/status') if line.startswith(('Cap', 'NoNew'))]"
    assert {int(value, 16) for value in worker.call("run", code=code)} == {0, 1}
    code = (
        "import ctypes; c = ctypes.CDLL(None, use_errno=True); c.unshare(0x10020000)\n"
        "answer = [c.mount(b'tmpfs', b'/usr', b'tmpfs', 0, None), c.umount2(b'/dev/shm', 2)]"
    )
    assert worker.call("run", code=code) == [-1, -1]


@FORK_LINUX
def test_the_prepared_process_may_be_killed(start: Callable[[], Worker]) -> None:
    worker = start()
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # one that has just ended
            if process.cmdline()[-1:] == ["/grader/forkserver.py"]:
                process.kill()
    with pytest.raises(WorkerFailed):
        worker.call("run", code="answer = 1")
    assert start().call("run", code="answer = 1") == 1


GRADER = (
    "import sys, time\nfrom autograder.engine.sandbox import start as sandbox\n"
    "from autograder.engine.workers import Worker\n"
    "level = sys.argv[1]\nsandbox.probe = lambda: sandbox.SandboxStatus(level, 'for a test')\n"
    "sandbox.CAN_FORK = sys.argv[2] == 'fork'\n"
    f"worker = Worker()\nworker.load({HARNESS!r}, 'def solve(): pass', 'solve')\n"
    "code = 'import os, time\\nfor _ in range(3):\\n    if os.fork() == 0: os.setsid(); time.sleep(99)'\n"
    "worker.call('run', code=code)\n"
    "print(*[p.pid for p in worker.process.family()], flush=True)\n"
    "worker.call('run', code='while True: pass', seconds=99)\n"
)


@FORK_LINUX
@pytest.mark.parametrize("way", first_of(["bubblewrap fork", "landlock fork", "limits fork"]))
def test_a_killed_grader_leaves_no_process_and_no_folder(tmp_path: Path, way: str) -> None:
    if sandbox.LEVELS.index(sandbox.probe().level) > sandbox.LEVELS.index(way.split()[0]):  # type: ignore[arg-type]
        pytest.skip(f"the sandbox here is {sandbox.probe().level}")
    grader = subprocess.Popen(
        [sys.executable, "-c", GRADER, *way.split()],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    assert grader.stdout
    pids = [int(pid) for pid in grader.stdout.readline().split()]
    known = [psutil.Process(grader.pid), *psutil.Process(grader.pid).children(recursive=True)]
    known += [psutil.Process(pid) for pid in pids]
    assert len(pids) > 3
    os.kill(grader.pid, signal.SIGKILL)
    grader.wait()
    assert not psutil.wait_procs(known[1:], timeout=10)[1]
    deadline = time.monotonic() + 5
    while list(tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("level", first_of(sandbox.LEVELS))
def test_where_nothing_can_be_forked_each_worker_is_started_anew(
    start: Callable[[], Worker], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, level: sandbox.Level
) -> None:
    if sandbox.LEVELS.index(sandbox.probe().level) > sandbox.LEVELS.index(level):
        pytest.skip(f"the sandbox here is {sandbox.probe().level}")
    monkeypatch.setattr(sandbox, "CAN_FORK", False)
    monkeypatch.setattr(sandbox, "probe", lambda: sandbox.SandboxStatus(level, "for a test"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    worker = start()
    assert worker.level == ("limits" if level == "landlock" else level)
    assert worker.call("run", code="open('note', 'w').write('x'); answer = open('note').read()") == "x"
    family = families(worker)
    with pytest.raises(WorkerFailed, match="did not finish"):
        worker.call("run", code="import os; os.fork()\n" + HANG, seconds=2.0)
    assert not psutil.wait_procs(family, timeout=5)[1]
    assert not list(tmp_path.iterdir())


def test_what_is_hidden_inside_a_readable_folder_gets_no_rule(tmp_path: Path) -> None:
    for name in ("site/torch/a.py", "site/autograder/b.py", "site/z.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    rules = dict(sandbox_view._around(tmp_path, tmp_path / "site" / "autograder"))
    site = tmp_path / "site"
    assert rules == {tmp_path: "list", site: "list", site / "torch": "read", site / "z.py": "read"}


def test_errors_of_the_code_itself_stay_its_own(start: Callable[[], Worker]) -> None:
    with pytest.raises(CheckFailed, match="ValueError: no"):
        start().call("run", code="raise ValueError('no')")
