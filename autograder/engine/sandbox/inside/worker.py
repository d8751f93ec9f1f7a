"""The process in which learner code runs. It is never believed: it only answers calls over a pipe.

Forked by the fork server, or started by `autograder.engine.sandbox.start` where that cannot be. It limits itself,
says hello with
what it can reach, and then serves: `load` (a harness and the source of one exercise cell) and `call` (one function of
the harness). The parent owns the clock, the secret seeds and every comparison.
"""

from __future__ import annotations

import contextlib
import gc
import json
import linecache
import os
import socket
import sys
import tempfile
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parent))

import accounts  # type: ignore[import-not-found]
import guard  # type: ignore[import-not-found]
import isolate  # type: ignore[import-not-found]
import layouts  # type: ignore[import-not-found]
import notebook_names  # type: ignore[import-not-found]
import telling  # type: ignore[import-not-found]
import wire  # type: ignore[import-not-found]

CELL_NAME = "<your cell>"


def main() -> None:
    """Serve a parent that started this process by itself, where it cannot fork one that is prepared."""
    requests, answers = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)  # what learner code prints must not reach the pipe; the log keeps a crash's last words
    serve(requests, answers, json.loads(sys.argv[1]))


def serve(requests: int, answers: int, options: dict[str, Any]) -> NoReturn:
    """Limit this process, say hello with what it can reach, and answer until the parent hangs up."""
    home, threads = options["home"], options["threads"]
    Path(home).mkdir(exist_ok=True)
    os.chdir(home)
    os.environ |= dict.fromkeys(("HOME", "TMPDIR", "TEMP"), home)
    tempfile.tempdir = None  # the fork server had another
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    isolate.limit(options["limits"])
    accounts.keep()
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # out of memory: this one first
    import numpy as np
    import torch

    np.random.seed()
    torch.set_num_threads(threads)
    with contextlib.suppress(RuntimeError):
        torch.set_num_interop_threads(threads)
    # No file of this process's memory can be opened, by whoever is no administrator.
    with contextlib.suppress(OSError, AttributeError):
        isolate.call("prctl", 4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
    key = os.read(requests, wire.KEY_BYTES)
    stream, seal = os.fdopen(answers, "wb"), wire.sealer(key, "answer")
    wire.send(stream, {"ready": True, "reached": _reach(options["canary"])}, seal)

    _serve(os.fdopen(requests, "rb"), stream, options["tells"], key, seal)


def _serve(requests: BinaryIO, answers: BinaryIO, tells: int | None, key: bytes, seal: wire.Seal) -> NoReturn:
    asked = wire.sealer(key, "request")
    harness: dict[str, Any] = {}
    replaced: Callable[[], list[str]] = list
    tell, kept = telling.teller(tells, key)
    machinery = "worker wire accounts isolate guard deeds paths arrays layouts notebook_names telling"
    layouts.close(tell)
    guard.close(tell, *machinery.split())
    while True:
        try:
            request = wire.receive(requests, asked)
        except wire.WireError:
            os._exit(0)  # the parent is gone: no clean-up of learner code may hold us
        try:
            if request["do"] == "load":
                loaded = request["harness"], request["source"], request["entry"]
                _kept_for_children().write_text(json.dumps(loaded), encoding="utf-8")
                harness, replaced = _load(*loaded, tell)
                answer: dict[str, Any] = {"value": None}
            elif request["do"] == "pin":
                answer = {"value": _pin(request["threads"])}
            else:
                value = harness[request["function"]](**request["arguments"])
                _synchronize()
                answer = {"value": _plain(value)}
        except BaseException as error:  # SystemExit and KeyboardInterrupt from learner code as well
            answer = {"error": _describe(error)}
        # Without the number, which the cell does not know, a frame that it wrote by itself is no answer. And what was
        # told before it was told before this message.
        tell("answer", request["number"])
        mark = {"number": request["number"], "replaced": replaced(), "told": kept()}
        try:
            wire.send(answers, mark | answer, seal)
        except TypeError as error:
            wire.send(answers, mark | {"error": _describe(error)}, seal)


def _load(
    harness_source: str, source: str, entry: str, tell: telling.Tell | None = None
) -> tuple[dict[str, Any], Callable[[], list[str]]]:
    """Run the harness, then the learner's cell in a module of its own; the harness knows it as `learner`.

    The harness comes first, so that what it imports is what the libraries hold. Returns its namespace, and what
    names the functions that were replaced since then.
    """
    marker, module, harness = map(types.ModuleType, ("autograder", "__learner__", "harness"))
    marker.__dict__.update(notebook_names.NAMES)
    module.__dict__.update(notebook_names.NAMES)
    # A DataLoader's worker unpickles what the cell and the harness define by these names.
    sys.modules |= {"autograder": marker, "__learner__": module, "harness": harness}
    harness.__dict__["tell"] = tell
    exec(compile(harness_source, "<harness>", "exec"), harness.__dict__)
    replaced = guard.watch(harness.__dict__)
    linecache.cache[CELL_NAME] = (len(source), None, source.splitlines(keepends=True), CELL_NAME)
    exec(compile(source, CELL_NAME, "exec", dont_inherit=True), module.__dict__)
    if entry not in module.__dict__:
        raise NameError(f"the cell defines no `{entry}`")
    harness.__dict__["learner"] = module.__dict__[entry]
    return dict(harness.__dict__), replaced


def _kept_for_children() -> Path:
    return Path(os.environ["TMPDIR"]) / "loaded.json"


def load_again() -> None:
    """In a process that learner code spawned and not forked: what it unpickles was defined in its parent."""
    layouts.close()
    _load(*json.loads(_kept_for_children().read_text(encoding="utf-8")))


def _pin(threads: int) -> dict[str, int]:
    """The same start for every timed call. Says how garbage collection and threads stood after the one before."""
    torch = sys.modules["torch"]
    found = {"collects": int(gc.isenabled()), "threads": torch.get_num_threads()}
    gc.collect()
    gc.freeze()  # what is left stays; the next collection looks at what came after it alone
    gc.disable()
    torch.set_num_threads(threads)
    _synchronize()
    return found


def _synchronize() -> None:
    """Wait for a GPU, if one is in use: its kernels run behind the clock's back.

    Apple's cannot be hidden from a worker. Where a worker reaches devices, its cell may bring another back.
    """
    torch = sys.modules["torch"]
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    elif torch.backends.mps.is_available():
        torch.mps.synchronize()


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
        "errno": error.errno if isinstance(error, OSError) else None,
        "in_cell": bool(frames) or isinstance(error, SyntaxError),
    }


def _reach(canary: dict[str, Any]) -> list[str]:
    """Try what the sandbox promises to prevent, before any learner code is here."""
    reached = []
    for path in canary["read"]:
        with contextlib.suppress(OSError):
            Path(path).read_bytes()
            reached.append(f"file {path}")
    with contextlib.suppress(OSError), Path(canary["write"]).open("a") as file:
        # Whether this reached the real file is for the parent to see: the sandbox may show a folder of its own.
        file.write(canary["token"])
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", int(canary["port"])), timeout=1).close()
        reached.append("network")
    with contextlib.suppress(OSError, AttributeError):
        if (
            str(Path("/proc/self/ns/pid").readlink()) == canary["processes"]
        ):  # else the number means another process
            os.kill(canary["pid"], 0)
            reached.append("processes")
    with contextlib.suppress(OSError):
        Path(f"/proc/{canary.get('server')}/mem").open("rb").close()
        reached.append("memory of the fork server")
    return reached


if __name__ == "__main__":
    main()
elif __name__ == "__mp_main__":
    load_again()
