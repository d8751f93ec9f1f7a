"""Keeps true what the kernel counts of a worker and of all that it starts: CPU time, and waiting for a core.

CPU time would be lost where a parent ignores the end of its children, and where a process namespace ends together with
them. So the system call that sets what is done at a child's end does nothing and says that it did, and no namespaces of
users or processes are made. A child whose parent has ended becomes the keeper's, which waits for it: its time is
counted there.

Who gives itself a low priority, or one core for all its processes, waits for a core where nobody else wants it. So the
calls that set these do nothing either.

The scheduler shares a core between sessions first: who begins one for each child takes it from all others. So the call
that begins a session does nothing and says that it did.

Memory that no process shows as its own is not there: `memfd_create`, and what System V calls shared memory, messages
and semaphores. A socket holds some in its buffers: so they stay as small as they come, by a call that does nothing and
says that it did, and `watch` counts the sockets.

A filter of system calls (seccomp) can be taken off by nobody, and whatever is started has it too.

Linux on x86-64 and ARM64. Numbers are those of <linux/seccomp.h>, <linux/filter.h>, <linux/sched.h> and <asm/unistd.h>.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import isolate  # type: ignore[import-not-found]

# By machine: the kernel's name for its table of system calls, and numbers in it.
_TABLES = {
    "x86_64": (
        0xC000003E,
        {
            **{"rt_sigaction": 13, "clone": 56, "unshare": 272, "clone3": 435},
            **{"setsid": 112, "shmget": 29, "memfd_create": 319},
            **{"semget": 64, "msgget": 68, "setsockopt": 54},
        },
        (141, 142, 144, 203, 314),
    ),
    "aarch64": (
        0xC00000B7,
        {
            **{"rt_sigaction": 134, "clone": 220, "unshare": 97, "clone3": 435},
            **{"setsid": 157, "shmget": 194, "memfd_create": 279},
            **{"semget": 190, "msgget": 186, "setsockopt": 208},
        },
        (140, 118, 119, 122, 274),
    ),
}
"""The third: `setpriority`, `sched_setparam`, `sched_setscheduler`, `sched_setaffinity`, `sched_setattr`."""
_ANOTHER_TABLE = 0x40000000  # on x86-64: system calls of the kind called x32
_NEW_USERS_OR_PROCESSES = 0x10000000 | 0x20000000
_ALLOWED, _DONE = 0x7FFF0000, 0x50000  # the second, with an error number: that error; without one: success
# Where a system call's number, its table and its arguments stand in what a filter is shown; long ones in two halves.
_NUMBER, _TABLE, _FIRST, _SECOND, _SECOND_HIGH, _THIRD = 0, 4, 16, 24, 28, 32
_OF_ANY_SOCKET, _BUFFERS = 1, (7, 8)  # SOL_SOCKET; SO_SNDBUF and SO_RCVBUF
_LOAD, _IS_EQUAL, _IS_AT_LEAST, _HAS_BITS, _ANSWER = 0x20, 0x15, 0x35, 0x45, 0x06


@dataclass(frozen=True)
class _Test:
    """One word of a system call, and whether it must be so."""

    word: int
    how: int
    value: int
    is_wanted: bool = True


def keep() -> bool:
    """Keep them from now on, for good, for this process and all that come of it. Whether that holds on this machine."""
    if sys.platform != "linux" or os.uname().machine not in _TABLES:
        return False
    table, numbers, setting_priority = _TABLES[os.uname().machine]
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    number = {name: _Test(_NUMBER, _IS_EQUAL, value) for name, value in numbers.items()}
    new_namespace = _Test(_FIRST, _HAS_BITS, _NEW_USERS_OR_PROCESSES)
    at_childs_end = number["rt_sigaction"], _Test(_FIRST, _IS_EQUAL, signal.SIGCHLD)
    lines = [
        *_answer(_DONE | errno.EPERM, _Test(_TABLE, _IS_EQUAL, table, is_wanted=False)),
        *_answer(_DONE | errno.EPERM, _Test(_NUMBER, _IS_AT_LEAST, _ANOTHER_TABLE)),
        # What it is asked for lies in memory, where no filter looks. The C library then calls `clone`.
        *_answer(_DONE | errno.ENOSYS, number["clone3"]),
        *_answer(_DONE | errno.EPERM, number["clone"], new_namespace),
        *_answer(_DONE | errno.EPERM, number["unshare"], new_namespace),
        # Without a second argument it only asks. A data loader sets a handler of its own, and needs none.
        *_answer(_DONE, *at_childs_end, _Test(_SECOND, _IS_EQUAL, 0, is_wanted=False)),
        *_answer(_DONE, *at_childs_end, _Test(_SECOND_HIGH, _IS_EQUAL, 0, is_wanted=False)),
        *_answer(_DONE, number["setsid"]),
        *(
            line
            for name in ("shmget", "semget", "msgget", "memfd_create")
            for line in _answer(_DONE | errno.ENOSYS, number[name])
        ),
        *(
            line
            for option in _BUFFERS
            for line in _answer(
                _DONE,
                number["setsockopt"],
                _Test(_SECOND, _IS_EQUAL, _OF_ANY_SOCKET),
                _Test(_THIRD, _IS_EQUAL, option),
            )
        ),
        *(line for call in setting_priority for line in _answer(_DONE, _Test(_NUMBER, _IS_EQUAL, call))),
        (_ANSWER, 0, 0, _ALLOWED),
    ]
    program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in lines))
    try:
        isolate.call("prctl", 38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
        isolate.call(
            "prctl", 22, 2, struct.pack("=H6xQ", len(lines), ctypes.addressof(program))
        )  # PR_SET_SECCOMP
    except OSError:  # a kernel without seccomp, or a container that keeps it to itself
        return False
    return True


def _answer(answer: int, *tests: _Test) -> Sequence[tuple[int, int, int, int]]:
    """Lines of a filter that answer where all tests hold, and else go on behind them: code, jumps, value."""
    lines = []
    for at, test in enumerate(tests):
        rest = 2 * (len(tests) - at) - 1
        jumps = (0, rest) if test.is_wanted else (rest, 0)
        lines += [(_LOAD, 0, 0, test.word), (test.how, *jumps, test.value)]
    return [*lines, (_ANSWER, 0, 0, answer)]
