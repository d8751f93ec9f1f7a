"""The prepared process that forks a worker in milliseconds, as the grader holds it."""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import tempfile
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from autograder.engine.sandbox import view as sandbox_view
from autograder.engine.sandbox.process import Pipes, WorkerProcess
from autograder.engine.sandbox.storage import Storage
from autograder.engine.sandbox.view import WorkerOptions


class SandboxBroken(Exception):
    """No worker starts. The text says why."""


class ForkServer:
    """The grader's end of a fork server. It ends when this process does, however that ends."""

    def __init__(self, level: str) -> None:
        self.level = level
        self.lock = threading.Lock()
        self.has_namespaces: bool | None = None
        self.is_given_up = False
        self.process: subprocess.Popen[bytes] | None = None
        self.log = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - lives as long as the server
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.control.send(json.dumps(asdict(sandbox_view.server_options(level))).encode())
        # In a thread that lasts: bubblewrap ends with the thread that started it.
        self.thread = threading.Thread(target=self._run, args=(theirs,), daemon=True)
        self.thread.start()

    def _run(self, theirs: socket.socket) -> None:
        with theirs:
            self.process = subprocess.Popen(
                sandbox_view.command(self.level, "forkserver.py", is_shared=True),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=self.log,
                env=sandbox_view.environment(),
                cwd="/",
                start_new_session=True,
            )
        self.process.wait()

    def can_fork(self) -> bool:
        """Whether it keeps its workers apart as the level says. Waits until torch is loaded."""
        with self.lock:
            if self.has_namespaces is None:
                self.has_namespaces = self._receive(120.0)[0]["namespaces"]
        return self.has_namespaces or self.level != "bubblewrap"

    def fork(self, options: WorkerOptions, pipes: Pipes) -> tuple[WorkerProcess, Storage | None]:
        """A new worker, and what serves it. Raises `SandboxBroken` when the server is gone or cannot."""
        passed = [pipes.for_worker, pipes.from_worker, pipes.log.fileno()]
        passed += [pipes.tells.fileno()] if pipes.tells else []
        with self.lock:
            try:
                socket.send_fds(self.control, [json.dumps(asdict(options)).encode()], passed)
            except OSError as error:
                raise SandboxBroken(f"the process that prepares workers is gone: {error}") from None
            answer, pid, listeners = self._receive(30.0)
        owns_all = bool(self.has_namespaces)
        folder = None if owns_all else Path(answer["home"])
        process = WorkerProcess(pid, pipes, options.memory, owns_all=owns_all, folder=folder)
        # Made in there and served from out here: no other worker sees it, and it takes no hole in any wall.
        storages = [Storage(listener, answer["storage"]) for listener in listeners]
        return process, storages[0] if storages else None

    def _receive(self, seconds: float) -> tuple[dict[str, Any], int, list[socket.socket]]:
        """A message, the process that sent it, by the kernel's word, and the sockets that came with it."""
        self.control.settimeout(seconds)
        try:
            room = socket.CMSG_SPACE(12) + socket.CMSG_SPACE(4)
            message, ancillary, *_ = self.control.recvmsg(2**16, room)
            answer = json.loads(message)
        except (OSError, ValueError) as error:
            self.log.seek(0)
            words = self.log.read().decode(errors="replace").strip().splitlines()[-1:]
            raise SandboxBroken(
                f"the process that prepares workers is gone: {(words or [error])[0]}"
            ) from None
        if "error" in answer:
            raise SandboxBroken(f"a worker could not be kept apart: {answer['error']}")
        sent = {kind: data for _, kind, data in ancillary}
        descriptors = struct.unpack("i", sent[socket.SCM_RIGHTS]) if socket.SCM_RIGHTS in sent else ()
        sender = struct.unpack("iII", sent[socket.SCM_CREDENTIALS])[0]
        return answer, sender, [socket.socket(fileno=descriptor) for descriptor in descriptors]

    def give_up(self) -> None:
        """End it if it still loads torch: it would hear of anything else seconds later."""
        if self.has_namespaces is None and self.process:
            self.is_given_up = True
            self.process.kill()

    def close(self) -> None:
        """End the server and all its workers."""
        self.control.close()
        self.give_up()
        self.thread.join(10.0)
