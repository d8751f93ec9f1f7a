"""Where units are checked other than on this machine: a Dask cluster (`workbook grade … --cluster ADDRESS`).

The scheduler and the workers are Dask's own programs, started by whoever runs the machines; on each of them the same
version of the workbook is installed with the extra `cluster`:

    dask scheduler                                                       # one, on any machine
    dask worker tcp://SCHEDULER:8786 --nthreads N --resources "lane=N"   # one per machine, N: its cores

A thread checks one unit at a time, in an engine process of its own, which ends with the worker. A timed unit takes a
lane as well: give a machine no more of them than cores. What a lost worker had in hand is run again by another. Whoever
reaches a scheduler can run code on its workers: keep it in a network of your own, or use Dask's TLS.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path
from typing import Any

from autograder.common import Result
from autograder.grading.units import Unit, check_died, check_unit
from course_lib.base import UserError, atomic_write_text, require

CONNECT_SECONDS = 10
LANE = "lane"
_HOW = f'dask worker ADDRESS --nthreads N --resources "{LANE}=N", N being its cores'
_OTHER_VERSION = "{} does not run this version of the workbook ({}): install the same version on every worker"


@contextlib.contextmanager
def cluster(address: str, require_sandbox: str | None = None) -> Iterator[Executor]:
    """Yield an executor of `check_unit` on the Dask cluster whose scheduler is at `address`.

    Args:
        require_sandbox: the weakest sandbox level that a worker may have.

    Raises UserError without the extra, a scheduler or a worker with a lane. A worker of another version or with a
    weaker sandbox, and a scheduler that goes away, are UserErrors of the futures.
    """
    distributed = require("distributed", extra="cluster")
    for name in [each for each in logging.root.manager.loggerDict if each.startswith("distributed")]:
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters of it is told in our own lines
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UserError(
            f"no Dask scheduler answers at {address} ({str(error)[:200] or type(error).__name__}): "
            "start one there with `dask scheduler`, and give its address, as tcp://HOST:8786"
        ) from None
    with client:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        if not workers:
            raise UserError(f"the cluster at {address} has no worker; on each machine, run: {_HOW}")
        if not any(worker["resources"].get(LANE, 0) >= 1 for worker in workers):
            raise UserError(f"no worker of {address} has a lane for timed work; start them again so: {_HOW}")
        yield _Cluster(client, address, require_sandbox)


class _Cluster(Executor):
    def __init__(self, client: Any, address: str, require_sandbox: str | None) -> None:
        self.client, self.address, self.require_sandbox = client, address, require_sandbox
        self.task = _task()
        self.asked: set[Any] = set()  # Dask drops work that nobody holds

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """The unit's result to come. Two graders that ask for the same at once get one and the same."""
        assert fn is check_unit and not kwargs, "a cluster checks units and runs nothing else"
        unit: Unit = args[0]
        answer: Future[Any] = Future()
        asked = self.client.submit(
            self.task,
            unit.exercise_id,
            unit.source,
            unit.key,
            self.require_sandbox,
            key=f"workbook-{self.require_sandbox}-{unit.key}",
            resources={LANE: 1} if unit.is_timed else None,
        )
        self.asked.add(asked)
        asked.add_done_callback(lambda done: self._hand_over(unit, done, answer))
        return answer

    def _hand_over(self, unit: Unit, asked: Any, answer: Future[Any]) -> None:
        """In a thread of the client."""
        self.asked.discard(asked)
        try:
            answer.set_result(self._result(unit, asked))
        except BaseException as error:
            answer.set_exception(error)

    def _result(self, unit: Unit, asked: Any) -> Result:
        if asked.status not in ("finished", "error"):
            raise UserError(
                f"the scheduler at {self.address} went away: start it, and run the same command again; "
                "it goes on with what was finished"
            )
        if asked.status == "error":
            error = asked.exception()
            if (
                type(error).__name__ == "KilledWorker"
            ):  # each worker that took it was lost, one after the other
                return check_died(unit, "every worker that ran it was lost")
            if isinstance(error, ImportError):
                raise UserError(_OTHER_VERSION.format(f"a worker of {self.address}", error))
            raise UserError(f"a worker of {self.address} could not check {unit.exercise_id}: {error!r}"[:400])
        answer = asked.result()
        if "problem" in answer:
            raise UserError(answer["problem"])
        return _with_evidence(Result.of_message(answer["result"]), answer["files"])


def _task() -> Callable[..., dict[str, Any]]:
    """What is sent. A function within a function travels as its code: a machine without the workbook then says that
    it cannot import it, where Dask's workers die of a name that they cannot load."""

    def check(exercise_id: str, source: str, key: str, require_sandbox: str | None) -> dict[str, Any]:
        from autograder.grading.executors import check_here

        return check_here(exercise_id, source, key, require_sandbox)

    return check


def check_here(exercise_id: str, source: str, key: str, require_sandbox: str | None) -> dict[str, Any]:
    """On a worker: `result` with the evidence's `files` (text by name), or the `problem` with this machine."""
    import platform

    from autograder.engine.sandbox import LEVELS, probe

    unit, here = Unit(exercise_id, source), f"the worker on {platform.node()}"
    if unit.key != key:
        return {"problem": _OTHER_VERSION.format(here, f"its code for {exercise_id} is not the same")}
    if require_sandbox and LEVELS.index((held := probe()).level) > LEVELS.index(require_sandbox):
        return {
            "problem": f"sandbox level {require_sandbox!r} is required, and {here} holds {held.level!r}: "
            f"{held.reason}. {held.fix}"
        }
    result = check_unit(unit)
    kept = Path(result.evidence) if result.evidence else None
    files = [kept, kept.with_suffix(".html")] if kept else []
    return {
        "result": result.to_message(),
        "files": {path.name: path.read_text(encoding="utf-8") for path in files},
    }


def _with_evidence(result: Result, files: dict[str, str]) -> Result:
    """The result with its evidence at home: a worker's disk is gone when the worker is."""
    from autograder.common import data_directory

    folder = data_directory() / "evidence" / "cluster"  # apart: what was measured here goes on by itself
    for name, text in files.items():
        atomic_write_text(folder / Path(name).name, text)
    kept = str(folder / Path(result.evidence).name) if files and result.evidence else None
    return replace(result, evidence=kept)
