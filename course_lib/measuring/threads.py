"""Threads that begin while operators are counted: what they do counts, too, as long as something is being counted."""

from __future__ import annotations

import _thread
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

if TYPE_CHECKING:
    from course_lib.measuring.operators import Operators

_watching: list[Operators] = []
_followed: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


class _Dispatch(TorchDispatchMode):
    """Of a thread: hands its operators to whoever counts at that moment, or to nobody."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not _watching:
            return func(*args, **(kwargs or {}))
        return _watching[-1].__torch_dispatch__(func, types, args, kwargs)


class _Functions(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not _watching:
            return func(*args, **(kwargs or {}))
        return _watching[-1].reads.__torch_function__(func, types, args, kwargs)


@contextmanager
def following(watch: Operators) -> Iterator[None]:
    """Threads that begin now are watched until they end; those that were there before are not."""
    before = threading.getprofile() if hasattr(threading, "getprofile") else None
    _watching.append(watch)
    threading.setprofile(_begin)
    try:
        yield
    finally:
        _watching.remove(watch)
        threading.setprofile(before)


def unfollowed() -> int:
    """Threads of this process, but for the main one, which asks, whose operators would not be counted."""
    followed = {thread for thread in _followed if thread.is_alive()}
    others = set(threading.enumerate()) - {threading.current_thread()} - followed
    return max(len(others), _thread._count() - len(followed))  # which are not all known to `threading`


def _begin(frame: Any, event: str, argument: Any) -> None:
    """Called once in each thread, as it begins."""
    sys.setprofile(None)
    _followed.add(threading.current_thread())
    _Functions().__enter__()
    _Dispatch().__enter__()
