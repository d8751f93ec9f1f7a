"""A JupyterLab server as `workbook start` runs it: this Python, our settings, no trace outside its folder."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autograder.cli.jupyterlab.settings import lab_arguments, write_settings
from course_lib.base import UserError

HOST = "127.0.0.1"
_ANY = ("0.0.0.0", "")  # stands for all of a machine's addresses, and is none that answers
READY_SECONDS = 120.0


@dataclass(frozen=True)
class Lab:
    """A server that answers."""

    process: subprocess.Popen[bytes]
    address: str
    log: Path

    def wait(self) -> None:
        """Until the server ends by itself, which it should not: raises UserError."""
        status = self.process.wait()
        raise UserError(f"JupyterLab ended by itself (status {status}): {_last_line(self.log)}")


@contextlib.contextmanager
def running_lab(
    folder: Path, page: str, *, port: int, token: str, layouts: Path, address: str = HOST
) -> Iterator[Lab]:
    """Serve `folder` until the block ends. `page` is what the bare address opens; `layouts` remembers the windows;
    `address` is of the machine's own ones that which is listened at.

    Raises UserError with the server's last words if it does not come up.
    """
    with tempfile.TemporaryDirectory(prefix="workbook-jupyter-") as name:
        settings = Path(name)
        log = settings / "server.log"
        process = _serve(folder, page, (address, port), token, layouts, settings, log)
        lab = Lab(process, f"http://{HOST if address in _ANY else address}:{port}", log)
        try:
            _wait_until_ready(lab)
            yield lab
        finally:
            _stop(process)


def open_here(url: str, timeout: float) -> bytes:
    """What a server on this machine answers. The machine's proxy settings have no say in talking to ourselves."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=timeout) as answer:
        return answer.read()


def _serve(
    folder: Path,
    page: str,
    place: tuple[str, int],
    token: str,
    layouts: Path,
    settings: Path,
    log: Path,
) -> subprocess.Popen[bytes]:
    command = [
        # -P: a learner's file named like a module of the standard library must not stop the server.
        *(sys.executable, "-P", "-m", "jupyterlab", "--no-browser"),
        f"--ServerApp.ip={place[0]}",
        f"--ServerApp.port={place[1]}",
        "--ServerApp.port_retries=0",
        f"--ServerApp.root_dir={folder}",
        f"--LabApp.default_url={page}",
        *lab_arguments(layouts),
    ]
    if hasattr(os, "geteuid") and os.geteuid() == 0:  # containers; Jupyter refuses root unless told
        command.append("--allow-root")
    environment = {
        **os.environ,
        **write_settings(settings),
        "JUPYTER_TOKEN": token,  # not on the command line, where other users of the machine could read it
        # What this environment brings goes before what the user has installed for themselves.
        "JUPYTER_PREFER_ENV_PATH": "1",
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
    }
    with log.open("wb") as output:
        # A session of its own: Ctrl-C reaches this process alone, which then ends the server in order.
        return subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _wait_until_ready(lab: Lab) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if lab.process.poll() is not None:
            raise UserError(
                f"JupyterLab did not start: {_last_line(lab.log)} (workbook doctor may know more)"
            )
        with contextlib.suppress(OSError, urllib.error.URLError):
            open_here(f"{lab.address}/api", timeout=5)
            return
        time.sleep(0.1)
    raise UserError(f"JupyterLab did not answer within {READY_SECONDS:.0f} s: {_last_line(lab.log)}")


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1].strip()[:300] if lines else "it left no message"


def _stop(server: subprocess.Popen[bytes]) -> None:
    """End the server; it ends its kernels on SIGTERM. A second Ctrl-C does not cut this short."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        server.terminate()  # does nothing to a server that has ended
        server.wait(timeout=15)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    finally:
        signal.signal(signal.SIGINT, before)
