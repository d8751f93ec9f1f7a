"""Starts a worker process with as little reach as this machine allows, and proves it before learner code runs.

Levels, strongest first:

- ``bubblewrap``: own user, process, network and file-system namespaces. It sees the system libraries, the Python
  installation and the data cache, all read-only, and one private folder that it may write to.
- ``limits``: an own session, a scrubbed environment and resource limits alone. Files of the user can be read.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import os
import shutil
import signal
import site
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psutil

Level = Literal["bubblewrap", "limits"]
LEVELS: tuple[Level, ...] = ("bubblewrap", "limits")  # strongest first
WORKER_FOLDER = Path(__file__).resolve().parent / "sandboxed"
LIMITS = {
    "RLIMIT_CPU": 300,  # seconds
    "RLIMIT_AS": 16 * 2**30,  # bytes of address space; torch alone maps several GiB it never touches
    "RLIMIT_FSIZE": 256 * 2**20,  # bytes per file
    "RLIMIT_NPROC": 512,
    "RLIMIT_CORE": 0,
}
# The last: Windows starts no program without it.
_KEPT_VARIABLES = ("LANG", "LC_ALL", "CUDA_VISIBLE_DEVICES", "SYSTEMROOT")
_SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix")
_SYSTEM_FILES = (
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/passwd",
    "/etc/nsswitch.conf",
    "/sys/devices/system",
)


@dataclass(frozen=True)
class SandboxStatus:
    """What this machine's sandbox holds: the level, why it is that level, and how to raise it."""

    level: Level
    reason: str
    fix: str = ""


@dataclass
class WorkerProcess:
    """A started worker: its pipes, its private folder, and how to end it with everything it started."""

    popen: subprocess.Popen[bytes]
    folder: Path
    options: dict[str, Any]
    listener: socket.socket | None

    def cpu_seconds(self) -> float:
        """CPU time of the worker and all that it started, in seconds, as the kernel counts it."""
        total = 0.0
        for process in self._family():
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                total += times.user + times.system
                total += getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
        return total

    def last_words(self) -> str:
        """The end of what the worker printed: the cause of a crash, where there is one."""
        with contextlib.suppress(OSError):
            return (self.folder / "log").read_text(errors="replace")[-2000:]
        return ""

    def kill(self) -> None:
        """End the worker and all its descendants, and remove its folder."""
        family = self._family()
        if sys.platform != "win32":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.popen.pid, signal.SIGKILL)
        for process in family:
            with contextlib.suppress(psutil.Error):
                process.kill()
        self.popen.wait()
        for stream in (self.popen.stdin, self.popen.stdout):
            with contextlib.suppress(OSError, AttributeError):
                stream.close()  # type: ignore[union-attr]
        self.drop_canaries()
        shutil.rmtree(self.folder, ignore_errors=True)

    def drop_canaries(self) -> None:
        """Take away what a worker's reach is tried on; also for a worker that is ended before it said hello."""
        if self.listener:
            self.listener.close()
            self.listener = None
        Path(self.options["canaries"]["write"]).unlink(missing_ok=True)

    def _family(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(self.popen.pid)
            return [process, *process.children(recursive=True)]
        return []


@functools.cache
def probe() -> SandboxStatus:
    """Find the strongest level that really starts here. Cheap: one empty process."""
    bwrap = shutil.which("bwrap")
    if sys.platform != "linux":
        return SandboxStatus("limits", f"bubblewrap exists for Linux only, and this is {sys.platform}")
    if bwrap is None:
        return SandboxStatus(
            "limits", "bubblewrap is not installed", "install it: sudo apt install bubblewrap"
        )
    trial = subprocess.run(
        [bwrap, *_isolation(), "--ro-bind", "/", "/", "true"], capture_output=True, text=True, check=False
    )
    if trial.returncode == 0:
        return SandboxStatus("bubblewrap", "bubblewrap starts")
    return SandboxStatus(
        "limits",
        f"bubblewrap does not start: {trial.stderr.strip()[:200]}",
        "allow unprivileged user namespaces for it: see its documentation for your distribution",
    )


def start_worker(*, threads: int = 1) -> WorkerProcess:
    """Start a worker and return at once; its first message says that it is ready and what it could reach.

    Args:
        threads: number of intra-op threads of torch in the worker.
    """
    folder = Path(tempfile.mkdtemp(prefix="workbook-"))
    level = probe().level
    inside = Path("/sandbox") if level == "bubblewrap" else folder
    listener = socket.create_server(("127.0.0.1", 0))
    (folder.parent / f"{folder.name}.canary").write_text("canary")
    options = {
        "threads": threads,
        "limits": LIMITS,
        "log": str(inside / "log"),
        "canaries": {
            "read": str(folder.parent / f"{folder.name}.canary"),
            "write": str(folder.parent / f"{folder.name}.canary"),
            "port": listener.getsockname()[1],
            "pid": os.getpid(),
            "cmdline": Path("/proc/self/cmdline").read_bytes().hex() if sys.platform == "linux" else "",
        },
    }
    environment = _environment(inside, threads)
    script = (Path("/grader") if level == "bubblewrap" else WORKER_FOLDER) / "worker.py"
    command = [sys.executable, "-I", "-B", str(script), json.dumps(options)]
    if level == "bubblewrap":
        command = _bubblewrap(folder, environment) + command
    popen = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd=folder,
        start_new_session=True,
    )
    return WorkerProcess(popen, folder, options, listener)


def settle(worker: WorkerProcess, reached: dict[str, bool]) -> Level:
    """Turn what a worker could reach into its proven level, and remove the canary."""
    overwritten = Path(worker.options["canaries"]["write"]).read_text() != "canary"
    worker.drop_canaries()
    return "limits" if overwritten or any(reached.values()) else probe().level


def _isolation() -> list[str]:
    return ["--unshare-all", "--die-with-parent", "--new-session"]


def _environment(home: Path, threads: int) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    count = str(threads)
    return kept | {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "TMPDIR": str(home),
        "OMP_NUM_THREADS": count,
        "MKL_NUM_THREADS": count,
        "OPENBLAS_NUM_THREADS": count,
        "COURSE_LIB_CACHE": _cache_folder(),
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    }


def _cache_folder() -> str:
    from course_lib.data.cache import cache_dir

    return str(cache_dir())


def _bubblewrap(folder: Path, environment: dict[str, str]) -> list[str]:
    """The bwrap command line: an empty root, then only what Python and torch need."""
    arguments = [
        shutil.which("bwrap") or "bwrap",
        *_isolation(),
        "--clearenv",
        "--tmpfs",
        "/tmp",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
    ]
    for path in _SYSTEM_FOLDERS:
        if Path(path).is_symlink():
            arguments += ["--symlink", str(Path(path).readlink()), path]
        elif Path(path).exists():
            arguments += ["--ro-bind", path, path]
    for path in _SYSTEM_FILES:
        arguments += ["--ro-bind-try", path, path]
    for device in Path("/dev").glob("nvidia*"):
        arguments += ["--dev-bind-try", str(device), str(device)]
    for path in dict.fromkeys(map(str, (*_python_folders(), Path(environment["COURSE_LIB_CACHE"])))):
        arguments += ["--ro-bind-try", path, path]
    for packages in site.getsitepackages():
        grader = Path(packages) / "autograder"
        if grader.exists():  # an installed wheel: hide checks, wrong solutions and quiz keys
            arguments += ["--tmpfs", str(grader)]
    arguments += [
        "--ro-bind",
        str(WORKER_FOLDER),
        "/grader",
        "--bind",
        str(folder),
        "/sandbox",
        "--chdir",
        "/sandbox",
    ]
    for name, value in environment.items():
        arguments += ["--setenv", name, value]
    return [*arguments, "--"]


def _python_folders() -> list[Path]:
    """The interpreter, its libraries and `course_lib`, which may be installed editable from elsewhere."""
    spec = importlib.util.find_spec("course_lib")
    library = [Path(spec.origin).parent] if spec and spec.origin else []
    return [Path(sys.base_prefix), Path(sys.prefix), Path(sys.executable).resolve().parent, *library]
