"""`workbook start`: the learner's folder, opened in JupyterLab on the start page.

Nothing is registered outside the environment: the server and its kernel are the Python that runs this, and the
few settings that differ from JupyterLab's own are in a folder that lives as long as the server.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import webbrowser
from pathlib import Path

from autograder.handout import START_PAGE, default_folder, hand_out, release_folder
from autograder.lab_settings import lab_arguments, write_settings
from course_lib.errors import UserError

FIRST_PORT = 8888
HOST = "127.0.0.1"
READY_SECONDS = 120.0


def start(*, directory: Path | None = None, port: int | None = None, open_browser: bool = True) -> int:
    """Hand out the notebooks, serve them until Ctrl-C, and return the exit status.

    Raises UserError if the folder cannot be written, the port cannot be had or the server does not come up.
    """
    folder = (directory or default_folder()).expanduser().resolve()
    said = hand_out(release_folder(), folder)
    print(f"Your notebooks are in {folder}")
    for line in said:
        print(f"  {line}")
    chosen = choose_port(port)
    if port is None and chosen != FIRST_PORT:
        print(f"Port {FIRST_PORT} is taken: using {chosen}")
    for name in {"SIGINT", "SIGTERM", "SIGHUP"} & set(dir(signal)):
        # A polite kill and a closed window are as good as Ctrl-C: no server is left behind. SIGINT is named because
        # a shell script that starts a program in the background makes it ignore that one.
        signal.signal(getattr(signal, name), signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="workbook-jupyter-") as settings:
        token = os.environ.get("JUPYTER_TOKEN") or secrets.token_urlsafe(24)
        log = Path(settings) / "server.log"
        server = _serve(folder, chosen, token, Path(settings), log)
        try:
            _wait_until_ready(server, chosen, log)
            # The files in the side bar begin with the folder of all lessons, not with that of the start page.
            page = f"{START_PAGE.as_posix()}?token={token}&file-browser-path=/"
            url = f"http://{HOST}:{chosen}/lab/tree/{page}"
            print(f"JupyterLab is ready: {url}")
            print("Stop it with Ctrl-C in this window.", flush=True)
            if open_browser and not _open(url):
                print("No browser opened by itself: copy the address above into one.", flush=True)
            status = server.wait()
            raise UserError(f"JupyterLab ended by itself (status {status}): {_last_line(log)}")
        except KeyboardInterrupt:
            print("\nStopping JupyterLab; your notebooks stay as you saved them.", flush=True)
            return 0
        finally:
            _stop(server)


def _open(url: str) -> bool:
    """Open the page in a browser with windows; one of the terminal would take the terminal away."""
    has_windows = any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME", "BROWSER")
    )
    return (has_windows or not sys.platform.startswith("linux")) and webbrowser.open(url)


def choose_port(wanted: int | None) -> int:
    """A port that is free on this machine: the one asked for, else the first from 8888 on.

    Raises UserError if the one asked for is taken or is none.
    """
    if wanted is None:
        return next(port for port in range(FIRST_PORT, 65536) if _is_free(port))
    if not 1 <= wanted <= 65535:
        raise UserError(f"--port {wanted}: a port is a number from 1 to 65535")
    if not _is_free(wanted):
        raise UserError(
            f"port {wanted} cannot be used: another program has it or it needs more rights; "
            "name another with --port N, or leave --port out"
        )
    return wanted


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        if os.name != "nt":  # as the server itself does: a port in TIME_WAIT is free
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _serve(folder: Path, port: int, token: str, settings: Path, log: Path) -> subprocess.Popen[bytes]:
    command = [
        # -P: a learner's file named like a module of the standard library must not stop the server.
        *(sys.executable, "-P", "-m", "jupyterlab", "--no-browser"),
        f"--ServerApp.ip={HOST}",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        f"--ServerApp.root_dir={folder}",
        f"--LabApp.default_url=/lab/tree/{START_PAGE.as_posix()}",
        *lab_arguments(),
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


def _wait_until_ready(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    # The machine's proxy settings have no say in talking to ourselves.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise UserError(f"JupyterLab did not start: {_last_line(log)} (workbook doctor may know more)")
        with contextlib.suppress(OSError, urllib.error.URLError):
            opener.open(f"http://{HOST}:{port}/api", timeout=5).close()
            return
        time.sleep(0.1)
    raise UserError(f"JupyterLab did not answer within {READY_SECONDS:.0f} s: {_last_line(log)}")


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1].strip()[:300] if lines else "it left no message"


def _stop(server: subprocess.Popen[bytes]) -> None:
    """End the server; it ends its kernels on SIGTERM. A second Ctrl-C does not cut this short."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server.terminate()  # does nothing to a server that has ended
    try:
        server.wait(timeout=15)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
