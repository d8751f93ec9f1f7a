"""Starts workers with as little reach as this machine allows, and proves it of each before learner code runs.

Levels, strongest first:

- ``bubblewrap``: a file system of its own with the system libraries, the Python installation and the data cache,
  all read-only; no network. Inside it each worker has namespaces of its own and Landlock rules.
- ``landlock``: the kernel's rules for files, TCP, signals and tracing, and own namespaces where the machine allows.
- ``limits``: a scrubbed environment and resource limits alone. Files of the user can be read.

On Linux one prepared process (`inside/forkserver.py`) forks them, ready at once; elsewhere each is started anew.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

from autograder.engine.sandbox import view as sandbox_view
from autograder.engine.sandbox.inside import isolate
from autograder.engine.sandbox.process import Pipes, WorkerProcess, forget, living
from autograder.engine.sandbox.server import ForkServer, SandboxBroken
from autograder.engine.sandbox.storage import Storage, beside
from autograder.engine.sandbox.view import WorkerOptions

Level = Literal["bubblewrap", "landlock", "limits"]
LEVELS: tuple[Level, ...] = get_args(Level)
CAN_FORK = sys.platform == "linux"


@dataclass(frozen=True)
class SandboxStatus:
    """What this machine's sandbox holds: the level, why it is that level, and how to raise it."""

    level: Level
    reason: str
    fix: str = ""


@functools.cache
def probe() -> SandboxStatus:
    """Find the strongest level that really starts here. Cheap: one empty process."""
    if sys.platform != "linux":
        return SandboxStatus(
            "limits", f"bubblewrap and Landlock exist for Linux only, and this is {sys.platform}"
        )
    reason, fix = "bubblewrap is not installed", "install it: sudo apt install bubblewrap"
    if bwrap := shutil.which("bwrap"):
        command = [bwrap, *sandbox_view.ISOLATION, "--ro-bind", "/", "/", "true"]
        trial = subprocess.run(command, capture_output=True, text=True, check=False)
        if trial.returncode == 0:
            return SandboxStatus("bubblewrap", "bubblewrap starts")
        reason = f"bubblewrap does not start: {trial.stderr.strip()[:200]}"
        fix = "allow unprivileged user namespaces for it: see its documentation for your distribution"
    if isolate.landlock_version() >= 6:
        return SandboxStatus(
            "landlock", f"{reason}; the kernel's Landlock denies files, TCP and signals", fix
        )
    return SandboxStatus("limits", f"{reason}; the kernel's Landlock is missing or older than version 6", fix)


@dataclass
class Canary:
    """What a worker's reach is tried on. Its file is at a fixed place, no temporary folder: those may be empty."""

    path: Path
    token: str
    listener: socket.socket

    @classmethod
    def set_up(cls) -> Canary:
        from autograder.common import data_directory

        path = data_directory() / "sandbox_canary"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text("A worker of the sandbox tries to read and to write this file, and must not.\n")
        return cls(path, secrets.token_hex(8), socket.create_server(("127.0.0.1", 0)))

    def options(self) -> dict[str, str | int | list[str]]:
        return {
            "read": [str(self.path), str(Path(__file__).parents[2] / "lessons" / "__init__.py")],
            "write": str(self.path),
            "token": self.token,
            "port": self.listener.getsockname()[1],
            "pid": os.getpid(),
            "processes": str(Path("/proc/self/ns/pid").readlink()) if sys.platform == "linux" else "",
        }

    def take_away(self) -> bool:
        """Whether the file was written to. It is as it was afterwards."""
        self.listener.close()
        text = self.path.read_text()
        if self.token in text:
            self.path.write_text(text.replace(self.token, ""))
        return self.token in text


_servers: dict[Level, ForkServer] = {}
_lock = threading.Lock()


def warm() -> None:
    """Start the fork server ahead of its first use, and return at once."""
    if CAN_FORK:
        _server(probe().level)


def close() -> None:
    """End every worker and fork server of this process."""
    for worker in living():
        worker.kill()
    while _servers:
        _servers.popitem()[1].close()


def stop_loading() -> None:
    """Whoever waits for the first worker gets `SandboxBroken` now. The next one is waited for anew."""
    for server in list(_servers.values()):
        if server.lock.locked():  # one that nobody waits for is there for the next check
            server.give_up()


def start_worker(
    *, threads: int = 1, talks: bool = False, serves: bool = False, modules: Sequence[str] = ()
) -> tuple[WorkerProcess, Storage | None, Canary]:
    """Start a worker; its first message says what it could reach of the canary.

    Args:
        threads: number of intra-op threads of torch in the worker.
        talks: it starts processes that talk over loopback. Where it has no network of its own it then reaches the
            machine's, and its level says so.
        serves: it waits for samples that another process serves, which is returned beside it.
        modules: what it will import and takes a second: done once for all workers, where they are forked.

    Raises `SandboxBroken`.
    """
    level, canary, pipes = probe().level, Canary.set_up(), Pipes()
    options = WorkerOptions(
        threads=threads,
        limits=sandbox_view.limits(),
        talks=talks,
        serves=serves,
        canary=canary.options(),
        modules=modules,
    )
    try:
        with contextlib.suppress(SandboxBroken):
            return *_start(level, options, pipes), canary
        if server := _servers.pop(level, None):  # it was killed: once more, with a new one
            server.close()
            if server.is_given_up:
                raise SandboxBroken("it was stopped as it began")
        return *_start(level, options, pipes), canary
    except SandboxBroken:
        pipes.close()
        os.close(pipes.answers)
        if pipes.told:
            pipes.told.close()
        raise
    finally:
        pipes.passed_on()


def _start(level: Level, options: WorkerOptions, pipes: Pipes) -> tuple[WorkerProcess, Storage | None]:
    if CAN_FORK and _server(level).can_fork():
        return _server(level).fork(options, pipes)
    return _spawn(level, options, pipes)


def settle(canary: Canary, reached: list[str]) -> Level:
    """Turn what a worker could reach into its proven level."""
    is_overwritten = canary.take_away()
    return "limits" if is_overwritten or reached else probe().level


def _server(level: Level) -> ForkServer:
    with _lock:
        if level not in _servers:
            _servers[level] = ForkServer(level)
        return _servers[level]


def _spawn(level: Level, options: WorkerOptions, pipes: Pipes) -> tuple[WorkerProcess, Storage | None]:
    """A worker with an interpreter of its own, where none can be forked."""
    folder = None if level == "bubblewrap" else Path(tempfile.mkdtemp(prefix="workbook-"))
    storage = beside(level) if options.serves else None
    tells = pipes.tells.fileno() if pipes.tells else None
    told = asdict(options) | {"home": str(folder or isolate.HOME), "tells": tells}
    command = sandbox_view.command(
        level, "worker.py", is_shared=False, storage=storage.folder if storage else None
    )
    popen = subprocess.Popen(
        [*command, json.dumps(told)],
        stdin=pipes.for_worker,
        stdout=pipes.from_worker,
        stderr=pipes.log,
        pass_fds=() if tells is None else (tells,),
        env=sandbox_view.environment(),
        cwd=folder or "/",
        start_new_session=True,
    )
    return WorkerProcess(popen.pid, pipes, options.memory, popen=popen, folder=folder), storage


def _forget_parent() -> None:
    for server in _servers.values():
        server.control.close()  # else the server would outlive its owner
    _servers.clear()
    forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)
atexit.register(close)
