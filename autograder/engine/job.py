"""What a check is given: the learner's code in a sandbox, secret random numbers, and ways to say what is wrong."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from autograder.common import Speed
from autograder.course import Exercise, values_of
from autograder.engine import told
from autograder.engine.sandbox import Stop
from autograder.engine.sandbox import start as sandbox
from autograder.engine.source.drawn import student_in
from autograder.engine.timing import KeptBlock
from autograder.engine.workers import CheckFailed, Worker, WorkerFailed, at_once, failure

__all__ = ["CheckFailed", "Job", "Progress", "Worker", "WorkerFailed", "failure"]

Progress = Callable[[str, float], None]
#: What takes a second to import, and the words by which its need is seen. A need that is not seen costs the second.
_SLOW_IMPORTS = {
    "torch._dynamo": re.compile(r"\boptim\b|make_optimizer|Trainer"),
    "scipy.stats": re.compile(r"\bscipy\b"),
}


@dataclass
class Job:
    """One exercise being checked. Lessons' check functions take one of these and return nothing."""

    exercise_id: str
    entry: str
    source: str
    harness: str
    rng: np.random.Generator
    allows: tuple[str, ...] = ()
    """Means that the exercise asks for, as `Exercise.allows` has them."""
    progress: Progress = lambda text, fraction: None
    stop: Stop = field(default_factory=Stop)
    drawn: dict[str, Any] = field(default_factory=dict)
    """The values of the student whom the cell names, of an exercise that `draws`."""
    threads: int = 1
    bar: float = 0.0
    """The speedup asked for, of a timed exercise; and the frozen baseline's source, under the learner's name."""
    baseline: str = ""
    is_reference: bool = False
    """Whether its source is our reference: `workbook calibrate` wants its time, whatever it is."""
    talks: bool = False
    """Its workers start processes that talk to each other over loopback. Set before the first worker is made."""
    serves: bool = False
    """Its workers wait for samples that another process serves to each: `worker.storage`. Set as early."""
    counts: dict[str, float] = field(default_factory=dict)
    speed: Speed | None = None
    raw_blocks: list[KeptBlock] = field(default_factory=list)
    prior_blocks: list[KeptBlock] = field(default_factory=list)
    reference_speedup: float | None = None
    """What our reference reaches on this machine, by `workbook calibrate`; None where nothing was calibrated."""
    review: list[str] = field(default_factory=list)
    conditions: dict[str, object] = field(default_factory=dict)
    """What the machine was like while it measured; kept in the evidence, no part of the verdict."""
    _workers: dict[str, Worker] = field(default_factory=dict)
    _of_cell: set[str] = field(default_factory=set)
    """Workers that hold the learner's cell."""
    _of_twin: str = ""
    _secret: int = field(default_factory=lambda: secrets.randbits(128))

    @classmethod
    def of(cls, exercise: Exercise, source: str, harness: str) -> Job:
        """A job for one exercise, with random numbers of its own."""
        job = cls(exercise.id, exercise.entry, source, harness, np.random.default_rng())
        job.allows = exercise.allows
        job.drawn = values_of(exercise, student_in(source)) if exercise.draws else {}
        if exercise.clock:
            job.bar, job.baseline = exercise.clock.bar, exercise.part(exercise.clock.baseline)
        return job

    def learner(self) -> Worker:
        """The worker that holds the learner's cell; loaded at first use."""
        return self.worker("learner", self.source)

    def worker(self, name: str, source: str) -> Worker:
        """The worker called `name`, holding `source`: the learner's, a baseline or a reference."""
        if name not in self._workers:
            modules = [module for module, used in _SLOW_IMPORTS.items() if used.search(self.harness + source)]
            worker = self._workers[name] = Worker(
                threads=self.threads, talks=self.talks, serves=self.serves, modules=modules
            )
            if self.source in source:
                self._of_cell.add(name)
            self.stop.raise_if_pressed()  # a stop ends the workers that there are
            worker.load(self.harness, source, self.entry)
        return self._workers[name]

    def twin(self, source: str) -> Worker:
        """A worker that holds a reference of ours; another source takes the place of the one before."""
        if "twin" in self._workers and source != self._of_twin:
            self._workers["twin"].load(self.harness, source, self.entry)
        self._of_twin = source
        return self.worker("twin", source)

    def both(
        self, twin: str, function: str, *, of_twin: Mapping[str, Any] | None = None, **arguments: Any
    ) -> tuple[Any, Any]:
        """What the learner's cell and the reference `twin` answer to one call; both work at once, so nothing is timed.

        Args:
            twin: its source.
            of_twin: which of the `arguments` are others for it.
        """
        workers = self.learner(), self.twin(twin)
        own, theirs = at_once(
            partial(workers[0].call, function, **arguments),
            partial(workers[1].call, function, **arguments | dict(of_twin or {})),
        )
        return own, theirs

    def corpus(self) -> None:
        """Make sure that the built-in data are tokenised before a worker, which may only read, asks for them."""
        from course_lib.data import docstring_store

        self.progress("Looking for the built-in data (tokenised once, in about ten seconds)", 0.0)
        docstring_store(progress=False)

    def seed(self) -> int:
        """A fresh secret seed."""
        return int(self.rng.integers(2**31))

    def hidden(self, seed: int) -> np.random.Generator:
        """Random numbers that belong to this job and a seed: a worker that is told the seed cannot draw them."""
        return np.random.default_rng([self._secret, seed])

    def require(self, holds: bool, *, expected: str, got: str, likely: str, look: str) -> None:
        """Fail the check unless `holds`, in the one form of `failure`."""
        if not holds:
            raise failure(expected=expected, got=got, likely=likely, look=look)

    def flag(self, reason: str) -> None:
        """Ask a person to look at this solution, without touching its score."""
        self.review.append(reason)

    def level(self) -> sandbox.Level:
        """The weakest level that any worker of this job proved."""
        proven = [worker.level or "limits" for worker in self._workers.values()]
        return max(proven, key=sandbox.LEVELS.index, default="limits")

    def close(self) -> None:
        """End every process of this job."""
        for worker in self._workers.values():
            worker.kill()
        own = [self._workers[name] for name in sorted(self._of_cell)]
        if replaced := sorted({name for worker in own for name in worker.replaced}):
            self.flag(f"the cell replaces {', '.join(replaced)} in its process")
        if not all(worker.told.is_whole for worker in own):
            self.flag(
                "what was told of its counts is not whole: a message is missing, or came from somewhere else"
            )
        flags = dict.fromkeys(reason for worker in own for reason in worker.told.flags)
        self.review += [reason for reason in flags if reason not in self.review]
        deeds = dict.fromkeys(deed for worker in own for deed in worker.told.deeds)
        self.review += told.reasons(deeds, allowed=self.allows, read=self.review)
