"""`workbook start` for real: servers on real ports, from the checkout and from a wheel installed elsewhere."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
import urllib.request
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

START_PAGE = "00_start_here/00_start_here.ipynb"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Course:
    """A running `workbook start`: what it printed, and its server's interface."""

    def __init__(self, process: subprocess.Popen[str], printed: list[str], seconds: float) -> None:
        self.process, self.printed, self.seconds = process, printed, seconds
        match = re.search(r"(http://127\.0\.0\.1:(\d+))/lab/tree/(\S+)\?token=([^\s&]+)", printed[-1])
        assert match, printed
        self.address, self.port, self.page, self.token = match[1], int(match[2]), match[3], match[4]

    def ask(self, path: str, content: dict[str, Any] | None = None) -> Any:
        data = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(
            f"{self.address}{path}", data, {"Authorization": f"token {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            body = answer.read()
        return json.loads(body) if "/api/" in path else body.decode()

    def setting(self, plugin: str, name: str) -> Any:
        """What a setting of JupyterLab is where the user has none of their own."""
        schema = self.ask(f"/lab/api/settings/@jupyterlab/{plugin}")["schema"]
        return schema["properties"][name]["default"]


@contextlib.contextmanager
def course(command: list[str], env: dict[str, str]) -> Iterator[Course]:
    began = time.monotonic()
    process = subprocess.Popen(
        command,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    printed: list[str] = []
    try:
        assert process.stdout is not None
        for line in process.stdout:
            printed.append(line.strip())
            if "JupyterLab is ready" in line:
                break
        yield Course(process, printed, time.monotonic() - began)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=30)
        process.kill()


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A user whose own Jupyter folder holds a kernel named python3 that must not be taken."""
    decoy = tmp_path / "jupyter" / "kernels" / "python3"
    decoy.mkdir(parents=True)
    spec = {
        "argv": ["/no/such/python", "-f", "{connection_file}"],
        "display_name": "decoy",
        "language": "python",
    }
    (decoy / "kernel.json").write_text(json.dumps(spec))
    return {
        **os.environ,
        "JUPYTER_DATA_DIR": str(tmp_path / "jupyter"),
        "JUPYTER_CONFIG_DIR": str(tmp_path / "config"),
    }


def start_command(python: Path | str, folder: Path, *args: str) -> list[str]:
    script = Path(python).with_name("workbook")
    return [str(python), str(script), "start", "--no-browser", "--dir", str(folder), *args]


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


@pytest.fixture(scope="module")
def project_copy(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that git knows or would take, apart, so that building leaves nothing in the checkout."""
    folder = tmp_path_factory.mktemp("copy") / "project"
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, names.split("\0")):
        if (root / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, folder / name)
    return folder


def build(folder: Path, kind: str) -> Path:
    command = [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", str(folder / "out")]
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return next((folder / "out").glob("*.whl" if kind == "wheel" else "*.tar.gz"))


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def test_wheel_and_sdist_carry_the_same_and_all_of_it(root: Path, project_copy: Path, tmp_path: Path) -> None:
    wheel = names_in(build(project_copy, "wheel"))
    release = root / "notebooks" / "release"
    carried = {f"autograder/release/{path.relative_to(release)}" for path in release.rglob("*.ipynb")}
    assert carried and carried <= wheel
    assert {"course_lib/py.typed", "autograder/py.typed"} <= wheel
    assert {"course_lib/data/corpus.zip", "course_lib/data/corpus_licences.txt"} <= wheel
    quizzes = {str(path.relative_to(root)) for path in root.glob("autograder/lessons/*/quiz.json")}
    assert quizzes <= wheel
    assert not any(
        name.startswith(("tests/", "tools/", "bootstrap/", "notebooks/", "build/")) for name in wheel
    )

    with tarfile.open(build(project_copy, "sdist")) as archive:
        archive.extractall(tmp_path, filter="data")
    assert names_in(build(next(tmp_path.iterdir()), "wheel")) == wheel


def test_the_wheel_starts_the_course_elsewhere(
    project_copy: Path, tmp_path: Path, env: dict[str, str]
) -> None:
    """In an empty environment that borrows the dependencies of this one (they are gigabytes), and nothing of
    the checkout: not its packages, not its folder."""
    wheel = build(project_copy, "wheel")
    home = tmp_path / "env"
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(python),
            "install",
            "-q",
            "--no-deps",
            "--no-index",
            str(wheel),
        ],
        check=True,
    )
    here = Path(sys.prefix)
    borrowed = next(here.glob("lib/python3.*/site-packages"))
    site = next(home.glob("lib/python3.*/site-packages"))
    # An ordinary path line: the borrowed folder's own .pth files, and so the editable checkout, stay unread.
    (site / "borrowed.pth").write_text(f"{borrowed}\n")
    for folder in ("share", "etc"):
        (home / folder).symlink_to(here / folder)

    folder = tmp_path / "learner"
    with course(start_command(python, folder), {**env, "PYTHONPATH": ""}) as running:
        assert running.ask(f"/api/contents/{START_PAGE}")["content"]["cells"]
        assert running.ask(f"/lab/tree/{START_PAGE}")
    assert (folder / START_PAGE).read_bytes() == (site / "autograder/release" / START_PAGE).read_bytes()

    done = subprocess.run([home / "bin" / "workbook", "test"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and "in the project's checkout" in done.stderr
    done = subprocess.run([home / "bin" / "workbook", "build"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
