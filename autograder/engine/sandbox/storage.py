"""What a solution waits for, as the grader holds it: samples that a process of their own serves behind a latency.

A wait that is to be hidden must not be made in the process that is to hide it: what sleeps there can be made not to
sleep, and what is stored there can be read without the wait. So the samples are told to another process, outside of the
sandbox, and it alone says what was asked for, in which order, and how much of it at the same time.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.engine.sandbox.view import STORAGE_FOLDER

_PROGRAM = Path(__file__).with_name("storage_server.py")


class StorageGone(Exception):
    """The process that serves the samples has ended. The text says so."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What was asked of a data set since it was stored.

    Attributes:
        order: the index of each request, in the order in which they came.
        num_asked: requests.
        num_answered: those of them whose latency is over.
        most_at_once: requests that waited at the same time, at most.
    """

    order: list[int]
    num_asked: int
    num_answered: int
    most_at_once: int


def beside(level: str) -> Storage:
    """Storage for a worker that is started with a file system of `level`, and not forked."""
    if not hasattr(socket, "AF_UNIX"):
        return Storage(None)
    folder = Path(tempfile.mkdtemp(prefix="workbook-"))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "storage"))
    listener.listen()
    inside = STORAGE_FOLDER if level == "bubblewrap" else folder
    return Storage(listener, str(inside / "storage"), folder)


class Storage:
    """Samples for one worker, in a process of their own. It ends when this process does, however that ends."""

    def __init__(self, listener: socket.socket | None, place: str = "", folder: Path | None = None) -> None:
        """
        Args:
            listener: where the worker connects; None for a port of loopback.
            place: the path by which the worker knows it.
            folder: what is removed at the end.
        """
        self.token, self.folder = secrets.token_hex(16), folder
        descriptors = [listener.fileno()] if listener else []
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", str(_PROGRAM), *map(str, descriptors)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=descriptors,
            start_new_session=True,  # Ctrl-C is for the grader
        )
        if listener:
            listener.close()
        port = self._do(self.token)["port"]
        self.place = place if port is None else f"127.0.0.1:{port}"

    def put(
        self,
        number: int,
        samples: Sequence[bytes],
        seconds: float | Sequence[float],
        *,
        lost: Sequence[int] = (),
    ) -> None:
        """Store these samples under `number`, in the place of what was there; what was asked before is not of these.

        Args:
            seconds: the latency of each, or of all.
            lost: indices that cannot be read, each until it was asked for once.
        """
        each = [seconds] * len(samples) if isinstance(seconds, float | int) else list(seconds)
        order = {"do": "put", "number": number, "sizes": list(map(len, samples)), "seconds": each}
        self._do(json.dumps(order | {"lost": list(map(int, lost))}), b"".join(samples))

    def asked(self, number: int) -> Asked:
        """What was asked of the data set of this number since it was stored."""
        return Asked(**self._do(json.dumps({"do": "count", "number": number})))

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                with contextlib.suppress(OSError):  # what was not yet written has no reader any more
                    pipe.close()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _do(self, order: str, data: bytes = b"") -> dict[str, Any]:
        orders, answers = self.process.stdin, self.process.stdout
        assert orders and answers
        try:
            orders.write(order.encode() + b"\n" + data)
            orders.flush()
            answer: dict[str, Any] = json.loads(answers.readline())
        except (OSError, ValueError):
            raise StorageGone("the process that serves the samples is gone") from None
        return answer
