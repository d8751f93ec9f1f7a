"""What the sandbox promises, tried from inside, and what happens to code that misbehaves."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

from autograder.engine.check import check_source
from autograder.engine.job import Job
from autograder.engine.sandbox import start as sandbox
from autograder.engine.sandbox import view as sandbox_view
from autograder.engine.sandbox.inside import isolate
from autograder.engine.workers import WorkerFailed

HARNESS = "def run(code):\n    space = {}\n    exec(code, space)\n    return space.get('answer')\n"
EVERY_PIPE = (
    "import os\n"
    "for descriptor in range(3, 20):\n"
    "    try:\n"
    "        os.write(descriptor, {data})\n"
    "    except OSError:\n"
    "        pass\n"
)
NEEDS_BUBBLEWRAP = pytest.mark.skipif(
    sandbox.probe().level != "bubblewrap", reason="bubblewrap does not start on this machine"
)


@pytest.fixture
def job() -> Iterator[Job]:
    job = Job(
        exercise_id="0.1",
        entry="solve",
        source="def solve(): pass",
        harness=HARNESS,
        rng=np.random.default_rng(0),
    )
    yield job
    job.close()


@NEEDS_BUBBLEWRAP
def test_a_worker_proves_its_level_before_any_code_runs(job: Job) -> None:
    assert job.learner().level == "bubblewrap"
    assert job.level() == "bubblewrap"


@NEEDS_BUBBLEWRAP
@pytest.mark.parametrize(
    "code",
    [
        "import socket; socket.create_connection(('127.0.0.1', {port}), 2); answer = 1",
        "answer = len(open({file!r}).read())",
        "open({file!r}, 'a').write('x'); answer = 1",
        "import os; answer = os.listdir({folder!r})",
        "import os; os.kill({pid}, 0); answer = 1",
        "import autograder.course.lessons; answer = 1",
        "open('/usr/local/written', 'w'); answer = 1",
        "open('/proc/self/mem', 'rb'); answer = 1",
        "answer = open('/etc/passwd').read()",
        "import os; os.open('mem', os.O_RDWR, dir_fd=os.open('/proc/self', 0)); answer = 1",
        "import pathlib, course_lib; open(pathlib.Path(course_lib.__file__), 'a'); answer = 1",
    ],
)
def test_out_of_reach(job: Job, tmp_path: Path, code: str) -> None:
    import socket

    secret = tmp_path / "other_submission.ipynb"
    secret.write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        names = {
            "port": server.getsockname()[1],
            "file": str(secret),
            "folder": str(tmp_path),
            "pid": os.getpid(),
        }
        with pytest.raises(Exception, match=r"Error|Expected") as raised:
            job.learner().call("run", code=code.format(**names))
    assert "code that runs" in str(raised.value)
    assert secret.read_text() == "secret"


def test_the_environment_is_scrubbed(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "token")
    answer = job.learner().call("run", code="import os; answer = dict(os.environ)")
    assert "A_SECRET" not in answer
    assert answer["OMP_NUM_THREADS"] == "1"


@NEEDS_BUBBLEWRAP
@pytest.mark.parametrize("talks", [False, True])
def test_the_name_of_the_machine_is_made_up(job: Job, talks: bool) -> None:
    job.talks = talks
    code = "import os, socket; answer = [os.uname().nodename, socket.gethostname()]"
    assert job.learner().call("run", code=code) == ["sandbox", "sandbox"]


def test_a_private_place_can_be_written_and_no_folder_is_on_the_disk(job: Job) -> None:
    worker = job.learner()
    assert worker.call("run", code="open('note', 'w').write('x'); answer = open('note').read()") == "x"
    assert worker.process.folder is None


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("while True: pass", "did not finish"),
        ("import os; os._exit(7)", "status 7"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ended early"),
        (EVERY_PIPE.format(data="b'x' * 64"), "what no check asked for"),
        (
            EVERY_PIPE.format(data="(100).to_bytes(8, 'little') + b'half a frame'") + "while True: pass",
            "not finish",
        ),
    ],
)
def test_what_cannot_be_run_has_a_kind_reason_and_leaves_nothing(job: Job, code: str, says: str) -> None:
    worker = job.learner()
    root = psutil.Process(worker.process.pid)
    family = [root, *root.children(recursive=True)]
    with pytest.raises(WorkerFailed, match=says):
        worker.call("run", code=code, seconds=2.0)
    gone, alive = psutil.wait_procs(family, timeout=5)
    assert not alive and gone


def test_children_that_ignore_signals_are_killed_too(job: Job) -> None:
    worker = job.learner()
    code = (
        "import os, signal, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    [signal.signal(s, signal.SIG_IGN) for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)]\n"
        "    time.sleep(600)\n"
        "answer = 1\n"
    )
    worker.call("run", code=code)
    root = psutil.Process(worker.process.pid)
    family = root.children(recursive=True)
    assert family
    job.close()
    assert not psutil.wait_procs(family, timeout=5)[1]


def test_memory_is_limited(job: Job) -> None:
    with pytest.raises(Exception, match=r"MemoryError|ended early"):
        job.learner().call("run", code="answer = len(bytearray(40 * 2**30))", seconds=20.0)


def test_cpu_time_of_all_descendants_is_seen(job: Job) -> None:
    worker = job.learner()
    before = worker.process.cpu_seconds()
    worker.call(
        "run", code="import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass"
    )
    assert worker.process.cpu_seconds() - before >= 0.4


def test_a_lie_about_the_time_changes_nothing(job: Job) -> None:
    code = "import time\ntime.perf_counter = time.monotonic = time.time = lambda: 0.0\ntime.sleep(0.3)"
    start = time.perf_counter()
    seconds, _ = job.learner().timed_call("run", code=code)
    assert 0.3 <= seconds <= time.perf_counter() - start


def test_printing_goes_nowhere_near_the_pipe() -> None:
    source = (
        '@exercise("0.1")\ndef speedup(a, b):\n    print("1" * 10000)\n'
        "    if a <= 0 or b <= 0:\n        raise ValueError\n    return a / b\n"
    )
    assert check_source("0.1", source).verdict == "pass"


@pytest.mark.further
def test_without_bubblewrap_checks_still_run_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    status = sandbox.SandboxStatus("limits", "as on a machine without bubblewrap")
    monkeypatch.setattr(sandbox, "probe", lambda: status)
    source = (
        '@exercise("0.1")\ndef speedup(a, b):\n    if a <= 0 or b <= 0:\n'
        "        raise ValueError\n    return a / b\n"
    )
    result = check_source("0.1", source)
    assert (result.verdict, result.sandbox) == ("pass", "limits")
    hangs = source.replace("return a / b", "import os\n    os.fork()\n    while True: pass")
    monkeypatch.setattr("autograder.engine.job.Worker.call.__kwdefaults__", {"seconds": 2.0})
    # What a worker leaves behind becomes a child of the process that forked it, which is a child of this one.
    before = set(psutil.Process().children(recursive=True))
    assert check_source("0.1", hangs).verdict == "error"
    left = set(psutil.Process().children(recursive=True)) - before
    assert not psutil.wait_procs(left, timeout=5)[1]


LOOPBACK = (
    "import socket\n"
    "try:\n"
    "    server = socket.create_server(('127.0.0.1', 0))\n"
    "    socket.create_connection(server.getsockname(), 2)\n"
    "    answer = 'met'\n"
    "except OSError as error:\n"
    "    answer = type(error).__name__\n"
)


@pytest.mark.further
@pytest.mark.skipif(isolate.landlock_version() < 6, reason="the kernel has no Landlock that denies TCP")
@pytest.mark.parametrize(
    ("talks", "answer", "level"), [(False, "PermissionError", "landlock"), (True, "met", "limits")]
)
def test_ranks_meet_also_without_a_network_of_their_own_and_the_level_says_so(
    job: Job, monkeypatch: pytest.MonkeyPatch, talks: bool, answer: str, level: str
) -> None:
    options = replace(sandbox_view.server_options("landlock"), namespaces=False)
    monkeypatch.setattr(sandbox_view, "server_options", lambda level: options)
    monkeypatch.setattr(sandbox, "probe", lambda: sandbox.SandboxStatus("landlock", "for a test"))
    monkeypatch.setattr(sandbox, "_servers", {})
    try:
        job.talks = talks
        assert job.learner().call("run", code=LOOPBACK) == answer
        assert job.level() == level
    finally:
        for server in sandbox._servers.values():
            server.close()
