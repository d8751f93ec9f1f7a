"""Takes from a forked worker what it does not need: namespaces of its own, Landlock, no privileges, limits.

Linux alone, by the system calls themselves: `os.unshare` came with Python 3.12 and the standard library has no
Landlock. Numbers are those of <linux/sched.h>, <linux/mount.h>, <linux/prctl.h> and <linux/landlock.h>.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import stat
import struct
import time
from pathlib import Path
from typing import Any

HOME = "/dev/shm/home"  # on a tmpfs of the worker's own, which also holds what its processes share
PLACES = ("/dev/shm", "/tmp")
HOST_NAME = "sandbox"
_NAMESPACES = (
    0x20000 | 0x4000000 | 0x8000000 | 0x10000000 | 0x20000000 | 0x40000000
)  # mount uts ipc user pid net
_PRIVATE = 0x4000 | 0x40000  # MS_REC, MS_PRIVATE
_NOSUID_NODEV = 2 | 4
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE, _MAKE = 1, 2, 4, 8, 1 << 5, 1 << 8
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_ACCESS = {
    "read": _EXECUTE | _READ_FILE | _READ_DIR,
    "list": _READ_DIR,
    "use": _READ_FILE | _WRITE_FILE | _IOCTL,  # a device
    "share": _READ_FILE | _WRITE_FILE | _REMOVE | _MAKE | _TRUNCATE,  # shared memory: by name, not by listing
    "write": (1 << 16) - 1,
}
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_PROC = ("self", "cpuinfo", "meminfo", "stat", "loadavg", "uptime", "filesystems", "sys")


@functools.cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: int | bytes | None) -> int:
    """A function of the C library. Raises `OSError` where it answers with less than zero."""
    typed = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result = getattr(_libc(), name)(*typed)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return int(result)


def landlock_version() -> int:
    """The version of Landlock's interface here; 0 without it. From 4 on it denies TCP, from 6 on signals."""
    try:
        return call("syscall", 444, None, 0, 1)
    except OSError:
        return 0


def leave_root(user: int) -> None:
    """Become `user`, for good, if this process is root's: some limits do not bind root. Raises `OSError`."""
    if user == os.getuid():
        return
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    call("prctl", 4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: what is in /proc/self is this user's again


def enter_namespaces() -> None:
    """Own user, network and further namespaces for this process, with a made-up name of the machine, and a process
    namespace for its children.

    Raises `OSError` where the machine refuses. It has every capability inside afterwards.
    """
    uid, gid = os.getuid(), os.getgid()
    call("unshare", _NAMESPACES)
    maps = {"setgroups": "deny", "uid_map": f"{uid} {uid} 1", "gid_map": f"{gid} {gid} 1"}
    for name, text in maps.items():
        Path("/proc/self", name).write_text(text)
    call("sethostname", HOST_NAME.encode(), len(HOST_NAME))


def make_places(needed: list[str], size: int) -> bool:
    """Mount empty places of at most `size` bytes over those that others write to, and bring loopback up.

    Args:
        needed: files that must stay visible.

    Returns whether /proc shows this namespace alone. Raises `OSError` where a mount is refused.
    """
    call("mount", None, b"/", None, _PRIVATE, None)
    for place in PLACES:
        if not is_needed(place, needed):
            call("mount", b"tmpfs", place.encode(), b"tmpfs", _NOSUID_NODEV, f"size={size},mode=700".encode())
    Path(HOME).mkdir()
    _loopback_up()
    try:  # refused where the /proc that is there hides a part of itself, as bubblewrap's does for root
        call("mount", b"proc", b"/proc", b"proc", _NOSUID_NODEV, None)
    except OSError:
        return False
    return True


def is_needed(place: str, needed: list[str]) -> bool:
    """Whether a file that must stay visible lies in `place`."""
    return any(path.startswith(f"{place}/") for path in needed)


def _loopback_up() -> None:
    import fcntl
    import socket

    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP


def drop_privileges() -> None:
    """No capability is left, and none can come back by running a program."""
    call("prctl", 38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    with contextlib.suppress(OSError):
        call("prctl", 47, 4, 0, 0, 0)  # PR_CAP_AMBIENT, all
        for capability in range(64):
            call("prctl", 24, capability, 0, 0, 0)  # PR_CAPBSET_DROP
    call("capset", struct.pack("=Ii", 0x20080522, 0), bytes(24))


def landlock(rules: list[tuple[str, str]], *, own_network: bool, own_proc: bool) -> None:
    """Deny files but those of `rules`, signals and tracing beyond this process's own, and TCP without `own_network`.

    Does nothing where the kernel has no Landlock. Raises `OSError` where it has, and refuses.
    """
    version = landlock_version()
    if not version:
        return
    handled = (1 << 13) - 1 | (version >= 2) << 13 | (version >= 3) << 14 | (version >= 5) << 15
    tcp = 3 if version >= 4 and not own_network else 0
    attributes = struct.pack("=QQQ", handled, tcp, 3 if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = call("syscall", 444, attributes, size, 0)
    proc = [("/proc", "read")] if own_proc else [(f"/proc/{name}", "read") for name in _PROC]
    for path, access in (*rules, *proc):
        with contextlib.suppress(FileNotFoundError, PermissionError):
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            allowed = _ACCESS[access] & handled
            if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
                allowed &= _ON_FILES
            call("syscall", 445, ruleset, 1, struct.pack("=Qi", allowed, descriptor), 0)
            os.close(descriptor)
    call("syscall", 446, ruleset, 0)
    os.close(ruleset)


def limit(limits: dict[str, int]) -> None:
    """Set resource limits by name; never above what the machine already allows."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    for name, value in limits.items():
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(getattr(resource, name), (value, value))


def kill_descendants(pid: int, seconds: float = 5.0) -> None:
    """Kill all that a process started, and what that starts meanwhile."""
    import psutil

    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        family = []
        with contextlib.suppress(psutil.Error):
            family = psutil.Process(pid).children(recursive=True)
        for process in family:
            with contextlib.suppress(psutil.Error):
                process.kill()
        if all(_is_gone(process) for process in family):
            return


def _is_gone(process: Any) -> bool:
    import psutil

    with contextlib.suppress(psutil.Error):
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    return True
