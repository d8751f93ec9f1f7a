"""`workbook start` for real, from the checkout: servers on real ports."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.running_course import START_PAGE, course, start_command, user_env


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return user_env(tmp_path)


def command_line(process: psutil.Process) -> list[str]:
    """Empty for a process that has ended, a zombie included."""
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []


def test_serves_the_start_page_with_this_python_and_stops_cleanly(
    tmp_path: Path, env: dict[str, str]
) -> None:
    folder, port = tmp_path / "my course", free_port()
    own = tmp_path / "config" / "lab" / "user-settings" / "@jupyterlab" / "apputils-extension"
    own.mkdir(parents=True)
    (own / "themes.jupyterlab-settings").write_text('{"theme": "JupyterLab Dark"}')
    env["WORKBOOK_DATA"] = str(tmp_path / "data")
    with course(start_command(sys.executable, folder, "--port", str(port)), env) as running:
        assert running.port == port
        assert running.page == START_PAGE
        page = running.ask(f"/api/contents/{START_PAGE}")
        assert page["content"]["cells"]
        lab = running.ask(f"/lab/tree/{START_PAGE}")
        config = json.loads(re.search(r'"application/json">(.*?)</script>', lab, re.DOTALL)[1])  # type: ignore[index]
        assert "@jupyterlab/apputils-extension:announcements" in config["disabledExtensions"]
        brought = [extension["name"] for extension in config["federated_extensions"]]
        assert "training-workbook" in brought  # it marks the cells where the learner writes
        assert "@jupyter-widgets/jupyterlab-manager" in brought
        # What the user has chosen for all their Jupyter holds here too; the rest is the course's.
        assert running.setting("apputils-extension:themes", "adaptive-theme") is False
        assert running.setting("docmanager-extension:plugin", "autosaveInterval") == 30
        layout = running.ask("/lab/api/workspaces/default")["data"]["layout-restorer:data"]
        assert layout["left"]["current"] == "@jupyterlab/toc:plugin"
        kernel = running.ask("/api/kernels", {"name": "python3"})
        assert kernel["name"] == "python3"
        deadline = time.monotonic() + 30
        kernels: list[list[str]] = []
        while (
            not kernels and time.monotonic() < deadline
        ):  # between fork and exec it still has its parent's name
            children = psutil.Process(running.process.pid).children(recursive=True)
            kernels = [line for line in map(command_line, children) if "ipykernel_launcher" in line]
        assert [Path(line[0]).parent for line in kernels] == [Path(sys.executable).parent]

        running.process.send_signal(signal.SIGINT)
        rest, _ = running.process.communicate(timeout=30)
        assert running.process.returncode == 0
        assert "Traceback" not in rest
        assert not any(map(command_line, children))
    assert (folder / START_PAGE).is_file()
    assert list((tmp_path / "jupyter" / "kernels").iterdir()) == [
        tmp_path / "jupyter" / "kernels" / "python3"
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere 127.0.0.2 is no address of the machine")
def test_it_listens_where_it_is_told_to_and_nowhere_else(tmp_path: Path, env: dict[str, str]) -> None:
    port = free_port()
    options = ("--port", str(port), "--ip", "127.0.0.2")
    with course(start_command(sys.executable, tmp_path / "c", *options), env):
        socket.create_connection(("127.0.0.2", port), timeout=5).close()
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=5)


@pytest.mark.further
@pytest.mark.measures
def test_the_second_start_of_a_checkout_is_ready_within_ten_seconds(
    root: Path, tmp_path: Path, env: dict[str, str]
) -> None:
    if not (root / ".venv" / ".workbook-setup.json").exists():
        pytest.skip("this checkout was not set up by workbook.py")
    command = [
        sys.executable,
        str(root / "workbook.py"),
        "start",
        "--no-browser",
        "--dir",
        str(tmp_path / "c"),
    ]
    times = []
    for _ in range(2):
        with course(command, env) as running:
            times.append(running.seconds)
            assert not any("Packages to install" in line for line in running.printed)
    assert min(times) < 10


def test_a_taken_port_is_refused_if_asked_for_and_avoided_if_not(tmp_path: Path, env: dict[str, str]) -> None:
    with contextlib.ExitStack() as stack:
        taken = stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
        done = subprocess.run(
            start_command(sys.executable, tmp_path / "c", "--port", str(taken)),
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert f"port {taken} cannot be used" in done.stderr and "--port N" in done.stderr

        with contextlib.suppress(OSError):  # taken by somebody else: just as good
            stack.enter_context(socket.create_server(("127.0.0.1", 8888)))
        running = stack.enter_context(course(start_command(sys.executable, tmp_path / "c"), env))
        assert running.port != 8888
        assert f"Port 8888 is taken: using {running.port}" in running.printed
        assert running.ask("/api/status")["kernels"] == 0
        assert running.setting("apputils-extension:themes", "adaptive-theme") is True
