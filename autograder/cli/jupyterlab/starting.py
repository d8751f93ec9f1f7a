"""`workbook start`: the learner's folder, opened in JupyterLab on the start page.

Nothing is registered outside the environment: the server and its kernel are the Python that runs this, and the
few settings that differ from JupyterLab's own are in a folder that lives as long as the server.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import sys
import webbrowser
from pathlib import Path

from autograder.cli.jupyterlab.server import HOST, running_lab
from autograder.common import START_PAGE, data_directory, default_folder, release_folder
from autograder.learner import hand_out
from course_lib.base import UserError

FIRST_PORT = 8888


def start(
    *,
    directory: Path | None = None,
    port: int | None = None,
    open_browser: bool = True,
    address: str = HOST,
) -> int:
    """Hand out the notebooks, serve them until Ctrl-C, and return the exit status.

    Args:
        address: that is listened at: this machine's own by default, where nobody else reaches it.

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
    token = os.environ.get("JUPYTER_TOKEN") or secrets.token_urlsafe(24)
    page = f"/lab/tree/{START_PAGE.as_posix()}"
    layouts = data_directory() / "jupyterlab"
    try:
        with running_lab(folder, page, port=chosen, token=token, layouts=layouts, address=address) as lab:
            # The files in the side bar begin with the folder of all lessons, not with that of the start page.
            url = f"{lab.address}{page}?token={token}&file-browser-path=/"
            print(f"JupyterLab is ready: {url}")
            print("Stop it with Ctrl-C in this window.", flush=True)
            if open_browser and not _open(url):
                print("No browser opened by itself: copy the address above into one.", flush=True)
            try:
                lab.wait()
            except KeyboardInterrupt:
                print("\nStopping JupyterLab; your notebooks stay as you saved them.", flush=True)
    except KeyboardInterrupt:  # before it was ready, or once more while it stops
        pass
    return 0


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
