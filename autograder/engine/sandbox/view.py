"""What a worker may see and use: its part of the file system, its environment, its limits; the bubblewrap command."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import site
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from autograder.engine.sandbox.inside import isolate

WORKER_FOLDER = Path(__file__).resolve().parent / "inside"
MAX_PROCESSES = 192  # and threads, of one worker
MAX_SOCKETS = 512  # of one worker; a thread for each sample of 1.5 asks through one of its own
MAX_MEMORY = 8 * 2**30  # bytes of one process; less where the machine has less
PLACE_BYTES = 512 * 2**20  # of a worker's own temporary files and shared memory
LIMITS = {
    "RLIMIT_CPU": 300,  # seconds
    "RLIMIT_FSIZE": 256 * 2**20,  # bytes per file
    "RLIMIT_NPROC": MAX_PROCESSES,  # not for root: see `watch`
    "RLIMIT_CORE": 0,
    "RLIMIT_NOFILE": 1024,  # of one process; what each holds in the kernel is no process's
}
# The last: Windows starts no program without it.
_KEPT_VARIABLES = ("LANG", "LC_ALL", "SYSTEMROOT")
# No check computes on a GPU, and a driver is reach. NVIDIA's takes an empty list as none. AMD's takes an empty HIP list
# as unset, hence -1; torch counts by it, and by ROCr's only where HIP's is not there. Apple's cannot be hidden.
# NVIDIA_VISIBLE_DEVICES is read where a container is started, by no process in it.
_NO_GPU = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "-1", "ROCR_VISIBLE_DEVICES": ""}
_SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix")
_SYSTEM_FILES = (
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/sys/devices/system",
)
_DEVICES = ("null", "zero", "full", "random", "urandom")
STORAGE_FOLDER = Path("/storage")  # where a worker with a file system of its own finds what it waits for
_FIRST_USER = 2 * 10**9  # root's workers become a user that nobody else is
# What a cell reads it can say in its own feedback: neither who works on this machine nor what it is called.
_NAMED = ("--hostname", isolate.HOST_NAME)
ISOLATION = ("--unshare-all", *_NAMED, "--die-with-parent", "--new-session", "--cap-drop", "ALL")
# As root: in root's own user namespace, so that a worker can become a user of its own, whom the limits bind.
_ROOTS_ISOLATION = (
    *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
    *_NAMED,
    *(
        "--die-with-parent",
        "--new-session",
        "--cap-drop",
        "ALL",
        "--cap-add",
        "CAP_SETUID",
        "--cap-add",
        "CAP_SETGID",
    ),
)


def memory_limit() -> int:
    """Bytes that one process of a worker may take: half of what is free, in this machine or its control group."""
    free = psutil.virtual_memory().available
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            free = min(free, int(Path("/sys/fs/cgroup", name).read_text()))
    return min(max(2**30, free // 2), MAX_MEMORY)


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """What one worker is told.

    Attributes:
        threads: of torch.
        limits: by the name of the resource.
        talks: whether it starts processes that talk over loopback.
        serves: whether it gets a socket that a process outside serves samples at.
        canary: what its reach is tried on.
        modules: what is imported before it is forked, where it is.
    """

    threads: int
    limits: Mapping[str, int]
    talks: bool
    serves: bool
    canary: Mapping[str, str | int | list[str]]
    modules: Sequence[str] = ()

    @property
    def memory(self) -> int:
        """Bytes that one process may take."""
        return self.limits["RLIMIT_DATA"]


def limits() -> dict[str, int]:
    """Of one worker, by the name of the resource."""
    return LIMITS | {"RLIMIT_DATA": memory_limit()}


def environment() -> dict[str, str]:
    """All that a worker knows of the user's environment, and where it finds the data."""
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    own = {
        "PATH": "/usr/bin:/bin",
        "COURSE_LIB_CACHE": _cache_folder(),
        "OMP_NUM_THREADS": "1",
        "USER": "learner",  # the number of the user may have no name inside
    }
    return kept | _NO_GPU | own


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """What the fork server is told: the same for all its workers.

    Attributes:
        namespaces, landlock: whether each worker gets them.
        place_bytes: of a worker's own temporary files and shared memory.
        user: whom a worker of root's becomes.
        needed: the paths that it must be able to read.
        rules: path and access of each Landlock rule.
    """

    namespaces: bool
    landlock: bool
    place_bytes: int
    user: int
    needed: list[str]
    rules: list[tuple[str, str]]


def server_options(level: str) -> ServerOptions:
    """What the fork server of a sandbox level is told."""
    folder = Path("/grader") if level == "bubblewrap" else WORKER_FOLDER
    return ServerOptions(
        namespaces=level != "limits",
        landlock=level != "limits",
        place_bytes=PLACE_BYTES,
        user=os.getuid() or _FIRST_USER + os.getpid(),
        needed=[str(path) for path in (*_needed(), folder)],
        rules=[(str(path), access) for path, access in (*_rules(), (folder, "read"))],
    )


def command(level: str, script: str, *, is_shared: bool, storage: Path | None = None) -> list[str]:
    """The command line of `script` in the worker's folder.

    Args:
        is_shared: workers mount their own places in it.
        storage: the folder with the socket that the only worker in it is served at.
    """
    python = [sys.executable, "-I", "-B"]
    if level != "bubblewrap":
        return [*python, str(WORKER_FOLDER / script)]
    return [*_bubblewrap(is_shared, storage), *python, f"/grader/{script}"]


def _bubblewrap(is_shared: bool, storage: Path | None) -> list[str]:
    """The bwrap command line: an empty root, then only what Python and torch need."""
    can_change_user = is_shared and os.getuid() == 0
    arguments = [shutil.which("bwrap") or "bwrap", *(_ROOTS_ISOLATION if can_change_user else ISOLATION)]
    arguments += ["--tmpfs", "/tmp", "--proc", "/proc", "--dev", "/dev"]
    for path in map(Path, _SYSTEM_FOLDERS):
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), str(path)]
    # Made by a bind, the folders above it would be open to this user alone.
    for folder in sorted({parent for path in _needed() for parent in path.parents}):
        arguments += ["--dir", str(folder)]
    for path in _needed():
        arguments += ["--ro-bind-try", str(path), str(path)]
    for packages in site.getsitepackages():
        grader = Path(packages) / "autograder"
        if grader.exists():  # an installed wheel: hide checks, wrong solutions and quiz keys
            arguments += ["--tmpfs", str(grader)]
    arguments += ["--ro-bind", str(WORKER_FOLDER), "/grader"]
    if storage:
        arguments += ["--ro-bind", str(storage), str(STORAGE_FOLDER)]
    if is_shared:  # no place where workers could meet
        arguments += ["--remount-ro", "/tmp"]
    else:
        arguments += ["--tmpfs", "/dev/shm"]
    return [*arguments, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/", "--"]


def _needed() -> list[Path]:
    """All that Python, torch and `course_lib`, which may be installed editable, need to read."""
    spec = importlib.util.find_spec("course_lib")
    library = [Path(spec.origin).parent] if spec and spec.origin else []
    python = [Path(sys.base_prefix), Path(sys.prefix), Path(sys.executable).resolve().parent]
    system = [Path(path) for path in _SYSTEM_FOLDERS if not Path(path).is_symlink()]
    found = [*system, *map(Path, _SYSTEM_FILES), *python, *library, Path(_cache_folder())]
    return [path for path in dict.fromkeys(found) if path.exists()]


def _rules() -> Iterator[tuple[Path, str]]:
    for path in _needed():
        yield from _around(path.resolve(), WORKER_FOLDER.parent)
    yield from ((Path("/dev", name), "use") for name in _DEVICES)


def _around(path: Path, hidden: Path) -> Iterator[tuple[Path, str]]:
    """The rule to read `path`; where `hidden` lies in it, rules for all that is beside the way there."""
    if not hidden.is_relative_to(path):
        yield path, "read"
    elif path != hidden:
        yield path, "list"
        for entry in path.iterdir():
            yield from _around(entry, hidden)


def _cache_folder() -> str:
    from course_lib.base import cache_dir

    return str(cache_dir())
