"""The process in which learner code runs. It is never believed: it only answers calls over a pipe.

Started by `autograder.sandbox`, which shows it this folder and little else. It limits itself, imports torch, says
hello with what it can reach, and then serves: `load` (a harness and the source of one exercise cell) and `call`
(one function of the harness). The parent owns the clock, the secret seeds and every comparison.
"""

from __future__ import annotations

import contextlib
import json
import linecache
import os
import socket
import sys
import traceback
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

sys.path.insert(0, str(Path(__file__).resolve().parent))

import wire  # type: ignore[import-not-found]

CELL_NAME = "<your cell>"
# What a notebook offers and a cell may use around its solution.
NOTEBOOK_NAMES = (
    "answer", "check", "check_quiz", "compare", "display", "get_ipython", "predict", "predicted", "quiz",
)  # fmt: skip


class _Nothing:
    """Stands for what only a notebook has: every use of it does nothing."""

    def __getattr__(self, name: str) -> _Nothing:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_: Any, **__: Any) -> _Nothing:
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __bool__(self) -> bool:
        return False


def main() -> None:
    """Serve until the parent hangs up."""
    options = json.loads(sys.argv[1])
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    _detach_standard_streams(options["log"])
    _limit(options["limits"])
    import torch

    torch.set_num_threads(options["threads"])
    with contextlib.suppress(RuntimeError):
        torch.set_num_interop_threads(options["threads"])
    wire.send(answers, {"ready": True, "reached": _reach(options["canaries"])})
    _serve(requests, answers)


def _serve(requests: BinaryIO, answers: BinaryIO) -> None:
    harness: dict[str, Any] = {}
    while True:
        try:
            request = wire.receive(requests)
        except wire.WireError:
            os._exit(0)  # the parent is gone: no clean-up of learner code may hold us
        try:
            if request["do"] == "load":
                harness = _load(request["harness"], request["source"], request["entry"])
                answer: dict[str, Any] = {"value": None}
            else:
                answer = {"value": _plain(harness[request["function"]](**request["arguments"]))}
        except BaseException as error:  # SystemExit and KeyboardInterrupt from learner code as well
            answer = {"error": _describe(error)}
        try:
            wire.send(answers, answer)
        except TypeError as error:
            wire.send(answers, {"error": _describe(error)})


def _load(harness_source: str, source: str, entry: str) -> dict[str, Any]:
    """Run the learner's cell in a module of its own, then the harness, which sees it as `learner`."""
    module = types.ModuleType("__learner__")
    sys.modules["__learner__"] = module  # so that a DataLoader worker can unpickle what the cell defines
    marker = types.ModuleType("autograder")
    sys.modules["autograder"] = marker
    names = dict.fromkeys(NOTEBOOK_NAMES, _Nothing()) | {"exercise": lambda exercise_id: lambda kept: kept}
    marker.__dict__.update(names)
    module.__dict__.update(names)
    linecache.cache[CELL_NAME] = (len(source), None, source.splitlines(keepends=True), CELL_NAME)
    exec(compile(source, CELL_NAME, "exec"), module.__dict__)
    if entry not in module.__dict__:
        raise NameError(f"the cell defines no `{entry}`")
    harness = types.ModuleType("harness")
    sys.modules["harness"] = harness  # the same for what the harness defines
    harness.__dict__["learner"] = module.__dict__[entry]
    exec(compile(harness_source, "<harness>", "exec"), harness.__dict__)
    return harness.__dict__


def _plain(value: Any) -> Any:
    """Tensors to arrays, now: a subclass could put its work off until it is looked at."""
    torch = sys.modules["torch"]
    if type(value) in (torch.Tensor, torch.nn.Parameter):
        value = value.detach().cpu()
        return (value.float() if value.dtype is torch.bfloat16 else value).numpy()
    if isinstance(value, torch.Tensor):
        raise TypeError(f"a plain torch.Tensor is needed, not its subclass {type(value).__name__}")
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _describe(error: BaseException) -> dict[str, Any]:
    """The error as the learner should see it: its type, its text, and the line of the cell it came through."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == CELL_NAME]
    line = frames[-1].lineno if frames else getattr(error, "lineno", None)
    code = linecache.getline(CELL_NAME, line).strip() if line else ""
    return {
        "type": type(error).__name__,
        "message": str(error)[:2000],
        "line": line,
        "code": code[:200],
        "in_cell": bool(frames) or isinstance(error, SyntaxError),
    }


def _detach_standard_streams(log: str) -> None:
    """What learner code prints must not reach the pipe; the log keeps a crash's last words."""
    null = os.open(os.devnull, os.O_RDWR)
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(null, 0)
    os.dup2(target, 1)
    os.dup2(target, 2)
    os.close(null)
    os.close(target)


def _limit(limits: dict[str, int]) -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    for name, value in limits.items():
        with contextlib.suppress(ValueError, OSError):  # never above what the machine already allows
            resource.setrlimit(getattr(resource, name), (value, value))


def _reach(canaries: dict[str, str]) -> dict[str, bool]:
    """Try what the sandbox promises to prevent, before any learner code is here."""
    reached = {}
    with contextlib.suppress(OSError):
        reached["read"] = bool(Path(canaries["read"]).read_bytes())
    with contextlib.suppress(OSError):
        # Whether this reached the real file is for the parent to see: the sandbox may show a folder of its own.
        Path(canaries["write"]).write_text("reached")
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", int(canaries["port"])), timeout=1).close()
        reached["network"] = True
    with contextlib.suppress(OSError):
        reached["processes"] = Path(f"/proc/{canaries['pid']}/status").exists() and _is_process(canaries)
    return reached


def _is_process(canaries: dict[str, str]) -> bool:
    return Path(f"/proc/{canaries['pid']}/cmdline").read_bytes().hex() == canaries["cmdline"]


if __name__ == "__main__":
    main()
