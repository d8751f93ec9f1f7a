"""Runs `extract.py` over many files in several processes.

Plain subprocesses rather than `multiprocessing`: nothing is forked from a kernel full of threads, and a
user's script needs no `if __name__ == "__main__"` guard.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from pathlib import Path

from course_lib.data import extract

MAX_PROCESSES = 8


def extract_all(paths: Sequence[Path], *, modules: Sequence[str], progress: bool) -> list[list[str] | None]:
    """Masked docstrings of each file, in the order of `paths`; None where a file cannot be parsed.

    `modules` are the names that `extract.Mask` takes. The result does not depend on the number of processes.
    Draws a progress bar (in bytes read) on stdout.
    """
    from tqdm import tqdm

    sizes = [_size(path) for path in paths]
    results: dict[int, list[str] | None] = {}
    bar = tqdm(
        total=sum(sizes),
        desc="Reading docstrings",
        unit="B",
        unit_scale=True,
        mininterval=0.5,
        file=sys.stdout,
        disable=not progress,
    )
    # closing: on Ctrl-C the traceback would otherwise keep the generator, and with it the processes, alive.
    with bar, contextlib.closing(_in_processes(paths, modules, sizes)) as arriving:
        for index, docs in arriving:
            results[index] = docs
            bar.update(sizes[index])
        # Processes cannot be started here, or one was killed: slower, but the same result.
        mask = extract.Mask(modules)
        for index in (i for i in range(len(paths)) if i not in results):
            results[index] = extract.extract(str(paths[index]), mask)
            bar.update(sizes[index])
    return [results[index] for index in range(len(paths))]


def _in_processes(
    paths: Sequence[Path], modules: Sequence[str], sizes: Sequence[int]
) -> Generator[tuple[int, list[str] | None], None, None]:
    largest_first = sorted(range(len(paths)), key=lambda index: (-sizes[index], index))
    num_processes = max(1, min(MAX_PROCESSES, _available_cores(), len(paths)))
    arrived: queue.SimpleQueue[tuple[int, list[str] | None] | None] = queue.SimpleQueue()
    workers = []
    try:
        for number in range(num_processes):
            share = largest_first[number::num_processes]
            worker = _start()
            if worker is not None:
                workers.append(worker)
                job = {"modules": list(modules), "paths": [str(paths[index]) for index in share]}
                arguments = (worker, share, job, arrived)
                threading.Thread(target=_converse, args=arguments, daemon=True).start()
        still_running = len(workers)
        while still_running:
            item = arrived.get()
            if item is None:
                still_running -= 1
            else:
                yield item
    finally:  # also on Ctrl-C: no process outlives the build
        for worker in workers:
            worker.kill()
            worker.wait()


def _start() -> subprocess.Popen[str] | None:
    try:
        return subprocess.Popen(
            [sys.executable, "-I", str(Path(extract.__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )
    except OSError:
        return None


def _converse(
    worker: subprocess.Popen[str],
    share: list[int],
    job: dict[str, list[str]],
    arrived: queue.SimpleQueue[tuple[int, list[str] | None] | None],
) -> None:
    """Give one worker its files and pass on what it answers; a worker that dies just answers less."""
    try:
        assert worker.stdin is not None and worker.stdout is not None
        with worker.stdin:
            json.dump(job, worker.stdin)
        with worker.stdout:
            for line in worker.stdout:
                position, docs = json.loads(line)
                arrived.put((share[position], docs))
    except (OSError, ValueError):
        pass
    finally:
        arrived.put(None)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
