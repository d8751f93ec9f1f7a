"""The prepared parent of workers: it has torch loaded, runs no learner code, and forks a worker per request.

Its standard input is a socket to the grader. First comes a message with options, then one per worker with the
pipes of that worker. When the grader is gone, however it went, the socket says so, and this process ends with all
that it started.

A worker is two processes: a keeper, the first process of the namespaces, and under it the one that runs learner
code. The end of the keeper is the end of everything in them.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import json
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parent))

import isolate  # type: ignore[import-not-found]
import worker  # type: ignore[import-not-found]

PRELOADED = (
    "torch",
    "numpy",
    "psutil",
    "course_lib.data",
    "course_lib.models.transformers",
    "course_lib.measuring.counters",
)
#: Loaded before the first worker that needs it, or while nobody has asked for one: the first optimizer asks for it.
WHEN_IDLE = "torch._dynamo"
_IDLE_SECONDS = 1.0


def main() -> None:
    """Serve until the grader hangs up."""
    control = socket.socket(fileno=os.dup(0))
    options = json.loads(control.recv(2**20))
    isolate.call("prctl", 36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: a worker is this process's child
    _load(PRELOADED)
    # As an ordinary user where that works: root's workers become one of their own.
    users = (options["user"], os.getuid()) if options["namespaces"] else ()
    options["user"] = next((user for user in users if _can_isolate(options, user)), None)
    options["namespaces"] = options["user"] is not None
    control.send(json.dumps({"namespaces": options["namespaces"]}).encode())
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for workers
    folders = []
    if not select.select([control], [], [], _IDLE_SECONDS)[0]:
        _load([WHEN_IDLE])
    while True:
        message, descriptors, *_ = socket.recv_fds(control, 2**20, 4)
        if not message:
            break
        request = options | json.loads(message)
        request["canary"]["server"] = os.getpid()
        _load(request["modules"])
        if not options["namespaces"]:
            request["home"] = tempfile.mkdtemp(prefix="workbook-")
            folders.append(request["home"])
        if os.fork() == 0:
            _become_keeper(control, descriptors, request)
        for descriptor in descriptors:
            os.close(descriptor)
    isolate.kill_descendants(os.getpid())
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _load(modules: Iterable[str]) -> None:
    """Import what is not there yet, for all workers to come."""
    if not (missing := [name for name in modules if name not in sys.modules]):
        return
    # torch._dynamo makes this folder as it loads; here it must be there.
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = "/"
    for name in missing:
        with contextlib.suppress(Exception):  # else the worker meets the error, and says so
            importlib.import_module(name)
    del os.environ["TORCHINDUCTOR_CACHE_DIR"]
    gc.collect()
    gc.freeze()  # a collection in a worker does not copy what all share


def _can_isolate(options: dict[str, Any], user: int) -> bool:
    """Whether a child gets namespaces and mounts of its own here, and may read what it needs."""
    child = os.fork()
    if child == 0:
        try:
            isolate.leave_root(user)
            isolate.enter_namespaces()
            grandchild = os.fork()  # its /proc is of the new process namespace
            if grandchild == 0:
                isolate.make_places(options["needed"], options["place_bytes"])
                os._exit(0 if all(os.access(path, os.R_OK) for path in options["needed"]) else 1)
            os._exit(os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]))
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _become_keeper(control: socket.socket, descriptors: list[int], request: dict[str, Any]) -> NoReturn:
    """Isolate, tell the grader, start the worker, and end when it ends. Never returns into the server."""
    own_proc = False
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()  # the scheduler shares between sessions: a worker with many processes gets no more than another
        if request["namespaces"]:
            isolate.leave_root(request["user"])
            isolate.enter_namespaces()
            if os.fork():
                os._exit(0)
            own_proc = isolate.make_places(request["needed"], request["place_bytes"])
            request["home"] = isolate.HOME
            if own_proc:  # the server has no number in there, and its number outside may be the worker's
                del request["canary"]["server"]
        else:
            isolate.call(
                "prctl", 36, 1, 0, 0, 0
            )  # what the worker leaves behind becomes this process's child
        # The kernel adds this process's id as the grader sees it.
        told, listeners = {"home": request["home"]}, []
        if request["serves"]:
            told["storage"] = f"{request['home']}/storage"
            listeners.append(_listen(told["storage"]))
        socket.send_fds(control, [json.dumps(told).encode()], [each.fileno() for each in listeners])
        for listener in listeners:
            listener.close()
        child = os.fork()
        if child == 0:
            _become_worker(descriptors, request, own_proc)
        os.dup2(descriptors[2], 0)
        os.closerange(1, 2**16)
        isolate.drop_privileges()
        isolate.call("prctl", 4, 0, 0, 0, 0)  # PR_SET_DUMPABLE: the worker may not look in here
        ended = status = 0
        while ended != child:
            ended, status = os.wait()
        if not request["namespaces"]:
            isolate.kill_descendants(os.getpid())
        os.write(0, f"\nstatus {os.waitstatus_to_exitcode(status)}".encode())
    except OSError as error:
        control.send(json.dumps({"error": str(error)}).encode())
    finally:
        os._exit(0)


def _listen(path: str) -> socket.socket:
    """The socket that the worker connects to, and at which a process of the grader's answers."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    return listener


def _become_worker(descriptors: list[int], request: dict[str, Any], own_proc: bool) -> NoReturn:
    try:
        requests, answers, log, tells = (fcntl.fcntl(number, fcntl.F_DUPFD, 100) for number in descriptors)
        null = os.open(os.devnull, os.O_RDWR)
        for source, target in ((null, 0), (log, 1), (log, 2), (requests, 3), (answers, 4), (tells, 5)):
            os.dup2(source, target, inheritable=target < 3)
        os.closerange(6, 2**16)  # the server's socket, and whatever torch has opened
        isolate.drop_privileges()
        if request["landlock"]:
            rules = [*request["rules"], (request["home"], "write")]
            if not request["namespaces"]:
                rules.append(("/dev/shm", "share"))
            else:
                places = [
                    place for place in isolate.PLACES if not isolate.is_needed(place, request["needed"])
                ]
                rules += [(place, "write") for place in places]
            isolate.landlock(rules, own_network=request["namespaces"] or request["talks"], own_proc=own_proc)
        worker.serve(3, 4, request | {"tells": 5})
    finally:
        os._exit(70)


if __name__ == "__main__":
    main()
elif __name__ == "__mp_main__":
    worker.load_again()
