"""The launcher on a real but small checkout: its own pip, its own index of wheels, no network, a few seconds each.

The checkout has the true workbook.py and bootstrap/; its packages are wheels made here, with pip's own among them.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import http.server
import importlib.metadata
import importlib.util
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import pytest

from tests.everyday import first_of

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bootstrap.packages import has_nvidia_driver  # noqa: E402

TORCH_VARIABLE = "WORKBOOK_TORCH_INDEX"

BACKEND = """
import base64, hashlib, zipfile

def _wheel(folder):
    name = "tiny_course-1.0-py3-none-any.whl"
    requires = "Requires-Dist: torch\\nProvides-Extra: course\\nRequires-Dist: small; extra == 'course'\\n"
    requires += "Provides-Extra: dev\\nRequires-Dist: tiny-course[course]; extra == 'dev'\\n"
    requires += "Requires-Dist: tool; extra == 'dev'\\n"
    files = {
        "tiny_course.pth": __import__("os").getcwd() + "\\n",
        "tiny_course-1.0.dist-info/METADATA": "Metadata-Version: 2.1\\nName: tiny-course\\nVersion: 1.0\\n" + requires,
        "tiny_course-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    with zipfile.ZipFile(folder + "/" + name, "w") as archive:
        record = ""
        for path, text in files.items():
            archive.writestr(path, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            record += path + ",sha256=" + digest + "," + str(len(text)) + "\\n"
        archive.writestr("tiny_course-1.0.dist-info/RECORD", record + "tiny_course-1.0.dist-info/RECORD,,\\n")
    return name

def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return _wheel(wheel_directory)

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return _wheel(wheel_directory)
"""

PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "tiny-course"
version = "1.0"
dynamic = ["dependencies", "optional-dependencies"]
"""

CLI = """
import importlib.metadata, json, sys

def main():
    dists = {d.name.lower(): d.version for d in importlib.metadata.distributions()}
    import small
    print(json.dumps({"argv": sys.argv[1:], "prefix": sys.prefix, "dists": dists, "small": small.total()}))
    return 0
"""


def make_wheel(folder: Path, name: str, version: str, files: dict[str, bytes], requires: str = "") -> None:
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {item}\n" for item in requires.split())
    wheel = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = {**files, f"{info}/METADATA": metadata.encode(), f"{info}/WHEEL": wheel.encode()}
    record = ""
    folder.mkdir(exist_ok=True, parents=True)
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{path},sha256={digest},{len(content)}\n"
        archive.writestr(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")


def make_small(folder: Path, version: str, num_parts: int = 20) -> None:
    files = {f"small/part_{i}.py": f"value = {i}\n".encode() for i in range(num_parts)}
    files["small/__init__.py"] = (
        f"import importlib\ndef total():\n    return sum(importlib.import_module(f'small.part_{{i}}').value "
        f"for i in range({num_parts}))\n"
    ).encode()
    make_wheel(folder, "small", version, files)


@pytest.fixture(scope="module")
def pip_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pip of this environment as a wheel, in a folder of its own."""
    folder = tmp_path_factory.mktemp("pip")
    dist = importlib.metadata.distribution("pip")
    files = {
        str(path): Path(str(path.locate())).read_bytes()
        for path in dist.files or []
        if str(path).startswith("pip/") and path.suffix != ".pyc"
    }
    make_wheel(folder, "pip", dist.version, files)
    return folder


class Checkout:
    def __init__(self, folder: Path, wheels: Path, pip_wheel: Path) -> None:
        self.folder = folder
        self.wheels = wheels
        self.env = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("PIP_", "WORKBOOK_"))
            },
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": f"{wheels} {pip_wheel}",
            "CI": "",
        }

    @property
    def site(self) -> Path:
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        return self.folder / ".venv" / "lib" / version / "site-packages"

    def command(self, *args: str) -> list[str]:
        return [sys.executable, str(self.folder / "workbook.py"), *args]

    def run(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*args),
            env={**self.env, **env},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=120,
            cwd="/",
        )

    def start(self, *args: str, **env: str) -> dict:
        """Run and expect the verb to have been reached; returns what it printed."""
        done = self.run(*(args or ("start",)), **env)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def make_checkout(tmp_path: Path, pip_wheel: Path) -> Checkout:
    folder = tmp_path / "a folder with spaces"
    (folder / "autograder" / "cli").mkdir(parents=True)
    shutil.copy(ROOT / "workbook.py", folder)
    shutil.copytree(ROOT / "bootstrap", folder / "bootstrap", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "autograder" / "__init__.py").touch()
    (folder / "autograder" / "cli" / "__init__.py").touch()
    (folder / "autograder" / "cli" / "main.py").write_text(CLI)
    (folder / "backend.py").write_text(BACKEND)
    (folder / "pyproject.toml").write_text(PYPROJECT)
    pip = importlib.metadata.version("pip")
    (folder / "constraints.txt").write_text(f"pip=={pip}\nsmall==1.0\ntorch==1.0\n")
    wheels = tmp_path / "wheels"
    make_small(wheels, "1.0")
    make_wheel(wheels, "tool", "1.0", {"tool.py": b""})
    make_wheel(wheels, "torch", "1.0", {"torch/__init__.py": b""})
    return Checkout(folder, wheels, pip_wheel)


@pytest.fixture
def checkout(tmp_path: Path, pip_wheel: Path) -> Checkout:
    return make_checkout(tmp_path, pip_wheel)


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory, pip_wheel: Path) -> Checkout:
    """A checkout that is set up once for the whole file; whoever damages it has it repaired."""
    return make_checkout(tmp_path_factory.mktemp("standing"), pip_wheel)


def test_sets_up_hands_over_and_is_ready_at_once_the_second_time(checkout: Checkout) -> None:
    first = checkout.run("start", "--port", "1234")
    assert first.returncode == 0, first.stderr
    told = json.loads(first.stdout)
    assert told["argv"] == ["start", "--port", "1234"]
    assert told["prefix"] == str(checkout.folder / ".venv")
    assert "Packages to install into .venv: 2; the download is" in first.stderr
    assert "tool" not in told["dists"]
    assert len(first.stderr.splitlines()) == 5  # pip's own words are in the log alone
    assert "Successfully installed" in (checkout.folder / ".venv" / "setup.log").read_text()

    (checkout.folder / ".venv" / "setup.log").unlink()
    second = checkout.run("doctor")
    assert second.returncode == 0 and second.stderr == ""  # nothing to say, nothing done
    assert not (checkout.folder / ".venv" / "setup.log").exists()  # pip was not called


@pytest.mark.further
def test_test_adds_the_test_tools_and_start_keeps_them(checkout: Checkout) -> None:
    assert "tool" not in checkout.start("start")["dists"]
    assert "tool" in checkout.start("test")["dists"]
    done = checkout.run("start")
    assert done.stderr == ""
    assert "tool" in json.loads(done.stdout)["dists"]


@pytest.mark.parametrize("how", first_of([signal.SIGKILL, signal.SIGINT], everyday=0, further=1))
def test_a_stopped_set_up_is_finished_by_the_next_one(checkout: Checkout, how: signal.Signals) -> None:
    make_small(
        checkout.wheels, "1.0", num_parts=4000
    )  # takes pip long enough to unpack to be killed meanwhile
    process = subprocess.Popen(
        checkout.command("start"), env=checkout.env, stderr=subprocess.PIPE, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while not (checkout.site / "small" / "part_10.py").exists():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, how)
    _, errors = process.communicate(timeout=60)
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert b"run the same command again" in errors and b"Traceback" not in errors
    assert not (checkout.site / "small" / "part_3999.py").exists()
    assert not (checkout.folder / ".venv" / ".workbook-setup.json").exists()

    assert checkout.start()["small"] == sum(range(4000))


@pytest.mark.parametrize(
    "damage",
    first_of(
        ["package", "pip", "python", "record", "marker and module", "empty", "metadata", "config"], further=5
    ),
)
def test_repairs_what_was_damaged(standing: Checkout, damage: str) -> None:
    expected = standing.start()
    env, site = standing.folder / ".venv", standing.site
    pip = next(site.glob("pip-*.dist-info")).name
    match damage:
        case "package":
            shutil.rmtree(site / "small")
        case "metadata":
            shutil.rmtree(site / "small-1.0.dist-info")
        case "record":
            (site / "small-1.0.dist-info" / "RECORD").unlink()
        case "pip":
            shutil.rmtree(site / "pip" / "_internal")
        case "python":
            (env / "bin" / "python").unlink()
        case "empty":
            shutil.rmtree(env)
            env.mkdir()
        case "config":
            (env / "pyvenv.cfg").unlink()
        case "marker and module":  # as left by a set-up that was killed: dist-info there, a file missing
            (env / ".workbook-setup.json").unlink()
            (site / "small" / "part_7.py").unlink()
    assert standing.start() == expected
    assert (site / pip).exists()
    assert standing.run("start").stderr == ""


@pytest.mark.further
@pytest.mark.parametrize("verb", ["start", "doctor"])
def test_a_file_that_was_cut_off_is_noticed(standing: Checkout, verb: str) -> None:
    standing.start()
    (standing.site / "small" / "part_7.py").write_text("")
    done = standing.run(verb)
    assert "small-1.0 is not complete: installing it again" in done.stderr
    assert json.loads(done.stdout)["small"] == sum(range(20))


@pytest.mark.further
def test_new_constraints_and_a_moved_checkout_are_noticed(checkout: Checkout, tmp_path: Path) -> None:
    checkout.start()
    make_small(checkout.wheels, "2.0")
    constraints = checkout.folder / "constraints.txt"
    constraints.write_text(constraints.read_text().replace("small==1.0", "small==2.0"))
    assert checkout.start()["dists"]["small"] == "2.0"

    checkout.folder = checkout.folder.rename(tmp_path / "moved")
    assert checkout.start()["prefix"] == str(tmp_path / "moved" / ".venv")
    assert (checkout.folder / ".venv/lib").exists()


@pytest.mark.further
def test_two_set_ups_at_once_do_not_meet(checkout: Checkout) -> None:
    both = [
        subprocess.Popen(
            checkout.command("start"),
            env=checkout.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        for _ in range(2)
    ]
    answers = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], answers
    assert sum("Another set-up is at work" in errors for _, errors in answers) == 1
    assert sum("Making" in errors for _, errors in answers) == 1


@pytest.mark.further
def test_what_pip_cannot_find_is_told_in_one_line(checkout: Checkout) -> None:
    (checkout.wheels / "small-1.0-py3-none-any.whl").unlink()
    done = checkout.run("start")
    assert done.returncode == 2
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("workbook: pip stopped: ") and "small" in last
    assert "pip config list" in last and "setup.log" in last
    assert "Traceback" not in done.stderr


no_driver = pytest.mark.skipif(has_nvidia_driver(), reason="this machine has an NVIDIA driver")


@pytest.fixture
def cuda_checkout(checkout: Checkout, tmp_path: Path) -> Checkout:
    """pip's settings offer a torch that brings CUDA packages; the CPU build is in another folder."""
    make_wheel(
        checkout.wheels, "torch", "1.0", {"torch/__init__.py": b""}, "nvidia-cudnn-cu13;sys_platform=='linux'"
    )
    make_wheel(checkout.wheels, "nvidia_cudnn_cu13", "9.0", {"nvidia/lib.so": bytes(3_000_000)})
    make_wheel(tmp_path / "cpu", "torch", "1.0+cpu", {"torch/__init__.py": b""})
    return checkout


@pytest.mark.further
@no_driver
def test_the_cuda_build_is_announced_with_its_size_where_nobody_can_be_asked(cuda_checkout: Checkout) -> None:
    done = cuda_checkout.run("start")
    assert "no NVIDIA driver" in done.stderr
    assert "3 MB" in done.stderr and TORCH_VARIABLE in done.stderr
    assert "nvidia_cudnn_cu13" in json.loads(done.stdout)["dists"]


@pytest.mark.further
@no_driver
def test_the_cpu_build_is_taken_from_where_the_variable_says(cuda_checkout: Checkout, tmp_path: Path) -> None:
    dists = cuda_checkout.start("start", **{TORCH_VARIABLE: str(tmp_path / "cpu")})["dists"]
    assert dists["torch"] == "1.0+cpu"
    assert not any(name.startswith("nvidia") for name in dists)


@pytest.mark.further
@no_driver
def test_the_cpu_build_is_taken_from_an_index(cuda_checkout: Checkout, tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    (tmp_path / "cpu").rename(tmp_path / "index" / "torch")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        env = {"PIP_NO_INDEX": "", "PIP_INDEX_URL": f"{address}/nothing"}
        dists = cuda_checkout.start("start", **{TORCH_VARIABLE: f"{address}/index", **env})["dists"]
        server.shutdown()
    assert dists["torch"] == "1.0+cpu"
    assert not any(name.startswith("nvidia") for name in dists)


@pytest.mark.further
def test_a_cpu_build_in_pips_own_settings_is_preferred(cuda_checkout: Checkout, tmp_path: Path) -> None:
    links = f"{cuda_checkout.env['PIP_FIND_LINKS']} {tmp_path / 'cpu'}"
    dists = cuda_checkout.start("start", PIP_FIND_LINKS=links)["dists"]
    assert dists["torch"] == "1.0+cpu"
    assert not any(name.startswith("nvidia") for name in dists)


@no_driver
@pytest.mark.parametrize("answer", first_of(["cpu", "", "all"], everyday=0, further=1))
def test_a_person_is_asked_before_gigabytes(cuda_checkout: Checkout, tmp_path: Path, answer: str) -> None:
    typed = str(tmp_path / "cpu") if answer == "cpu" else answer
    status, shown = in_terminal(cuda_checkout, typed)
    assert "Paste that address" in shown
    site = cuda_checkout.site
    if answer == "":
        assert status == 2 and "stopped before the download" in shown
        assert not (site / "torch").exists()
    else:
        assert status == 0, shown
        assert "Successfully installed" in shown  # a terminal shows pip at work
        assert "Successfully installed" in (cuda_checkout.folder / ".venv" / "setup.log").read_text()
        assert (site / "nvidia").exists() == (answer == "all")
        assert (site / "torch-1.0+cpu.dist-info").exists() == (answer == "cpu")


def in_terminal(checkout: Checkout, typed: str) -> tuple[int, str]:
    """Run `start` in a pseudo-terminal, answer the question, and return the status and what was on the screen."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        checkout.command("start"),
        env=checkout.env,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
    )
    os.close(follower)
    shown, answered, deadline = b"", False, time.monotonic() + 100
    while time.monotonic() < deadline:
        if select.select([leader], [], [], 0.2)[0]:
            try:
                piece = os.read(leader, 65536)
            except OSError:
                break
            shown += piece
        elif process.poll() is not None:
            break
        if b"(Enter stops):" in shown and not answered:
            answered = True
            os.write(leader, typed.encode() + b"\n")
    os.close(leader)
    return process.wait(timeout=10), shown.decode()
